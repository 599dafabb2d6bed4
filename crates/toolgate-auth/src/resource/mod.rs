//! The side that is called: who stands behind a request, by the token that it shows.
//!
//! - `shown`: what a request shows. - `jwt`: tokens that are signed. - `keys`: the public keys of an issuer. - `introspect`: tokens that only the issuer can
//!   read. - `proof`: tokens that are bound to a key (DPoP). - `challenge`: what a refused client is told.
//! - `issuer`: one whose tokens are taken. - `source`: where it is asked. - `look`: what is fetched of it. - `trouble`: why
//!   it cannot be used. - `withdrawn`: whose tokens end before their time.
//!
//! Source: the pages on authorization of all revisions; RFC 6750, 7519, 7662, 8693, 8725, 9068, 9449, 9728.

mod challenge;
mod introspect;
mod issuer;
mod jwt;
mod keys;
mod look;
mod proof;
mod shown;
mod source;
#[cfg(test)]
mod tests;
mod trouble;
mod verify;
mod withdrawn;

pub use challenge::Refused;
pub use issuer::Issuer;
pub use proof::{NoNonces, Proofs};
pub use shown::{Scheme, Shown};
pub use trouble::IssuerStatus;

use crate::{
    Url,
    clock::now,
    fetch::{FetchLimits, Fetcher},
    metadata::RESOURCE,
};
use challenge::{Why, Words};
use http::{HeaderMap, Method};
use issuer::Opened;
use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use toolgate_core::{Caller, Principal};

/// The longest token that is looked at, in bytes.
const LONGEST: usize = 16 * 1024;

/// A server that takes tokens which authorization servers gave out for it.
///
/// ```
/// use http::{HeaderMap, Method};
/// use toolgate_auth::{Url, resource::{Issuer, ResourceServer}};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let login = Url::parse("https://login.example.com")?;
/// let resource = ResourceServer::new(Url::parse("https://tools.example.com/mcp")?)
///     .issuer(Issuer::new("corp", login))
///     .scopes(["files:read".to_owned()]);
/// let shown = HeaderMap::new();
/// match resource.admit(&Method::POST, &shown).await {
///     Ok(admitted) => println!("{} calls", admitted.caller.name()),
///     Err(refused) => println!("{}: {}", refused.status(), refused.told()),
/// }
/// # Ok(())
/// # }
/// ```
pub struct ResourceServer {
    resource: Url,
    scopes: Vec<String>,
    issuers: Vec<Opened>,
    proofs: Arc<Proofs>,
    limits: ResourceLimits,
    ask_every: bool,
}

/// How long what an issuer said is used, and how much is remembered.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ResourceLimits {
    /// How long the word of an issuer about a token holds: so long one that it withdrew is still taken; 5 s.
    pub introspection: Duration,
    /// How long the public keys of an issuer are used without another look, and six times that where it is away; 10 min.
    pub keys: Duration,
    /// The least time between two looks for keys or metadata, whatever tokens name; 30 s.
    pub ask: Duration,
    /// How often an issuer is asked again about a token while a stream is open that it opened; 1 min.
    pub again: Duration,
    /// Tokens that one issuer is asked about at the same time; more wait for as long as one answer may take; 32.
    pub introspections: usize,
    /// Proofs of DPoP that are remembered; of more, none is taken until the oldest are over; 262,144.
    pub proofs: usize,
}

impl Default for ResourceLimits {
    fn default() -> ResourceLimits {
        ResourceLimits {
            introspection: Duration::from_secs(5),
            keys: Duration::from_secs(600),
            ask: Duration::from_secs(30),
            again: Duration::from_secs(60),
            introspections: 32,
            proofs: 262_144,
        }
    }
}

/// Somebody whose token is good.
pub struct Admitted {
    /// Named `ISSUER:SUBJECT`, the issuer by its short name; with what the token says.
    pub caller: Caller,
    /// Until when the token is taken: its end, and as much more as clocks may be off.
    pub until: Option<SystemTime>,
}

impl ResourceServer {
    /// A server whose clients reach it at that address: the audience of its tokens, to the letter.
    pub fn new(resource: Url) -> ResourceServer {
        ResourceServer {
            resource,
            scopes: Vec::new(),
            issuers: Vec::new(),
            proofs: Arc::default(),
            limits: ResourceLimits::default(),
            ask_every: false,
        }
    }

    /// Takes the tokens of an issuer as well. It is gone to wherever the operator says that it is, in a private network
    /// too, and what it names lies on public addresses, or on loopback where it does itself.
    #[must_use]
    pub fn issuer(self, issuer: Issuer) -> ResourceServer {
        let fetcher = issuer.fetcher(FetchLimits::default());
        self.issuer_through(issuer, fetcher)
    }

    /// The same with a fetcher of one's own: that of [`Issuer::fetcher`] with other limits, or another one.
    #[must_use]
    pub fn issuer_through(mut self, issuer: Issuer, fetcher: Fetcher) -> ResourceServer {
        self.issuers.push(Opened::new(issuer, fetcher));
        self
    }

    /// The scopes that clients may want, for the metadata and for those who show no token.
    #[must_use]
    pub fn scopes(mut self, scopes: impl IntoIterator<Item = String>) -> ResourceServer {
        self.scopes = scopes.into_iter().filter(of_a_resource).collect();
        self.scopes.sort();
        self.scopes.dedup();
        self
    }

    /// How proofs of DPoP are checked.
    #[must_use]
    pub fn proofs(mut self, proofs: Proofs) -> ResourceServer {
        self.proofs = Arc::new(proofs);
        self
    }

    /// Goes on with the proofs that another one saw, in whose place it comes: none of them is taken again.
    #[must_use]
    pub fn after(mut self, before: &ResourceServer) -> ResourceServer {
        self.proofs = before.proofs.clone();
        self
    }

    /// How long what an issuer said is used, and how much is remembered.
    #[must_use]
    pub fn limits(mut self, limits: ResourceLimits) -> ResourceServer {
        self.limits = limits;
        self
    }

    /// Asks one issuer after the other about a token that no prefix leads to one of them, until one knows it. Each of them
    /// then sees tokens of the others. Otherwise only the first is asked.
    #[must_use]
    pub fn danger_asking_every_issuer(mut self) -> ResourceServer {
        self.ask_every = true;
        self
    }

    /// Who stands behind a request to the resource. A token counts only in `Authorization`, and only once.
    ///
    /// # Errors
    /// [`Refused`]: there is no token, or none that is good here. It says what the client is told.
    pub async fn admit(&self, method: &Method, headers: &HeaderMap) -> Result<Admitted, Refused> {
        self.admit_at(&self.resource, method, headers, true).await
    }

    /// The same for a request to any address of the resource, which proofs have to be for. Where no issuer may be asked,
    /// tokens are taken that are checked here, and those of which an issuer spoke lately.
    ///
    /// # Errors
    /// [`Refused`]
    pub async fn admit_at(
        &self,
        address: &Url,
        method: &Method,
        headers: &HeaderMap,
        may_ask: bool,
    ) -> Result<Admitted, Refused> {
        let now = now();
        let result = self.judge(address, method, headers, (now, may_ask)).await;
        result.map_err(|why| self.refused(why, now))
    }

    /// The refusal of credentials that are no token of an issuer and not good either: it says the same, and where to get a
    /// token, and to a person these words.
    pub fn refuses(&self, told: &'static str) -> Refused {
        self.refused(Why::Invalid(told), now()).saying(told)
    }

    /// The refusal of a request that shows nothing.
    pub fn asks_for(&self) -> Refused {
        self.refused(Why::Nothing, now())
    }

    /// The refusal of credentials that cannot be read, and why.
    pub fn cannot_read(&self, why: &'static str) -> Refused {
        self.refused(Why::Malformed(why), now())
    }

    /// The address of the resource.
    pub fn resource(&self) -> &Url {
        &self.resource
    }

    async fn judge(
        &self,
        address: &Url,
        method: &Method,
        headers: &HeaderMap,
        (now, may_ask): (u64, bool),
    ) -> Result<Admitted, Why> {
        let (scheme, token) = match Shown::of(headers) {
            Shown::Nothing | Shown::Other => return Err(Why::Nothing),
            Shown::Malformed(why) => return Err(Why::Malformed(why)),
            Shown::Token(scheme, token) => (scheme, token),
        };
        if token.len() > LONGEST {
            return Err(Why::Invalid("the token is too long"));
        }
        let (claims, issuer) = self.token(token, (now, may_ask)).await?;
        self.proofs.check(
            &proof::Request {
                method,
                address,
                headers,
                token,
                scheme,
                required: issuer.wants_proofs(),
                most: self.limits.proofs,
            },
            claims.bound_to.as_deref(),
            now,
        )?;
        let until = claims
            .expires
            .and_then(|end| UNIX_EPOCH.checked_add(Duration::from_secs(end + jwt::SKEW)));
        Ok(Admitted {
            caller: issuer.caller(&claims.principal),
            until,
        })
    }

    /// What a token says, where it is good, and whose it is.
    async fn token(
        &self,
        token: &str,
        (now, may_ask): (u64, bool),
    ) -> Result<(Claims, &Opened), Why> {
        let Some(parsed) = jwt::Parsed::read(token) else {
            return self.opaque(token, (now, may_ask)).await;
        };
        let issuer = parsed.issuer();
        let issuer = issuer.ok_or(Why::Invalid("the token names no issuer"))?;
        let issuer = self.issuers.iter().find(|known| known.is(&issuer));
        let issuer = issuer.ok_or(Why::Invalid("the issuer of the token is not trusted here"))?;
        let with = (now, &self.limits, may_ask);
        Ok((issuer.check(&parsed, &self.resource, with).await?, issuer))
    }

    /// What is known of a token that only its issuer can read. A prefix says whose it is; the longest counts.
    async fn opaque(
        &self,
        token: &str,
        (now, may_ask): (u64, bool),
    ) -> Result<(Claims, &Opened), Why> {
        let asked = || self.issuers.iter().filter(|known| known.introspects());
        let named = asked().filter(|known| !known.prefix().is_empty());
        let named = named.filter(|known| token.starts_with(known.prefix()));
        let candidates: Vec<&Opened> = match named.max_by_key(|known| known.prefix().len()) {
            Some(named) => vec![named],
            None => {
                let most = if self.ask_every { usize::MAX } else { 1 };
                let rest = asked().filter(|known| known.prefix().is_empty());
                rest.take(most).collect()
            }
        };
        let mut why = Why::Invalid("the token is none that is known here");
        for issuer in candidates {
            let with = (now, &self.limits, may_ask);
            let said = issuer.introspect(token, &self.resource, with);
            match said.await {
                Ok(claims) => return Ok((claims, issuer)),
                // One that could not be asked may know it, whatever the others say.
                Err(no) => {
                    why = if matches!(why, Why::Unavailable(_) | Why::Away(_) | Why::Unasked) {
                        why
                    } else {
                        no
                    }
                }
            }
        }
        Err(why)
    }

    /// How each issuer stands, as far as that is known from what was asked of it.
    pub fn issuers(&self) -> Vec<IssuerStatus> {
        self.issuers.iter().map(Opened::status).collect()
    }

    fn refused(&self, why: Why, now: u64) -> Refused {
        let nonce = match &why {
            Why::Nonce => self.proofs.nonce(now),
            _ => None,
        };
        let metadata = self.metadata_url();
        Refused::new(why, &self.words(&metadata, &self.scopes), nonce)
    }

    fn words<'a>(&self, metadata: &'a str, scopes: &'a [String]) -> Words<'a> {
        Words {
            metadata,
            scopes,
            bearer: !self.only_bound(),
            proofs: self.issuers.iter().any(Opened::wants_proofs),
        }
    }

    /// Whether every issuer's tokens are to be bound to a key.
    fn only_bound(&self) -> bool {
        self.issuers.iter().all(Opened::wants_proofs) && !self.issuers.is_empty()
    }

    /// What is added to a challenge that names the scopes which are missing.
    pub fn insufficient(&self, scopes: &[String]) -> String {
        let scopes: Vec<String> = scopes
            .iter()
            .filter(|s| of_a_resource(s))
            .cloned()
            .collect();
        challenge::insufficient(&self.words(&self.metadata_url(), &scopes))
    }

    /// The path of the metadata: that of the resource behind the well-known one.
    pub fn metadata_path(&self) -> String {
        match self.resource.path() {
            "/" => RESOURCE.to_owned(),
            path => format!("{}{path}", RESOURCE),
        }
    }

    /// Whether a path is one of those where clients look for the metadata.
    pub fn is_metadata(&self, path: &str) -> bool {
        path == RESOURCE || path == self.metadata_path()
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
        if self.only_bound() {
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

/// Whether a scope is one that a resource asks for: this one is between a client and the issuer.
fn of_a_resource(scope: &String) -> bool {
    scope != "offline_access"
}

/// Foreign words for a record: visible, on one line, and not many.
fn cut(words: &str) -> String {
    let words = toolgate_core::visible_line(words);
    match words.char_indices().nth(200) {
        Some((at, _)) => format!("{}…", &words[..at]),
        None => words,
    }
}

/// A caller of an issuer: its short name and the subject, of which the first has no colon.
pub(crate) fn named(id: &str, principal: &Principal) -> Caller {
    let name: Arc<str> = format!("{id}:{}", principal.subject).into();
    Caller::new(name).with(principal.clone())
}
