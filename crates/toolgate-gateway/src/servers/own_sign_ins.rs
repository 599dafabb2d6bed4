//! Callers of a server that have a sign-in of their own, and callers that were asked for one.

use super::{Supervised, status::OwnSignIn};
use crate::signing_in::callers;
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// Maximum number of remembered callers that wait for a sign-in.
const MOST: usize = 32;
/// Time for which a caller counts as waiting.
const LATELY: Duration = Duration::from_secs(60 * 60);
/// Maximum number of shown callers with a sign-in.
const SHOWN: usize = 256;

#[derive(Default)]
pub(super) struct OwnSignIns(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// Callers that wait for a sign-in, the latest last.
    told: Vec<(Arc<str>, Instant)>,
    /// Callers with a sign-in, as last read.
    granted: Vec<String>,
}

impl OwnSignIns {
    /// Remembers that a caller was asked to sign in; returns whether that is new.
    pub(super) fn tell(&self, caller: Arc<str>) -> bool {
        let mut known = self.lock();
        known.told.retain(|(_, at)| at.elapsed() < LATELY);
        let before = known.told.len();
        known.told.retain(|(told, _)| *told != caller);
        let new = known.told.len() == before || known.granted.iter().any(|one| **one == *caller);
        known.granted.retain(|one| **one != *caller);
        if known.told.len() >= MOST {
            known.told.remove(0);
        }
        known.told.push((caller, Instant::now()));
        new
    }

    /// Reads the callers with a sign-in again.
    pub(super) async fn read(&self, server: &Supervised) {
        let (Some(address), Some(grants)) = (&server.spec.address, &server.spec.grants) else {
            return;
        };
        if !address.a_grant_each() {
            return;
        }
        // If they cannot be read, each call reports that.
        let Ok(granted) = callers::who(grants, &server.spec.id, address).await else {
            return;
        };
        let mut known = self.lock();
        known
            .told
            .retain(|(told, _)| !granted.iter().any(|one| **one == **told));
        let new = known.granted != granted;
        known.granted = granted;
        drop(known);
        if new {
            server.show();
        }
    }

    /// Returns the waiting callers, the latest first, then the first callers with a sign-in.
    pub(super) fn shown(&self) -> Vec<OwnSignIn> {
        let known = self.lock();
        let lately = known
            .told
            .iter()
            .rev()
            .filter(|(_, at)| at.elapsed() < LATELY);
        let waiting = lately.map(|(caller, _)| OwnSignIn {
            caller: caller.to_string(),
            granted: false,
        });
        let granted = known.granted.iter().take(SHOWN).map(|caller| OwnSignIn {
            caller: caller.clone(),
            granted: true,
        });
        waiting.chain(granted).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_was_told_is_remembered_for_a_while_and_few_are() {
        let own = OwnSignIns::default();
        let told = |own: &OwnSignIns| {
            let shown = own.shown().into_iter();
            shown.map(|one| one.caller).collect::<Vec<_>>()
        };
        for n in 0..=MOST {
            assert!(own.tell(format!("key:{n}").into()));
        }
        assert!(!own.tell("key:7".into()), "it is known");
        let now = told(&own);
        assert_eq!(now.len(), MOST);
        assert_eq!(now[0], "key:7");
        assert!(
            !now.contains(&"key:0".to_owned()),
            "one over takes the oldest out"
        );
        tokio::time::advance(LATELY).await;
        assert_eq!(told(&own), Vec::<String>::new());
    }
}
