//! Sign-in to an upstream server from the console.

use super::{MAX_UNAUTHENTICATED_BODY_BYTES, WebConsole, answer, body::read_body, console_header};
use crate::{
    oauth::{
        CONSOLE_REDIRECT_PATH, CompletedSignIn, KeyGenerationCheck, SignInTarget,
        caller_credentials,
    },
    responses::text_response,
};
use http::{Request, Response, StatusCode, header};
use hyper::body::Incoming;
use serde_json::{Value, json};
use toolgate::edge::http::Body;
use toolgate_auth::client::SignedOut;
use toolgate_core::{visible, visible_line};
use toolgate_policy::Approver;

impl WebConsole {
    /// Handles the steps of a sign-in, each for one session of the console.
    ///
    /// `begin` returns the authorization page and its issuer, `end` receives the redirect's query. `out` deletes and
    /// revokes the credentials of one caller or of all.
    pub(super) async fn sign_in(
        &self,
        step: &str,
        request: Request<Incoming>,
        who: &Approver,
    ) -> Response<Body> {
        let by = console_header(&request).unwrap_or_default().to_owned();
        let back = redirect_uri(&request);
        let with = match read_body(request, MAX_UNAUTHENTICATED_BODY_BYTES).await {
            Ok(with) => with,
            Err(response) => return *response,
        };
        let word = |key: &str| with.get(key).and_then(Value::as_str).unwrap_or_default();
        match (step, back) {
            ("begin", Ok(back)) => {
                let caller = with.get("caller").and_then(Value::as_str);
                answer(self.begin_sign_in(word("server"), caller, back, &by).await)
            }
            ("begin", Err(why)) => answer(Err(why)),
            ("out", _) => {
                let caller = with.get("caller").and_then(Value::as_str);
                answer(self.sign_out(word("server"), caller, who).await)
            }
            ("end", _) => answer(self.end_sign_in(word("query"), &by, who).await),
            _ => text_response(
                StatusCode::NOT_FOUND,
                "there is no such sign-in action; reload the page",
            ),
        }
    }

    async fn begin_sign_in(
        &self,
        id: &str,
        caller: Option<&str>,
        back: String,
        by: &str,
    ) -> Result<Value, String> {
        let plan = self.operator.active.snapshot();
        let at = SignInTarget::find(&plan.config, self.sign_ins.credentials_dir(), id, caller)?;
        caller_credentials::check_quota(&plan.config, at).await?;
        let keys = self.operator.approvals.freezes().keys().clone();
        let key = KeyGenerationCheck::current(caller, move |name| Ok(keys.generation(name)))?;
        let secret = self
            .operator
            .supervisor
            .client_secret(&plan.config, at.address);
        let secret = secret
            .await
            .map_err(|why| format!("the server {id}: {why}"))?;
        let login = at.sign_in_client(secret, plan.config.limits.callers_per_server, key)?;
        let begun = self.sign_ins.begin(at, login, back, (by, None)).await?;
        Ok(json!({
            "page": begun.page.as_str(), "origin": begun.page.origin(), "issuer": visible_line(&begun.issuer),
        }))
    }

    async fn sign_out(
        &self,
        id: &str,
        caller: Option<&str>,
        who: &Approver,
    ) -> Result<Value, String> {
        let plan = self.operator.active.snapshot();
        let at = SignInTarget::find(&plan.config, self.sign_ins.credentials_dir(), id, caller)?;
        let secret = self
            .operator
            .supervisor
            .client_secret(&plan.config, at.address);
        let secret = secret
            .await
            .map_err(|why| format!("the server {id}: {why}"))?;
        let login = at.oauth_client(secret)?.build();
        let (operator, who) = (self.operator.clone(), who.clone());
        let (server, of) = (id.to_owned(), caller.map(str::to_owned));
        #[allow(
            clippy::disallowed_methods,
            reason = "bounded in time by the fetcher; deleted credentials are reported and revoked even if the browser is gone"
        )]
        let leaving = tokio::spawn(async move {
            let told = || operator.handle_sign_in(&server, of.as_deref(), "signed_out", &who);
            login.sign_out_then(told).await
        });
        let out = leaving
            .await
            .map_err(|_| "the sign-out was interrupted; try again")?;
        let words = match out.map_err(|error| error.for_operator())? {
            SignedOut::NotSignedIn => {
                return Err(format!(
                    "no credentials are stored for {}, so there is nothing to sign out of",
                    caller.unwrap_or(id)
                ));
            }
            SignedOut::Revoked(_) => "revoked",
            _ => "deleted",
        };
        Ok(json!({"done": words}))
    }

    async fn end_sign_in(&self, query: &str, by: &str, who: &Approver) -> Result<Value, String> {
        let (operator, who) = (self.operator.clone(), who.clone());
        let then = move |signed: &CompletedSignIn| {
            operator.handle_sign_in(&signed.server, signed.caller.as_deref(), "signed_in", &who);
        };
        let signed = self.sign_ins.end(query, by, then).await?;
        let grant = &signed.credential;
        Ok(json!({
            "server": signed.server, "caller": signed.caller, "issuer": visible(&grant.issuer),
            "scopes": visible(&grant.scopes.to_string()),
        }))
    }
}

/// Returns the redirect URI on our own origin, as this request names it.
fn redirect_uri(request: &Request<Incoming>) -> Result<String, String> {
    own_address(request).map(|own| format!("{own}{CONSOLE_REDIRECT_PATH}"))
}

/// Returns our own origin, as this request names it. Its Host and Origin were checked.
///
/// # Errors
/// A code must not come back to this address.
pub(super) fn own_address(request: &Request<Incoming>) -> Result<String, String> {
    let one = |name| {
        let value = request.headers().get(name)?;
        value.to_str().ok().map(str::to_ascii_lowercase)
    };
    let host = one(header::HOST).unwrap_or_default();
    let origin = one(header::ORIGIN).unwrap_or_else(|| format!("http://{host}"));
    let (scheme, name) = origin.split_once("://").unwrap_or_default();
    if name != host {
        return Err(format!(
            "the Origin {origin:?} does not match the Host {host:?}; if a proxy is in between, configure it to pass on the Host header"
        ));
    }
    let bare = name.rsplit_once(':').map_or(name, |(bare, _)| bare);
    let near = matches!(bare, "localhost" | "127.0.0.1" | "[::1]");
    if scheme != "https" && !near {
        return Err(format!(
            "a sign-in must not send its code over an unencrypted network; open the console on this machine, or over https, not at {origin}"
        ));
    }
    Ok(origin)
}
