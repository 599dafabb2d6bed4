//! Access tokens of callers, for servers with token exchange. They are sent to the token endpoints of the config
//! only. If no server has an exchange, no token is stored.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use toolgate_auth::{Secret, client::SubjectToken};
use toolgate_core::{Caller, Principal};

/// Storage time of a token with unknown expiry. Its caller sends it again with each request.
const DEFAULT_TOKEN_LIFETIME: Duration = Duration::from_secs(5 * 60);

/// Identity of a token's owner. The same name with other scopes, or through another client, may have other
/// permissions.
#[derive(Clone, Eq, Hash, PartialEq)]
pub(crate) struct TokenOwner {
    name: Arc<str>,
    principal: Principal,
}

impl TokenOwner {
    /// Returns the identity of a caller that an issuer named; `None` for other callers.
    pub(crate) fn from_caller(caller: &Caller) -> Option<TokenOwner> {
        let principal = caller.principal()?.clone();
        Some(TokenOwner {
            name: caller.shared_name(),
            principal,
        })
    }
}

/// Latest valid token of each caller.
#[derive(Default)]
pub(crate) struct CallerTokens(Mutex<CallerTokenTable>);

#[derive(Default)]
struct CallerTokenTable {
    tokens: HashMap<TokenOwner, StoredCallerToken>,
    /// Owners by expiry. The number distinguishes tokens that expire together.
    by_expiry: BTreeMap<(SystemTime, u64), TokenOwner>,
    last_number: u64,
}

struct StoredCallerToken {
    token: Secret,
    /// Expiry that the issuer reports, in seconds since the Unix epoch.
    expires_at: Option<u64>,
    /// Time at which the token is dropped, and its number.
    dropped_at: (SystemTime, u64),
}

impl CallerTokens {
    /// Stores the token of a caller. Over `most` tokens, the one that expires first is dropped.
    pub(crate) fn store(
        &self,
        caller: &Caller,
        token: &str,
        until: Option<SystemTime>,
        most: usize,
    ) {
        let Some(bearer) = TokenOwner::from_caller(caller) else {
            return;
        };
        let mut table = self.lock_valid();
        table.remove(&bearer);
        while table.tokens.len() >= most.max(1) {
            let Some((_, first)) = table.by_expiry.pop_first() else {
                break;
            };
            table.tokens.remove(&first);
        }
        table.last_number += 1;
        let gone = until.unwrap_or_else(|| SystemTime::now() + DEFAULT_TOKEN_LIFETIME);
        let gone = (gone, table.last_number);
        let seconds = until.and_then(|until| until.duration_since(UNIX_EPOCH).ok());
        let one = StoredCallerToken {
            token: Secret::new(token),
            expires_at: seconds.map(|since| since.as_secs()),
            dropped_at: gone,
        };
        table.by_expiry.insert(gone, bearer.clone());
        table.tokens.insert(bearer, one);
    }

    /// Returns the latest token of a caller, while it is valid.
    pub(crate) fn subject_token(&self, bearer: &TokenOwner) -> Option<SubjectToken> {
        let table = self.lock_valid();
        let one = table.tokens.get(bearer)?;
        Some(SubjectToken {
            token: one.token.clone(),
            expires_at: one.expires_at,
        })
    }

    /// Locks the table and drops the expired tokens. They are first in the order, so no other entry is visited.
    fn lock_valid(&self) -> MutexGuard<'_, CallerTokenTable> {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = SystemTime::now();
        while let Some(first) = table.by_expiry.first_entry()
            && first.key().0 <= now
        {
            let bearer = first.remove();
            table.tokens.remove(&bearer);
        }
        table
    }
}

impl CallerTokenTable {
    fn remove(&mut self, bearer: &TokenOwner) {
        if let Some(old) = self.tokens.remove(bearer) {
            self.by_expiry.remove(&old.dropped_at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(scope: &str) -> Caller {
        let mut principal = Principal::new("https://l.test", "alice");
        principal.scopes = vec![scope.to_owned()];
        Caller::new("corp:alice").with_principal(principal)
    }

    fn token(bearers: &CallerTokens, caller: &Caller) -> Option<String> {
        let subject = bearers.subject_token(&TokenOwner::from_caller(caller)?)?;
        Some(subject.token.reveal().to_owned())
    }

    #[test]
    fn keeps_tokens_apart_by_caller_and_scopes_until_they_expire() {
        let bearers = CallerTokens::default();
        let later = |seconds| Some(SystemTime::now() + Duration::from_secs(seconds));
        bearers.store(&caller("read"), "weak", later(60), 2);
        bearers.store(&caller("write"), "strong", later(90), 2);
        assert_eq!(token(&bearers, &caller("read")).as_deref(), Some("weak"));
        assert_eq!(token(&bearers, &caller("write")).as_deref(), Some("strong"));
        assert_eq!(token(&bearers, &Caller::new("corp:alice")), None);
        // The newest token counts, and a token over the limit drops the one that expires first.
        bearers.store(&caller("read"), "fresh", later(60), 2);
        assert_eq!(token(&bearers, &caller("read")).as_deref(), Some("fresh"));
        bearers.store(&caller("all"), "third", later(90), 2);
        assert_eq!(token(&bearers, &caller("read")), None);
        assert_eq!(token(&bearers, &caller("write")).as_deref(), Some("strong"));
        bearers.store(&caller("write"), "ended", Some(UNIX_EPOCH), 2);
        assert_eq!(token(&bearers, &caller("write")), None);
        // Of two tokens that expire together, each is dropped by itself.
        let end = later(120);
        bearers.store(&caller("one"), "one", end, 3);
        bearers.store(&caller("two"), "two", end, 3);
        bearers.store(&caller("two"), "two anew", end, 3);
        assert_eq!(token(&bearers, &caller("one")).as_deref(), Some("one"));
        assert_eq!(token(&bearers, &caller("two")).as_deref(), Some("two anew"));
        let table = bearers.lock_valid();
        assert_eq!((table.by_expiry.len(), table.tokens.len()), (3, 3));
        drop(table);
        bearers.store(&Caller::new("key:ci"), "none", None, 2);
        assert_eq!(token(&bearers, &Caller::new("key:ci")), None);
    }
}

#[cfg(test)]
mod unprinted {
    use super::{CallerTokenTable, CallerTokens, StoredCallerToken};

    #[test]
    fn t62_the_tokens_of_callers_cannot_be_printed() {
        is_unprinted!(CallerTokens, StoredCallerToken, CallerTokenTable);
    }
}
