//! One authorization server whose tokens are taken.

use super::{
    Claims, IssuerStatus, ResourceLimits,
    challenge::Why,
    introspect::{Asked, Introspection, NoWord},
    jwt::{self, Parsed, Wanted},
    keys::{SignedText, Verdict},
    named,
    source::{Keys, Source},
};
use crate::{
    Secret, Url,
    fetch::{FetchLimits, Fetcher, Reach},
};
use std::sync::Arc;
use toolgate_core::{Caller, Principal};
use toolgate_wire::json::Json;

/// Why a token cannot be checked whose issuer answers.
const KNOWN: &str =
    "the key of the token is none that is known, and its issuer was asked for keys a moment ago";

/// An authorization server whose tokens are taken, as the operator names it.
///
/// ```
/// use toolgate_auth::{Secret, Url, resource::Issuer};
///
/// // Its keys are where its metadata says.
/// let signed = Issuer::new("corp", Url::parse("https://login.example.com")?);
/// // It is asked about each token, as that client.
/// let asked = Issuer::new("partner", Url::parse("https://sso.example.net")?)
///     .introspection(None, "tools", Secret::new("s3cret"))
///     .token_prefix("pt_");
/// # drop((signed, asked));
/// # Ok::<(), toolgate_auth::BadUrl>(())
/// ```
pub struct Issuer {
    id: String,
    url: Url,
    keys: Option<Url>,
    introspection: Option<Introspection>,
    asks_all: bool,
    proofs: bool,
    prefix: String,
    audiences: Vec<String>,
    private: bool,
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
            audiences: Vec::new(),
            private: false,
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
    /// Without [`Issuer::introspection`] none of them can be checked, so none is taken.
    #[must_use]
    pub fn introspecting_all(mut self) -> Issuer {
        self.asks_all = true;
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

    /// Takes tokens with one of these in `aud` as well: names that this issuer has for the resource, where it does not
    /// take its address. They have to be names that it gives to this resource alone, since whoever else has one of them
    /// can pass on here the tokens that he gets.
    #[must_use]
    pub fn audiences(mut self, names: impl IntoIterator<Item = String>) -> Issuer {
        self.audiences.extend(names);
        self
    }

    /// Goes to private networks for what the issuer names ([`Reach::danger_and_private`]). Where the operator himself
    /// points, [`Issuer::new`], [`Issuer::keys`] and [`Issuer::introspection`], is gone to wherever that is.
    #[must_use]
    pub fn danger_private_addresses(mut self) -> Issuer {
        self.private = true;
        self
    }

    /// What goes to the addresses that the operator wrote, and to what the issuer may name.
    pub fn fetcher(&self, limits: FetchLimits) -> Fetcher {
        let reach = match self.private {
            true => Reach::of(&self.url).danger_and_private(),
            false => Reach::of(&self.url),
        };
        let asked = self
            .introspection
            .as_ref()
            .and_then(|with| with.url.as_ref());
        let own = [Some(&self.url), self.keys.as_ref(), asked];
        let fetcher = Fetcher::new(reach, limits);
        own.into_iter().flatten().fold(fetcher, Fetcher::home)
    }
}

/// An issuer, and what is known of it by now.
pub(super) struct Opened {
    issuer: Issuer,
    source: Arc<Source>,
    asked: Asked,
}

impl Opened {
    pub(super) fn new(issuer: Issuer, fetcher: Fetcher) -> Opened {
        let asked = issuer.introspection.as_ref();
        let asked = asked.and_then(|with| with.url.clone());
        let source = Source::new(issuer.url.clone(), fetcher, issuer.keys.clone(), asked);
        Opened {
            issuer,
            source,
            asked: Asked::default(),
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

    /// Whether it is asked about tokens that can be read without it.
    pub(super) fn asks_all(&self) -> bool {
        self.issuer.asks_all
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

    pub(super) fn status(&self) -> IssuerStatus {
        let (error, since) = self.source.trouble.told().unzip();
        IssuerStatus {
            id: self.issuer.id.clone(),
            url: self.url().to_owned(),
            error,
            since,
        }
    }

    /// What a signed token says, where it is good.
    pub(super) async fn check(
        &self,
        parsed: &Parsed<'_>,
        resource: &Url,
        (now, limits, may_ask): (u64, &ResourceLimits, bool),
    ) -> Result<Claims, Why> {
        if !parsed.type_fits() {
            return Err(Why::Invalid("the token is no access token"));
        }
        let by = parsed.algorithm()?;
        let text = |key: &str| parsed.header.get(key).and_then(|value| value.string());
        let (id, alg) = (text("kid"), text("alg").unwrap_or_default());
        let signed = SignedText {
            named: (id.as_deref(), &alg),
            by,
            text: parsed.text.as_bytes(),
            signature: &parsed.signature,
        };
        // Nothing of it is believed before the signature is.
        let claims = self.claims(parsed.payload(), resource, (now, true));
        match self.signature(&signed, limits).await {
            Verdict::Good => {}
            Verdict::Wrong => return Err(Why::Invalid("the token is not signed by its issuer")),
            // Whoever signed it, it is not good here: that much is known without the issuer.
            Verdict::Unknown => {
                claims?;
                return Err(self.away("the keys of the issuer cannot be fetched", KNOWN));
            }
        }
        let claims = claims?;
        if self.issuer.asks_all {
            let token = format!("{}.{}", parsed.text, crate::jose::encode(&parsed.signature));
            let with = (now, limits, may_ask);
            self.introspect(&token, resource, with).await?;
        }
        Ok(claims)
    }

    /// Whether a signature is of one of the keys of the issuer. `Unknown`: it cannot be said now.
    async fn signature(&self, signed: &SignedText<'_>, limits: &ResourceLimits) -> Verdict {
        let fresh = self.source.fresh_keys(limits);
        let fresh = fresh.map_or(Verdict::Unknown, |keys| keys.judge(signed));
        if fresh != Verdict::Unknown {
            return fresh;
        }
        match self.source.keys(signed.named, limits).await {
            Keys::New(keys) => match keys.judge(signed) {
                Verdict::Unknown => Verdict::Wrong,
                said => said,
            },
            // A key that is not among them may be one that came since.
            Keys::Old(keys) => keys.judge(signed),
            Keys::None => Verdict::Unknown,
        }
    }

    /// What the issuer says of a token.
    pub(super) async fn introspect(
        &self,
        token: &str,
        resource: &Url,
        (now, limits, may_ask): (u64, &ResourceLimits, bool),
    ) -> Result<Claims, Why> {
        let none = Why::Unavailable("how the issuer is asked about tokens was not said");
        let with = self.issuer.introspection.as_ref().ok_or(none)?;
        if !may_ask && !self.asked.knows(token, limits) {
            return Err(Why::Unasked);
        }
        let url = self.source.introspection(limits).await;
        let url = url.ok_or_else(|| {
            let words = "where to ask the issuer cannot be found";
            self.away(words, words)
        })?;
        let said = self.asked.ask(with, (&url, &self.source), token, limits);
        let said = said.await.map_err(|no| match no {
            NoWord::Away => {
                let words = "the issuer cannot be asked about the token";
                self.away(words, words)
            }
            NoWord::Busy => Why::Unavailable("the issuer is asked about too many tokens now"),
        })?;
        if said.get("active").and_then(|active| active.bool()) != Some(true) {
            return Err(Why::Invalid("the issuer says that the token is not good"));
        }
        let other = |iss: Json| iss.string().as_deref() != Some(self.url());
        if said.get("iss").is_some_and(other) {
            return Err(Why::Invalid("the token is of another issuer"));
        }
        self.claims(&said, resource, (now, false))
    }

    fn claims(
        &self,
        payload: &Json,
        resource: &Url,
        (now, strict): (u64, bool),
    ) -> Result<Claims, Why> {
        let wanted = Wanted {
            issuer: self.url(),
            resource: resource.as_str(),
            audiences: &self.issuer.audiences,
            now,
            strict,
        };
        jwt::claims(payload, &wanted)
    }

    /// It cannot be asked, and why; else, where nothing is wrong with it, other words.
    fn away(&self, words: &str, else_words: &str) -> Why {
        match self.source.trouble.told() {
            Some((cause, _)) => Why::Away(format!("{words}; {}: {cause}", self.issuer.id)),
            None => Why::Away(else_words.to_owned()),
        }
    }
}
