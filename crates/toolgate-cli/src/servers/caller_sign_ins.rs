//! Callers of a server that have a sign-in of their own, and callers that were asked for one.

use super::{SupervisedServer, status::CallerSignIn};
use crate::oauth::caller_credentials;
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// Maximum number of remembered callers that wait for a sign-in.
const MAX_WAITING_CALLERS: usize = 32;
/// Time for which a caller counts as waiting.
const WAITING_RETENTION: Duration = Duration::from_secs(60 * 60);
/// Maximum number of shown callers with a sign-in.
const MAX_SHOWN_SIGN_INS: usize = 256;

#[derive(Default)]
pub(super) struct CallerSignIns(Mutex<KnownSignIns>);

#[derive(Default)]
struct KnownSignIns {
    /// Callers that wait for a sign-in, the latest last.
    asked: Vec<(Arc<str>, Instant)>,
    /// Callers with a sign-in, as last read.
    signed_in: Vec<String>,
}

impl CallerSignIns {
    /// Remembers that a caller was asked to sign in; returns whether that is new.
    pub(super) fn mark_asked(&self, caller: Arc<str>) -> bool {
        let mut known = self.lock();
        known
            .asked
            .retain(|(_, at)| at.elapsed() < WAITING_RETENTION);
        let before = known.asked.len();
        known.asked.retain(|(told, _)| *told != caller);
        let new = known.asked.len() == before || known.signed_in.iter().any(|one| **one == *caller);
        known.signed_in.retain(|one| **one != *caller);
        if known.asked.len() >= MAX_WAITING_CALLERS {
            known.asked.remove(0);
        }
        known.asked.push((caller, Instant::now()));
        new
    }

    /// Reads the callers with a sign-in again.
    pub(super) async fn refresh(&self, server: &SupervisedServer) {
        let (Some(address), Some(grants)) = (&server.spec.address, &server.spec.credentials_dir)
        else {
            return;
        };
        if !address.has_caller_credentials() {
            return;
        }
        // If they cannot be read, each call reports that.
        let Ok(granted) =
            caller_credentials::callers_with_credentials(grants, &server.spec.id, address).await
        else {
            return;
        };
        let mut known = self.lock();
        known
            .asked
            .retain(|(told, _)| !granted.iter().any(|one| **one == **told));
        let new = known.signed_in != granted;
        known.signed_in = granted;
        drop(known);
        if new {
            server.notify_console();
        }
    }

    /// Returns the waiting callers, the latest first, then the first callers with a sign-in.
    pub(super) fn summary(&self) -> Vec<CallerSignIn> {
        let known = self.lock();
        let lately = known
            .asked
            .iter()
            .rev()
            .filter(|(_, at)| at.elapsed() < WAITING_RETENTION);
        let waiting = lately.map(|(caller, _)| CallerSignIn {
            caller: caller.to_string(),
            granted: false,
        });
        let granted = known
            .signed_in
            .iter()
            .take(MAX_SHOWN_SIGN_INS)
            .map(|caller| CallerSignIn {
                caller: caller.clone(),
                granted: true,
            });
        waiting.chain(granted).collect()
    }

    fn lock(&self) -> MutexGuard<'_, KnownSignIns> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn remembers_a_limited_number_of_asked_callers_for_a_while() {
        let own = CallerSignIns::default();
        let told = |own: &CallerSignIns| {
            let shown = own.summary().into_iter();
            shown.map(|one| one.caller).collect::<Vec<_>>()
        };
        for n in 0..=MAX_WAITING_CALLERS {
            assert!(own.mark_asked(format!("key:{n}").into()));
        }
        assert!(!own.mark_asked("key:7".into()), "it is known");
        let now = told(&own);
        assert_eq!(now.len(), MAX_WAITING_CALLERS);
        assert_eq!(now[0], "key:7");
        assert!(
            !now.contains(&"key:0".to_owned()),
            "one over takes the oldest out"
        );
        tokio::time::advance(WAITING_RETENTION).await;
        assert_eq!(told(&own), Vec::<String>::new());
    }
}
