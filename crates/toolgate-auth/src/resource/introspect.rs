//! Token introspection (RFC 7662): asks the issuer about opaque tokens and caches the responses briefly.

use super::{ResourceLimits, source::Source};
use crate::{
    Secret, Url,
    fetch::{FetchError, FetchErrorKind, Request},
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
use toolgate_wire::json::{Json, Kind};

/// Maximum time for which an unreachable issuer is not contacted again.
const PAUSE: Duration = Duration::from_secs(3);
/// Maximum number of cached responses.
const MOST: usize = 4096;
/// Maximum size of a cached response in bytes; a larger one is used for one request.
const LONGEST: usize = 4096;

/// Introspection endpoint and the client credentials for it.
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
}

/// Reason for a missing introspection response.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum NoWord {
    /// The issuer is unreachable, now or a moment ago, or its response is malformed.
    Away,
    /// The limit of concurrent introspections is reached.
    Busy,
}

/// Cached and running introspections of an issuer, by the digest of the token.
#[derive(Default)]
pub(super) struct Asked {
    table: Arc<Mutex<Table>>,
    /// Permits for concurrent introspections.
    places: OnceLock<Arc<Semaphore>>,
}

type Key = [u8; 32];
type Word = Result<Json, NoWord>;

#[derive(Default)]
struct Table {
    said: HashMap<Key, (Instant, Json)>,
    asking: HashMap<Key, watch::Receiver<Option<Word>>>,
    /// Time of the last failure to contact the issuer.
    failed: Option<Instant>,
}

enum Found {
    Word(Word),
    Asking(watch::Receiver<Option<Word>>),
}

impl Table {
    fn find(&self, key: &Key, limits: &ResourceLimits) -> Option<Found> {
        let said = self.said.get(key);
        if let Some((_, said)) = said.filter(|(at, _)| at.elapsed() < limits.introspection) {
            return Some(Found::Word(Ok(said.clone())));
        }
        if let Some(asking) = self.asking.get(key) {
            return Some(Found::Asking(asking.clone()));
        }
        let pause = limits.ask.min(PAUSE);
        let failed = self.failed.is_some_and(|at| at.elapsed() < pause);
        failed.then_some(Found::Word(Err(NoWord::Away)))
    }

    fn keep(&mut self, key: Key, said: &Json, holds: Duration) {
        if self.said.len() >= MOST {
            self.said.retain(|_, (at, _)| at.elapsed() < holds);
        }
        if self.said.len() < MOST && said.as_str().len() <= LONGEST {
            self.said.insert(key, (Instant::now(), said.clone()));
        }
    }
}

impl Asked {
    /// Returns the introspection response of a token, cached or new. Concurrent requests for one token share a
    /// response.
    pub(super) async fn ask(
        &self,
        with: &Introspection,
        (url, source): (&Url, &Arc<Source>),
        token: &str,
        limits: &ResourceLimits,
    ) -> Word {
        let key = key(token);
        let found = table(&self.table).find(&key, limits);
        let found = match found {
            Some(found) => found,
            None => self.begin(key, with, (url, source), token, limits).await?,
        };
        let mut asking = match found {
            Found::Word(word) => return word,
            Found::Asking(asking) => asking,
        };
        let word = asking.wait_for(Option::is_some).await;
        word.ok()
            .and_then(|word| word.clone())
            .unwrap_or(Err(NoWord::Away))
    }

    /// Returns whether a token needs no new introspection: its response is cached or on the way.
    pub(super) fn knows(&self, token: &str, limits: &ResourceLimits) -> bool {
        table(&self.table).find(&key(token), limits).is_some()
    }

    /// Starts an introspection once a permit is free, unless a concurrent request already did. It completes even if the
    /// request is canceled, so that the permit is in use as long as the issuer is busy with it.
    async fn begin(
        &self,
        key: Key,
        with: &Introspection,
        (url, source): (&Url, &Arc<Source>),
        token: &str,
        limits: &ResourceLimits,
    ) -> Result<Found, NoWord> {
        let places = self
            .places
            .get_or_init(|| Arc::new(Semaphore::new(limits.introspections)));
        let place = tokio::time::timeout(source.fetcher().time(), places.clone().acquire_owned());
        let Ok(Ok(place)) = place.await else {
            return Err(NoWord::Busy);
        };
        let mut request = Request::form(
            url.clone(),
            [("token", token), ("token_type_hint", "access_token")],
        );
        let credentials = metadata::basic(&with.client, &with.secret).ok_or(NoWord::Away)?;
        request.headers.insert(header::AUTHORIZATION, credentials);
        let (tell, hear) = watch::channel(None);
        {
            let mut table = table(&self.table);
            if let Some(found) = table.find(&key, limits) {
                return Ok(found);
            }
            table.asking.insert(key, hear.clone());
        }
        let (kept, source, holds) = (self.table.clone(), source.clone(), limits.introspection);
        let asking = async move {
            let (word, pauses) = said(request, &source).await;
            let mut table = table(&kept);
            table.asking.remove(&key);
            match &word {
                Ok(said) => table.keep(key, said, holds),
                Err(_) if pauses => table.failed = Some(Instant::now()),
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
        Ok(Found::Asking(hear))
    }
}

/// Sends an introspection request. Also returns whether a failure concerns all tokens and pauses introspection.
async fn said(request: Request, source: &Source) -> (Word, bool) {
    let url = request.url.clone();
    let no = |error: FetchError, pauses: bool| {
        source
            .trouble
            .is(format!("token introspection failed: {error}"));
        (Err(NoWord::Away), pauses)
    };
    let malformed = |words: &str| FetchError::new(&url, FetchErrorKind::Malformed, words);
    let fetched = match source.fetcher().fetch(request).await {
        Ok(fetched) => fetched,
        Err(error) => {
            source.doubt();
            return no(error, true);
        }
    };
    let status = fetched.status.as_u16();
    if !fetched.status.is_success() {
        if matches!(status, 404 | 405 | 410) {
            source.doubt();
        }
        let words = match status {
            401 | 403 => format!("HTTP {status}: it rejects client_id and client_secret"),
            _ => format!("HTTP {status}"),
        };
        // A 400 or 500 may be caused by this one token.
        let pauses = matches!(status, 401 | 403 | 404 | 405 | 410 | 429 | 502..=504);
        return no(malformed(&words), pauses);
    }
    match fetched.json() {
        Ok(said) if said.kind() == Kind::Object => {
            source.trouble.is_over();
            (Ok(said), false)
        }
        Ok(_) => no(malformed("its response is not a JSON object"), false),
        Err(error) => no(error, false),
    }
}

fn key(token: &str) -> Key {
    let mut key = [0; 32];
    key.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    key
}

fn table(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}
