//! Stores of credentials and client registrations.

#[cfg(unix)]
mod codec;
#[cfg(unix)]
mod encrypted_file;
#[cfg(unix)]
mod file;

#[cfg(unix)]
pub use file::FileCredentialStore;

use super::{OAuthCredential, RegisteredClient};
use futures_util::future::BoxFuture;
use std::{
    collections::HashMap,
    fmt,
    sync::{Mutex, PoisonError},
};

/// Error of a [`CredentialStore`]. Its text contains no secret.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StoreError {
    message: String,
    refused: bool,
}

impl StoreError {
    /// Creates an error for a fault of the credential store, such as a file that cannot be written. Only the operator
    /// reads the text.
    pub fn new(text: impl Into<String>) -> StoreError {
        StoreError {
            message: text.into(),
            refused: false,
        }
    }

    /// Creates an error for a credential that the store rejects. The user who signs in reads the text, so it contains
    /// no path.
    pub fn refused(text: impl Into<String>) -> StoreError {
        StoreError {
            message: text.into(),
            refused: true,
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for StoreError {}

/// Guard of the refresh lock of a credential: no other process refreshes it until the guard is dropped.
pub struct RefreshGuard(Option<Box<dyn Send + Sync>>);

impl RefreshGuard {
    /// Creates a guard without a lock, for a credential store that only one process uses.
    pub fn unlocked() -> RefreshGuard {
        RefreshGuard(None)
    }

    /// Creates a guard that holds a lock of the store and releases it when dropped.
    pub fn holding(lock: impl Send + Sync + 'static) -> RefreshGuard {
        RefreshGuard(Some(Box::new(lock)))
    }
}

impl fmt::Debug for RefreshGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "held" } else { "free" })
    }
}

/// Store of OAuth credentials by resource, and of client registrations by issuer. Each credential names its issuer.
///
/// A store of your own stores the text of [`OAuthCredential::to_text`] and [`RegisteredClient::to_text`].
/// These texts contain secrets in plain text, so store them only where nobody else can read them:
///
/// ```
/// use std::{collections::HashMap, future::ready, sync::Mutex};
/// use toolgate_auth::{Secret, client::{CredentialStore, OAuthCredential, RegisteredClient, StoreError}};
/// # type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;
///
/// /// Stands for the secret store of your system.
/// #[derive(Default)]
/// struct Vault(Mutex<HashMap<String, Secret>>);
///
/// impl Vault {
///     fn get(&self, name: String) -> Result<Option<Secret>, StoreError> {
///         let all = self.0.lock().map_err(|_| StoreError::new("the vault is broken".to_owned()))?;
///         Ok(all.get(&name).cloned())
///     }
///
///     fn put(&self, name: String, text: Option<Secret>) -> Result<(), StoreError> {
///         let mut all = self.0.lock().map_err(|_| StoreError::new("the vault is broken".to_owned()))?;
///         match text {
///             Some(text) => all.insert(name, text),
///             None => all.remove(&name),
///         };
///         Ok(())
///     }
/// }
///
/// impl CredentialStore for Vault {
///     fn grant<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<OAuthCredential>, StoreError>> {
///         let kept = self.get(format!("grant {key}"));
///         let grant = kept.and_then(|text| text.as_ref().map(OAuthCredential::from_text).transpose());
///         Box::pin(ready(grant))
///     }
///
///     fn put<'a>(
///         &'a self,
///         key: &'a str,
///         grant: Option<OAuthCredential>,
///     ) -> BoxFuture<'a, Result<(), StoreError>> {
///         let text = grant.as_ref().map(OAuthCredential::to_text).transpose();
///         Box::pin(ready(text.and_then(|text| self.put(format!("grant {key}"), text))))
///     }
///
///     fn client<'a>(
///         &'a self,
///         issuer: &'a str,
///     ) -> BoxFuture<'a, Result<Option<RegisteredClient>, StoreError>> {
///         let kept = self.get(format!("client {issuer}"));
///         let client = kept.and_then(|text| text.as_ref().map(RegisteredClient::from_text).transpose());
///         Box::pin(ready(client))
///     }
///
///     fn put_client<'a>(
///         &'a self,
///         issuer: &'a str,
///         client: Option<RegisteredClient>,
///     ) -> BoxFuture<'a, Result<(), StoreError>> {
///         let text = client.as_ref().map(RegisteredClient::to_text).transpose();
///         let put = |text: Option<Option<_>>| self.put(format!("client {issuer}"), text.flatten());
///         Box::pin(ready(text.and_then(put)))
///     }
/// }
/// # drop(Vault::default());
/// ```
///
/// If several processes share the store, implement [`refresh_lock`](CredentialStore::refresh_lock) as well.
pub trait CredentialStore: Send + Sync + 'static {
    /// Returns the stored OAuth credential of a resource.
    ///
    /// # Errors
    /// The store cannot be read.
    fn grant<'a>(
        &'a self,
        resource: &'a str,
    ) -> BoxFuture<'a, Result<Option<OAuthCredential>, StoreError>>;

    /// Stores the OAuth credential of a resource, or deletes it if `None`.
    ///
    /// # Errors
    /// The store cannot be written.
    fn put<'a>(
        &'a self,
        resource: &'a str,
        grant: Option<OAuthCredential>,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Acquires the refresh lock of a resource: waits until no other process refreshes its credential. Dropping the
    /// guard releases the lock. A store that only one process uses needs no lock.
    ///
    /// # Errors
    /// The lock cannot be acquired.
    fn refresh_lock<'a>(
        &'a self,
        resource: &'a str,
    ) -> BoxFuture<'a, Result<RefreshGuard, StoreError>> {
        let _ = resource;
        Box::pin(std::future::ready(Ok(RefreshGuard::unlocked())))
    }

    /// Returns our OAuth client registration at an issuer.
    ///
    /// # Errors
    /// The store cannot be read.
    fn client<'a>(
        &'a self,
        issuer: &'a str,
    ) -> BoxFuture<'a, Result<Option<RegisteredClient>, StoreError>>;

    /// Stores our OAuth client registration at an issuer, or deletes it if `None`.
    ///
    /// # Errors
    /// The store cannot be written.
    fn put_client<'a>(
        &'a self,
        issuer: &'a str,
        client: Option<RegisteredClient>,
    ) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// Credential store in memory, which ends with the process.
#[derive(Default)]
pub struct MemoryCredentialStore(Mutex<StoredCredentials>);

#[derive(Default)]
struct StoredCredentials {
    grants: HashMap<String, OAuthCredential>,
    clients: HashMap<String, RegisteredClient>,
}

impl MemoryCredentialStore {
    /// Creates an empty credential store in memory.
    pub fn new() -> MemoryCredentialStore {
        MemoryCredentialStore::default()
    }

    fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut StoredCredentials) -> T,
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

impl CredentialStore for MemoryCredentialStore {
    fn grant<'a>(
        &'a self,
        resource: &'a str,
    ) -> BoxFuture<'a, Result<Option<OAuthCredential>, StoreError>> {
        self.with(|kept| kept.grants.get(resource).cloned())
    }

    fn put<'a>(
        &'a self,
        resource: &'a str,
        grant: Option<OAuthCredential>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.with(|kept| put(&mut kept.grants, resource, grant))
    }

    fn client<'a>(
        &'a self,
        issuer: &'a str,
    ) -> BoxFuture<'a, Result<Option<RegisteredClient>, StoreError>> {
        self.with(|kept| kept.clients.get(issuer).cloned())
    }

    fn put_client<'a>(
        &'a self,
        issuer: &'a str,
        client: Option<RegisteredClient>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.with(|kept| put(&mut kept.clients, issuer, client))
    }
}

impl From<StoreError> for super::AuthError {
    fn from(error: StoreError) -> super::AuthError {
        if error.refused {
            return super::AuthError::new(super::AuthErrorKind::Store, error.message);
        }
        let words = "the credential store cannot be read or written; the operator has to repair it";
        super::AuthError::new(super::AuthErrorKind::Store, words)
            .with_detail(toolgate_core::OperatorDetail::new(error.message))
    }
}
