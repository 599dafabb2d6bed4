//! Renewals where something is wrong on the way: what was granted stays, and nobody is asked again and again.

use crate::test_servers::{CONFORMANT, ServerBehavior, TestServers, TestUser};
use futures_util::future::join_all;
use http::StatusCode;
use std::sync::Arc;
use toolgate_auth::{
    Secret,
    client::{
        AuthErrorKind, ClientAuthentication, CredentialStore, MemoryCredentialStore, OAuthClient,
        OAuthClientBuilder, RegisteredClient,
    },
};

const RESOURCE: &str = "/.well-known/oauth-protected-resource/mcp";
const ROOT: &str = "/.well-known/oauth-protected-resource";
const ISSUER: &str = "/.well-known/oauth-authorization-server";
const OTHER_ISSUER: &str = "/.well-known/openid-configuration";

/// A server with an authorization server below its path, and a grant in a store that has ended.
async fn ended(behavior: ServerBehavior) -> (TestServers, Arc<dyn CredentialStore>) {
    let servers = TestServers::new(ServerBehavior {
        life: 0,
        tenant: "/t",
        ..behavior
    })
    .await;
    let store: Arc<dyn CredentialStore> = Arc::new(MemoryCredentialStore::new());
    let login = with(&servers, &store)
        .sign_in(TestUser(servers.clone()))
        .build();
    login.sign_in().await.unwrap();
    servers.revoke();
    servers.behavior(|behavior| behavior.life = 3600);
    (servers, store)
}

fn with(servers: &TestServers, store: &Arc<dyn CredentialStore>) -> OAuthClientBuilder {
    OAuthClient::builder(servers.server()).shared_store(store.clone())
}

async fn refresh(servers: &TestServers, store: &Arc<dyn CredentialStore>) -> Option<String> {
    let kept = store.grant(servers.server().as_str()).await.unwrap()?;
    Some(kept.refresh_token?.reveal().to_owned())
}

/// Holds: AUTH-35.
#[tokio::test]
async fn what_may_pass_at_the_metadata_costs_no_grant() {
    let page = "<html>down for maintenance</html>";
    for (status, body) in [
        (400, ""),
        (401, ""),
        (403, ""),
        (404, ""),
        (408, ""),
        (425, ""),
        (429, ""),
        (500, ""),
        (503, ""),
        (200, page),
    ] {
        let (servers, store) = ended(CONFORMANT).await;
        let says = |paths: &[&'static str]| {
            let each = paths
                .iter()
                .map(|path| (*path, status, String::new(), body));
            let all = each.collect();
            servers.behavior(|behavior| behavior.instead = all);
        };
        // Each is a connection of its own, which knows nothing but what is kept.
        let all = [
            RESOURCE,
            ROOT,
            ISSUER,
            "/.well-known/oauth-authorization-server/t",
        ];
        says(
            &[
                &all[..],
                &[OTHER_ISSUER, "/.well-known/openid-configuration/t"],
            ]
            .concat(),
        );
        let error = servers
            .call(&with(&servers, &store).build(), "tools/list")
            .await;
        let error = error.unwrap_err();
        assert_ne!(
            error.kind(),
            AuthErrorKind::NeedsSignIn,
            "{status}: {error}"
        );
        assert_eq!(
            refresh(&servers, &store).await.as_deref(),
            Some("refresh-0"),
            "{status}"
        );
        // What the server says of itself is not needed for a renewal.
        says(&[RESOURCE, ROOT, ISSUER, OTHER_ISSUER]);
        let fine = servers
            .call(&with(&servers, &store).build(), "tools/list")
            .await;
        assert_eq!(fine.unwrap(), StatusCode::OK, "{status}");
        assert_eq!(servers.grants(), ["authorization_code", "refresh_token"]);
    }
}

/// At the origin of the server there is an authorization server, too; what it named once is not given up for that one.
#[tokio::test]
async fn a_passing_answer_leads_to_nobody_else() {
    let servers = TestServers::new(ServerBehavior {
        tenant: "/t",
        ..CONFORMANT
    })
    .await;
    let store: Arc<dyn CredentialStore> = Arc::new(MemoryCredentialStore::new());
    let person = with(&servers, &store)
        .sign_in(TestUser(servers.clone()))
        .build();
    person.sign_in().await.unwrap();
    servers.revoke();
    let origin = servers.origin();
    let named = format!("{{\"issuer\":\"{origin}\",\"token_endpoint\":\"{origin}/token\"}}");
    let named: &'static str = named.leak();
    for status in [400, 401, 403, 429, 200] {
        servers.behavior(|behavior| {
            let no = |path| (path, status, String::new(), "");
            behavior.instead = vec![no(RESOURCE), no(ROOT), (ISSUER, 200, String::new(), named)];
        });
        let running = with(&servers, &store).build();
        let error = servers.call(&running, "tools/list").await.unwrap_err();
        assert_eq!(
            error.kind(),
            AuthErrorKind::Unreachable,
            "{status}: {error}"
        );
    }
    servers.behavior(|behavior| behavior.instead.clear());
    let running = with(&servers, &store).build();
    servers.call(&running, "tools/list").await.unwrap();
    assert_eq!(servers.grants(), ["authorization_code", "refresh_token"]);
}

#[tokio::test]
async fn metadata_that_only_a_refusal_points_to_is_enough() {
    let (servers, store) = ended(ServerBehavior {
        hint: Some("/elsewhere"),
        ..CONFORMANT
    })
    .await;
    let again = with(&servers, &store).build();
    assert_eq!(
        servers.call(&again, "tools/list").await.unwrap(),
        StatusCode::OK
    );
    assert_eq!(servers.grants(), ["authorization_code", "refresh_token"]);
    assert_eq!(
        refresh(&servers, &store).await.as_deref(),
        Some("refresh-1")
    );
}

/// The server has another authorization server now, and the one before cannot be reached any more.
#[tokio::test]
async fn a_server_that_moved_says_so_where_the_one_before_is_gone() {
    let (servers, store) = ended(CONFORMANT).await;
    servers.behavior(|behavior| {
        behavior.tenant = "/new";
        let gone = (
            "/.well-known/oauth-authorization-server/t",
            503,
            String::new(),
            "",
        );
        behavior.instead = vec![gone];
    });
    let error = servers
        .call(&with(&servers, &store).build(), "tools/list")
        .await
        .unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::NeedsSignIn);
    assert!(error.to_string().contains("/new for"), "{error}");
    assert_eq!(
        refresh(&servers, &store).await.as_deref(),
        Some("refresh-0")
    );
    let person = with(&servers, &store)
        .sign_in(TestUser(servers.clone()))
        .build();
    servers.call(&person, "tools/list").await.unwrap();
    assert_eq!(
        servers.grants(),
        ["authorization_code", "authorization_code"]
    );
}

fn secret(issuer: Option<&str>, login: OAuthClientBuilder) -> OAuthClient {
    let client = RegisteredClient::new("me", ClientAuthentication::Post(Secret::new("canary")));
    login.client(issuer, client).client_credentials().build()
}

#[tokio::test]
async fn no_secret_goes_to_a_place_that_nobody_named() {
    let servers = TestServers::new(ServerBehavior {
        silent: true,
        ..CONFORMANT
    })
    .await;
    let login = secret(None, OAuthClient::builder(servers.server()));
    let error = servers.call(&login, "tools/list").await.unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Unsupported);
    assert!(
        error
            .to_string()
            .contains("client credentials are sent only to"),
        "{error}"
    );
    assert!(servers.asked("/token").is_empty());
    // Whoever sets the client says that it is for that place.
    let login = secret(
        Some(&servers.origin()),
        OAuthClient::builder(servers.server()),
    );
    assert_eq!(
        servers.call(&login, "tools/list").await.unwrap(),
        StatusCode::OK
    );
}

#[tokio::test]
async fn a_token_without_a_person_is_had_again_from_who_gave_it() {
    let hint = Some("/elsewhere");
    let servers = TestServers::new(ServerBehavior {
        life: 0,
        hint,
        tenant: "/t",
        ..CONFORMANT
    })
    .await;
    let store: Arc<dyn CredentialStore> = Arc::new(MemoryCredentialStore::new());
    let login = || secret(None, with(&servers, &store));
    servers.call(&login(), "tools/list").await.unwrap();
    // Without a refresh token, as is usual there.
    let key = servers.server();
    let mut kept = store.grant(key.as_str()).await.unwrap().unwrap();
    kept.refresh_token = None;
    store.put(key.as_str(), Some(kept)).await.unwrap();
    servers.behavior(|behavior| behavior.life = 3600);
    let before = servers.asked("/token").len();
    assert_eq!(
        servers.call(&login(), "tools/list").await.unwrap(),
        StatusCode::OK
    );
    assert_eq!(servers.asked("/token").len(), before + 1);
    assert!(servers.asked(RESOURCE).is_empty(), "nothing is guessed");
}

#[tokio::test]
async fn who_waits_for_a_renewal_that_fails_is_told_so_at_once() {
    let slower = "{\"error\":\"slow_down\"}";
    for (status, body) in [
        (403, "<html>"),
        (404, ""),
        (429, slower),
        (500, slower),
        (503, ""),
    ] {
        let (servers, store) = ended(CONFORMANT).await;
        let login = with(&servers, &store).build();
        servers
            .behavior(|behavior| behavior.instead = vec![("/token", status, String::new(), body)]);
        let before = servers.asked("/token").len();
        let calls = (0..20).map(|_| servers.call(&login, "tools/list"));
        for done in join_all(calls).await {
            let error = done.unwrap_err();
            assert_eq!(
                error.kind(),
                AuthErrorKind::Unreachable,
                "{status}: {error}"
            );
        }
        servers.call(&login, "tools/list").await.unwrap_err();
        assert_eq!(servers.asked("/token").len(), before + 1, "{status}");
        assert_eq!(
            refresh(&servers, &store).await.as_deref(),
            Some("refresh-0")
        );
    }
}

#[tokio::test]
async fn a_new_token_that_the_server_refuses_is_not_renewed_at_once() {
    let (servers, store) = ended(CONFORMANT).await;
    let login = with(&servers, &store).build();
    servers.behavior(|behavior| behavior.deaf = true);
    let error = servers.call(&login, "tools/list").await.unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Refused);
    let before = servers.paths().len();
    for _ in 0..5 {
        let error = servers.call(&login, "tools/list").await.unwrap_err();
        assert!(
            error
                .to_string()
                .contains("rejected a token that its authorization server"),
            "{error}"
        );
    }
    assert_eq!(servers.paths().len(), before, "{:?}", servers.paths());
    servers.behavior(|behavior| behavior.deaf = false);
    assert_eq!(
        servers.call(&login, "tools/list").await.unwrap(),
        StatusCode::OK
    );
}
