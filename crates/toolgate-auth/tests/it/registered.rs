//! Clients that we registered by ourselves, and authorization servers that know them no more.

use crate::test_servers::{CONFORMANT, ServerBehavior, TestServers, TestUser, Traveller};
use futures_util::future::join_all;
use std::sync::Arc;
use toolgate_auth::{
    Secret,
    client::{
        AuthErrorKind, ClientAuthentication, CredentialStore, MemoryCredentialStore, OAuthClient,
        OAuthClientBuilder, RegisteredClient,
    },
};

const NEAR: &str = "http://127.0.0.1:1/callback";

fn with(servers: &TestServers, store: &Arc<dyn CredentialStore>) -> OAuthClientBuilder {
    OAuthClient::builder(servers.server()).shared_store(store.clone())
}

fn traveller(servers: &TestServers, redirect: &'static str, comes_back: bool) -> Traveller {
    Traveller {
        servers: servers.clone(),
        redirect,
        meanwhile: |_| (),
        comes_back,
    }
}

/// Returns the client id of each visit.
fn visitors(servers: &TestServers) -> Vec<String> {
    let id = |url: &toolgate_auth::Url| {
        let query = url.query().unwrap().to_owned();
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        pairs
            .find(|(key, _)| key == "client_id")
            .unwrap()
            .1
            .into_owned()
    };
    servers.visits().iter().map(id).collect()
}

#[tokio::test]
async fn a_renewal_that_is_refused_needs_a_sign_in_by_a_client_that_is_known() {
    let all = [
        "invalid_client",
        "unauthorized_client",
        "unsupported_grant_type",
    ];
    // Refused by the server, or ended by the clock.
    for (no, life) in all.iter().flat_map(|no| [(*no, 3600), (*no, 0)]) {
        let servers = TestServers::new(ServerBehavior { life, ..CONFORMANT }).await;
        let store: Arc<dyn CredentialStore> = Arc::new(MemoryCredentialStore::new());
        let person = || {
            with(&servers, &store)
                .sign_in(TestUser(servers.clone()))
                .build()
        };
        person().sign_in().await.unwrap();
        servers.revoke();
        servers.behavior(|behavior| {
            behavior.life = 3600;
            (behavior.renews_not, behavior.registers_as) = (Some(no), Some("anew"));
        });
        let running = with(&servers, &store)
            .sign_in_hint("run: my-app login")
            .build();
        for _ in 0..5 {
            let error = servers.call(&running, "tools/list").await.unwrap_err();
            assert_eq!(error.kind(), AuthErrorKind::NeedsSignIn, "{no}: {error}");
            let said = error.to_string();
            assert!(
                said.contains(no) && said.ends_with("; run: my-app login"),
                "{said}"
            );
        }
        let renewals = servers
            .grants()
            .iter()
            .filter(|kind| *kind == "refresh_token")
            .count();
        assert_eq!(renewals, 1, "{no}");
        person().sign_in().await.unwrap();
        let known = if no == "unsupported_grant_type" {
            "id-of"
        } else {
            "anew"
        };
        assert_eq!(visitors(&servers), ["id-of", known], "{no}");
        servers.call(&running, "tools/list").await.unwrap();
    }
}

#[tokio::test]
async fn who_waits_for_a_person_who_does_not_come_back_is_told_so() {
    let servers = TestServers::new(CONFORMANT).await;
    let person = traveller(&servers, NEAR, false);
    let login = OAuthClient::builder(servers.server())
        .sign_in(person)
        .build();
    let calls = (0..20).map(|_| servers.call(&login, "tools/list"));
    for done in join_all(calls).await {
        assert_eq!(done.unwrap_err().kind(), AuthErrorKind::NeedsSignIn);
    }
    assert_eq!(servers.asked("/register").len(), 1);
    servers.call(&login, "tools/list").await.unwrap_err();
    assert_eq!(
        servers.asked("/register").len(),
        2,
        "asked anew by the next"
    );
}

/// Its secret may be mended, and then the grant is good.
#[tokio::test]
async fn a_grant_of_a_client_that_was_set_outlives_a_wrong_secret() {
    let servers = TestServers::new(ServerBehavior {
        life: 0,
        ..CONFORMANT
    })
    .await;
    let store: Arc<dyn CredentialStore> = Arc::new(MemoryCredentialStore::new());
    let login = || {
        let client =
            RegisteredClient::new("me", ClientAuthentication::Post(Secret::new("a-secret")));
        with(&servers, &store).client(None, client)
    };
    let person = login().sign_in(TestUser(servers.clone())).build();
    person.sign_in().await.unwrap();
    servers
        .behavior(|behavior| (behavior.life, behavior.renews_not) = (3600, Some("invalid_client")));
    let error = servers
        .call(&login().build(), "tools/list")
        .await
        .unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::NeedsSignIn);
    servers.behavior(|behavior| behavior.renews_not = None);
    servers.call(&login().build(), "tools/list").await.unwrap();
    assert_eq!(servers.visits().len(), 1);
}

#[tokio::test]
async fn a_secret_that_is_over_is_not_used() {
    let servers = TestServers::new(ServerBehavior {
        life: 0,
        secret_until: Some(1),
        ..CONFORMANT
    })
    .await;
    let store: Arc<dyn CredentialStore> = Arc::new(MemoryCredentialStore::new());
    let person = || {
        with(&servers, &store)
            .sign_in(TestUser(servers.clone()))
            .build()
    };
    person().sign_in().await.unwrap();
    let error = servers
        .call(&with(&servers, &store).build(), "tools/list")
        .await;
    assert_eq!(error.unwrap_err().kind(), AuthErrorKind::NeedsSignIn);
    assert_eq!(servers.grants(), ["authorization_code"]);
    servers.behavior(|behavior| behavior.registers_as = Some("anew"));
    person().sign_in().await.unwrap();
    assert_eq!(visitors(&servers), ["id-of", "anew"]);
}

#[tokio::test]
async fn who_did_not_come_back_and_who_signed_out_begins_with_another_registration() {
    let servers = TestServers::new(CONFORMANT).await;
    let store: Arc<dyn CredentialStore> = Arc::new(MemoryCredentialStore::new());
    let login = |comes_back| {
        let person = traveller(&servers, NEAR, comes_back);
        with(&servers, &store).sign_in(person).build()
    };
    login(true).sign_in().await.unwrap();
    login(true).sign_in().await.unwrap();
    assert_eq!(servers.asked("/register").len(), 1, "it is used again");
    login(false).sign_in().await.map(drop).unwrap_err();
    login(true).sign_in().await.unwrap();
    assert_eq!(servers.asked("/register").len(), 2);
    login(true).sign_out().await.unwrap();
    login(true).sign_in().await.unwrap();
    assert_eq!(servers.asked("/register").len(), 3);
}

/// Holds: AUTH-36, AUTH-45.
#[tokio::test]
async fn a_registration_says_what_it_is_for() {
    let registered = async |redirect, refresh: bool| {
        let servers = TestServers::new(CONFORMANT).await;
        let login =
            OAuthClient::builder(servers.server()).sign_in(traveller(&servers, redirect, true));
        let login = if refresh {
            login
        } else {
            login.without_refresh_token()
        };
        login.build().sign_in().await.unwrap();
        let body: serde_json::Value =
            serde_json::from_str(&servers.asked("/register")[0].body).unwrap();
        (
            body["application_type"].clone(),
            body["grant_types"].to_string(),
        )
    };
    let both = "[\"authorization_code\",\"refresh_token\"]";
    assert_eq!(
        registered(NEAR, true).await,
        ("native".into(), both.to_owned())
    );
    let (kind, grants) = registered("https://app.test/back", false).await;
    assert_eq!(
        (kind, grants.as_str()),
        ("web".into(), "[\"authorization_code\"]")
    );
}

#[tokio::test]
async fn where_nobody_can_register_the_words_say_what_to_write() {
    let end = "register a client there with the redirect URI http://127.0.0.1:1/callback, and write client_id in my-app.toml";
    let said = async |servers: &TestServers| {
        let login = OAuthClient::builder(servers.server())
            .registration_hint("write client_id in my-app.toml");
        let error = login
            .sign_in(TestUser(servers.clone()))
            .build()
            .sign_in()
            .await;
        error.map(drop).unwrap_err().to_string()
    };
    // Refused, and not offered at all.
    let servers = TestServers::new(ServerBehavior {
        registers_not: Some("access_denied"),
        ..CONFORMANT
    })
    .await;
    let words = said(&servers).await;
    assert!(words.ends_with(end), "{words}");
    let origin = servers.origin();
    let closed = format!(
        "{{\"issuer\":\"{origin}\",\"token_endpoint\":\"{origin}/token\",\"code_challenge_methods_supported\":[\"S256\"]}}"
    );
    let at = "/.well-known/oauth-authorization-server";
    servers.behavior(|behavior| behavior.instead = vec![(at, 200, String::new(), closed.leak())]);
    let words = said(&servers).await;
    assert_eq!(
        words,
        format!("{origin} does not support dynamic client registration; {end}")
    );
}

/// Holds: AUTH-13, AUTH-47, AUTH-48.
#[tokio::test]
async fn a_secret_that_was_set_goes_to_its_issuer_alone() {
    let servers = TestServers::new(CONFORMANT).await;
    let store: Arc<dyn CredentialStore> = Arc::new(MemoryCredentialStore::new());
    let origin = servers.origin();
    let login = || {
        let client = RegisteredClient::new("me", ClientAuthentication::Post(Secret::new("canary")));
        let login = with(&servers, &store).client(Some(&origin), client);
        login.sign_in(TestUser(servers.clone())).build()
    };
    let first = login();
    servers.call(&first, "tools/list").await.unwrap();
    let canaries = || {
        let asked = servers.asked("/token");
        asked
            .iter()
            .filter(|one| one.body.contains("canary"))
            .count()
    };
    assert_eq!(canaries(), 1);
    servers.revoke();
    servers.behavior(|behavior| behavior.tenant = "/other");
    for login in [first, login()] {
        let error = servers.call(&login, "tools/list").await.unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Unsafe, "{error}");
        assert!(error.to_string().contains("/other"), "{error}");
    }
    assert_eq!((canaries(), servers.visits().len()), (1, 1));
    assert!(servers.asked("/register").is_empty());
}

/// Holds: AUTH-22, AUTH-24.
#[tokio::test]
async fn the_issuer_is_compared_with_the_one_from_before_the_redirect() {
    let servers = TestServers::new(CONFORMANT).await;
    let person = Traveller {
        // Whoever answers for the metadata by now says what fits.
        meanwhile: |behavior| {
            behavior.issuer = Some("https://evil.test".to_owned());
            behavior.iss = behavior.issuer.clone();
        },
        ..traveller(&servers, NEAR, true)
    };
    let login = OAuthClient::builder(servers.server())
        .sign_in(person)
        .build();
    let error = login.sign_in().await.map(drop).unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Unsafe);
    assert!(servers.asked("/token").is_empty());
    let looked = servers.asked("/.well-known/oauth-authorization-server");
    assert_eq!(looked.len(), 1, "it is not asked again who it is");
}

/// A server may take back all that a person allowed a client: only what another client was given is given back.
#[tokio::test]
async fn a_grant_that_was_replaced_is_given_back_where_the_new_one_stays_good() {
    let servers = TestServers::new(ServerBehavior {
        takes_back: Some(200),
        ..CONFORMANT
    })
    .await;
    let store: Arc<dyn CredentialStore> = Arc::new(MemoryCredentialStore::new());
    let sign_in = async || {
        let login = with(&servers, &store)
            .sign_in(TestUser(servers.clone()))
            .build();
        login.sign_in().await.unwrap();
    };
    sign_in().await;
    sign_in().await;
    assert!(servers.asked("/back").is_empty(), "of the same client");
    store.put_client(&servers.origin(), None).await.unwrap();
    servers.behavior(|behavior| behavior.registers_as = Some("anew"));
    sign_in().await;
    let back = servers.asked("/back");
    let field = |key: &str| {
        back.iter()
            .filter_map(|one| one.field(key))
            .collect::<Vec<_>>()
    };
    assert_eq!(field("token"), ["refresh-1", "access-1"]);
    assert_eq!(field("client_id"), ["id-of", "id-of"]);
}
