//! All approvals and grants of a desk, and what they mean for a call. No clock, no disk.

use super::{Binding, DeskLimits, GrantView, Standing, slip::Slip};
use crate::words;
use std::sync::Arc;
use toolgate_core::{Call, Error, Kind, Refusal};
use toolgate_journal::Entry;

/// An approval that was used up: its record, its id, and how the trail names it.
pub(super) type Spent = (Entry, Arc<str>, String);

/// All approvals and grants.
#[derive(Default)]
pub(super) struct Book {
    pub(super) slips: Vec<Slip>,
    pub(super) grants: Vec<GrantView>,
}

impl Book {
    pub(super) fn slip(&mut self, id: &str) -> Option<&mut Slip> {
        self.slips.iter_mut().find(|slip| &*slip.id == id)
    }

    pub(super) fn bound(
        &mut self,
        binding: &Binding,
        fits: impl Fn(&Slip) -> bool,
    ) -> Option<&mut Slip> {
        self.slips
            .iter_mut()
            .find(|slip| slip.binding == *binding && fits(slip))
    }

    /// Whether a person said no to this call. An identical call of another id hears it if nobody has yet.
    pub(super) fn denied(&mut self, call: &Call, binding: &Binding) -> Option<Error> {
        let hears = |slip: &Slip| {
            matches!(slip.standing, Standing::Denied(..))
                && (slip.told.is_empty() || slip.calls.contains(&call.id))
        };
        let slip = self.bound(binding, hears)?;
        slip.told.insert(call.id.clone());
        slip.calls.insert(call.id.clone());
        let Standing::Denied(_, reason) = &slip.standing else {
            return None;
        };
        let text = match reason {
            Some(reason) => format!("denied by a person: {reason}"),
            None => "denied by a person".to_owned(),
        };
        Some(Error::new(Kind::Refused(Refusal::Person), text))
    }

    /// Uses up an approval, or goes on with the one that this call used in an earlier round.
    pub(super) fn spend(
        &mut self,
        call: &Call,
        binding: &Binding,
        slot: Option<&str>,
    ) -> Option<Spent> {
        let (id, round) = (call.id.clone(), call.round.number);
        let own = |slip: &Slip| {
            let Standing::Spent {
                call: by_call,
                round: last,
                ..
            } = &slip.standing
            else {
                return false;
            };
            // Each round counts once, or a repeated round would be a second use.
            Some(&*slip.id) == slot && *by_call == id && round > *last
        };
        let slip = match self
            .slips
            .iter()
            .position(|s| s.binding == *binding && own(s))
        {
            Some(at) => &mut self.slips[at],
            None => self.bound(binding, |slip| {
                matches!(slip.standing, Standing::Approved(_))
            })?,
        };
        let (Standing::Approved(by) | Standing::Spent { by, .. }) = slip.standing else {
            return None;
        };
        slip.set(Standing::Spent {
            call: id.clone(),
            round,
            by,
        });
        let why = format!("{} by a person ({})", slip.id, by.as_str());
        Some((
            slip.record().with("call", &*id).with("round", round),
            slip.id.clone(),
            why,
        ))
    }

    pub(super) fn granted(&mut self, binding: &Binding) -> Option<String> {
        let grant = self.grants.iter_mut().find(|grant| grant.covers(binding))?;
        grant.use_once();
        Some(format!("{} remembered", grant.id))
    }

    /// Whether the approval that a call comes back for is over.
    pub(super) fn expired(
        &self,
        binding: &Binding,
        slot: Option<&str>,
        limits: &DeskLimits,
    ) -> Option<Error> {
        let over = |slip: &&Slip| {
            Some(&*slip.id) == slot
                && slip.binding == *binding
                && slip.standing == Standing::Expired
        };
        self.slips.iter().find(over)?;
        let text = format!(
            "denied: nobody approved this call within {}",
            words::span(limits.life)
        );
        Some(Error::new(Kind::Refused(Refusal::Expired), text))
    }

    /// Whether one more may wait.
    pub(super) fn room(&self, binding: &Binding, limits: &DeskLimits) -> Result<(), Error> {
        let open = || {
            self.slips
                .iter()
                .filter(|slip| slip.standing == Standing::Open)
        };
        let own = open()
            .filter(|slip| slip.binding.caller == binding.caller)
            .count();
        let text = if own >= limits.per_caller {
            format!(
                "{own} calls of this caller wait for a person already; wait until some are decided"
            )
        } else if open().count() >= limits.open {
            "too many calls wait for a person already; try again later".to_owned()
        } else {
            return Ok(());
        };
        Err(Error::new(Kind::Busy(None), text))
    }

    /// Ends those that are over; the records of that.
    pub(super) fn expire(&mut self, over: impl Fn(&Slip) -> bool) -> Vec<Entry> {
        let expired = self
            .slips
            .iter_mut()
            .filter(|slip| slip.alive() && over(slip));
        expired
            .map(|slip| {
                slip.set(Standing::Expired);
                slip.record()
            })
            .collect()
    }

    /// Forgets those that have been over for long, and the oldest that are over if there are still too many.
    pub(super) fn forget(&mut self, life: std::time::Duration, most: usize) {
        self.slips
            .retain(|slip| slip.alive() || !slip.expiry.past_by(life));
        while self.slips.len() > most {
            let Some(at) = self.slips.iter().position(|slip| !slip.alive()) else {
                break;
            };
            self.slips.remove(at);
        }
    }
}
