//! The page where the user of a caller signs in at a server, and its two requests. Who it is, is shown by the key of that
//! caller; who comes back, by a secret that only the page has that began.

use super::{Routes, text};
use crate::{
    console::{answer, body},
    door::{Door, StaysOut},
    signing_in::{self, BACK, FOLDER, Links, SignIns, callers},
};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use serde_json::{Value, json};
use std::{net::IpAddr, sync::Arc};
use toolgate::{BoxFuture, edge::http::Body, ids, visible, visible_line};
use toolgate_policy::{By, Who};

/// What the page needs.
pub(crate) struct OwnSignIn {
    pub(crate) links: Arc<Links>,
    pub(crate) sign_ins: SignIns,
}

/// Said of a link that is no good for the caller who shows it, for whatever reason.
const NO_LINK: &str = "this link is not for the caller of this key, or it was used, or it is older than ten minutes; have the program call the tool again";

impl Routes {
    pub(super) async fn sign_in(
        &self,
        door: &Door,
        from: IpAddr,
        request: Request<Incoming>,
    ) -> Response<Body> {
        let step = request.uri().path().strip_prefix(FOLDER).map(str::to_owned);
        match (request.method(), step.as_deref().unwrap_or_default()) {
            (&Method::GET, "" | BACK) => self.console.page("own-sign-in.html"),
            (&Method::GET, name @ ("own-sign-in.js" | "style.css")) => self.console.page(name),
            (&Method::POST, "begin") => self.begin_sign_in(door, from, request).await,
            (&Method::POST, "end") => self.end_sign_in(request).await,
            _ => text(StatusCode::NOT_FOUND, "there is nothing here"),
        }
    }

    async fn begin_sign_in(
        &self,
        door: &Door,
        from: IpAddr,
        request: Request<Incoming>,
    ) -> Response<Body> {
        let over = self.attempts.is_over(from, door.failures);
        let at = (request.method(), request.uri().path());
        let entered = match door.enter(at, request.headers(), &self.keys, over).await {
            Ok(entered) => entered,
            Err(out) => return self.stays_out(door, from, &request, out).await,
        };
        let caller = entered.caller.shared();
        let Some(until) = entered.until.filter(|_| caller.starts_with("key:")) else {
            let out = StaysOut {
                tried: true,
                why: "a sign-in was begun without a key".to_owned(),
                told: "this is no key of a caller; they begin with tg_",
                refused: None,
            };
            return self.stays_out(door, from, &request, out).await;
        };
        match body(request).await {
            Ok(with) => {
                let link = with["link"].as_str().unwrap_or_default();
                answer(self.begun(link, &caller, until).await)
            }
            Err(response) => *response,
        }
    }

    async fn begun(
        &self,
        link: &str,
        caller: &str,
        until: BoxFuture<'static, ()>,
    ) -> Result<Value, String> {
        let OwnSignIn { links, sign_ins } = &self.own;
        let server = links.server(link, caller).ok_or(NO_LINK)?;
        let plan = self.live.plan();
        let address = signing_in::address(&plan.config, &server, Some(caller))?;
        let pages = plan.pages.as_ref().ok_or(NO_LINK)?;
        let grants = sign_ins.grants();
        callers::room(&plan.config, grants, (&server, address), caller).await?;
        let key = ids::secret();
        // Whoever begins anew has given up what he began before.
        sign_ins.give_up(&server, caller);
        let by = (key.as_str(), Some(until));
        let of = Some((caller, plan.config.limits.callers_per_server));
        let page = sign_ins.begin((&server, address), of, pages.back(), by);
        let page = page.await?;
        links.spend(link);
        Ok(
            json!({"page": page.as_str(), "at": page.origin(), "key": key, "server": &*server,
            "caller": visible_line(caller)}),
        )
    }

    async fn end_sign_in(&self, request: Request<Incoming>) -> Response<Body> {
        match body(request).await {
            Ok(with) => {
                let word = |key: &str| with[key].as_str().unwrap_or_default();
                answer(self.ended(word("query"), word("key")).await)
            }
            Err(response) => *response,
        }
    }

    async fn ended(&self, query: &str, key: &str) -> Result<Value, String> {
        let OwnSignIn { links, sign_ins } = &self.own;
        let signed = sign_ins.end(query, key).await?;
        let caller = signed.caller.as_deref();
        let who = Who::named(By::Client, caller.unwrap_or_default());
        // A reload may have taken the server away meanwhile; what was granted is kept all the same.
        let operator = &self.console.operator;
        let _ = operator.signed(&signed.server, caller, "signed_in", &who);
        links.signed_in();
        Ok(json!({
            "server": signed.server, "caller": caller.map(visible_line),
            "issuer": visible(&signed.grant.issuer), "scopes": visible(&signed.grant.scopes.to_string()),
        }))
    }
}
