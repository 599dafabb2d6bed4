//! Sign-ins by a person in a browser: in the console, or on the page for users of callers.
//!
//! A session of the console has a cookie that links from other sites do not send, and a key that only our own page
//! sends. So the redirect page submits the authorization response itself, with both. A response is accepted only from
//! the session that began the sign-in.

use super::{
    SignInTarget,
    browser_flows::{AuthorizationPage, BrowserFlowPurpose, BrowserFlows},
};
use futures_util::future::BoxFuture;
use std::path::{Path, PathBuf};
use toolgate_auth::client::{OAuthClientBuilder, OAuthCredential};

/// Path of the redirect page.
pub(crate) const CONSOLE_REDIRECT_PATH: &str = "/console/signed-in";

/// Error for an authorization response that is not accepted.
const UNEXPECTED_RESPONSE_MESSAGE: &str = "this response does not belong to a sign-in that began in this browser; start the sign-in again under Servers in this browser";

/// Pending sign-ins in a browser.
pub(crate) struct BrowserSignIns {
    credentials_dir: PathBuf,
    flows: BrowserFlows<OAuthCredential>,
}

/// Completed sign-in.
pub(crate) struct CompletedSignIn {
    pub(crate) server: String,
    /// Caller that owns the credential, if each caller has one of its own.
    pub(crate) caller: Option<String>,
    pub(crate) credential: OAuthCredential,
}

impl BrowserSignIns {
    /// Creates an empty set, with the directory of the stored credentials.
    pub(crate) fn new(grants: PathBuf) -> BrowserSignIns {
        BrowserSignIns {
            credentials_dir: grants,
            flows: BrowserFlows::new(UNEXPECTED_RESPONSE_MESSAGE),
        }
    }

    /// Returns the directory of the stored credentials.
    pub(crate) fn credentials_dir(&self) -> &Path {
        &self.credentials_dir
    }

    /// Begins a sign-in for a session, and returns the authorization page. It is canceled when `until` resolves,
    /// which is the end of the credential that began it.
    ///
    /// # Errors
    /// The message is for the person.
    pub(crate) async fn begin(
        &self,
        SignInTarget {
            server_id: id,
            caller,
            ..
        }: SignInTarget<'_>,
        login: OAuthClientBuilder,
        redirect: String,
        by: (&str, Option<BoxFuture<'static, ()>>),
    ) -> Result<AuthorizationPage, String> {
        let work = |person| {
            let login = login.sign_in(person).build();
            async move { login.sign_in().await }
        };
        self.flows
            .begin(flow_purpose(id, caller), redirect, by, work)
            .await
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
                server: what.target,
                caller: what.caller,
                credential: grant,
            };
            then(&signed);
            signed
        };
        self.flows.end(query, by, signed).await
    }

    /// Cancels the sign-ins that were begun for a caller of a server.
    pub(crate) fn cancel(&self, server: &str, caller: &str) {
        self.flows.cancel(&flow_purpose(server, Some(caller)));
    }
}

fn flow_purpose(server: &str, caller: Option<&str>) -> BrowserFlowPurpose {
    BrowserFlowPurpose {
        target: server.to_owned(),
        caller: caller.map(str::to_owned),
    }
}
