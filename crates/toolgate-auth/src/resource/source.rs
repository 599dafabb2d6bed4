//! Where an issuer is asked: its metadata and its keys, each looked at again once it is old or no longer true.

use super::{
    ResourceLimits,
    keys::{KeySet, Named},
    look::Look,
    trouble::Trouble,
};
use crate::{
    Url,
    fetch::{FetchError, FetchErrorKind, Fetched, Fetcher, Request},
    metadata,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};
use toolgate_wire::json::Json;

/// How many times as long as keys that is used which cannot be fetched anew, and metadata without another look.
const LONGER: u32 = 6;

/// What an issuer says of itself.
struct Metadata {
    keys: Option<Url>,
    introspection: Option<Url>,
}

/// An issuer as one that is asked.
pub(super) struct Source {
    url: Url,
    fetcher: Fetcher,
    /// Where its keys are, and where it is asked about tokens, if the operator says so.
    own_keys: Option<Url>,
    own_introspection: Option<Url>,
    metadata: Arc<Look<Metadata>>,
    keys: Arc<Look<KeySet>>,
    /// Whether it did not answer where its metadata says that it is asked about tokens.
    is_doubtful: AtomicBool,
    pub(super) trouble: Trouble,
}

/// The keys of an issuer, as far as they are to be had.
pub(super) enum Keys {
    /// They were fetched for this one, so there are no others.
    New(Arc<KeySet>),
    /// What it said before: it cannot be asked, or was asked a moment ago.
    Old(Arc<KeySet>),
    None,
}

impl Source {
    pub(super) fn new(
        url: Url,
        fetcher: Fetcher,
        own_keys: Option<Url>,
        own_introspection: Option<Url>,
    ) -> Arc<Source> {
        Arc::new(Source {
            url,
            fetcher,
            own_keys,
            own_introspection,
            metadata: Look::new(),
            keys: Look::new(),
            is_doubtful: AtomicBool::new(false),
            trouble: Trouble::default(),
        })
    }

    pub(super) fn fetcher(&self) -> &Fetcher {
        &self.fetcher
    }

    /// The keys, where they are fresh.
    pub(super) fn fresh_keys(&self, limits: &ResourceLimits) -> Option<Arc<KeySet>> {
        self.keys.younger(limits.keys)
    }

    /// The keys after another look, for a token that names one of them, or none.
    pub(super) async fn keys(self: &Arc<Self>, named: Named<'_>, limits: &ResourceLimits) -> Keys {
        let source = self.clone();
        let (id, alg) = (named.0.map(str::to_owned), named.1.to_owned());
        let own = limits.clone();
        let fetch = || async move { source.find_keys((id.as_deref(), &alg), &own).await };
        let is_new = self.keys.anew(limits.ask, fetch).await;
        match self.keys.younger(longer(limits)) {
            Some(keys) if is_new => Keys::New(keys),
            Some(keys) => Keys::Old(keys),
            None => match self.keys.known() {
                // Not even a moment old: they may not be kept at all.
                Some((keys, _)) if is_new => Keys::New(keys),
                _ => Keys::None,
            },
        }
    }

    /// Where it is asked about tokens.
    pub(super) async fn introspection(self: &Arc<Self>, limits: &ResourceLimits) -> Option<Url> {
        if let Some(own) = &self.own_introspection {
            return Some(own.clone());
        }
        let known = || self.metadata.known();
        let is_good = known().is_some_and(|(metadata, age)| {
            metadata.introspection.is_some() && age < longer(limits)
        });
        if (!is_good || self.is_doubtful.load(Relaxed)) && self.learn(limits.ask).await {
            self.is_doubtful.store(false, Relaxed);
        }
        let url = known().and_then(|(metadata, _)| metadata.introspection.clone());
        if url.is_none() && known().is_some() {
            self.trouble
                .is("its metadata has no introspection_endpoint".to_owned());
        }
        url
    }

    /// It did not answer there: its metadata may have changed.
    pub(super) fn doubt(&self) {
        self.is_doubtful.store(true, Relaxed);
    }

    /// Fetches the keys where they are, and where they are now if that has changed.
    async fn find_keys(
        self: Arc<Self>,
        named: Named<'_>,
        limits: &ResourceLimits,
    ) -> Option<KeySet> {
        if let Some(own) = &self.own_keys {
            return self.read_keys(own).await;
        }
        let place = || {
            let (metadata, age) = self.metadata.known()?;
            Some((metadata.keys.clone()?, age))
        };
        let before = place().filter(|(_, age)| *age < longer(limits));
        if let Some((url, age)) = &before {
            let keys = self.read_keys(url).await;
            let is_enough = keys.as_ref().is_some_and(|keys| keys.has(named));
            if is_enough || (keys.is_some() && *age < limits.keys) {
                return keys;
            }
            if !self.learn(limits.ask).await || place().is_none_or(|(now, _)| now == *url) {
                return keys;
            }
        } else {
            self.learn(limits.ask).await;
        }
        let Some((url, _)) = place() else {
            if self.metadata.known().is_some() {
                self.trouble.is("its metadata has no jwks_uri".to_owned());
            }
            return None;
        };
        self.read_keys(&url).await
    }

    async fn read_keys(&self, url: &Url) -> Option<KeySet> {
        let read = async {
            let document = document(url, self.fetcher.fetch(Request::get(url.clone())).await)?;
            let words = "its answer is no set of keys";
            KeySet::read(&document)
                .ok_or_else(|| FetchError::new(url, FetchErrorKind::Malformed, words))
        };
        match read.await {
            Ok(keys) => {
                self.trouble.is_over();
                Some(keys)
            }
            Err(error) => {
                self.trouble.is(format!("its keys: {error}"));
                None
            }
        }
    }

    /// Looks at the metadata again, at most so often. Whether it did.
    async fn learn(self: &Arc<Self>, pause: Duration) -> bool {
        let source = self.clone();
        let fetch = || async move {
            match source.find_metadata().await {
                Ok(metadata) => Some(metadata),
                Err(words) => {
                    source.trouble.is(words);
                    None
                }
            }
        };
        self.metadata.anew(pause, fetch).await
    }

    /// The metadata, at the places where it may stand, if it names this very issuer.
    async fn find_metadata(&self) -> Result<Metadata, String> {
        let mut why = None;
        for place in metadata::places(&self.url) {
            let fetched = self.fetcher.fetch(Request::get(place.clone())).await;
            let document = match document(&place, fetched) {
                Ok(document) => document,
                // Who is not there is not elsewhere on the same origin.
                Err(error) if is_away(&error) => return Err(format!("its metadata: {error}")),
                Err(error) => {
                    why.get_or_insert_with(|| format!("its metadata: {error}"));
                    continue;
                }
            };
            let text = |key: &str| document.get(key).and_then(|value| value.string());
            let named = text("issuer").unwrap_or_default();
            if named != self.url.as_str() {
                let words = format!("names another issuer: {}", super::cut(&named));
                let error = FetchError::new(&place, FetchErrorKind::Malformed, words);
                why = Some(format!("its metadata: {error}"));
                continue;
            }
            let url = |key: &str| Url::parse(&text(key)?).ok();
            return Ok(Metadata {
                keys: url("jwks_uri"),
                introspection: url("introspection_endpoint"),
            });
        }
        Err(why.unwrap_or_else(|| "its address is none of an issuer".to_owned()))
    }
}

/// Whether nobody answered at all.
pub(super) fn is_away(error: &FetchError) -> bool {
    use FetchErrorKind::{Late, Refused, Unreachable};
    matches!(error.kind(), Refused | Unreachable | Late)
}

fn longer(limits: &ResourceLimits) -> Duration {
    limits.keys.saturating_mul(LONGER)
}

/// What came back, where that is a document.
fn document(url: &Url, fetched: Result<Fetched, FetchError>) -> Result<Json, FetchError> {
    let fetched = fetched?;
    match fetched.status {
        status if status.is_success() => fetched.json(),
        status => {
            let words = format!("HTTP {}", status.as_u16());
            Err(FetchError::new(url, FetchErrorKind::Malformed, words))
        }
    }
}
