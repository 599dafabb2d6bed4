//! Sign-ins by a person in a browser: in the console, or on the page for users of callers.
//!
//! A session of the console has a cookie that links from other sites do not send, and a key that only our own page
//! sends. So the redirect page submits the authorization response itself, with both. A response is accepted only from
//! the session that began the sign-in.

use super::{
    SignInTarget,
    visits::{AuthorizationPage, BrowserFlowPurpose, BrowserFlows},
};
use futures_util::future::BoxFuture;
use std::path::{Path, PathBuf};
use toolgate_auth::client::{OAuthClientBuilder, OAuthCredential};

/// Path of the redirect page.
pub(crate) const CONSOLE_REDIRECT_PATH: &str = "/console/signed-in";

/// Error for an authorization response that is not accepted.
const UNEXPECTED_RESPONSE_MESSAGE: &str = "this response does not belong to a sign-in that began in this browser; start again under Servers, in this browser";

/// Pending sign-ins in a browser.
pub(crate) struct BrowserSignIns {
    grants: PathBuf,
    visits: BrowserFlows<OAuthCredential>,
}

/// Completed sign-in.
pub(crate) struct CompletedSignIn {
    pub(crate) server: String,
    /// Caller that owns the credential, if each caller has one of its own.
    pub(crate) caller: Option<String>,
    pub(crate) grant: OAuthCredential,
}

impl BrowserSignIns {
    /// Creates an empty set, with the directory of the stored credentials.
    pub(crate) fn new(grants: PathBuf) -> BrowserSignIns {
        BrowserSignIns {
            grants,
            visits: BrowserFlows::new(UNEXPECTED_RESPONSE_MESSAGE),
        }
    }

    /// Returns the directory of the stored credentials.
    pub(crate) fn grants(&self) -> &Path {
        &self.grants
    }

    /// Begins a sign-in for a session, and returns the authorization page. It is canceled when `until` resolves,
    /// which is the end of the credential that began it.
    ///
    /// # Errors
    /// The message is for the person.
    pub(crate) async fn begin(
        &self,
        SignInTarget { id, caller, .. }: SignInTarget<'_>,
        login: OAuthClientBuilder,
        redirect: String,
        by: (&str, Option<BoxFuture<'static, ()>>),
    ) -> Result<AuthorizationPage, String> {
        let work = |person| {
            let login = login.sign_in(person).build();
            async move { login.sign_in().await }
        };
        self.visits.begin(of(id, caller), redirect, by, work).await
    }

    /// Handles the authorization response, which must come from the session that began the sign-in; any other
    /// response changes nothing.
    ///
    /// After the sign-in, `then` is called, even if the browser is gone by then.
    ///
    /// # Errors
    /// The message is for the person.
    pub(crate) async fn end(
        &self,
        query: &str,
        by: &str,
        then: impl FnOnce(&CompletedSignIn) + Send + 'static,
    ) -> Result<CompletedSignIn, String> {
        let signed = move |what: BrowserFlowPurpose, grant| {
            let signed = CompletedSignIn {
                server: what.at,
                caller: what.caller,
                grant,
            };
            then(&signed);
            signed
        };
        self.visits.end(query, by, signed).await
    }

    /// Cancels the sign-ins that were begun for a caller of a server.
    pub(crate) fn give_up(&self, server: &str, caller: &str) {
        self.visits.give_up(&of(server, Some(caller)));
    }
}

fn of(server: &str, caller: Option<&str>) -> BrowserFlowPurpose {
    BrowserFlowPurpose {
        at: server.to_owned(),
        caller: caller.map(str::to_owned),
    }
}
