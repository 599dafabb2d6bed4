//! One authorization server whose tokens are taken.

use super::{
    Claims, ResourceLimits,
    challenge::Why,
    introspect::{Asked, Introspection},
    jwt::{self, Parsed, Wanted},
    keys::Keys,
    named,
};
use crate::{
    Secret, Url,
    fetch::{Fetcher, Request},
};
use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Instant,
};
use toolgate_core::{Caller, Principal};
use toolgate_wire::json::Json;

/// An authorization server whose tokens are taken, as the operator names it.
pub struct Issuer {
    id: String,
    url: Url,
    keys: Option<Url>,
    introspection: Option<Introspection>,
    asks_all: bool,
    proofs: bool,
    prefix: String,
}

impl Issuer {
    /// The issuer at an address, which tokens name to the letter. `id` is the short name that its callers begin with; it
    /// has no colon.
    pub fn new(id: impl Into<String>, url: Url) -> Issuer {
        Issuer {
            id: id.into().replace(':', "-"),
            url,
            keys: None,
            introspection: None,
            asks_all: false,
            proofs: false,
            prefix: String::new(),
        }
    }

    /// Takes its public keys from there, rather than from where its metadata says.
    #[must_use]
    pub fn keys(mut self, url: Url) -> Issuer {
        self.keys = Some(url);
        self
    }

    /// Asks it about tokens that only it can read (RFC 7662), as this client: at this address, or where its metadata says.
    #[must_use]
    pub fn introspection(mut self, url: Option<Url>, client: &str, secret: Secret) -> Issuer {
        self.introspection = Some(Introspection::new(url, client, secret));
        self
    }

    /// Asks it about signed tokens as well, since it may have withdrawn them. Not every server knows those that it signed.
    #[must_use]
    pub fn introspecting_all(mut self) -> Issuer {
        self.asks_all = self.introspection.is_some();
        self
    }

    /// Tokens that only it can read begin with this; it is asked about no others, and no other issuer about these.
    #[must_use]
    pub fn token_prefix(mut self, prefix: &str) -> Issuer {
        self.prefix = prefix.to_owned();
        self
    }

    /// Takes only tokens that are bound to a key, with a proof (RFC 9449).
    #[must_use]
    pub fn proofs_required(mut self) -> Issuer {
        self.proofs = true;
        self
    }
}

/// An issuer, and what is known of it by now.
pub(super) struct Opened {
    issuer: Issuer,
    fetcher: Fetcher,
    keys: Keys,
    asked: Asked,
    metadata: Mutex<Metadata>,
    /// Held while the metadata is fetched.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Metadata {
    keys: Option<Url>,
    introspection: Option<Url>,
    tried: Option<Instant>,
}

impl Opened {
    pub(super) fn new(issuer: Issuer, fetcher: Fetcher) -> Opened {
        let metadata = Metadata {
            keys: issuer.keys.clone(),
            introspection: issuer.introspection.as_ref().and_then(|i| i.url.clone()),
            tried: None,
        };
        Opened {
            issuer,
            fetcher,
            keys: Keys::new(),
            asked: Asked::default(),
            metadata: Mutex::new(metadata),
            fetching: tokio::sync::Mutex::default(),
        }
    }

    /// Whether a token that names this issuer is of this one: to the letter.
    pub(super) fn is(&self, named: &str) -> bool {
        self.issuer.url.as_str() == named
    }

    pub(super) fn url(&self) -> &str {
        self.issuer.url.as_str()
    }

    pub(super) fn wants_proofs(&self) -> bool {
        self.issuer.proofs
    }

    pub(super) fn introspects(&self) -> bool {
        self.issuer.introspection.is_some()
    }

    /// What tokens begin with that only this one can read; empty where nobody said.
    pub(super) fn prefix(&self) -> &str {
        &self.issuer.prefix
    }

    pub(super) fn caller(&self, principal: &Principal) -> Caller {
        named(&self.issuer.id, principal)
    }

    /// What a signed token says, where it is good.
    pub(super) async fn check(
        &self,
        parsed: &Parsed<'_>,
        resource: &Url,
        (now, limits): (u64, &ResourceLimits),
    ) -> Result<Claims, Why> {
        if !parsed.type_fits() {
            return Err(Why::Invalid("the token is no access token"));
        }
        let by = parsed.algorithm()?;
        let text = |key: &str| parsed.header.get(key).and_then(|value| value.string());
        let (id, alg) = (text("kid"), text("alg").unwrap_or_default());
        let url = self.learn(limits, |metadata| metadata.keys.clone()).await;
        let url = url.ok_or(Why::Unavailable("the keys of the issuer cannot be found"))?;
        let source = (url, self.fetcher.clone());
        let verified = self.keys.verify(
            &source,
            (id.as_deref(), &alg),
            (by, limits),
            parsed.text.as_bytes(),
            &parsed.signature,
        );
        match verified.await {
            Ok(true) => {}
            Ok(false) => return Err(Why::Invalid("the token is not signed by its issuer")),
            Err(_) => return Err(Why::Unavailable("the keys of the issuer cannot be fetched")),
        }
        let claims = jwt::claims(
            parsed.payload(),
            &Wanted {
                issuer: self.url(),
                audience: resource.as_str(),
                now,
                strict: true,
            },
        )?;
        if self.issuer.asks_all {
            let token = format!("{}.{}", parsed.text, crate::jose::encode(&parsed.signature));
            self.introspect(&token, resource, (now, limits)).await?;
        }
        Ok(claims)
    }

    /// What the issuer says of a token.
    pub(super) async fn introspect(
        &self,
        token: &str,
        resource: &Url,
        (now, limits): (u64, &ResourceLimits),
    ) -> Result<Claims, Why> {
        let none = Why::Invalid("the token is none that is known here");
        let with = self.issuer.introspection.as_ref().ok_or(none)?;
        let url = self
            .learn(limits, |metadata| metadata.introspection.clone())
            .await;
        let url = url.ok_or(Why::Unavailable("where to ask the issuer cannot be found"))?;
        let holds = limits.introspection;
        let said = self
            .asked
            .ask(with, &url, &self.fetcher, token, holds)
            .await?;
        if said.get("active").and_then(|active| active.bool()) != Some(true) {
            return Err(Why::Invalid("the issuer says that the token is not good"));
        }
        let other = |iss: Json| iss.string().as_deref() != Some(self.url());
        if said.get("iss").is_some_and(other) {
            return Err(Why::Invalid("the token is of another issuer"));
        }
        jwt::claims(
            &said,
            &Wanted {
                issuer: self.url(),
                audience: resource.as_str(),
                now,
                strict: false,
            },
        )
    }

    /// Something of the metadata, which is fetched where it is not known.
    async fn learn(
        &self,
        limits: &ResourceLimits,
        of: impl Fn(&Metadata) -> Option<Url>,
    ) -> Option<Url> {
        if let Some(known) = of(&self.metadata()) {
            return Some(known);
        }
        let _one = self.fetching.lock().await;
        {
            let mut metadata = self.metadata();
            let known = of(&metadata);
            if known.is_some() || metadata.tried.is_some_and(|at| at.elapsed() < limits.ask) {
                return known;
            }
            metadata.tried = Some(Instant::now());
        }
        let document = self.document().await?;
        let url = |key: &str| Url::parse(&document.get(key)?.string()?).ok();
        let mut metadata = self.metadata();
        metadata.keys = metadata.keys.take().or_else(|| url("jwks_uri"));
        metadata.introspection = metadata
            .introspection
            .take()
            .or_else(|| url("introspection_endpoint"));
        of(&metadata)
    }

    fn metadata(&self) -> MutexGuard<'_, Metadata> {
        self.metadata.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The metadata of the issuer, at the places where it may stand, if it names this very issuer.
    async fn document(&self) -> Option<Json> {
        let url = &self.issuer.url;
        let path = url.path().trim_end_matches('/');
        for place in [
            format!("/.well-known/oauth-authorization-server{path}"),
            format!("/.well-known/openid-configuration{path}"),
            format!("{path}/.well-known/openid-configuration"),
        ] {
            let Ok(place) = url.at(&place) else { continue };
            let Ok(fetched) = self.fetcher.fetch(Request::get(place)).await else {
                continue;
            };
            if !fetched.status.is_success() {
                continue;
            }
            let Ok(document) = fetched.json() else {
                continue;
            };
            let named = document.get("issuer").and_then(|issuer| issuer.string());
            if named.is_some_and(|named| self.is(&named)) {
                return Some(document);
            }
        }
        None
    }
}
