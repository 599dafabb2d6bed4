//! File store of credentials: one encrypted file and its key in a directory, both readable only by their owner.
//!
//! A process that can read both files can use the tokens. Encryption keeps tokens out of copies of the data file, out
//! of searches and of logs, and detects changes. Processes synchronize by a file lock.

use super::{
    super::{OAuthCredential, RegisteredClient},
    CredentialStore, RefreshGuard, StoreError, codec,
    encrypted_file::{
        create_directory, decrypt, encrypt, encryption_key, open_private, read, replace,
    },
};
use futures_util::future::BoxFuture;
use ring::digest::{SHA256, digest};
use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};
use serde_json::Value;
use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::time::{Instant, sleep};
use toolgate_protocol::hex;

/// Maximum size of the encrypted file in bytes.
pub(super) const MAX_STORE_BYTES: u64 = 16 << 20;
/// Bytes reserved for each credential, so that a refresh always has space, however much others store.
const RESERVED_CREDENTIAL_BYTES: usize = 8 << 10;
/// Timeout for the refresh of another process, which waits for up to three responses of ten seconds each.
const REFRESH_LOCK_TIMEOUT: Duration = Duration::from_secs(45);
/// Poll interval of the refresh lock.
const REFRESH_LOCK_POLL: Duration = Duration::from_millis(20);

/// Credential store in a directory: OAuth credentials in an encrypted file.
///
/// ```
/// use toolgate_auth::{Url, client::{FileCredentialStore, OAuthClient}};
///
/// let login = OAuthClient::builder(Url::parse("https://tools.example.com/mcp")?)
///     .store(FileCredentialStore::new("/home/ann/.local/share/my-app/grants"))
///     .build();
/// # drop(login);
/// # Ok::<(), toolgate_auth::InvalidUrl>(())
/// ```
#[derive(Clone)]
pub struct FileCredentialStore {
    directory: Arc<PathBuf>,
}

impl FileCredentialStore {
    /// Creates a file store of OAuth credentials in a directory, which the first write creates. Its files are
    /// `grants.sealed`, `grants.key`, `grants.lock`, and an empty `….turn` for each credential that was refreshed.
    pub fn new(directory: impl Into<PathBuf>) -> FileCredentialStore {
        FileCredentialStore {
            directory: Arc::new(directory.into()),
        }
    }

    /// Returns the keys of all stored OAuth credentials.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn keys(&self) -> Result<Vec<String>, StoreError> {
        let keys = |kept: &mut Value| {
            let grants = kept["grants"].as_object();
            grants.map_or_else(Vec::new, |grants| grants.keys().cloned().collect())
        };
        self.with_contents(move |kept| Ok((keys(kept), false)))
            .await
    }

    /// Runs work on the decrypted contents, on a blocking thread and under the file lock.
    fn with_contents<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Value) -> Result<(T, bool), StoreError> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        let directory = self.directory.clone();
        Box::pin(async move {
            let done = tokio::task::spawn_blocking(move || with_file_lock(&directory, work)).await;
            done.unwrap_or_else(|_| {
                Err(StoreError::new(
                    "access to the credential store was interrupted; try again".to_owned(),
                ))
            })
        })
    }
}

impl CredentialStore for FileCredentialStore {
    fn grant<'a>(
        &'a self,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<OAuthCredential>, StoreError>> {
        let key = key.to_owned();
        self.with_contents(move |kept| {
            Ok((codec::credential_from_json(&kept["grants"][&key])?, false))
        })
    }

    fn put<'a>(
        &'a self,
        key: &'a str,
        grant: Option<OAuthCredential>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let key = key.to_owned();
        self.with_contents(move |kept| put_grant(kept, &key, grant.as_ref()).map(|()| ((), true)))
    }

    fn refresh_lock<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<RefreshGuard, StoreError>> {
        let name = digest(&SHA256, key.as_bytes());
        let name = hex::encode(&name.as_ref()[..16]);
        let directory = self.directory.clone();
        Box::pin(async move {
            create_directory(&directory)?;
            let path = directory.join(format!("{name}.turn"));
            let lock = open_private(&path)?;
            let end = Instant::now() + REFRESH_LOCK_TIMEOUT;
            loop {
                match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                    Ok(()) => return Ok(RefreshGuard::holding(lock)),
                    Err(Errno::WOULDBLOCK) if Instant::now() < end => {
                        sleep(REFRESH_LOCK_POLL).await
                    }
                    Err(Errno::WOULDBLOCK) => {
                        let (path, seconds) = (path.display(), REFRESH_LOCK_TIMEOUT.as_secs());
                        return Err(StoreError::new(format!(
                            "another process has been refreshing this credential for {seconds} seconds ({path}); try again"
                        )));
                    }
                    Err(error) => {
                        let why = format!("{}: {}", path.display(), io::Error::from(error));
                        return Err(StoreError::new(why));
                    }
                }
            }
        })
    }

    fn client<'a>(
        &'a self,
        issuer: &'a str,
    ) -> BoxFuture<'a, Result<Option<RegisteredClient>, StoreError>> {
        let issuer = issuer.to_owned();
        self.with_contents(move |kept| {
            Ok((codec::client_from_json(&kept["clients"][&issuer])?, false))
        })
    }

    fn put_client<'a>(
        &'a self,
        issuer: &'a str,
        client: Option<RegisteredClient>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let issuer = issuer.to_owned();
        self.with_contents(move |kept| {
            let client = client.as_ref().and_then(codec::client_to_json);
            client.as_ref().map(codec::client_text).transpose()?;
            let more = client.is_some();
            put(kept, "clients", &issuer, client);
            if more {
                check_space(kept)?;
            }
            Ok(((), true))
        })
    }
}

fn put_grant(
    kept: &mut Value,
    key: &str,
    grant: Option<&OAuthCredential>,
) -> Result<(), StoreError> {
    let grant = grant.map(codec::credential_to_json);
    let size = grant.as_ref().map(codec::credential_text).transpose()?;
    let known = kept["grants"].get(key).is_some();
    put(kept, "grants", key, grant);
    match size {
        Some(size) if size.len() > RESERVED_CREDENTIAL_BYTES || !known => check_space(kept),
        _ => Ok(()),
    }
}

/// Checks the size limit of the store, with the reserved share of each credential. The caller writes nothing on an
/// error.
fn check_space(kept: &Value) -> Result<(), StoreError> {
    let sizes = |table: &str, least: usize| -> usize {
        let all = kept[table].as_object().into_iter().flatten();
        all.map(|(name, value)| name.len() + value.to_string().len().max(least))
            .sum()
    };
    // The last 64 KiB are for encryption overhead and JSON punctuation.
    let most = MAX_STORE_BYTES as usize - (64 << 10);
    match sizes("grants", RESERVED_CREDENTIAL_BYTES) + sizes("clients", 0) <= most {
        true => Ok(()),
        false => Err(StoreError::new(
            "the credential store is full; sign out of another server first".to_owned(),
        )),
    }
}

fn put(kept: &mut Value, table: &str, key: &str, value: Option<Value>) {
    match value {
        Some(value) => kept[table][key] = value,
        None => {
            if let Some(table) = kept[table].as_object_mut() {
                table.remove(key);
            }
        }
    }
}

fn with_file_lock<T>(
    directory: &Path,
    work: impl FnOnce(&mut Value) -> Result<(T, bool), StoreError>,
) -> Result<T, StoreError> {
    let failed =
        |what: &Path, error: io::Error| StoreError::new(format!("{}: {error}", what.display()));
    let sealed = directory.join("grants.sealed");
    create_directory(directory)?;
    let lock = open_private(&directory.join("grants.lock"))?;
    flock(&lock, FlockOperation::LockExclusive).map_err(|e| failed(directory, e.into()))?;
    let key = encryption_key(&directory.join("grants.key"))?;
    let mut kept = match read(&sealed)? {
        Some(bytes) => decrypt(&key, bytes).ok_or_else(|| {
            let path = sealed.display();
            StoreError::new(format!(
                "{path}: the file or its key was changed, so all sign-ins of this data directory are lost; \
                 remove it and sign in again at each server"
            ))
        })?,
        None => serde_json::json!({"grants": {}, "clients": {}}),
    };
    let (done, changed) = work(&mut kept)?;
    if changed {
        let bytes = encrypt(&key, &kept)?;
        if bytes.len() as u64 > MAX_STORE_BYTES {
            // A file above the limit could not be read again.
            return Err(StoreError::new(format!(
                "{}: it would be longer than {MAX_STORE_BYTES} bytes; sign out of another server first",
                sealed.display()
            )));
        }
        replace(&sealed, &bytes).map_err(|e| failed(&sealed, e))?;
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Secret;

    fn grant(access: usize) -> OAuthCredential {
        let access = "a".repeat(access);
        let text = format!(
            r#"{{"issuer":"https://as.test","resource":"https://a.test","access":"{access}","bound":false,"scopes":""}}"#
        );
        OAuthCredential::from_text(&Secret::new(text)).unwrap()
    }

    /// Servers may issue large tokens to many callers; refreshing the credentials of others still succeeds.
    #[test]
    fn reserves_space_for_the_credentials_of_others() {
        let mut kept = serde_json::json!({"grants": {}, "clients": {}});
        put_grant(&mut kept, "good", Some(&grant(1000))).unwrap();
        let most = "the limit is 32768";
        let error = put_grant(&mut kept, "evil", Some(&grant(33_000))).unwrap_err();
        assert!(error.to_string().contains(most), "{error}");
        // Wide credentials are small and reserve their share; big ones fill the rest.
        let value = |access: usize| Some(codec::credential_to_json(&grant(access)));
        for n in 0..400 {
            put(&mut kept, "grants", &format!("wide {n}"), value(10));
        }
        let (big, full) = (grant(32_000), |done: Result<(), StoreError>| {
            done.is_err_and(|error| error.to_string().contains("the credential store is full"))
        });
        for n in 0..410 {
            put(&mut kept, "grants", &format!("evil {n}"), value(32_000));
        }
        let room = (0..20).find(|n| full(put_grant(&mut kept, &format!("more {n}"), Some(&big))));
        let over = format!("more {}", room.unwrap());
        put(&mut kept, "grants", &over, None);
        // Growing a credential beyond the limit fails too.
        let grown = put_grant(&mut kept.clone(), "wide 0", Some(&big));
        assert!(full(grown));
        for n in 0..400 {
            put(
                &mut kept,
                "grants",
                &format!("wide {n}"),
                value(RESERVED_CREDENTIAL_BYTES - 200),
            );
        }
        put_grant(&mut kept, "good", Some(&grant(7000))).unwrap();
        let size = kept.to_string().len() as u64;
        assert!(size < MAX_STORE_BYTES, "{size}");
    }
}
