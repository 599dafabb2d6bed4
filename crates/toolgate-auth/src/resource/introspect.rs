//! Tokens that only their issuer can read: it is asked, and its word holds for a moment (RFC 7662).

use super::challenge::Why;
use crate::{
    Secret, Url,
    fetch::{Fetcher, Request},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderValue, header};
use ring::digest::{SHA256, digest};
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};
use toolgate_wire::json::{Json, Kind};

/// Words that are kept.
const MOST: usize = 4096;
/// The longest of them, in bytes; a longer one holds for one request.
const LONGEST: usize = 4096;

/// As whom an issuer is asked, and where.
pub(super) struct Introspection {
    pub(super) url: Option<Url>,
    client: String,
    secret: Secret,
}

impl Introspection {
    pub(super) fn new(url: Option<Url>, client: &str, secret: Secret) -> Introspection {
        Introspection {
            url,
            client: client.to_owned(),
            secret,
        }
    }

    fn credentials(&self) -> Option<HeaderValue> {
        let encoded =
            |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        let pair = format!(
            "{}:{}",
            encoded(&self.client),
            encoded(self.secret.reveal())
        );
        let mut value = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(pair))).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

/// What an issuer said lately, by the digest of the token.
#[derive(Default)]
pub(super) struct Asked(Mutex<HashMap<[u8; 32], (Instant, Json)>>);

impl Asked {
    /// What the issuer says of a token, now or a moment ago.
    pub(super) async fn ask(
        &self,
        with: &Introspection,
        url: &Url,
        fetcher: &Fetcher,
        token: &str,
        holds: Duration,
    ) -> Result<Json, Why> {
        let mut key = [0; 32];
        key.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
        if let Some(said) = self.lately(&key, holds) {
            return Ok(said);
        }
        let away = Why::Unavailable("the issuer cannot be asked about the token");
        let mut request = Request::form(
            url.clone(),
            [("token", token), ("token_type_hint", "access_token")],
        );
        let credentials = with.credentials().ok_or(away)?;
        request.headers.insert(header::AUTHORIZATION, credentials);
        let fetched = fetcher.fetch(request).await.map_err(|_| away)?;
        if !fetched.status.is_success() {
            return Err(away);
        }
        let said = fetched.json().map_err(|_| away)?;
        if said.kind() != Kind::Object {
            return Err(away);
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MOST {
            kept.retain(|_, (at, _)| at.elapsed() < holds);
        }
        if kept.len() < MOST && said.as_str().len() <= LONGEST {
            kept.insert(key, (Instant::now(), said.clone()));
        }
        Ok(said)
    }

    fn lately(&self, key: &[u8; 32], holds: Duration) -> Option<Json> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, said) = kept.get(key)?;
        (at.elapsed() < holds).then(|| said.clone())
    }
}
