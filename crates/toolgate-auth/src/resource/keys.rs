//! The public keys of an issuer: fetched when they are needed, kept, and fetched anew when an unknown one is named.

use super::{
    ResourceLimits,
    verify::{PublicKey, Signed},
};
use crate::{
    Url,
    fetch::{Fetcher, Request},
};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};
use toolgate_wire::json::Json;

/// Keys of a set that are read.
const MOST: usize = 64;

/// One key of a set.
pub(super) struct Key {
    id: Option<String>,
    alg: Option<String>,
    public: PublicKey,
}

impl Key {
    fn read(jwk: &Json) -> Option<Key> {
        let text = |key: &str| jwk.get(key).and_then(|value| value.string());
        // A key for something else verifies nothing.
        if text("use").is_some_and(|used| used != "sig") {
            return None;
        }
        Some(Key {
            id: text("kid"),
            alg: text("alg"),
            public: PublicKey::read(jwk)?,
        })
    }

    fn fits(&self, id: Option<&str>, alg: &str) -> bool {
        let named = match (id, self.id.as_deref()) {
            (Some(wanted), Some(id)) => wanted == id,
            // A token that names no key may be of any of them; one that names a key is not of a nameless one.
            (None, _) => true,
            (Some(_), None) => false,
        };
        named && self.alg.as_deref().is_none_or(|own| own == alg)
    }
}

/// The keys of an issuer.
pub(super) struct Keys {
    state: Mutex<State>,
    /// Held while they are fetched: all who need what is not known wait for one answer, and nobody else waits.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    keys: Arc<Vec<Key>>,
    /// When they were fetched, and when it was last tried.
    fetched: Option<Instant>,
    tried: Option<Instant>,
}

/// Why there are no keys.
pub(super) struct NoKeys;

impl Keys {
    pub(super) fn new() -> Keys {
        Keys {
            state: Mutex::default(),
            fetching: tokio::sync::Mutex::default(),
        }
    }

    /// Whether a signature is of one of the keys: the one that is named, else any that fits.
    ///
    /// # Errors
    /// There are no keys, and the issuer cannot be asked.
    pub(super) async fn verify(
        &self,
        source: &(Url, Fetcher),
        (id, alg): (Option<&str>, &str),
        (by, limits): (Signed, &ResourceLimits),
        text: &[u8],
        signature: &[u8],
    ) -> Result<bool, NoKeys> {
        let keys = self.current(source, (id, alg), limits).await?;
        let mut fitting = keys.iter().filter(|key| key.fits(id, alg));
        Ok(fitting.any(|key| key.public.verifies(by, text, signature)))
    }

    async fn current(
        &self,
        (url, fetcher): &(Url, Fetcher),
        (id, alg): (Option<&str>, &str),
        limits: &ResourceLimits,
    ) -> Result<Arc<Vec<Key>>, NoKeys> {
        if let Some(known) = self.known(id, alg, limits) {
            return Ok(known);
        }
        let _one = self.fetching.lock().await;
        if self.known(id, alg, limits).is_none()
            && self.may_try(limits)
            && let Some(keys) = fetch(url, fetcher).await
        {
            let mut state = self.state();
            (state.keys, state.fetched) = (Arc::new(keys), Some(Instant::now()));
        }
        let state = self.state();
        match state.fetched {
            // The issuer is away: what it said last holds for a while longer.
            Some(at) if at.elapsed() < limits.keys.saturating_mul(6) => Ok(state.keys.clone()),
            _ => Err(NoKeys),
        }
    }

    /// The keys, where they are fresh and one of them fits.
    fn known(&self, id: Option<&str>, alg: &str, limits: &ResourceLimits) -> Option<Arc<Vec<Key>>> {
        let state = self.state();
        let fresh = state.fetched.is_some_and(|at| at.elapsed() < limits.keys);
        let fits = fresh && state.keys.iter().any(|key| key.fits(id, alg));
        fits.then(|| state.keys.clone())
    }

    /// Whether it is time to ask again; then it has been asked.
    fn may_try(&self, limits: &ResourceLimits) -> bool {
        let mut state = self.state();
        let may = state.tried.is_none_or(|at| at.elapsed() >= limits.ask);
        if may {
            state.tried = Some(Instant::now());
        }
        may
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn fetch(url: &Url, fetcher: &Fetcher) -> Option<Vec<Key>> {
    let fetched = fetcher.fetch(Request::get(url.clone())).await.ok()?;
    if !fetched.status.is_success() {
        return None;
    }
    let set = fetched.json().ok()?.get("keys")?;
    let keys: Vec<Json> = set.items().take(MOST).collect();
    Some(keys.iter().filter_map(Key::read).collect())
}
