//! A store of somebody else's.

use crate::test_servers::{CONFORMANT, TestServers, TestUser};
use futures_util::future::{BoxFuture, ready};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};
use toolgate_auth::{
    Secret,
    client::{
        ClientAuthentication, CredentialStore, OAuthClient, OAuthCredential, RegisteredClient,
        StoreError,
    },
};

/// Keeps texts.
#[derive(Default)]
struct Texts(Mutex<HashMap<String, Secret>>);

impl Texts {
    fn get(&self, key: &str) -> Option<Secret> {
        self.0.lock().unwrap().get(key).cloned()
    }

    fn put(&self, key: &str, text: Option<Secret>) {
        let mut all = self.0.lock().unwrap();
        match text {
            Some(text) => drop(all.insert(key.to_owned(), text)),
            None => drop(all.remove(key)),
        }
    }
}

impl CredentialStore for Texts {
    fn grant<'a>(
        &'a self,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<OAuthCredential>, StoreError>> {
        let text = self.get(key);
        Box::pin(ready(
            text.as_ref().map(OAuthCredential::from_text).transpose(),
        ))
    }

    fn put<'a>(
        &'a self,
        key: &'a str,
        grant: Option<OAuthCredential>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let text = grant.as_ref().map(OAuthCredential::to_text).transpose();
        Box::pin(ready(text.map(|text| self.put(key, text))))
    }

    fn client<'a>(
        &'a self,
        issuer: &'a str,
    ) -> BoxFuture<'a, Result<Option<RegisteredClient>, StoreError>> {
        let text = self.get(&format!("client {issuer}"));
        Box::pin(ready(
            text.as_ref().map(RegisteredClient::from_text).transpose(),
        ))
    }

    fn put_client<'a>(
        &'a self,
        issuer: &'a str,
        client: Option<RegisteredClient>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let text = client.as_ref().map(RegisteredClient::to_text).transpose();
        let put =
            |text: Option<Option<Secret>>| self.put(&format!("client {issuer}"), text.flatten());
        Box::pin(ready(text.map(put)))
    }
}

#[tokio::test]
async fn a_store_of_somebody_else_keeps_what_was_granted() {
    let servers = TestServers::new(CONFORMANT).await;
    let store: Arc<dyn CredentialStore> = Arc::new(Texts::default());
    let builder = || OAuthClient::builder(servers.server()).shared_store(store.clone());
    let person = builder().sign_in(TestUser(servers.clone())).build();
    let granted = person.sign_in().await.unwrap();
    servers.revoke();
    servers
        .call(&builder().build(), "tools/list")
        .await
        .unwrap();
    assert_eq!(servers.visits().len(), 1, "renewed by what was kept");
    let client = store.client(&servers.origin()).await.unwrap().unwrap();
    assert_eq!(client.id, "id-of");
    // Each part comes back.
    let again = OAuthCredential::from_text(&granted.to_text().unwrap()).unwrap();
    assert_eq!(
        (&again.issuer, again.expires_at),
        (&granted.issuer, granted.expires_at)
    );
    assert!(again.access_token.matches(granted.access_token.reveal()));
    assert!(
        again
            .refresh_token
            .unwrap()
            .matches(granted.refresh_token.unwrap().reveal())
    );
    for wrong in ["", "x", "{}", "null", r#"{"issuer":"x"}"#] {
        assert!(
            OAuthCredential::from_text(&Secret::new(wrong)).is_err(),
            "{wrong}"
        );
        assert!(
            RegisteredClient::from_text(&Secret::new(wrong)).is_err(),
            "{wrong}"
        );
    }
    let basic = RegisteredClient::new("me", ClientAuthentication::Basic(Secret::new("s3cret")));
    let basic = RegisteredClient::from_text(&basic.to_text().unwrap().unwrap()).unwrap();
    assert!(
        matches!(basic.authentication, ClientAuthentication::Basic(secret) if secret.matches("s3cret"))
    );
}
