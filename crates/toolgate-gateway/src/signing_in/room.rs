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
    pub(super) begin: String,
    pub(super) most: usize,
    pub(super) key: KeyGenerationCheck,
}

impl CredentialQuota {
    /// Stores a credential under a new key, if the quota has space. The lock makes each process count the entries of
    /// the others.
    async fn keep_new(&self, key: &str, grant: OAuthCredential) -> Result<(), StoreError> {
        let (begin, most) = (&self.begin, self.most);
        if !key.starts_with(begin) {
            return self.store.keep(key, Some(grant)).await;
        }
        let _one = self.store.turn(begin).await?;
        let keys = self.store.keys().await?;
        let others = keys
            .iter()
            .filter(|other| other.starts_with(begin) && *other != key);
        if others.count() >= most {
            let why = format!("{most} callers are already signed in there; sign one of them out");
            return Err(StoreError::refused(why));
        }
        self.store.keep(key, Some(grant)).await
    }
}

impl CredentialStore for CredentialQuota {
    fn grant<'a>(
        &'a self,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<OAuthCredential>, StoreError>> {
        self.store.grant(key)
    }

    fn keep<'a>(
        &'a self,
        key: &'a str,
        grant: Option<OAuthCredential>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            // A sign-in stores its credential under the lock. Revoking a key deletes its credentials under the lock
            // too: before this, or after it.
            if grant.is_some() {
                self.key.check()?;
            }
            match grant {
                Some(grant) if self.store.grant(key).await?.is_none() => {
                    self.keep_new(key, grant).await
                }
                grant => self.store.keep(key, grant).await,
            }
        })
    }

    fn turn<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<RefreshGuard, StoreError>> {
        self.store.turn(key)
    }

    fn client<'a>(
        &'a self,
        issuer: &'a str,
    ) -> BoxFuture<'a, Result<Option<RegisteredClient>, StoreError>> {
        self.store.client(issuer)
    }

    fn keep_client<'a>(
        &'a self,
        issuer: &'a str,
        client: Option<RegisteredClient>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.store.keep_client(issuer, client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::join_all;
    use toolgate_auth::Secret;

    #[tokio::test]
    async fn a_bound_holds_for_all_who_come_at_once() {
        let folder = std::env::temp_dir().join(format!("toolgate-room-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let text = r#"{"issuer":"https://as.test","resource":"https://a.test","access":"a","bound":false,"scopes":""}"#;
        let grant = OAuthCredential::from_text(&Secret::new(text)).unwrap();
        let room = || CredentialQuota {
            store: FileCredentialStore::new(&folder),
            begin: "far ".to_owned(),
            most: 2,
            key: KeyGenerationCheck::of(None, |_| Ok(None)).unwrap(),
        };
        room().keep("near", Some(grant.clone())).await.unwrap();
        let rooms: Vec<CredentialQuota> = (0..6).map(|_| room()).collect();
        let keep =
            async |room: &CredentialQuota, key: String| room.keep(&key, Some(grant.clone())).await;
        let all = rooms
            .iter()
            .zip(0..)
            .map(|(room, n)| keep(room, format!("far {n}")));
        let done = join_all(all).await;
        let kept: Vec<usize> = (0..6).filter(|n| done[*n].is_ok()).collect();
        assert_eq!(kept.len(), 2, "{done:?}");
        let over = done.iter().find_map(|done| done.as_ref().err()).unwrap();
        assert!(
            over.to_string()
                .contains("2 callers are already signed in there"),
            "{over}"
        );
        // A caller with an entry may replace it, other prefixes are not counted, and a free place is given away.
        let first = format!("far {}", kept[0]);
        room().keep(&first, Some(grant.clone())).await.unwrap();
        room().keep("near too", Some(grant.clone())).await.unwrap();
        room().keep(&first, None).await.unwrap();
        room().keep("far new", Some(grant.clone())).await.unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
