//! Quota of the credentials of one server's callers, enforced across processes. Each credential belongs to the owner
//! that the caller's name had when the sign-in began.

use super::KeyGenerationCheck;
use futures_util::future::BoxFuture;
use toolgate_auth::client::{
    CredentialStore, FileCredentialStore, OAuthCredential, RefreshGuard, RegisteredClient,
    StoreError,
};

/// Credential store with a maximum number of entries under one key prefix. It stores a credential only while the
/// caller's API key is the same.
pub(super) struct CredentialQuota {
    pub(super) store: FileCredentialStore,
    pub(super) prefix: String,
    pub(super) max_entries: usize,
    pub(super) generation: KeyGenerationCheck,
}

impl CredentialQuota {
    /// Stores a credential under a new key, if the quota has space. The lock makes each process count the entries of
    /// the others.
    async fn store_new(&self, key: &str, grant: OAuthCredential) -> Result<(), StoreError> {
        let (begin, most) = (&self.prefix, self.max_entries);
        if !key.starts_with(begin) {
            return self.store.put(key, Some(grant)).await;
        }
        let _one = self.store.refresh_lock(begin).await?;
        let keys = self.store.keys().await?;
        let others = keys
            .iter()
            .filter(|other| other.starts_with(begin) && *other != key);
        if others.count() >= most {
            let why = format!(
                "this server has reached its limit of signed-in callers ({most}); sign one of them out, or raise callers_per_server in [limits]"
            );
            return Err(StoreError::refused(why));
        }
        self.store.put(key, Some(grant)).await
    }
}

impl CredentialStore for CredentialQuota {
    fn grant<'a>(
        &'a self,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<OAuthCredential>, StoreError>> {
        self.store.grant(key)
    }

    fn put<'a>(
        &'a self,
        key: &'a str,
        grant: Option<OAuthCredential>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            // A sign-in stores its credential under the lock. Revoking a key deletes its credentials under the lock
            // too: before this, or after it.
            if grant.is_some() {
                self.generation.check()?;
            }
            match grant {
                Some(grant) if self.store.grant(key).await?.is_none() => {
                    self.store_new(key, grant).await
                }
                grant => self.store.put(key, grant).await,
            }
        })
    }

    fn refresh_lock<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<RefreshGuard, StoreError>> {
        self.store.refresh_lock(key)
    }

    fn client<'a>(
        &'a self,
        issuer: &'a str,
    ) -> BoxFuture<'a, Result<Option<RegisteredClient>, StoreError>> {
        self.store.client(issuer)
    }

    fn put_client<'a>(
        &'a self,
        issuer: &'a str,
        client: Option<RegisteredClient>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.store.put_client(issuer, client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::join_all;
    use toolgate_auth::Secret;

    #[tokio::test]
    async fn enforces_the_quota_for_concurrent_sign_ins() {
        let folder = std::env::temp_dir().join(format!("toolgate-room-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let text = r#"{"issuer":"https://as.test","resource":"https://a.test","access":"a","bound":false,"scopes":""}"#;
        let grant = OAuthCredential::from_text(&Secret::new(text)).unwrap();
        let room = || CredentialQuota {
            store: FileCredentialStore::new(&folder),
            prefix: "far ".to_owned(),
            max_entries: 2,
            generation: KeyGenerationCheck::current(None, |_| Ok(None)).unwrap(),
        };
        room().put("near", Some(grant.clone())).await.unwrap();
        let rooms: Vec<CredentialQuota> = (0..6).map(|_| room()).collect();
        let keep =
            async |room: &CredentialQuota, key: String| room.put(&key, Some(grant.clone())).await;
        let all = rooms
            .iter()
            .zip(0..)
            .map(|(room, n)| keep(room, format!("far {n}")));
        let done = join_all(all).await;
        let kept: Vec<usize> = (0..6).filter(|n| done[*n].is_ok()).collect();
        assert_eq!(kept.len(), 2, "{done:?}");
        let over = done.iter().find_map(|done| done.as_ref().err()).unwrap();
        assert!(
            over.to_string().contains("limit of signed-in callers (2)"),
            "{over}"
        );
        // A caller with an entry may replace it, other prefixes are not counted, and a free place is given away.
        let first = format!("far {}", kept[0]);
        room().put(&first, Some(grant.clone())).await.unwrap();
        room().put("near too", Some(grant.clone())).await.unwrap();
        room().put(&first, None).await.unwrap();
        room().put("far new", Some(grant.clone())).await.unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
