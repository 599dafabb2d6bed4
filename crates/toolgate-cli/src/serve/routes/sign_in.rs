//! Sign-in page for the user behind a caller, and its requests.
//!
//! The user proves their identity with the caller's API key, or by a sign-in at the issuer that named the caller. A
//! secret that only the starting page has identifies a user who returns.

use super::HttpRoutes;
use crate::{
    authentication::{Authenticator, caller_of_token},
    console::{MAX_UNAUTHENTICATED_BODY_BYTES, answer, read_body},
    oauth::{
        BrowserSignIns, CompletedSignIn, IDENTITY_SEGMENT, IdentityProof, KeyGenerationCheck,
        PendingIdentifications, REDIRECT_SEGMENT, SIGN_IN_PATH, SignInLinks, SignInTarget,
        caller_credentials,
    },
    proxy::ClientConnection,
    responses::text_response,
};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use serde_json::{Value, json};
use std::sync::Arc;
use toolgate::{edge::http::Body, ids};
use toolgate_core::{BoxFuture, visible, visible_line};
use toolgate_policy::{ApprovalChannel, Approver};

/// State of the sign-in page.
pub(crate) struct UserSignInRoutes {
    pub(crate) links: Arc<SignInLinks>,
    pub(crate) sign_ins: BrowserSignIns,
    /// Pending sign-ins by which users prove their identity.
    pub(crate) identifications: PendingIdentifications,
}

/// Error for a link that is not valid for the caller, for whatever reason.
const LINK_NOT_VALID_MESSAGE: &str = "this link is not valid for this key: it belongs to another caller, was used, or is older than ten minutes; have the program call the tool again";
/// Error for a link that is not valid for anyone.
const LINK_UNKNOWN_MESSAGE: &str = "this link is not valid: it is unknown, was used, or is older than ten minutes; have the program call the tool again";

impl HttpRoutes {
    pub(super) async fn sign_in(
        &self,
        authenticator: &Authenticator,
        from: ClientConnection,
        request: Request<Incoming>,
    ) -> Response<Body> {
        let step = request
            .uri()
            .path()
            .strip_prefix(SIGN_IN_PATH)
            .map(str::to_owned);
        match (request.method(), step.as_deref().unwrap_or_default()) {
            (&Method::GET, "" | REDIRECT_SEGMENT | IDENTITY_SEGMENT) => {
                self.console.page("own-sign-in.html", request.headers())
            }
            (&Method::GET, name @ ("own-sign-in.js" | "style.css")) => {
                self.console.page(name, request.headers())
            }
            (&Method::POST, "who") => {
                with_body(request, async |with| self.identity_proof(&with)).await
            }
            (&Method::POST, "show") => {
                with_body(request, async |with| self.begin_identification(&with).await).await
            }
            (&Method::POST, IDENTITY_SEGMENT) => {
                with_body(request, async |with| {
                    self.end_identification(authenticator, &with).await
                })
                .await
            }
            (&Method::POST, "begin") => self.begin_sign_in(authenticator, from, request).await,
            (&Method::POST, "end") => {
                with_body(request, async |with| self.end_sign_in(&with).await).await
            }
            _ => text_response(
                StatusCode::NOT_FOUND,
                "there is no such sign-in step; reload the page",
            ),
        }
    }

    async fn begin_sign_in(
        &self,
        authenticator: &Authenticator,
        from: ClientConnection,
        request: Request<Incoming>,
    ) -> Response<Body> {
        let over = self
            .rejections
            .is_limited(from.address, authenticator.max_rejections);
        let at = (request.method(), request.uri().path());
        let entered = match authenticator
            .authenticate(at, request.headers(), &self.keys, over)
            .await
        {
            Ok(entered) => entered,
            Err(out) => return self.reject(authenticator, from, &request, out).await,
        };
        let caller = entered.caller.shared_name();
        let Some(until) = entered.expired.filter(|_| caller.starts_with("key:")) else {
            let why = "a sign-in began without a key".to_owned();
            let out = authenticator
                .invalid_credentials(why, "this is not an API key; API keys begin with tg_");
            return self.reject(authenticator, from, &request, out).await;
        };
        with_body(request, async |with| {
            let link = string_member(&with, "link");
            let server = self
                .user_sign_in
                .links
                .server_of(link, &caller)
                .ok_or(LINK_NOT_VALID_MESSAGE)?;
            self.begin_for_caller(link, &server, &caller, Some(until))
                .await
        })
        .await
    }

    /// Returns how the user of a link proves their identity.
    fn identity_proof(&self, with: &Value) -> Result<Value, String> {
        let caller = self
            .user_sign_in
            .links
            .caller_of(string_member(with, "link"))
            .ok_or(LINK_UNKNOWN_MESSAGE)?;
        let plan = self.active.snapshot();
        let pages = plan.sign_in_pages.as_ref().ok_or(LINK_UNKNOWN_MESSAGE)?;
        Ok(
            match pages.identity_proof(&caller).ok_or(LINK_UNKNOWN_MESSAGE)? {
                IdentityProof::Key => json!({"by": "key"}),
                IdentityProof::Issuer(issuer) => json!({"by": "issuer", "issuer": issuer}),
            },
        )
    }

    /// Sends the user of a link to the issuer that named its caller.
    async fn begin_identification(&self, with: &Value) -> Result<Value, String> {
        let caller = self
            .user_sign_in
            .links
            .caller_of(string_member(with, "link"))
            .ok_or(LINK_UNKNOWN_MESSAGE)?;
        let plan = self.active.snapshot();
        let pages = plan.sign_in_pages.as_ref().ok_or(LINK_UNKNOWN_MESSAGE)?;
        let Some(IdentityProof::Issuer(issuer)) = pages.identity_proof(&caller) else {
            return Err(LINK_UNKNOWN_MESSAGE.to_owned());
        };
        let asks = plan
            .identity_issuers
            .find(issuer)
            .ok_or(LINK_UNKNOWN_MESSAGE)?;
        let key = ids::secret_id();
        let showing = &self.user_sign_in.identifications;
        let page = showing.begin((issuer, &caller), asks, pages.identity_redirect_uri(), &key);
        let page = page.await?;
        Ok(json!({"page": page.as_str(), "at": page.origin(), "key": key}))
    }

    /// Begins the sign-in of a user who returns from the issuer, if they are the caller of the link.
    async fn end_identification(
        &self,
        authenticator: &Authenticator,
        with: &Value,
    ) -> Result<Value, String> {
        let (link, query, key) = (
            string_member(with, "link"),
            string_member(with, "query"),
            string_member(with, "key"),
        );
        let token = self.user_sign_in.identifications.end(query, key).await?;
        let resource = authenticator
            .resource
            .as_ref()
            .ok_or(LINK_UNKNOWN_MESSAGE)?;
        let caller = caller_of_token(resource, &token).await?;
        let caller = caller.shared_name();
        let server = self.user_sign_in.links.server_of(link, &caller).ok_or_else(|| {
            format!(
                "you are signed in as {}, and this link is not valid for that caller: it belongs to another caller, was used, or is older than ten minutes; have the program call the tool again",
                visible_line(&caller)
            )
        })?;
        self.begin_for_caller(link, &server, &caller, None).await
    }

    async fn begin_for_caller(
        &self,
        link: &str,
        server: &str,
        caller: &str,
        until: Option<BoxFuture<'static, ()>>,
    ) -> Result<Value, String> {
        let UserSignInRoutes {
            links, sign_ins, ..
        } = &self.user_sign_in;
        let plan = self.active.snapshot();
        let at = SignInTarget::find(
            &plan.config,
            sign_ins.credentials_dir(),
            server,
            Some(caller),
        )?;
        let pages = plan.sign_in_pages.as_ref().ok_or(LINK_NOT_VALID_MESSAGE)?;
        caller_credentials::check_quota(&plan.config, at).await?;
        let keys = self.keys.clone();
        let same = KeyGenerationCheck::current(at.caller, move |name| Ok(keys.generation(name)))?;
        let servers = &self.console.operator.supervisor;
        let secret = servers.client_secret(&plan.config, at.address).await?;
        let login = at.sign_in_client(secret, plan.config.limits.callers_per_server, same)?;
        let key = ids::secret_id();
        // A user who begins again has given up the earlier attempt.
        sign_ins.cancel(server, caller);
        let by = (key.as_str(), until);
        let begun = sign_ins.begin(at, login, pages.redirect_uri(), by).await?;
        links.remove(link);
        Ok(json!({
            "page": begun.page.as_str(), "origin": begun.page.origin(), "issuer": visible_line(&begun.issuer),
            "key": key, "server": server, "caller": visible_line(caller),
        }))
    }

    async fn end_sign_in(&self, with: &Value) -> Result<Value, String> {
        let UserSignInRoutes {
            links, sign_ins, ..
        } = &self.user_sign_in;
        let (operator, links) = (self.console.operator.clone(), links.clone());
        let then = move |signed: &CompletedSignIn| {
            let caller = signed.caller.as_deref();
            let who = Approver::named(ApprovalChannel::Client, caller.unwrap_or_default());
            operator.handle_sign_in(&signed.server, caller, "signed_in", &who);
            links.report_sign_in();
        };
        let (query, key) = (string_member(with, "query"), string_member(with, "key"));
        let signed = sign_ins.end(query, key, then).await?;
        let caller = signed.caller.as_deref();
        Ok(json!({
            "server": signed.server, "caller": caller.map(visible_line),
            "issuer": visible(&signed.credential.issuer), "scopes": visible(&signed.credential.scopes.to_string()),
        }))
    }
}

/// Answers a request from its JSON body.
async fn with_body(
    request: Request<Incoming>,
    then: impl AsyncFnOnce(Value) -> Result<Value, String>,
) -> Response<Body> {
    match read_body(request, MAX_UNAUTHENTICATED_BODY_BYTES).await {
        Ok(with) => answer(then(with).await),
        Err(response) => *response,
    }
}

fn string_member<'a>(with: &'a Value, key: &str) -> &'a str {
    with[key].as_str().unwrap_or_default()
}
