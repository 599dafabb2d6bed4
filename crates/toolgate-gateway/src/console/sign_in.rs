//! Signing in at a server from the console.

use super::{Console, answer, body, mark};
use crate::{routes::text, signing_in::PATH};
use http::{Request, Response, StatusCode, header};
use hyper::body::Incoming;
use serde_json::{Value, json};
use toolgate::{edge::http::Body, visible};
use toolgate_policy::Who;

impl Console {
    /// `begin` gives the page to go to, `end` takes what came back. Both are for one login.
    pub(super) async fn sign_in(
        &self,
        step: &str,
        request: Request<Incoming>,
        who: &Who,
    ) -> Response<Body> {
        let by = mark(&request).unwrap_or_default().to_owned();
        let back = back(&request);
        let with = match body(request).await {
            Ok(with) => with,
            Err(response) => return *response,
        };
        let word = |key: &str| with.get(key).and_then(Value::as_str).unwrap_or_default();
        match (step, back) {
            ("begin", Ok(back)) => answer(self.begin(word("server"), back, &by).await),
            ("begin", Err(why)) => answer(Err(why)),
            ("end", _) => answer(self.end(word("query"), &by, who).await),
            _ => text(StatusCode::NOT_FOUND, "there is nothing here"),
        }
    }

    async fn begin(&self, id: &str, back: String, by: &str) -> Result<Value, String> {
        let plan = self.operator.live.plan();
        let server = plan.config.servers.iter().find(|server| server.id == id);
        let server = server.ok_or_else(|| format!("the config has no server {id:?}"))?;
        let Some(address) = &server.address else {
            return Err(format!(
                "the server {id} is started here; there is nobody to sign in to"
            ));
        };
        let page = self.sign_ins.begin((id, address), back, by).await?;
        Ok(json!({"page": page.as_str()}))
    }

    async fn end(&self, query: &str, by: &str, who: &Who) -> Result<Value, String> {
        let signed = self.sign_ins.end(query, by).await?;
        // A reload may have taken the server away meanwhile; what was granted is kept all the same.
        let _ = self.operator.signed(&signed.server, "signed_in", who);
        let grant = &signed.grant;
        Ok(json!({
            "server": signed.server, "issuer": visible(&grant.issuer),
            "scopes": visible(&grant.scopes.to_string()),
        }))
    }
}

/// Where a browser comes back to: our own origin, as this request has it. Its host was checked, and its origin too.
fn back(request: &Request<Incoming>) -> Result<String, String> {
    let one = |name| {
        let value = request.headers().get(name)?;
        value.to_str().ok().map(str::to_ascii_lowercase)
    };
    let host = one(header::HOST).unwrap_or_default();
    let origin = one(header::ORIGIN).unwrap_or_else(|| format!("http://{host}"));
    let (scheme, name) = origin.split_once("://").unwrap_or_default();
    if name != host {
        return Err("this is no request of the console page".to_owned());
    }
    let bare = name.rsplit_once(':').map_or(name, |(bare, _)| bare);
    let near = matches!(bare, "localhost" | "127.0.0.1" | "[::1]");
    if scheme != "https" && !near {
        return Err(format!(
            "a code of a sign-in must not pass a network in clear; open the console on this machine, or by https, not at {origin}"
        ));
    }
    Ok(format!("{origin}{PATH}"))
}
