//! Token introspection (RFC 7662): asks the issuer about opaque tokens and caches the responses briefly.

use super::{ResourceLimits, metadata_cache::IssuerEndpoints};
use crate::{
    Secret, Url,
    fetch::{FetchError, FetchErrorKind, FetchRequest},
    metadata,
};
use http::header;
use ring::digest::{SHA256, digest};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::{Duration, Instant},
};
use tokio::sync::{Semaphore, watch};
use toolgate_protocol::json::{Json, JsonKind};

/// Maximum time for which an unreachable issuer is not contacted again.
const MAX_UNREACHABLE_PAUSE: Duration = Duration::from_secs(3);
/// Maximum number of cached responses.
const MAX_CACHED_RESPONSES: usize = 4096;
/// Maximum size of a cached response in bytes; a larger one is used for one request.
const MAX_CACHED_RESPONSE_BYTES: usize = 4096;

/// Introspection endpoint and the client credentials for it.
pub(super) struct IntrospectionClient {
    pub(super) url: Option<Url>,
    client: String,
    secret: Secret,
}

impl IntrospectionClient {
    pub(super) fn new(url: Option<Url>, client: &str, secret: Secret) -> IntrospectionClient {
        IntrospectionClient {
            url,
            client: client.to_owned(),
            secret,
        }
    }
}

/// Reason for a missing introspection response.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum IntrospectionError {
    /// The issuer is unreachable, now or a moment ago, or its response is malformed.
    Unreachable,
    /// The limit of concurrent introspections is reached.
    Busy,
}

/// Cached and running introspections of an issuer, by the digest of the token.
#[derive(Default)]
pub(super) struct IntrospectionCache {
    table: Arc<Mutex<IntrospectionTable>>,
    /// Permits for concurrent introspections.
    permits: OnceLock<Arc<Semaphore>>,
}

type TokenDigest = [u8; 32];
type IntrospectionResult = Result<Json, IntrospectionError>;

#[derive(Default)]
struct IntrospectionTable {
    responses: HashMap<TokenDigest, (Instant, Json)>,
    running: HashMap<TokenDigest, watch::Receiver<Option<IntrospectionResult>>>,
    /// Time of the last failure to contact the issuer.
    last_failure: Option<Instant>,
}

enum CachedIntrospection {
    Finished(IntrospectionResult),
    Running(watch::Receiver<Option<IntrospectionResult>>),
}

impl IntrospectionTable {
    fn find(&self, key: &TokenDigest, limits: &ResourceLimits) -> Option<CachedIntrospection> {
        let said = self.responses.get(key);
        if let Some((_, said)) = said.filter(|(at, _)| at.elapsed() < limits.introspection_lifetime)
        {
            return Some(CachedIntrospection::Finished(Ok(said.clone())));
        }
        if let Some(asking) = self.running.get(key) {
            return Some(CachedIntrospection::Running(asking.clone()));
        }
        let pause = limits.min_fetch_interval.min(MAX_UNREACHABLE_PAUSE);
        let failed = self.last_failure.is_some_and(|at| at.elapsed() < pause);
        failed.then_some(CachedIntrospection::Finished(Err(
            IntrospectionError::Unreachable,
        )))
    }

    fn insert(&mut self, key: TokenDigest, said: &Json, holds: Duration) {
        if self.responses.len() >= MAX_CACHED_RESPONSES {
            self.responses.retain(|_, (at, _)| at.elapsed() < holds);
        }
        if self.responses.len() < MAX_CACHED_RESPONSES
            && said.as_str().len() <= MAX_CACHED_RESPONSE_BYTES
        {
            self.responses.insert(key, (Instant::now(), said.clone()));
        }
    }
}

impl IntrospectionCache {
    /// Returns the introspection response of a token, cached or new. Concurrent requests for one token share a
    /// response.
    pub(super) async fn introspect(
        &self,
        with: &IntrospectionClient,
        (url, source): (&Url, &Arc<IssuerEndpoints>),
        token: &str,
        limits: &ResourceLimits,
    ) -> IntrospectionResult {
        let key = token_digest(token);
        let found = lock_table(&self.table).find(&key, limits);
        let found = match found {
            Some(found) => found,
            None => self.start(key, with, (url, source), token, limits).await?,
        };
        let mut asking = match found {
            CachedIntrospection::Finished(word) => return word,
            CachedIntrospection::Running(asking) => asking,
        };
        let word = asking.wait_for(Option::is_some).await;
        word.ok()
            .and_then(|word| word.clone())
            .unwrap_or(Err(IntrospectionError::Unreachable))
    }

    /// Returns whether a token needs no new introspection: its response is cached or on the way.
    pub(super) fn is_known(&self, token: &str, limits: &ResourceLimits) -> bool {
        lock_table(&self.table)
            .find(&token_digest(token), limits)
            .is_some()
    }

    /// Starts an introspection once a permit is free, unless a concurrent request already did. It completes even if the
    /// request is canceled, so that the permit is in use as long as the issuer is busy with it.
    async fn start(
        &self,
        key: TokenDigest,
        with: &IntrospectionClient,
        (url, source): (&Url, &Arc<IssuerEndpoints>),
        token: &str,
        limits: &ResourceLimits,
    ) -> Result<CachedIntrospection, IntrospectionError> {
        let places = self
            .permits
            .get_or_init(|| Arc::new(Semaphore::new(limits.max_introspections)));
        let place =
            tokio::time::timeout(source.fetcher().timeout(), places.clone().acquire_owned());
        let Ok(Ok(place)) = place.await else {
            return Err(IntrospectionError::Busy);
        };
        let mut request = FetchRequest::form(
            url.clone(),
            [("token", token), ("token_type_hint", "access_token")],
        );
        let credentials = metadata::basic_authorization(&with.client, &with.secret)
            .ok_or(IntrospectionError::Unreachable)?;
        request.headers.insert(header::AUTHORIZATION, credentials);
        let (tell, hear) = watch::channel(None);
        {
            let mut table = lock_table(&self.table);
            if let Some(found) = table.find(&key, limits) {
                return Ok(found);
            }
            table.running.insert(key, hear.clone());
        }
        let (kept, source, holds) = (
            self.table.clone(),
            source.clone(),
            limits.introspection_lifetime,
        );
        let asking = async move {
            let (word, pauses) = request_introspection(request, &source).await;
            let mut table = lock_table(&kept);
            table.running.remove(&key);
            match &word {
                Ok(said) => table.insert(key, said, holds),
                Err(_) if pauses => table.last_failure = Some(Instant::now()),
                Err(_) => {}
            }
            drop(table);
            tell.send_replace(Some(word));
            drop(place);
        };
        #[allow(
            clippy::disallowed_methods,
            reason = "one bounded exchange in a place of its own; it is for all who show this token"
        )]
        tokio::spawn(asking);
        Ok(CachedIntrospection::Running(hear))
    }
}

/// Sends an introspection request. Also returns whether a failure concerns all tokens and pauses introspection.
async fn request_introspection(
    request: FetchRequest,
    source: &IssuerEndpoints,
) -> (IntrospectionResult, bool) {
    let url = request.url.clone();
    let no = |error: FetchError, pauses: bool| {
        source
            .health
            .record_failure(format!("token introspection failed: {error}"));
        (Err(IntrospectionError::Unreachable), pauses)
    };
    let malformed = |words: &str| FetchError::new(&url, FetchErrorKind::Malformed, words);
    let fetched = match source.fetcher().fetch(request).await {
        Ok(fetched) => fetched,
        Err(error) => {
            source.mark_introspection_failed();
            return no(error, true);
        }
    };
    let status = fetched.status.as_u16();
    if !fetched.status.is_success() {
        if matches!(status, 404 | 405 | 410) {
            source.mark_introspection_failed();
        }
        let words = match status {
            401 | 403 => format!(
                "the issuer returned HTTP {status}: it rejects the client_id or the client_secret; correct them"
            ),
            _ => format!("the issuer returned HTTP {status}"),
        };
        // A 400 or 500 may be caused by this one token.
        let pauses = matches!(status, 401 | 403 | 404 | 405 | 410 | 429 | 502..=504);
        return no(malformed(&words), pauses);
    }
    match fetched.json() {
        Ok(said) if said.kind() == JsonKind::Object => {
            source.health.record_success();
            (Ok(said), false)
        }
        Ok(_) => no(malformed("the response is not a JSON object"), false),
        Err(error) => no(error, false),
    }
}

fn token_digest(token: &str) -> TokenDigest {
    let mut key = [0; 32];
    key.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    key
}

fn lock_table(table: &Mutex<IntrospectionTable>) -> MutexGuard<'_, IntrospectionTable> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}
