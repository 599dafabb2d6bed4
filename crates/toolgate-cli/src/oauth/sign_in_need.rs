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
use toolgate_auth::client::{
    AuthError, AuthErrorKind, CredentialProvider, CredentialRequest, OAuthClient, RejectedResponse,
    RetryDecision,
};
use toolgate_core::{BoxFuture, Error, ErrorKind, NotSent};

/// Need for a person to sign in to a server, with the message about it.
pub(crate) struct SignInNeed {
    message: Mutex<Option<Arc<str>>>,
    /// True if a token was sent before. If so, a sign-in has ended; otherwise it was missing from the start.
    had_token: AtomicBool,
    /// Counter that is raised with each change that the console shows.
    console_version: watch::Sender<u64>,
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
            message: Mutex::default(),
            had_token: AtomicBool::new(false),
            console_version: shown,
        }
    }

    /// Returns the reason for the sign-in, with instructions; `None` if there is no need.
    pub(crate) fn message(&self) -> Option<Arc<str>> {
        self.lock().clone()
    }

    /// Returns whether a token was sent, and no sign-out followed.
    pub(crate) fn had_token(&self) -> bool {
        self.had_token.load(Relaxed)
    }

    /// Records a sign-out. A sign-in that is missing from now on has not expired.
    pub(crate) fn forget_token(&self) {
        self.had_token.store(false, Relaxed);
    }

    /// Returns the error of a server, or the need for a sign-in if that is the cause.
    pub(crate) fn explain_error(&self, server: &str, error: Error) -> Error {
        match self
            .message()
            .filter(|_| *error.kind() == ErrorKind::Upstream)
        {
            Some(words) => {
                let text = format!("the server {server}: {words}");
                Error::new(ErrorKind::Upstream, text).with_source(SignInRequired)
            }
            None => error,
        }
    }

    fn set_message(&self, now: Option<String>) {
        let mut words = self.lock();
        if words.as_deref() != now.as_deref() {
            *words = now.map(Arc::from);
            drop(words);
            self.console_version.send_modify(|version| *version += 1);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<str>>> {
        self.message.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// OAuth client that reports when it needs a person.
pub(crate) struct ReportingCredentials {
    pub(crate) client: OAuthClient,
    pub(crate) need: Arc<SignInNeed>,
}

impl ReportingCredentials {
    fn report_error(&self, error: &AuthError) {
        if error.kind() == AuthErrorKind::NeedsSignIn {
            let ended = self.need.had_token.load(Relaxed);
            let before = if ended { "the sign-in has ended; " } else { "" };
            self.need.set_message(Some(format!("{before}{error}")));
        }
    }
}

impl CredentialProvider for ReportingCredentials {
    fn headers<'a>(
        &'a self,
        request: CredentialRequest<'a>,
    ) -> BoxFuture<'a, Result<HeaderMap, AuthError>> {
        Box::pin(async move {
            let headers = self.client.headers(request).await;
            match &headers {
                Ok(headers) if !headers.is_empty() => {
                    self.need.had_token.store(true, Relaxed);
                    self.need.set_message(None);
                }
                Ok(_) => {}
                Err(error) => self.report_error(error),
            }
            headers
        })
    }

    fn on_rejection<'a>(
        &'a self,
        request: CredentialRequest<'a>,
        refusal: RejectedResponse<'a>,
    ) -> BoxFuture<'a, Result<RetryDecision, AuthError>> {
        Box::pin(async move {
            let again = self.client.on_rejection(request, refusal).await;
            // A token with too few scopes is still valid for other requests.
            if let Err(error) = &again
                && refusal.status == StatusCode::UNAUTHORIZED
            {
                self.report_error(error);
            }
            again
        })
    }

    fn on_response(&self, headers: &HeaderMap) {
        self.client.on_response(headers);
    }

    fn may_wait_for_user(&self) -> bool {
        self.client.may_wait_for_user()
    }
}
