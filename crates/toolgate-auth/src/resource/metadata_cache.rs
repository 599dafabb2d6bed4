//! Metadata cache of an issuer: its metadata and keys, fetched again when they are old or no longer correct.

use super::{
    ResourceLimits,
    issuer_health::IssuerHealth,
    keys::{JwkSet, KeyReference},
    single_flight::SingleFlightCache,
};
use crate::{
    Url,
    fetch::{FetchError, FetchErrorKind, FetchRequest, FetchResponse, PeerFetcher},
    metadata,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};
use toolgate_protocol::json::Json;

/// Factor on the cache time of keys: for keys that cannot be fetched again, and for metadata.
const STALE_FACTOR: u32 = 6;

/// Metadata of an issuer.
struct IssuerMetadata {
    keys: Option<Url>,
    introspection: Option<Url>,
}

/// Endpoints of an issuer, with its metadata cache and its key cache.
pub(super) struct IssuerEndpoints {
    url: Url,
    fetcher: PeerFetcher,
    /// JWK set URL and introspection endpoint that the operator configured.
    configured_keys: Option<Url>,
    configured_introspection: Option<Url>,
    metadata: Arc<SingleFlightCache<IssuerMetadata>>,
    keys: Arc<SingleFlightCache<JwkSet>>,
    /// True if the introspection endpoint of the metadata failed, so that the metadata is fetched again.
    introspection_failed: AtomicBool,
    pub(super) health: IssuerHealth,
}

/// JWK set of an issuer, by origin.
pub(super) enum AvailableKeys {
    /// Fetched for this request, so it is complete.
    Fetched(Arc<JwkSet>),
    /// From the cache: the issuer is unreachable or was contacted a moment ago.
    Cached(Arc<JwkSet>),
    Unavailable,
}

impl IssuerEndpoints {
    pub(super) fn new(
        url: Url,
        fetcher: PeerFetcher,
        own_keys: Option<Url>,
        own_introspection: Option<Url>,
    ) -> Arc<IssuerEndpoints> {
        Arc::new(IssuerEndpoints {
            url,
            fetcher,
            configured_keys: own_keys,
            configured_introspection: own_introspection,
            metadata: SingleFlightCache::new(),
            keys: SingleFlightCache::new(),
            introspection_failed: AtomicBool::new(false),
            health: IssuerHealth::default(),
        })
    }

    pub(super) fn fetcher(&self) -> &PeerFetcher {
        &self.fetcher
    }

    /// Returns the cached keys if they are fresh.
    pub(super) fn fresh_keys(&self, limits: &ResourceLimits) -> Option<Arc<JwkSet>> {
        self.keys.younger_than(limits.key_lifetime)
    }

    /// Fetches the keys again for a token that names one of them or none.
    pub(super) async fn refetch_keys(
        self: &Arc<Self>,
        named: KeyReference<'_>,
        limits: &ResourceLimits,
    ) -> AvailableKeys {
        let source = self.clone();
        let (id, alg) = (named.0.map(str::to_owned), named.1.to_owned());
        let own = limits.clone();
        let fetch = || async move { source.fetch_keys((id.as_deref(), &alg), &own).await };
        let is_new = self.keys.refetch(limits.min_fetch_interval, fetch).await;
        match self.keys.younger_than(stale_lifetime(limits)) {
            Some(keys) if is_new => AvailableKeys::Fetched(keys),
            Some(keys) => AvailableKeys::Cached(keys),
            None => match self.keys.cached() {
                // A cache time of zero: the keys are used for this request only.
                Some((keys, _)) if is_new => AvailableKeys::Fetched(keys),
                _ => AvailableKeys::Unavailable,
            },
        }
    }

    /// Returns the introspection endpoint, from the operator's configuration or the metadata.
    pub(super) async fn introspection_endpoint(
        self: &Arc<Self>,
        limits: &ResourceLimits,
    ) -> Option<Url> {
        if let Some(own) = &self.configured_introspection {
            return Some(own.clone());
        }
        let known = || self.metadata.cached();
        let is_good = known().is_some_and(|(metadata, age)| {
            metadata.introspection.is_some() && age < stale_lifetime(limits)
        });
        if (!is_good || self.introspection_failed.load(Relaxed))
            && self.refetch_metadata(limits.min_fetch_interval).await
        {
            self.introspection_failed.store(false, Relaxed);
        }
        let url = known().and_then(|(metadata, _)| metadata.introspection.clone());
        if url.is_none() && known().is_some() {
            self.health
                .record_failure("its metadata has no introspection_endpoint".to_owned());
        }
        url
    }

    /// Marks the introspection endpoint as failed: the metadata may have changed.
    pub(super) fn mark_introspection_failed(&self) {
        self.introspection_failed.store(true, Relaxed);
    }

    /// Fetches the keys from the known URL. If that fails or lacks the key, fetches the metadata again for a new URL.
    async fn fetch_keys(
        self: Arc<Self>,
        named: KeyReference<'_>,
        limits: &ResourceLimits,
    ) -> Option<JwkSet> {
        if let Some(own) = &self.configured_keys {
            return self.fetch_key_set(own).await;
        }
        let place = || {
            let (metadata, age) = self.metadata.cached()?;
            Some((metadata.keys.clone()?, age))
        };
        let before = place().filter(|(_, age)| *age < stale_lifetime(limits));
        if let Some((url, age)) = &before {
            let keys = self.fetch_key_set(url).await;
            let is_enough = keys.as_ref().is_some_and(|keys| keys.has_key(named));
            if is_enough || (keys.is_some() && *age < limits.key_lifetime) {
                return keys;
            }
            if !self.refetch_metadata(limits.min_fetch_interval).await
                || place().is_none_or(|(now, _)| now == *url)
            {
                return keys;
            }
        } else {
            self.refetch_metadata(limits.min_fetch_interval).await;
        }
        let Some((url, _)) = place() else {
            if self.metadata.cached().is_some() {
                self.health
                    .record_failure("its metadata has no jwks_uri".to_owned());
            }
            return None;
        };
        self.fetch_key_set(&url).await
    }

    async fn fetch_key_set(&self, url: &Url) -> Option<JwkSet> {
        let read = async {
            let document = parse_document(
                url,
                self.fetcher.fetch(FetchRequest::get(url.clone())).await,
            )?;
            let words = "the response is not a JWK set";
            JwkSet::parse(&document)
                .ok_or_else(|| FetchError::new(url, FetchErrorKind::Malformed, words))
        };
        match read.await {
            Ok(keys) => {
                self.health.record_success();
                Some(keys)
            }
            Err(error) => {
                self.health
                    .record_failure(format!("its keys cannot be loaded: {error}"));
                None
            }
        }
    }

    /// Fetches the metadata again, at least `pause` after the last fetch. Returns whether it did.
    async fn refetch_metadata(self: &Arc<Self>, pause: Duration) -> bool {
        let source = self.clone();
        let fetch = || async move {
            match source.fetch_metadata().await {
                Ok(metadata) => Some(metadata),
                Err(words) => {
                    source.health.record_failure(words);
                    None
                }
            }
        };
        self.metadata.refetch(pause, fetch).await
    }

    /// Fetches the metadata from the well-known URLs. It must name exactly this issuer.
    async fn fetch_metadata(&self) -> Result<IssuerMetadata, String> {
        let mut why = None;
        for place in metadata::metadata_urls(&self.url) {
            let fetched = self.fetcher.fetch(FetchRequest::get(place.clone())).await;
            let document = match parse_document(&place, fetched) {
                Ok(document) => document,
                // All candidate URLs have the same origin, so an unreachable one makes the others unreachable too.
                Err(error) if is_unreachable(&error) => {
                    return Err(format!("its metadata cannot be loaded: {error}"));
                }
                Err(error) => {
                    why.get_or_insert_with(|| format!("its metadata cannot be loaded: {error}"));
                    continue;
                }
            };
            let text = |key: &str| document.get(key).and_then(|value| value.string());
            let named = text("issuer").unwrap_or_default();
            if named != self.url.as_str() {
                let words = format!(
                    "the metadata names another issuer, {:?}",
                    super::sanitize_for_audit(&named)
                );
                let error = FetchError::new(&place, FetchErrorKind::Malformed, words);
                why = Some(format!("its metadata cannot be used: {error}"));
                continue;
            }
            let url = |key: &str| Url::parse(&text(key)?).ok();
            return Ok(IssuerMetadata {
                keys: url("jwks_uri"),
                introspection: url("introspection_endpoint"),
            });
        }
        Err(why.unwrap_or_else(|| "its URL is not valid for an issuer".to_owned()))
    }
}

/// Returns whether there was no response at all.
pub(super) fn is_unreachable(error: &FetchError) -> bool {
    use FetchErrorKind::{Forbidden, Timeout, Unreachable};
    matches!(error.kind(), Forbidden | Unreachable | Timeout)
}

fn stale_lifetime(limits: &ResourceLimits) -> Duration {
    limits.key_lifetime.saturating_mul(STALE_FACTOR)
}

/// Parses a successful response as JSON.
fn parse_document(
    url: &Url,
    fetched: Result<FetchResponse, FetchError>,
) -> Result<Json, FetchError> {
    let fetched = fetched?;
    match fetched.status {
        status if status.is_success() => fetched.json(),
        status => {
            let words = format!("the issuer returned HTTP {}", status.as_u16());
            Err(FetchError::new(url, FetchErrorKind::Malformed, words))
        }
    }
}
