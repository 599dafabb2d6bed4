//! The tokens that callers showed, for servers whose tokens they are exchanged for. Nothing else holds them, and they
//! leave to the token endpoints of the config alone. Where no server has an exchange, none is held.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use toolgate::{Caller, Principal};
use toolgate_auth::{Secret, client::Subject};

/// How long a token is held whose end is not known; its owner shows it again with each request.
const UNSAID: Duration = Duration::from_secs(5 * 60);

/// Whose token it is: the same name with other scopes, or by another client, may do other things.
#[derive(Clone, Eq, Hash, PartialEq)]
pub(crate) struct Bearer {
    name: Arc<str>,
    principal: Principal,
}

impl Bearer {
    /// Of a caller that an issuer named.
    pub(crate) fn of(caller: &Caller) -> Option<Bearer> {
        let principal = caller.principal()?.clone();
        Some(Bearer {
            name: caller.shared(),
            principal,
        })
    }
}

/// The last token of each caller, while it is good.
#[derive(Default)]
pub(crate) struct Bearers(Mutex<HashMap<Bearer, Held>>);

struct Held {
    token: Secret,
    /// In seconds since 1970, as its issuer says.
    until: Option<u64>,
    /// When it is dropped.
    gone: SystemTime,
}

impl Bearers {
    /// Holds the token of a caller. Over `most`, the one that ends first is dropped.
    pub(crate) fn hold(
        &self,
        caller: &Caller,
        token: &str,
        until: Option<SystemTime>,
        most: usize,
    ) {
        let Some(bearer) = Bearer::of(caller) else {
            return;
        };
        let mut held = self.held();
        let over = held.len() >= most && !held.contains_key(&bearer);
        let first = || {
            let first = held.iter().min_by_key(|(_, held)| held.gone);
            first.map(|(bearer, _)| bearer.clone())
        };
        if let Some(first) = over.then(first).flatten() {
            held.remove(&first);
        }
        let seconds = until.and_then(|until| until.duration_since(UNIX_EPOCH).ok());
        let one = Held {
            token: Secret::new(token),
            until: seconds.map(|since| since.as_secs()),
            gone: until.unwrap_or_else(|| SystemTime::now() + UNSAID),
        };
        held.insert(bearer, one);
    }

    /// What a caller showed last, while it is good.
    pub(crate) fn subject(&self, bearer: &Bearer) -> Option<Subject> {
        let held = self.held();
        let one = held.get(bearer)?;
        Some(Subject {
            token: one.token.clone(),
            until: one.until,
        })
    }

    /// Those that are good.
    fn held(&self) -> MutexGuard<'_, HashMap<Bearer, Held>> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = SystemTime::now();
        held.retain(|_, one| one.gone > now);
        held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(scope: &str) -> Caller {
        let mut principal = Principal::new("https://l.test", "alice");
        principal.scopes = vec![scope.to_owned()];
        Caller::new("corp:alice").with(principal)
    }

    fn token(bearers: &Bearers, caller: &Caller) -> Option<String> {
        let subject = bearers.subject(&Bearer::of(caller)?)?;
        Some(subject.token.reveal().to_owned())
    }

    #[test]
    fn a_token_is_of_one_caller_with_what_it_may_and_ends() {
        let bearers = Bearers::default();
        let later = |seconds| Some(SystemTime::now() + Duration::from_secs(seconds));
        bearers.hold(&caller("read"), "weak", later(60), 2);
        bearers.hold(&caller("write"), "strong", later(90), 2);
        assert_eq!(token(&bearers, &caller("read")).as_deref(), Some("weak"));
        assert_eq!(token(&bearers, &caller("write")).as_deref(), Some("strong"));
        assert_eq!(token(&bearers, &Caller::new("corp:alice")), None);
        // The newest counts, and one over drops the one that ends first.
        bearers.hold(&caller("read"), "fresh", later(60), 2);
        assert_eq!(token(&bearers, &caller("read")).as_deref(), Some("fresh"));
        bearers.hold(&caller("all"), "third", later(90), 2);
        assert_eq!(token(&bearers, &caller("read")), None);
        assert_eq!(token(&bearers, &caller("write")).as_deref(), Some("strong"));
        bearers.hold(&caller("write"), "ended", Some(UNIX_EPOCH), 2);
        assert_eq!(token(&bearers, &caller("write")), None);
        bearers.hold(&Caller::new("key:ci"), "none", None, 2);
        assert_eq!(token(&bearers, &Caller::new("key:ci")), None);
    }
}

#[cfg(test)]
mod unprinted {
    use super::{Bearers, Held};

    #[test]
    fn t62_the_tokens_of_callers_cannot_be_printed() {
        is_unprinted!(Bearers, Held);
    }
}
