//! What failed lately, so that it is not tried again at once.

use super::{
    super::{AuthError, AuthErrorKind, Grant},
    COOL, Login,
};
use crate::Secret;
use std::time::{Duration, Instant};

/// How long an authorization server that could not be reached is left alone.
const AWAY: Duration = Duration::from_secs(5);

/// What failed lately.
#[derive(Default)]
pub(super) struct Lately {
    /// An issuer that could not be reached.
    away: Option<(Instant, String, AuthError)>,
    /// A refresh token that was not taken, though the grant may not be over.
    not_taken: Option<(Instant, Secret, AuthError)>,
    /// A new token that the server refused at once.
    useless: Option<(Instant, Secret, AuthError)>,
    /// The last flow that came to nothing.
    flow: Option<Failed>,
}

struct Failed {
    at: Instant,
    wish: Wish,
    error: AuthError,
}

/// What a flow is for: a token in the place of one that was refused, or one that may more.
#[derive(Clone)]
pub(super) struct Wish {
    pub(super) stale: Option<Secret>,
    pub(super) more: Option<String>,
}

impl Wish {
    fn same(&self, other: &Wish) -> bool {
        let stale = match (&self.stale, &other.stale) {
            (Some(one), Some(other)) => one.is(other.reveal()),
            (None, None) => true,
            _ => false,
        };
        stale && self.more == other.more
    }
}

impl Lately {
    /// Another grant has a refresh token of its own.
    pub(super) fn adopts(&mut self, grant: Option<&Grant>) {
        let refresh = grant.and_then(|grant| grant.refresh.as_ref());
        let same = |(_, known, _): &mut (Instant, Secret, AuthError)| {
            refresh.is_some_and(|refresh| refresh.is(known.reveal()))
        };
        self.not_taken.take_if(|not_taken| !same(not_taken));
    }
}

impl Login {
    /// An issuer that could not be reached a moment ago is not waited for again.
    ///
    /// # Errors
    /// Why it could not be reached.
    pub(super) fn is_there(&self, issuer: &str) -> Result<(), AuthError> {
        match &self.state().lately.away {
            Some((at, away, error)) if away == issuer && at.elapsed() < AWAY => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// Remembers it where an issuer cannot be reached.
    pub(super) fn away<T>(&self, issuer: &str, done: Result<T, AuthError>) -> Result<T, AuthError> {
        if let Err(error) = &done
            && error.kind() == AuthErrorKind::Unreachable
        {
            self.state().lately.away = Some((Instant::now(), issuer.to_owned(), error.clone()));
        }
        done
    }

    /// The issuer does not take a refresh token, for a reason that trying again does not mend.
    pub(super) fn not_taken(&self, refresh: &Secret, error: AuthError) {
        self.state().lately.not_taken = Some((Instant::now(), refresh.clone(), error));
    }

    /// Whether that is so, and lately.
    pub(super) fn was_not_taken(&self, refresh: &Secret) -> bool {
        let state = self.state();
        let not_taken = state.lately.not_taken.as_ref();
        not_taken.is_some_and(|(at, known, _)| at.elapsed() < COOL && known.is(refresh.reveal()))
    }

    /// Why what was granted is not renewed, for the words of an error.
    pub(super) fn why_not_renewed(&self) -> Option<String> {
        let state = self.state();
        let (_, _, error) = state.lately.not_taken.as_ref()?;
        Some(error.to_string())
    }

    /// The server refuses a token that was just had for it.
    pub(super) fn useless(&self, token: &Secret) -> AuthError {
        let words = format!(
            "{} does not take the token that was granted for it",
            self.0.set.server.origin()
        );
        let error = AuthError::new(AuthErrorKind::Refused, words);
        self.state().lately.useless = Some((Instant::now(), token.clone(), error.clone()));
        error
    }

    /// Remembers a flow that came to nothing.
    pub(super) fn came_to_nothing(&self, wish: Wish, error: AuthError) {
        let at = Instant::now();
        self.state().lately.flow = Some(Failed { at, wish, error });
    }

    /// What a flow would come to, where that is known: it failed for those who waited since `began`, too; and what did
    /// not help a moment ago does not help now.
    ///
    /// # Errors
    /// That.
    pub(super) fn would_fail(&self, wish: &Wish, began: Instant) -> Result<(), AuthError> {
        let state = self.state();
        let lately = &state.lately;
        if let (Some((at, token, error)), None, Some(stale)) =
            (&lately.useless, &wish.more, &wish.stale)
            && token.is(stale.reveal())
            && at.elapsed() < COOL
        {
            return Err(error.clone());
        }
        match &lately.flow {
            Some(Failed {
                at,
                wish: of,
                error,
            }) if of.same(wish)
                && (*at >= began
                    || error.kind() == AuthErrorKind::Unreachable && at.elapsed() < AWAY) =>
            {
                Err(error.clone())
            }
            _ => Ok(()),
        }
    }
}
