//! Concurrent token refreshes, sign-ins and sign-outs: each takes its turn.

use crate::test_servers::{CONFORMANT, ServerBehavior, TestServers, TestUser};
use futures_util::future::BoxFuture;
use http::{HeaderMap, Method, StatusCode, Uri, header};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::SeqCst},
};
use tokio::sync::Mutex;
use toolgate_auth::client::{
    AuthErrorKind, CredentialProvider, CredentialRequest, CredentialStore, MemoryCredentialStore,
    OAuthClient, OAuthClientBuilder, OAuthCredential, RefreshGuard, RegisteredClient,
    RejectedResponse, StoreError,
};

/// A store whose turns are held.
#[derive(Default)]
struct Held {
    store: MemoryCredentialStore,
    turn: Arc<Mutex<()>>,
    asked: AtomicUsize,
}

impl CredentialStore for Held {
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
        self.store.put(key, grant)
    }

    fn refresh_lock<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<RefreshGuard, StoreError>> {
        self.asked.fetch_add(1, SeqCst);
        Box::pin(async { Ok(RefreshGuard::holding(self.turn.clone().lock_owned().await)) })
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

/// Action while a token refresh is in flight.
type Meanwhile = fn(&TestServers, &Arc<dyn CredentialStore>) -> BoxFuture<'static, ()>;

fn signs_out(servers: &TestServers, store: &Arc<dyn CredentialStore>) -> BoxFuture<'static, ()> {
    let login = with(servers, store).build();
    Box::pin(async move { drop(login.sign_out().await.unwrap()) })
}

fn signs_in(servers: &TestServers, store: &Arc<dyn CredentialStore>) -> BoxFuture<'static, ()> {
    let login = with(servers, store).build();
    Box::pin(async move { drop(login.sign_in().await.unwrap()) })
}

fn with(servers: &TestServers, store: &Arc<dyn CredentialStore>) -> OAuthClientBuilder {
    let login = OAuthClient::builder(servers.server()).shared_store(store.clone());
    login.sign_in(TestUser(servers.clone()))
}

async fn servers() -> TestServers {
    let servers = TestServers::new(ServerBehavior {
        life: 0,
        takes_back: Some(200),
        ..CONFORMANT
    });
    servers.await
}

/// A renewal that is not answered until something else is done, or waits for its turn.
async fn renewed_meanwhile(servers: &TestServers, held: &Arc<Held>, what: Meanwhile) {
    let store: Arc<dyn CredentialStore> = held.clone();
    with(servers, &store).build().sign_in().await.unwrap();
    servers.behavior(|behavior| behavior.life = 3600);
    let release = servers.hold();
    let running = OAuthClient::builder(servers.server())
        .shared_store(store.clone())
        .build();
    let renewal = servers.call(&running, "tools/list");
    let other = async {
        servers.until_asked("/token", 2).await;
        let turns = held.asked.load(SeqCst);
        let mut other = what(servers, &store);
        let waits = async {
            while held.asked.load(SeqCst) == turns {
                tokio::task::yield_now().await;
            }
        };
        let done = tokio::select! {
            () = &mut other => true,
            () = waits => false,
        };
        drop(release);
        if !done {
            other.await;
        }
    };
    let (_, ()) = tokio::join!(renewal, other);
}

async fn kept(servers: &TestServers, store: &dyn CredentialStore) -> Option<String> {
    let kept = store.grant(servers.server().as_str()).await.unwrap()?;
    Some(kept.refresh_token?.reveal().to_owned())
}

#[tokio::test]
async fn what_is_signed_out_during_a_renewal_does_not_come_back() {
    let (servers, held) = (servers().await, Arc::new(Held::default()));
    renewed_meanwhile(&servers, &held, signs_out).await;
    assert_eq!(kept(&servers, &*held).await, None);
    let back = servers.asked("/back");
    let back: Vec<_> = back.iter().filter_map(|one| one.field("token")).collect();
    assert_eq!(
        back,
        ["refresh-1", "access-1"],
        "what was renewed is given back"
    );
}

#[tokio::test]
async fn a_sign_in_during_a_renewal_is_what_is_kept() {
    let (servers, held) = (servers().await, Arc::new(Held::default()));
    renewed_meanwhile(&servers, &held, signs_in).await;
    assert_eq!(kept(&servers, &*held).await.as_deref(), Some("refresh-2"));
}

#[tokio::test]
async fn what_is_wanted_during_a_renewal_is_kept_beside_the_new_token() {
    let (servers, held) = (servers().await, Arc::new(Held::default()));
    renewed_meanwhile(&servers, &held, |servers, store| {
        let login = OAuthClient::builder(servers.server())
            .shared_store(store.clone())
            .build();
        Box::pin(async move {
            let running = login.credential().await.unwrap().unwrap();
            let mut headers = HeaderMap::new();
            let value = "Bearer error=\"insufficient_scope\", scope=\"write\"";
            headers.insert(header::WWW_AUTHENTICATE, value.parse().unwrap());
            let sent = format!("Bearer {}", running.access_token.reveal());
            let sent = HeaderMap::from_iter([(header::AUTHORIZATION, sent.parse().unwrap())]);
            let uri = Uri::from_static("http://127.0.0.1/mcp");
            let leaving = CredentialRequest::new(&Method::POST, &uri, Some("tools/call a"));
            let refusal = RejectedResponse::new(StatusCode::FORBIDDEN, &headers, &sent, 0);
            let _ = login.on_rejection(leaving, refusal).await;
        })
    })
    .await;
    let grant = held
        .grant(servers.server().as_str())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(grant.demanded_scopes.to_string(), "write");
    assert!(grant.refresh_token.unwrap().matches("refresh-1"));
}

/// A store without turns, as of one process.
#[tokio::test]
async fn a_renewal_of_an_older_grant_overwrites_nothing() {
    for (what, left) in [
        (signs_in as Meanwhile, Some("refresh-2")),
        (signs_out, None),
    ] {
        let servers = servers().await;
        let store: Arc<dyn CredentialStore> = Arc::new(MemoryCredentialStore::new());
        with(&servers, &store).build().sign_in().await.unwrap();
        servers.behavior(|behavior| behavior.life = 3600);
        let release = servers.hold();
        let running = OAuthClient::builder(servers.server())
            .shared_store(store.clone())
            .build();
        let other = async {
            servers.until_asked("/token", 2).await;
            what(&servers, &store).await;
            drop(release);
        };
        let (called, ()) = tokio::join!(servers.call(&running, "tools/list"), other);
        assert_eq!(kept(&servers, &*store).await.as_deref(), left);
        match left {
            Some(_) => assert_eq!(called.unwrap(), StatusCode::OK),
            None => assert_eq!(called.unwrap_err().kind(), AuthErrorKind::NeedsSignIn),
        }
    }
}
