//! Tracker of whether a person has to sign in to a server, as its connection finds out.

use http::{HeaderMap, StatusCode};
use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};
use tokio::sync::watch;
use toolgate::{BoxFuture, Error, ErrorKind, NotSent};
use toolgate_auth::client::{
    AuthError, AuthErrorKind, CredentialProvider, CredentialRequest, OAuthClient, RejectedResponse,
    RetryDecision,
};

/// Need for a person to sign in to a server, with the message about it.
pub(crate) struct SignInNeed {
    words: Mutex<Option<Arc<str>>>,
    /// True if a token was sent before. If so, a sign-in has ended; otherwise it was missing from the start.
    had: AtomicBool,
    /// Counter that is raised with each change that the console shows.
    shown: watch::Sender<u64>,
}

/// Error source: a person has to sign in first.
#[derive(Debug)]
pub(crate) struct SignInRequired;

impl fmt::Display for SignInRequired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a user has to sign in")
    }
}

impl std::error::Error for SignInRequired {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&NotSent)
    }
}

impl SignInNeed {
    /// Creates a tracker without a need.
    pub(crate) fn new(shown: watch::Sender<u64>) -> SignInNeed {
        SignInNeed {
            words: Mutex::default(),
            had: AtomicBool::new(false),
            shown,
        }
    }

    /// Returns the reason for the sign-in, with instructions; `None` if there is no need.
    pub(crate) fn words(&self) -> Option<Arc<str>> {
        self.lock().clone()
    }

    /// Returns whether a token was sent, and no sign-out followed.
    pub(crate) fn had(&self) -> bool {
        self.had.load(Relaxed)
    }

    /// Records a sign-out. A sign-in that is missing from now on has not expired.
    pub(crate) fn forget(&self) {
        self.had.store(false, Relaxed);
    }

    /// Returns the error of a server, or the need for a sign-in if that is the cause.
    pub(crate) fn why(&self, server: &str, error: Error) -> Error {
        match self
            .words()
            .filter(|_| *error.kind() == ErrorKind::Upstream)
        {
            Some(words) => {
                let text = format!("the server {server}: {words}");
                Error::new(ErrorKind::Upstream, text).because(SignInRequired)
            }
            None => error,
        }
    }

    fn is(&self, now: Option<String>) {
        let mut words = self.lock();
        if words.as_deref() != now.as_deref() {
            *words = now.map(Arc::from);
            drop(words);
            self.shown.send_modify(|version| *version += 1);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<str>>> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// OAuth client that reports when it needs a person.
pub(crate) struct ReportingCredentials {
    pub(crate) login: OAuthClient,
    pub(crate) need: Arc<SignInNeed>,
}

impl ReportingCredentials {
    fn look(&self, error: &AuthError) {
        if error.kind() == AuthErrorKind::NeedsSignIn {
            let ended = self.need.had.load(Relaxed);
            let before = if ended { "the sign-in has ended; " } else { "" };
            self.need.is(Some(format!("{before}{error}")));
        }
    }
}

impl CredentialProvider for ReportingCredentials {
    fn headers<'a>(
        &'a self,
        request: CredentialRequest<'a>,
    ) -> BoxFuture<'a, Result<HeaderMap, AuthError>> {
        Box::pin(async move {
            let headers = self.login.headers(request).await;
            match &headers {
                Ok(headers) if !headers.is_empty() => {
                    self.need.had.store(true, Relaxed);
                    self.need.is(None);
                }
                Ok(_) => {}
                Err(error) => self.look(error),
            }
            headers
        })
    }

    fn refused<'a>(
        &'a self,
        request: CredentialRequest<'a>,
        refusal: RejectedResponse<'a>,
    ) -> BoxFuture<'a, Result<RetryDecision, AuthError>> {
        Box::pin(async move {
            let again = self.login.refused(request, refusal).await;
            // A token with too few scopes is still valid for other requests.
            if let Err(error) = &again
                && refusal.status == StatusCode::UNAUTHORIZED
            {
                self.look(error);
            }
            again
        })
    }

    fn answered(&self, headers: &HeaderMap) {
        self.login.answered(headers);
    }

    fn may_wait(&self) -> bool {
        self.login.may_wait()
    }
}
