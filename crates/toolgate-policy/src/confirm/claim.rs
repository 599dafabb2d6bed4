//! Redeeming approvals and grants for a call, and opening new approvals.

use super::{
    ApprovalBinding, ApprovalService, ApprovalStatus, grants, id, kept::StoredApproval,
    slip::PendingApproval, waiting::DecisionWait,
};
use crate::{WriteOutcome, WritePrecondition};
use std::{sync::Arc, time::SystemTime};
use toolgate_core::{BoxFuture, Call, DecisionWaiter, Error, ErrorKind, Item, Json};
use toolgate_journal::AuditEntry;

/// Result of looking up an approval or a grant for a call.
#[derive(Debug)]
pub(super) enum RedeemOutcome {
    /// An approval, spent by this lookup.
    Spent {
        id: Arc<str>,
        why: String,
        /// Arguments as edited by the approver.
        edit: Option<Json>,
    },
    /// A grant (remembered approval).
    Granted { why: String },
    /// No approval yet.
    Open,
}

/// A pending approval.
pub(super) struct OpenedApproval {
    pub(super) id: Arc<str>,
    pub(super) expires: SystemTime,
    pub(super) waiting: Arc<dyn DecisionWaiter>,
}

/// An approval whose spending is being written to the store.
struct PendingRedemption {
    claim: RedeemOutcome,
    record: AuditEntry,
    writing: BoxFuture<'static, Result<WriteOutcome, Error>>,
}

impl ApprovalService {
    /// Redeems an approval or a grant for a call.
    ///
    /// A denial is an error. An approval is spent, and a use of a grant is counted.
    pub(super) async fn claim(
        &self,
        call: &Call,
        item: &Item,
        binding: &ApprovalBinding,
        slot: Option<&str>,
    ) -> Result<RedeemOutcome, Error> {
        for _ in 0..ApprovalService::MAX_WRITE_ATTEMPTS {
            self.sweep();
            let Some(spending) = self.spend(call, binding, slot)? else {
                if let Some(why) = self.granted(call, item, binding).await? {
                    return Ok(RedeemOutcome::Granted { why });
                }
                let expired = self.book().expired(binding, slot, &self.limits);
                return expired.map_or(Ok(RedeemOutcome::Open), Err);
            };
            // The approval is spent in the store first, so that two concurrent calls cannot both use it, in any
            // process. If the audit record then fails or the caller disconnects, the approval is lost and nothing runs.
            let written = spending.writing.await?;
            self.sync();
            if let WriteOutcome::Done(_) = written {
                self.touch();
                self.recorder.append(spending.record)?.await?;
                return Ok(spending.claim);
            }
        }
        Err(busy())
    }

    fn spend(
        &self,
        call: &Call,
        binding: &ApprovalBinding,
        slot: Option<&str>,
    ) -> Result<Option<PendingRedemption>, Error> {
        let mut book = self.book();
        if let Some(error) = book.denied(call, binding) {
            return Err(error);
        }
        let Some((slip, after)) = book.usable(call, binding, slot) else {
            return Ok(None);
        };
        let (id, edit) = (slip.id.clone(), slip.kept.edit.clone());
        let verb = if edit.is_some() { "edited " } else { "" };
        let yeses = slip.kept.yeses.iter().map(ToString::to_string);
        let why = format!("{id} {verb}by {}", yeses.collect::<Vec<_>>().join(" and "));
        let record = slip
            .record(after.as_str())
            .with("call", &*call.id)
            .with("round", call.round.number);
        let writing = slip.write(self.store.as_ref(), |kept| kept.standing = after);
        Ok(Some(PendingRedemption {
            claim: RedeemOutcome::Spent { id, why, edit },
            record,
            writing,
        }))
    }

    /// Counts one use of a matching grant. A condition that fails to evaluate does not hold.
    async fn granted(
        &self,
        call: &Call,
        item: &Item,
        binding: &ApprovalBinding,
    ) -> Result<Option<String>, Error> {
        let speaks = |grant: &&grants::StoredApprovalGrant| grant.view.speaks_of(binding);
        if !self.book().grants.iter().any(|grant| speaks(&grant)) {
            return Ok(None);
        }
        let _turn = self.turns.lock().await;
        for _ in 0..ApprovalService::MAX_WRITE_ATTEMPTS {
            let now = self.now();
            let found = {
                let book = self.book();
                let mut grants = book.grants.iter().filter(speaks);
                grants.find(|grant| holds(grant, call, item, now)).cloned()
            };
            let Some(grant) = found else {
                return Ok(None);
            };
            let (id, used) = (&grant.view.id, grant.view.used_once(now).json());
            let expect = WritePrecondition::Version(grant.version);
            let written = self
                .store
                .write(grants::GRANTS_TABLE, id, Some(used), expect);
            let written = written.await?;
            self.sync();
            if let WriteOutcome::Done(_) = written {
                return Ok(Some(format!("{id} remembered by {}", grant.view.by)));
            }
        }
        Err(busy())
    }

    /// Creates an approval, or returns the pending one with the same binding.
    pub(super) async fn open(
        self: &Arc<ApprovalService>,
        call: &Call,
        item: &Arc<Item>,
        binding: ApprovalBinding,
        reasons: &[String],
        needs: u32,
    ) -> Result<OpenedApproval, Error> {
        let (opened, record) = self.place(call, item, binding, reasons, needs)?;
        let Some(record) = record else {
            return Ok(opened);
        };
        let placed = UnstoredApproval(self, &opened.id);
        self.recorder.append(record)?.await?;
        let writing = {
            let mut book = self.book();
            let slip = book.slip(&opened.id).ok_or_else(busy)?;
            slip.write(self.store.as_ref(), |_| {})
        };
        let written = writing.await?;
        self.sync();
        drop(placed);
        self.touch();
        match written {
            WriteOutcome::Done(_) => Ok(opened),
            WriteOutcome::Conflict => Err(busy()),
        }
    }

    fn place(
        self: &Arc<ApprovalService>,
        call: &Call,
        item: &Arc<Item>,
        binding: ApprovalBinding,
        reasons: &[String],
        needs: u32,
    ) -> Result<(OpenedApproval, Option<AuditEntry>), Error> {
        let mut book = self.book();
        let waits = |slip: &PendingApproval| slip.alive() && slip.kept.needs >= needs;
        if let Some(slip) = book.bound(&binding, waits) {
            slip.calls.insert(call.id.clone());
            return Ok((self.opened(slip), None));
        }
        book.room(&binding, &self.limits)?;
        let id = loop {
            let id = id::fresh('a')?;
            if book.slip(&id).is_none() {
                break id;
            }
        };
        let now = self.now();
        let kept = StoredApproval {
            binding,
            item: item.clone(),
            arguments: call.arguments().raw().clone(),
            reasons: reasons.to_vec(),
            seen: call.seen.clone(),
            call: call.id.clone(),
            asked: now,
            expires: now + self.limits.life,
            needs,
            yeses: Vec::new(),
            edit: None,
            standing: ApprovalStatus::Open,
        };
        let slip = PendingApproval::new(id, 0, kept, (now, self.limits.life));
        let arguments = slip.kept.arguments.as_str();
        let record = slip
            .record(ApprovalStatus::Open.as_str())
            .with("call", &*call.id)
            .with("reasons", reasons)
            .with("needs", needs)
            .with("args_len", arguments.len())
            .with(
                "args_mac",
                self.recorder.mac(arguments.as_bytes()).unwrap_or_default(),
            );
        let opened = self.opened(&slip);
        book.slips.push(slip);
        Ok((opened, Some(record)))
    }

    fn opened(self: &Arc<ApprovalService>, slip: &PendingApproval) -> OpenedApproval {
        let wait = DecisionWait {
            desk: self.clone(),
            id: slip.id.clone(),
            decided: slip.decided.subscribe(),
            expiry: slip.expiry,
            caller: slip.kept.binding.caller.clone(),
            server: slip.kept.binding.server.clone(),
        };
        OpenedApproval {
            id: slip.id.clone(),
            expires: slip.expiry.wall,
            waiting: Arc::new(wait),
        }
    }

    /// Counts the callers that wait for an approval.
    pub(super) fn count(&self, id: &str, more: bool) {
        if let Some(slip) = self.book().slip(id) {
            slip.waiters = if more {
                slip.waiters + 1
            } else {
                slip.waiters.saturating_sub(1)
            };
        }
        self.touch();
    }
}

fn holds(grant: &grants::StoredApprovalGrant, call: &Call, item: &Item, now: SystemTime) -> bool {
    if grant.view.over(now).is_some() {
        return false;
    }
    let Some(when) = &grant.when else {
        return true;
    };
    when.judge(call, item).unwrap_or_else(|why| {
        let text = format!(
            "the condition of {} cannot be evaluated: {why}",
            grant.view.id
        );
        call.trail.add("confirm", "stricter", text);
        false
    })
}

/// The error of a change that other processes keep overtaking.
pub(super) fn busy() -> Error {
    Error::new(
        ErrorKind::Busy(None),
        "other processes keep changing the approval; try again",
    )
}

/// Guard of an approval that is not in the store yet: removes it from the index if the write never succeeds.
struct UnstoredApproval<'a>(&'a ApprovalService, &'a Arc<str>);

impl Drop for UnstoredApproval<'_> {
    fn drop(&mut self) {
        let unkept = |slip: &PendingApproval| slip.id == *self.1 && slip.version == 0;
        self.0.book().slips.retain(|slip| !unkept(slip));
    }
}
