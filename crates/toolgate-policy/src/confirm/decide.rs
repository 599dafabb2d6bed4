//! Decisions of approvers: approve, edit, remember, deny.

use super::{
    By, Desk, DeskError, GrantView, Remember, Standing, Who, claim::busy, condition::Condition,
    grants, harmless, id, slip::Slip,
};
use crate::{Expect, Written, text};
use toolgate_core::{Item, ItemKind, Json};
use toolgate_journal::Entry;
use toolgate_wire::json::Kind;

/// Terms of an approval decision: edited arguments, or a grant for later calls.
#[derive(Clone, Debug, Default)]
pub struct Yes {
    /// Replacement for the arguments. Every rule judges it like the original arguments before anything is sent.
    pub edit: Option<Json>,
    /// Grant to create for later calls.
    pub remember: Option<Remember>,
}

impl Yes {
    /// Returns terms that also create a grant.
    pub fn remembered(remember: Remember) -> Yes {
        Yes {
            edit: None,
            remember: Some(remember),
        }
    }

    /// Returns terms that replace the arguments.
    pub fn edited(arguments: Json) -> Yes {
        Yes {
            edit: Some(arguments),
            remember: None,
        }
    }
}

impl Desk {
    /// Approves one use of exactly this call.
    ///
    /// The approval stays [`Standing::Open`] until the required number of approvers approved it.
    ///
    /// # Errors
    /// It is decided already, unknown, not this person's to decide, or the yes could not be kept or recorded; then
    /// nothing changed. With [`DeskError::GrantUnkept`] the yes counts for this call and only its grant is missing.
    pub async fn approve(
        &self,
        id: &str,
        who: impl Into<Who>,
        yes: Yes,
    ) -> Result<Standing, DeskError> {
        let who = who.into();
        self.sweep();
        let (record, grant) = self.yes(id, &who, &yes)?;
        self.written(record).await?;
        // Recorded before it counts: a yes without a record must not let a call through.
        let put = self.put(id, &who, &yes).await;
        let standing = put.inspect_err(|why| self.undone("failed", id, &who, &grant, why))?;
        let granted = match &grant {
            Some(grant) => self.grant(grant).await,
            None => Ok(()),
        };
        self.touch();
        granted.inspect_err(|why| self.undone("grant_failed", id, &who, &grant, why))?;
        Ok(standing)
    }

    /// Stores a grant.
    async fn grant(&self, grant: &GrantView) -> Result<(), DeskError> {
        let row = Some(grant.json());
        let writing = self
            .store
            .write(grants::TABLE, &grant.id, row, Expect::Absent);
        let written = writing.await.map_err(DeskError::GrantUnkept)?;
        self.sync();
        match written {
            Written::Done(_) => Ok(()),
            Written::Conflict => Err(DeskError::GrantUnkept(busy())),
        }
    }

    /// Records that an approval, or only its grant, did not take effect after it was recorded.
    fn undone(&self, state: &str, id: &str, who: &Who, grant: &Option<GrantView>, why: &DeskError) {
        let Some(record) = self.book().slip(id).map(|slip| slip.record_by(state, who)) else {
            return;
        };
        let record = record.with("why", why.to_string());
        self.recorder.note(match grant {
            Some(grant) => record.with("grant", &*grant.id),
            None => record,
        });
    }

    /// Whether this person may say this yes to it, what is recorded then, and what is remembered.
    fn yes(&self, id: &str, who: &Who, yes: &Yes) -> Result<(Entry, Option<GrantView>), DeskError> {
        let mut book = self.book();
        let spare = self.spare(&book.grants);
        let slip = known(book.slip(id))?;
        let kept = &slip.kept;
        let next = slip.standing().approved(&kept.yeses, kept.needs, who)?;
        if who.by != By::Client && who.made(&kept.binding.caller, kept.needs) {
            return Err(DeskError::Own);
        }
        let state = match next {
            Standing::Open => "seconded",
            _ => "approved",
        };
        let mut record = slip.record_by(state, who);
        if let Some(edit) = &yes.edit {
            editable(slip, edit)?;
            let mac = self.recorder.mac(edit.as_str().as_bytes());
            record = record
                .with("edited", true)
                .with("args_len", edit.as_str().len())
                .with("args_mac", mac.unwrap_or_default());
        }
        let Some(remember) = &yes.remember else {
            return Ok((record, None));
        };
        may_remember(slip, remember)?;
        if !spare || yes.edit.is_some() {
            return Err(DeskError::NotRemembered);
        }
        let grant = id::fresh('g').map_err(DeskError::Unrecorded)?;
        let grant = GrantView::new(
            grant,
            &kept.binding,
            who.clone(),
            remember,
            (&self.limits, self.now()),
        );
        Ok((record.with("grant", &*grant.id), Some(grant)))
    }

    /// Checks the limit on grants. At the limit, the oldest grant that no longer holds is deleted.
    fn spare(&self, grants: &[grants::Grant]) -> bool {
        if grants.len() < self.limits.grants {
            return true;
        }
        let now = self.now();
        let over = grants.iter().filter(|grant| grant.view.over(now).is_some());
        let Some(oldest) = over.min_by_key(|grant| grant.view.since) else {
            return false;
        };
        let expect = Expect::Version(oldest.version);
        drop(
            self.store
                .write(grants::TABLE, &oldest.view.id, None, expect),
        );
        true
    }

    /// Writes an approval to the store. A concurrent denial wins.
    async fn put(&self, id: &str, who: &Who, yes: &Yes) -> Result<Standing, DeskError> {
        for _ in 0..Desk::TRIES {
            let (next, writing) = {
                let mut book = self.book();
                let slip = known(book.slip(id))?;
                if slip.expiry.past(self.store.clock()) {
                    return Err(DeskError::Decided(Standing::Expired));
                }
                let kept = &slip.kept;
                let next = slip.standing().approved(&kept.yeses, kept.needs, who)?;
                let writing = slip.write(self.store.as_ref(), |kept| {
                    kept.standing = next.clone();
                    kept.yeses.push(who.clone());
                    kept.edit = yes.edit.clone();
                });
                (next, writing)
            };
            let written = writing.await.map_err(DeskError::Unkept)?;
            self.sync();
            if let Written::Done(_) = written {
                return Ok(next);
            }
        }
        Err(DeskError::Unkept(busy()))
    }

    /// Denies a call, with a reason that the model reads. A denial overrides an approval that is not spent yet.
    ///
    /// # Errors
    /// The approval is unknown, spent, denied or expired, or the denial could not be stored or recorded. In this
    /// process it holds even if it could not be stored or recorded.
    pub async fn deny(
        &self,
        id: &str,
        who: impl Into<Who>,
        reason: Option<String>,
    ) -> Result<(), DeskError> {
        let who = who.into();
        self.sweep();
        let reason = reason.map(|r| tidy(&r)).filter(|r| !r.is_empty());
        {
            let mut book = self.book();
            let slip = known(book.slip(id))?;
            if !slip.alive() {
                return Err(DeskError::Decided(slip.standing()));
            }
            // Set before the write: an approval must not be spent while the denial is being stored.
            slip.no = Some((who.clone(), reason.clone()));
            slip.wake();
        }
        self.touch();
        let record = self.put_no(id, &who, reason).await?;
        self.written(record).await
    }

    async fn put_no(
        &self,
        id: &str,
        who: &Who,
        reason: Option<String>,
    ) -> Result<Entry, DeskError> {
        let no = Standing::Denied(who.clone(), reason.clone());
        for _ in 0..Desk::TRIES {
            let (record, writing) = {
                let mut book = self.book();
                let slip = known(book.slip(id))?;
                if !slip.kept.standing.alive() {
                    return Err(DeskError::Decided(slip.kept.standing.clone()));
                }
                let record = slip.record_by("denied", who);
                let writing = slip.write(self.store.as_ref(), |kept| kept.standing = no.clone());
                (record, writing)
            };
            let written = writing.await.map_err(DeskError::Unkept)?;
            self.sync();
            if let Written::Done(_) = written {
                return Ok(record.with("reason", reason.unwrap_or_default()));
            }
        }
        Err(DeskError::Unkept(busy()))
    }
}

/// Returns the approval if it is already in the store.
fn known(slip: Option<&mut Slip>) -> Result<&mut Slip, DeskError> {
    slip.filter(|slip| slip.version > 0)
        .ok_or(DeskError::Unknown)
}

fn editable(slip: &Slip, edit: &Json) -> Result<(), DeskError> {
    let why = if slip.kept.item.kind() != ItemKind::Tool {
        "only arguments of tools can be edited"
    } else if slip.kept.needs > 1 {
        "a call that needs several approvers cannot be edited; deny it with a reason"
    } else if edit.kind() != Kind::Object {
        "the arguments must be a JSON object"
    } else {
        return Ok(());
    };
    Err(DeskError::NotEdited(why.to_owned()))
}

fn may_remember(slip: &Slip, remember: &Remember) -> Result<(), DeskError> {
    if let Some(when) = &remember.when {
        let condition = Condition::compile(when).map_err(DeskError::Condition)?;
        let narrows = condition.narrows(&slip.kept.item);
        narrows.map_err(DeskError::Condition)?;
    }
    if remember.uses == Some(0) || !rememberable(&slip.kept.item, slip.kept.needs, remember) {
        return Err(DeskError::NotRemembered);
    }
    Ok(())
}

fn rememberable(item: &Item, needs: u32, remember: &Remember) -> bool {
    needs <= 1 && (harmless(item) || remember.when.is_some())
}

/// Returns the reason as the model reads it: sanitized, at most 1,000 characters.
fn tidy(reason: &str) -> String {
    const MOST: usize = 1000;
    text::clean(reason.trim()).chars().take(MOST).collect()
}
