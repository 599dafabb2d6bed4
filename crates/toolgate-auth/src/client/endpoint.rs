//! One request for a token, whatever is given for it.
//!
//! Source: RFC 6749, sections 2.3.1, 5.1 and 5.2; RFC 7523, section 2.2.

use super::{
    AuthError, AuthErrorKind, Authenticate, OauthClient, ServerMetadata,
    dpop::{Binding, PROOF, WANTS_NONCE},
    error::shown,
    pkce::random,
    tokens::{Answer, now},
};
use crate::{
    Secret, Url,
    fetch::{Fetcher, Request},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderValue, header};
use serde_json::json;
use toolgate_wire::json::Json;

const ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/// How long an assertion of ours lives, in seconds.
const LIFE: u64 = 60;

/// A refusal of a token endpoint.
pub(super) struct NoToken {
    pub(super) error: AuthError,
    /// The word of the protocol, such as `invalid_grant`; absent where it did not answer in that way.
    pub(super) code: Option<String>,
}

impl<E: Into<AuthError>> From<E> for NoToken {
    fn from(error: E) -> NoToken {
        NoToken {
            error: error.into(),
            code: None,
        }
    }
}

/// Where tokens are had, and by whom.
pub(super) struct Endpoint<'a> {
    pub(super) url: &'a Url,
    /// Who is meant by an assertion of ours.
    pub(super) issuer: &'a str,
    pub(super) basic: bool,
    pub(super) client: &'a OauthClient,
    pub(super) fetcher: &'a Fetcher,
    pub(super) binding: Option<&'a Binding>,
}

impl<'a> Endpoint<'a> {
    pub(super) fn of(
        server: &'a ServerMetadata,
        client: &'a OauthClient,
        fetcher: &'a Fetcher,
        binding: Option<&'a Binding>,
    ) -> Endpoint<'a> {
        Endpoint {
            url: &server.token,
            issuer: &server.issuer,
            basic: server.has_method("client_secret_basic")
                || !server.has_method("client_secret_post"),
            client,
            fetcher,
            binding,
        }
    }

    /// Sends a form, with who we are, and with a proof where the token will be bound.
    pub(super) async fn ask(&self, form: &[(&str, &str)]) -> Result<Answer, NoToken> {
        let mut again = self.binding.is_some();
        loop {
            let request = self.request(form)?;
            let fetched = self.fetcher.fetch(request).await?;
            let new = self
                .binding
                .is_some_and(|binding| binding.hear(&self.url.origin(), &fetched.headers));
            let status = fetched.status;
            let json = fetched.json();
            if status.is_success() {
                let read = json.map_err(AuthError::from).and_then(|json| {
                    let malformed = |what| {
                        AuthError::new(
                            AuthErrorKind::Unreachable,
                            format!("{}: {what}", self.url.origin()),
                        )
                    };
                    Answer::read(&json).map_err(malformed)
                });
                return Ok(read?);
            }
            let no = refused(
                self.url,
                "gives no token",
                status.as_u16(),
                json.ok().as_ref(),
            );
            if again && new && no.code.as_deref() == Some(WANTS_NONCE) {
                again = false;
                continue;
            }
            return Err(no);
        }
    }

    /// The same, where the answer is no token.
    pub(super) async fn tell(&self, form: &[(&str, &str)]) -> Result<(), AuthError> {
        let fetched = self.fetcher.fetch(self.request(form)?).await?;
        let status = fetched.status;
        if status.is_success() {
            return Ok(());
        }
        let json = fetched.json().ok();
        let no = refused(self.url, "does not take it", status.as_u16(), json.as_ref());
        Err(no.error)
    }

    fn request(&self, form: &[(&str, &str)]) -> Result<Request, AuthError> {
        let id = self.client.id.as_str();
        let mut form = form.to_vec();
        let mut basic = None;
        let assertion;
        match &self.client.authenticate {
            Authenticate::None => form.push(("client_id", id)),
            Authenticate::Secret(secret) | Authenticate::Basic(secret) if self.is_basic() => {
                basic = Some(secret);
            }
            Authenticate::Secret(secret)
            | Authenticate::Basic(secret)
            | Authenticate::Post(secret) => {
                form.push(("client_id", id));
                form.push(("client_secret", secret.reveal()));
            }
            Authenticate::Key(key) => {
                let claims = json!({
                    "iss": id, "sub": id, "aud": self.issuer, "jti": random()?, "iat": now(), "exp": now() + LIFE,
                });
                let signed = key.sign(json!({"typ": "JWT"}), &claims);
                assertion =
                    signed.map_err(|bad| AuthError::new(AuthErrorKind::Store, bad.to_string()))?;
                form.push(("client_id", id));
                form.push(("client_assertion_type", ASSERTION));
                form.push(("client_assertion", &assertion));
            }
        }
        let mut request = Request::form(self.url.clone(), form);
        if let Some(secret) = basic {
            request
                .headers
                .insert(header::AUTHORIZATION, header_of(id, secret)?);
        }
        if let Some(binding) = self.binding {
            request
                .headers
                .insert(PROOF, binding.proof("POST", self.url, None)?);
        }
        Ok(request)
    }

    fn is_basic(&self) -> bool {
        self.basic || matches!(self.client.authenticate, Authenticate::Basic(_))
    }
}

/// Id and secret as RFC 6749 wants them: each encoded as in a form, then both in Base64.
fn header_of(id: &str, secret: &Secret) -> Result<HeaderValue, AuthError> {
    let encode = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!("{}:{}", encode(id), encode(secret.reveal()));
    let value = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(pair)));
    let mut value = value.map_err(|bad| AuthError::new(AuthErrorKind::Store, bad.to_string()))?;
    value.set_sensitive(true);
    Ok(value)
}

fn refused(url: &Url, what: &str, status: u16, json: Option<&Json>) -> NoToken {
    let text = |key: &str| json.and_then(|json| json.get(key)?.string());
    let code = text("error");
    let said = match (&code, text("error_description")) {
        (Some(code), Some(words)) => format!("{}: {}", shown(code), shown(&words)),
        (Some(code), None) => shown(code),
        (None, _) => "no reason is given".to_owned(),
    };
    let kind = match code {
        Some(_) if status < 500 => AuthErrorKind::Refused,
        _ => AuthErrorKind::Unreachable,
    };
    let words = format!("{} {what} (HTTP {status}): {said}", url.origin());
    NoToken {
        error: AuthError::new(kind, words),
        code,
    }
}
