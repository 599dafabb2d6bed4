//! Where approvals lie: open ones, decided ones, and grants. In memory; the journal keeps what was decided.

use super::{
    ApprovalView, Binding, By, DeskError, DeskLimits, GrantView, Standing,
    book::Book,
    harmless, id,
    slip::{Expiry, Slip},
    waiting::Wait,
};
use crate::{Recorder, text};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};
use tokio::sync::watch;
use toolgate_core::{Call, Error, Item, Waiting};
use toolgate_journal::{Entry, Event};

/// What the desk has for a call.
#[derive(Debug)]
pub(super) enum Claim {
    /// An approval, used up by this.
    Spent { id: Arc<str>, why: String },
    /// A grant.
    Granted { why: String },
    /// Nothing yet.
    Open,
}

/// An approval that waits.
pub(super) struct Opened {
    pub(super) id: Arc<str>,
    pub(super) expires: SystemTime,
    pub(super) waiting: Arc<dyn Waiting>,
}

/// Where approvals lie.
pub struct Desk {
    recorder: Arc<Recorder>,
    limits: DeskLimits,
    book: Mutex<Book>,
    changed: watch::Sender<u64>,
}

impl Desk {
    /// Slips that are remembered at most; the oldest that are over go first.
    const MOST: usize = 4096;

    /// An empty desk.
    pub fn new(recorder: Arc<Recorder>, limits: DeskLimits) -> Arc<Desk> {
        Arc::new(Desk {
            recorder,
            limits,
            book: Mutex::default(),
            changed: watch::Sender::new(0),
        })
    }

    /// Counts the changes on the desk.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// The approvals that can still be decided or used, oldest first.
    pub fn list(&self) -> Vec<ApprovalView> {
        self.sweep();
        self.book()
            .slips
            .iter()
            .filter(|slip| slip.alive())
            .map(ApprovalView::of)
            .collect()
    }

    /// One approval, whatever became of it, as long as it is remembered.
    pub fn find(&self, id: &str) -> Option<ApprovalView> {
        self.sweep();
        self.book().slip(id).map(|slip| ApprovalView::of(slip))
    }

    /// Says yes: good for one use of exactly this call. With `remember`, also for later calls of this tool by this
    /// caller until the gateway stops.
    ///
    /// # Errors
    /// It is decided already, unknown, or the yes could not be recorded; then nothing changed.
    pub async fn approve(&self, id: &str, by: By, remember: bool) -> Result<(), DeskError> {
        self.sweep();
        let (record, grant) = self.yes(id, by, remember)?;
        self.written(record).await?;
        let mut book = self.book();
        let slip = book.slip(id).ok_or(DeskError::Unknown)?;
        if slip.standing != Standing::Open || slip.expiry.past() {
            // A no that came meanwhile wins.
            return Err(DeskError::Decided(slip.standing.clone()));
        }
        slip.set(Standing::Approved(by));
        book.grants.extend(grant);
        drop(book);
        self.touch();
        Ok(())
    }

    fn yes(
        &self,
        id: &str,
        by: By,
        remember: bool,
    ) -> Result<(Entry, Option<GrantView>), DeskError> {
        let mut book = self.book();
        let room = book.grants.len() < self.limits.grants;
        let slip = book.slip(id).ok_or(DeskError::Unknown)?;
        if slip.standing != Standing::Open {
            return Err(DeskError::Decided(slip.standing.clone()));
        }
        let record = slip
            .record()
            .with("state", "approved")
            .with("by", by.as_str());
        if !remember {
            return Ok((record, None));
        }
        if !room || !harmless(&slip.item) {
            return Err(DeskError::NotRemembered);
        }
        let grant = GrantView::new(
            id::fresh('g').map_err(DeskError::Unrecorded)?,
            &slip.binding,
        );
        Ok((record.with("grant", &*grant.id), Some(grant)))
    }

    /// Says no, with a reason that the model reads. Wins over a yes that was not used yet.
    ///
    /// # Errors
    /// It is used up, denied or expired already, unknown, or the no could not be recorded.
    pub async fn deny(&self, id: &str, by: By, reason: Option<String>) -> Result<(), DeskError> {
        self.sweep();
        let reason = reason.map(|r| tidy(&r)).filter(|r| !r.is_empty());
        let record = {
            let mut book = self.book();
            let slip = book.slip(id).ok_or(DeskError::Unknown)?;
            if !slip.alive() {
                return Err(DeskError::Decided(slip.standing.clone()));
            }
            let record = slip
                .record()
                .with("state", "denied")
                .with("by", by.as_str());
            record.with("reason", reason.as_deref().unwrap_or_default())
        };
        // At once: a yes must not slip through while the no is on its way to the disk.
        self.hold(id, by, reason);
        let written = self.written(record).await;
        self.touch();
        written
    }

    /// Puts the no in its place. It stands even if it cannot be recorded: that is the safe side.
    fn hold(&self, id: &str, by: By, reason: Option<String>) {
        if let Some(slip) = self.book().slip(id).filter(|slip| slip.alive()) {
            slip.set(Standing::Denied(by, reason));
        }
    }

    /// The remembered yeses.
    pub fn grants(&self) -> Vec<GrantView> {
        self.book().grants.clone()
    }

    /// Forgets a remembered yes.
    ///
    /// # Errors
    /// There is no such grant, or its end could not be recorded; it is gone all the same.
    pub async fn revoke(&self, id: &str) -> Result<(), DeskError> {
        let grant = {
            let mut book = self.book();
            let at = book
                .grants
                .iter()
                .position(|grant| &*grant.id == id)
                .ok_or(DeskError::Unknown)?;
            book.grants.remove(at)
        };
        self.touch();
        let record = Entry::new(Event::APPROVAL)
            .with("state", "revoked")
            .with("grant", id);
        self.written(
            record
                .with("caller", grant.caller.name())
                .with("srv", &*grant.server)
                .with("tool", grant.tool),
        )
        .await
    }

    /// Ends all approvals that were asked under another policy: their calls are judged anew.
    pub fn policy_changed(&self, policy: &str) {
        self.expire(|slip| *slip.binding.policy != *policy);
    }

    /// Whether this approval waits for a decision on exactly this.
    pub(super) fn is_open(&self, id: &str, binding: &Binding) -> bool {
        let mut book = self.book();
        book.slip(id)
            .is_some_and(|slip| slip.alive() && slip.binding == *binding)
    }

    /// What there is for a call: a no, a yes that this uses up, a remembered yes, or nothing yet.
    pub(super) async fn claim(
        &self,
        call: &Call,
        binding: &Binding,
        slot: Option<&str>,
    ) -> Result<Claim, Error> {
        self.sweep();
        let spent = {
            let mut book = self.book();
            if let Some(error) = book.denied(call, binding) {
                return Err(error);
            }
            match book.spend(call, binding, slot) {
                Some(spent) => spent,
                None => {
                    if let Some(why) = book.granted(binding) {
                        return Ok(Claim::Granted { why });
                    }
                    return book
                        .expired(binding, slot, &self.limits)
                        .map_or(Ok(Claim::Open), Err);
                }
            }
        };
        // Used up in memory before it is on the disk: two calls at once cannot both have it. If the record fails, or
        // the caller leaves right now, the approval is lost, and nothing happens with it.
        let (record, id, why) = spent;
        self.touch();
        self.recorder.append(record)?.await?;
        Ok(Claim::Spent { id, why })
    }

    /// A new approval, or the one that waits for exactly this already.
    pub(super) async fn open(
        self: &Arc<Desk>,
        call: &Call,
        item: &Arc<Item>,
        binding: Binding,
        reasons: &[String],
    ) -> Result<Opened, Error> {
        let (opened, record) = self.place(call, item, binding, reasons)?;
        let Some(record) = record else {
            return Ok(opened);
        };
        self.touch();
        let written = match self.recorder.append(record) {
            Ok(written) => written.await,
            Err(error) => Err(error),
        };
        if let Err(error) = written {
            self.book().slips.retain(|slip| slip.id != opened.id);
            self.touch();
            return Err(error);
        }
        Ok(opened)
    }

    fn place(
        self: &Arc<Desk>,
        call: &Call,
        item: &Arc<Item>,
        binding: Binding,
        reasons: &[String],
    ) -> Result<(Opened, Option<Entry>), Error> {
        let mut book = self.book();
        if let Some(slip) = book.bound(&binding, Slip::alive) {
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
        let slip = Slip {
            id,
            binding,
            item: item.clone(),
            arguments: call.arguments().raw().clone(),
            reasons: reasons.to_vec(),
            seen: call.seen.clone(),
            asked: SystemTime::now(),
            expiry: Expiry::after(self.limits.life),
            standing: Standing::Open,
            calls: [call.id.clone()].into(),
            told: Default::default(),
            waiters: 0,
            decided: watch::Sender::new(false),
        };
        let arguments = self.recorder.mac(slip.arguments.as_str().as_bytes());
        let record = slip
            .record()
            .with("call", &*call.id)
            .with("reasons", reasons)
            .with("args_len", slip.arguments.as_str().len())
            .with("args_mac", arguments.unwrap_or_default());
        let opened = self.opened(&slip);
        book.slips.push(slip);
        Ok((opened, Some(record)))
    }

    fn opened(self: &Arc<Desk>, slip: &Slip) -> Opened {
        let wait = Wait {
            desk: self.clone(),
            id: slip.id.clone(),
            decided: slip.decided.subscribe(),
            expiry: slip.expiry,
        };
        Opened {
            id: slip.id.clone(),
            expires: slip.expiry.wall,
            waiting: Arc::new(wait),
        }
    }

    /// Counts who waits for an approval.
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

    /// Ends what is over, and forgets what has been over for a life.
    fn sweep(&self) {
        self.expire(|slip| slip.expiry.past());
        self.book().forget(self.limits.life, Desk::MOST);
    }

    fn expire(&self, over: impl Fn(&Slip) -> bool) {
        let expired = self.book().expire(over);
        if !expired.is_empty() {
            expired
                .into_iter()
                .for_each(|record| self.recorder.note(record));
            self.touch();
        }
    }

    async fn written(&self, record: Entry) -> Result<(), DeskError> {
        let written = self
            .recorder
            .append(record)
            .map_err(DeskError::Unrecorded)?;
        written.await.map_err(DeskError::Unrecorded)
    }

    fn touch(&self) {
        self.changed.send_modify(|n| *n += 1);
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reason as the model reads it: clean, and not without end.
fn tidy(reason: &str) -> String {
    const MOST: usize = 1000;
    text::clean(reason.trim()).chars().take(MOST).collect()
}
