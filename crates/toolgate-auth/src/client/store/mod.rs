//! Where grants and registrations are kept.

mod file;
mod form;

pub use file::FileStore;

use super::{Grant, OauthClient};
use futures_util::future::BoxFuture;
use std::{
    collections::HashMap,
    fmt,
    sync::{Mutex, PoisonError},
};

/// Why something cannot be kept or read. Its words hold no secret.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StoreError(pub String);

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StoreError {}

/// The right to renew, until it is dropped.
pub struct Turn(Option<Box<dyn Send + Sync>>);

impl Turn {
    /// Where nobody else can renew.
    pub fn free() -> Turn {
        Turn(None)
    }

    /// One that ends when this value is dropped.
    pub fn held(by: impl Send + Sync + 'static) -> Turn {
        Turn(Some(Box::new(by)))
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "held" } else { "free" })
    }
}

/// Keeps what was granted, by resource, and which client we are, by issuer. Each grant names its issuer.
pub trait Store: Send + Sync + 'static {
    /// What was granted for a resource.
    ///
    /// # Errors
    /// It cannot be read.
    fn grant<'a>(&'a self, resource: &'a str) -> BoxFuture<'a, Result<Option<Grant>, StoreError>>;

    /// Keeps a grant, or forgets the one that there is.
    ///
    /// # Errors
    /// It is not kept.
    fn keep<'a>(
        &'a self,
        resource: &'a str,
        grant: Option<Grant>,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Waits until no other process renews what was granted for a resource; the turn lasts as long as the value. A store
    /// that one process has needs none.
    ///
    /// # Errors
    /// It cannot be had.
    fn turn<'a>(&'a self, resource: &'a str) -> BoxFuture<'a, Result<Turn, StoreError>> {
        let _ = resource;
        Box::pin(std::future::ready(Ok(Turn::free())))
    }

    /// Which client we are to an issuer.
    ///
    /// # Errors
    /// It cannot be read.
    fn client<'a>(
        &'a self,
        issuer: &'a str,
    ) -> BoxFuture<'a, Result<Option<OauthClient>, StoreError>>;

    /// Keeps which client we are to an issuer, or forgets it.
    ///
    /// # Errors
    /// It is not kept.
    fn keep_client<'a>(
        &'a self,
        issuer: &'a str,
        client: Option<OauthClient>,
    ) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// Keeps all of it as long as the process lives.
#[derive(Default)]
pub struct MemoryStore(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    grants: HashMap<String, Grant>,
    clients: HashMap<String, OauthClient>,
}

impl MemoryStore {
    /// An empty one.
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }

    fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Kept) -> T,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        let done = work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
        Box::pin(std::future::ready(Ok(done)))
    }
}

fn put<T>(map: &mut HashMap<String, T>, key: &str, value: Option<T>) {
    match value {
        Some(value) => drop(map.insert(key.to_owned(), value)),
        None => drop(map.remove(key)),
    }
}

impl Store for MemoryStore {
    fn grant<'a>(&'a self, resource: &'a str) -> BoxFuture<'a, Result<Option<Grant>, StoreError>> {
        self.with(|kept| kept.grants.get(resource).cloned())
    }

    fn keep<'a>(
        &'a self,
        resource: &'a str,
        grant: Option<Grant>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.with(|kept| put(&mut kept.grants, resource, grant))
    }

    fn client<'a>(
        &'a self,
        issuer: &'a str,
    ) -> BoxFuture<'a, Result<Option<OauthClient>, StoreError>> {
        self.with(|kept| kept.clients.get(issuer).cloned())
    }

    fn keep_client<'a>(
        &'a self,
        issuer: &'a str,
        client: Option<OauthClient>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.with(|kept| put(&mut kept.clients, issuer, client))
    }
}

impl From<StoreError> for super::AuthError {
    fn from(error: StoreError) -> super::AuthError {
        super::AuthError::new(super::AuthErrorKind::Store, error.0)
    }
}
