//! Sign-in to the console at an issuer of the config: OAuth authorization code flow with PKCE.
//!
//! The page that begins it keeps a key for its tab. The issuer sends the browser back to `/console/identity`, and that page
//! submits the response with the key. The roles of the config decide whether the person gets a session.

use super::{
    MAX_UNAUTHENTICATED_BODY_BYTES, WebConsole, answer, body::read_body, console_header, sign_in,
    with_cookie,
};
use crate::{
    authentication::caller_of_token, config::ConsoleRole, console_roles::AttestedPerson,
    oauth::IDENTITY_PATH, operator::NewConsoleSession, proxy::ClientConnection,
    responses::text_response,
};
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use serde_json::{Value, json};
use toolgate::{edge::http::Body, ids};
use toolgate_core::visible_line;
use toolgate_journal::{AuditEntry, AuditEvent};
use toolgate_policy::sanitize_entry;

/// Error if no issuer can sign people in to the console.
const NO_ISSUER: &str = "people cannot sign in here: the config has no [console.role], or the issuer has no sign_in; open a link of `toolgate console`";

impl WebConsole {
    /// Returns the issuers at which people can sign in.
    pub(super) fn sign_in_options(&self) -> Value {
        let plan = self.operator.active.snapshot();
        let issuers = plan.identity_issuers.issuers();
        match plan.console_roles.is_empty() {
            true => json!({"issuers": []}),
            false => json!({"issuers": &*issuers}),
        }
    }

    /// Handles the steps of a sign-in: `begin` returns the page of the issuer, `end` receives the query of its redirect.
    pub(super) async fn identify(
        &self,
        step: &str,
        from: ClientConnection,
        request: Request<Incoming>,
    ) -> Response<Body> {
        if console_header(&request) != Some("1") {
            return text_response(
                StatusCode::FORBIDDEN,
                "only the console page can begin a console session; open the console",
            );
        }
        let back = sign_in::own_address(&request).map(|own| format!("{own}{IDENTITY_PATH}"));
        let with = match read_body(request, MAX_UNAUTHENTICATED_BODY_BYTES).await {
            Ok(with) => with,
            Err(response) => return *response,
        };
        let word = |key: &str| with.get(key).and_then(Value::as_str).unwrap_or_default();
        match step {
            "begin" => match back {
                Ok(back) => answer(self.begin_identification(word("issuer"), from, back).await),
                Err(why) => answer(Err(why)),
            },
            _ => {
                let ended = self.end_identification((word("query"), word("key")), from);
                match ended.await {
                    Ok(session) => with_cookie(json!({"key": session.key}), &session.cookie),
                    Err(why) => answer(Err(why)),
                }
            }
        }
    }

    async fn begin_identification(
        &self,
        issuer: &str,
        from: ClientConnection,
        back: String,
    ) -> Result<Value, String> {
        let plan = self.operator.active.snapshot();
        let asks = plan.identity_issuers.find(issuer);
        let asks = asks.filter(|_| !plan.console_roles.is_empty());
        let asks = asks.ok_or(NO_ISSUER)?;
        let key = ids::secret_id();
        let network = from.address.to_string();
        let page = self
            .identifications
            .begin_at_console((issuer, &network), asks, back, &key);
        let page = page.await?;
        Ok(json!({"page": page.as_str(), "origin": page.origin(), "key": key}))
    }

    /// Creates the session of a person who returns from their issuer, if the config gives them a role.
    async fn end_identification(
        &self,
        (query, key): (&str, &str),
        from: ClientConnection,
    ) -> Result<NewConsoleSession, String> {
        let ended = self.identifications.end_at_issuer(query, key).await?;
        let (issuer, token) = ended;
        let plan = self.operator.active.snapshot();
        let resource = plan.authenticators.gateway.resource.as_ref();
        let caller = caller_of_token(resource.ok_or(NO_ISSUER)?, &token).await?;
        let name = visible_line(caller.name());
        // An issuer must not sign in the people of another one, with a token that it got elsewhere.
        let own = caller.name().strip_prefix(issuer.as_str());
        if !own.is_some_and(|name| name.starts_with(':')) {
            return Err(format!(
                "{issuer} returned a token of another issuer, for {name}; contact the operator"
            ));
        }
        let url = plan.console_roles.issuer_url(&issuer).ok_or(NO_ISSUER)?;
        let person = AttestedPerson {
            caller,
            issuer_url: url.to_owned(),
            issuer,
        };
        let roles = plan.console_roles.roles_of(&person);
        let roles: Vec<&str> = roles.into_iter().map(ConsoleRole::as_str).collect();
        let state = if roles.is_empty() {
            "refused"
        } else {
            "signed_in"
        };
        let entry = AuditEntry::new(AuditEvent::from("console.sign_in"))
            .with("state", state)
            .with("by", "console")
            .with("who", person.caller.name())
            .with("issuer", person.issuer.as_str())
            .with("roles", roles.as_slice())
            .with("addr", from.address.to_string());
        let recorded = self.operator.journal.append(sanitize_entry(entry)).await;
        recorded.map_err(|error| {
            format!("nobody can sign in, because the audit log cannot record it: {error}")
        })?;
        if roles.is_empty() {
            return Err(format!(
                "you are signed in at {} as {name}, but the config gives you no role at this console; ask its owner",
                person.issuer
            ));
        }
        let lifetime = plan.config.console.session_lifetime;
        let made = self
            .sessions
            .create_person_session(&person, lifetime, from.is_https);
        made.await
    }
}
