//! The side that is called: who stands behind a request, by the token that it shows.
//!
//! - `jwt`: tokens that are signed. - `keys`: the public keys of an issuer. - `introspect`: tokens that only the issuer can
//!   read. - `proof`: tokens that are bound to a key (DPoP). - `challenge`: what a refused client is told.
//!
//! Source: the pages on authorization of all revisions; RFC 6750, 7519, 7662, 8693, 8725, 9068, 9449, 9728.

mod challenge;
mod introspect;
mod issuer;
mod jwt;
mod keys;
mod proof;
#[cfg(test)]
mod tests;
mod verify;

pub use challenge::Refused;
pub use issuer::Issuer;
pub use proof::Proofs;

use crate::{Url, fetch::Fetcher};
use challenge::Why;
use http::{HeaderMap, Method, header};
use issuer::Opened;
use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};
use toolgate_core::{Caller, Principal};

/// The longest token that is looked at, in bytes.
const LONGEST: usize = 16 * 1024;

/// A server that takes tokens which authorization servers gave out for it.
pub struct ResourceServer {
    resource: Url,
    scopes: Vec<String>,
    issuers: Vec<Opened>,
    proofs: Proofs,
}

/// Somebody whose token is good.
pub struct Admitted {
    /// Named `ISSUER:SUBJECT`, the issuer by its short name; with what the token says.
    pub caller: Caller,
    /// When the token ends.
    pub until: Option<SystemTime>,
}

impl ResourceServer {
    /// A server whose clients reach it at that address: the audience of its tokens, to the letter.
    pub fn new(resource: Url) -> ResourceServer {
        ResourceServer {
            resource,
            scopes: Vec::new(),
            issuers: Vec::new(),
            proofs: Proofs::default(),
        }
    }

    /// Takes the tokens of an issuer as well.
    #[must_use]
    pub fn issuer(mut self, issuer: Issuer, fetcher: Fetcher) -> ResourceServer {
        self.issuers.push(Opened::new(issuer, fetcher));
        self
    }

    /// The scopes that clients may want, for the metadata and for those who show no token.
    #[must_use]
    pub fn scopes(mut self, scopes: impl IntoIterator<Item = String>) -> ResourceServer {
        self.scopes = scopes.into_iter().collect();
        self.scopes.sort();
        self.scopes.dedup();
        self
    }

    /// How proofs of DPoP are checked.
    #[must_use]
    pub fn proofs(mut self, proofs: Proofs) -> ResourceServer {
        self.proofs = proofs;
        self
    }

    /// Who stands behind a request to `path` of the resource. A token counts only in `Authorization`, and only once.
    ///
    /// # Errors
    /// [`Refused`]: there is no token, or none that is good here. It says what the client is told.
    pub async fn admit(&self, method: &Method, headers: &HeaderMap) -> Result<Admitted, Refused> {
        let now = now();
        let result = self.judge(method, headers, now).await;
        result.map_err(|why| self.refused(why, now))
    }

    async fn judge(&self, method: &Method, headers: &HeaderMap, now: u64) -> Result<Admitted, Why> {
        let shown = shown(headers)?;
        if shown.token.len() > LONGEST {
            return Err(Why::Invalid("the token is too long"));
        }
        let claims = match jwt::Parsed::read(shown.token) {
            Some(parsed) => {
                let issuer = parsed
                    .issuer()
                    .ok_or(Why::Invalid("the token names no issuer"))?;
                let issuer = self.issuers.iter().find(|known| known.is(&issuer));
                let issuer =
                    issuer.ok_or(Why::Invalid("the issuer of the token is not trusted here"))?;
                (issuer.check(&parsed, &self.resource, now).await?, issuer)
            }
            None => {
                let mut opaque = self.issuers.iter().filter(|known| known.introspects());
                let issuer = opaque
                    .next()
                    .ok_or(Why::Invalid("the token is none that is known here"))?;
                (
                    issuer.introspect(shown.token, &self.resource, now).await?,
                    issuer,
                )
            }
        };
        let (claims, issuer) = claims;
        self.proofs.check(
            &proof::Request {
                method,
                resource: &self.resource,
                headers,
                token: shown.token,
                scheme: shown.scheme,
                required: issuer.wants_proofs(),
            },
            claims.bound_to.as_deref(),
            now,
        )?;
        let until = claims
            .expires
            .map(|end| UNIX_EPOCH + std::time::Duration::from_secs(end));
        Ok(Admitted {
            caller: issuer.caller(&claims.principal),
            until,
        })
    }

    /// Whether an issuer is asked about tokens: then each one that is shown may cost a request.
    pub fn asks(&self) -> bool {
        self.issuers.iter().any(Opened::introspects)
    }

    fn refused(&self, why: Why, now: u64) -> Refused {
        let nonce = match &why {
            Why::Nonce => self.proofs.nonce(now),
            _ => None,
        };
        Refused::new(why, &self.metadata_url(), &self.scopes, nonce)
    }

    /// What is added to a challenge that names the scopes which are missing.
    pub fn insufficient(&self, scopes: &[String]) -> String {
        challenge::insufficient(scopes, &self.metadata_url())
    }

    /// The path of the metadata: that of the resource behind the well-known one.
    pub fn metadata_path(&self) -> String {
        match self.resource.path() {
            "/" => challenge::WELL_KNOWN.to_owned(),
            path => format!("{}{path}", challenge::WELL_KNOWN),
        }
    }

    /// Whether a path is one of those where clients look for the metadata.
    pub fn is_metadata(&self, path: &str) -> bool {
        path == challenge::WELL_KNOWN || path == self.metadata_path()
    }

    fn metadata_url(&self) -> String {
        format!("{}{}", self.resource.origin(), self.metadata_path())
    }

    /// The metadata (RFC 9728), as JSON.
    pub fn metadata(&self) -> String {
        let servers: Vec<&str> = self.issuers.iter().map(Opened::url).collect();
        let mut document = serde_json::json!({
            "resource": self.resource.as_str(),
            "authorization_servers": servers,
            "bearer_methods_supported": ["header"],
            "dpop_signing_alg_values_supported": verify::PROOFS,
        });
        if !self.scopes.is_empty() {
            document["scopes_supported"] = self.scopes.clone().into();
        }
        if self.issuers.iter().all(Opened::wants_proofs) && !self.issuers.is_empty() {
            document["dpop_bound_access_tokens_required"] = true.into();
        }
        document.to_string()
    }
}

/// What a checked token says.
pub(crate) struct Claims {
    principal: Principal,
    /// Seconds since 1970.
    expires: Option<u64>,
    /// The thumbprint of the key that it is bound to.
    bound_to: Option<String>,
}

/// How a token is shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Scheme {
    Bearer,
    Dpop,
}

struct Shown<'a> {
    scheme: Scheme,
    token: &'a str,
}

fn shown(headers: &HeaderMap) -> Result<Shown<'_>, Why> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let value = match (values.next(), values.next()) {
        (None, _) => return Err(Why::Nothing),
        (Some(value), None) => value,
        (Some(_), Some(_)) => return Err(Why::Invalid("there are two Authorization headers")),
    };
    let parts = value.to_str().ok().and_then(|value| value.split_once(' '));
    let (scheme, token) = parts.ok_or(Why::Nothing)?;
    let scheme = match scheme {
        bearer if bearer.eq_ignore_ascii_case("bearer") => Scheme::Bearer,
        dpop if dpop.eq_ignore_ascii_case("dpop") => Scheme::Dpop,
        _ => return Err(Why::Nothing),
    };
    Ok(Shown { scheme, token })
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// A caller of an issuer: its short name and the subject, of which the first has no colon.
pub(crate) fn named(id: &str, principal: &Principal) -> Caller {
    let name: Arc<str> = format!("{id}:{}", principal.subject).into();
    Caller::new(name).with(principal.clone())
}
