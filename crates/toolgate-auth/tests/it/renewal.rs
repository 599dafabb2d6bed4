//! Renewals where something is wrong on the way: what was granted stays, and nobody is asked again and again.

use crate::world::{LONG, Person, Twist, World};
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
async fn ended(twist: Twist) -> (World, Arc<dyn CredentialStore>) {
    let world = World::new(Twist {
        life: 0,
        tenant: "/t",
        ..twist
    })
    .await;
    let store: Arc<dyn CredentialStore> = Arc::new(MemoryCredentialStore::new());
    let login = with(&world, &store).sign_in(Person(world.clone())).build();
    login.sign_in().await.unwrap();
    world.revoke();
    world.twist(|twist| twist.life = 3600);
    (world, store)
}

fn with(world: &World, store: &Arc<dyn CredentialStore>) -> OAuthClientBuilder {
    OAuthClient::builder(world.server()).shared_store(store.clone())
}

async fn refresh(world: &World, store: &Arc<dyn CredentialStore>) -> Option<String> {
    let kept = store.grant(world.server().as_str()).await.unwrap()?;
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
        let (world, store) = ended(LONG).await;
        let says = |paths: &[&'static str]| {
            let each = paths
                .iter()
                .map(|path| (*path, status, String::new(), body));
            let all = each.collect();
            world.twist(|twist| twist.instead = all);
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
        let error = world
            .call(&with(&world, &store).build(), "tools/list")
            .await;
        let error = error.unwrap_err();
        assert_ne!(
            error.kind(),
            AuthErrorKind::NeedsSignIn,
            "{status}: {error}"
        );
        assert_eq!(
            refresh(&world, &store).await.as_deref(),
            Some("refresh-0"),
            "{status}"
        );
        // What the server says of itself is not needed for a renewal.
        says(&[RESOURCE, ROOT, ISSUER, OTHER_ISSUER]);
        let fine = world
            .call(&with(&world, &store).build(), "tools/list")
            .await;
        assert_eq!(fine.unwrap(), StatusCode::OK, "{status}");
        assert_eq!(world.grants(), ["authorization_code", "refresh_token"]);
    }
}

/// At the origin of the server there is an authorization server, too; what it named once is not given up for that one.
#[tokio::test]
async fn a_passing_answer_leads_to_nobody_else() {
    let world = World::new(Twist {
        tenant: "/t",
        ..LONG
    })
    .await;
    let store: Arc<dyn CredentialStore> = Arc::new(MemoryCredentialStore::new());
    let person = with(&world, &store).sign_in(Person(world.clone())).build();
    person.sign_in().await.unwrap();
    world.revoke();
    let origin = world.origin();
    let named = format!("{{\"issuer\":\"{origin}\",\"token_endpoint\":\"{origin}/token\"}}");
    let named: &'static str = named.leak();
    for status in [400, 401, 403, 429, 200] {
        world.twist(|twist| {
            let no = |path| (path, status, String::new(), "");
            twist.instead = vec![no(RESOURCE), no(ROOT), (ISSUER, 200, String::new(), named)];
        });
        let running = with(&world, &store).build();
        let error = world.call(&running, "tools/list").await.unwrap_err();
        assert_eq!(
            error.kind(),
            AuthErrorKind::Unreachable,
            "{status}: {error}"
        );
    }
    world.twist(|twist| twist.instead.clear());
    let running = with(&world, &store).build();
    world.call(&running, "tools/list").await.unwrap();
    assert_eq!(world.grants(), ["authorization_code", "refresh_token"]);
}

#[tokio::test]
async fn metadata_that_only_a_refusal_points_to_is_enough() {
    let (world, store) = ended(Twist {
        hint: Some("/elsewhere"),
        ..LONG
    })
    .await;
    let again = with(&world, &store).build();
    assert_eq!(
        world.call(&again, "tools/list").await.unwrap(),
        StatusCode::OK
    );
    assert_eq!(world.grants(), ["authorization_code", "refresh_token"]);
    assert_eq!(refresh(&world, &store).await.as_deref(), Some("refresh-1"));
}

/// The server has another authorization server now, and the one before cannot be reached any more.
#[tokio::test]
async fn a_server_that_moved_says_so_where_the_one_before_is_gone() {
    let (world, store) = ended(LONG).await;
    world.twist(|twist| {
        twist.tenant = "/new";
        let gone = (
            "/.well-known/oauth-authorization-server/t",
            503,
            String::new(),
            "",
        );
        twist.instead = vec![gone];
    });
    let error = world
        .call(&with(&world, &store).build(), "tools/list")
        .await
        .unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::NeedsSignIn);
    assert!(error.to_string().contains("/new for"), "{error}");
    assert_eq!(refresh(&world, &store).await.as_deref(), Some("refresh-0"));
    let person = with(&world, &store).sign_in(Person(world.clone())).build();
    world.call(&person, "tools/list").await.unwrap();
    assert_eq!(world.grants(), ["authorization_code", "authorization_code"]);
}

fn secret(issuer: Option<&str>, login: OAuthClientBuilder) -> OAuthClient {
    let client = RegisteredClient::new("me", ClientAuthentication::Post(Secret::new("canary")));
    login.client(issuer, client).client_credentials().build()
}

#[tokio::test]
async fn no_secret_goes_to_a_place_that_nobody_named() {
    let world = World::new(Twist {
        silent: true,
        ..LONG
    })
    .await;
    let login = secret(None, OAuthClient::builder(world.server()));
    let error = world.call(&login, "tools/list").await.unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Unsupported);
    assert!(
        error
            .to_string()
            .contains("client credentials are sent only to"),
        "{error}"
    );
    assert!(world.asked("/token").is_empty());
    // Whoever sets the client says that it is for that place.
    let login = secret(Some(&world.origin()), OAuthClient::builder(world.server()));
    assert_eq!(
        world.call(&login, "tools/list").await.unwrap(),
        StatusCode::OK
    );
}

#[tokio::test]
async fn a_token_without_a_person_is_had_again_from_who_gave_it() {
    let hint = Some("/elsewhere");
    let world = World::new(Twist {
        life: 0,
        hint,
        tenant: "/t",
        ..LONG
    })
    .await;
    let store: Arc<dyn CredentialStore> = Arc::new(MemoryCredentialStore::new());
    let login = || secret(None, with(&world, &store));
    world.call(&login(), "tools/list").await.unwrap();
    // Without a refresh token, as is usual there.
    let key = world.server();
    let mut kept = store.grant(key.as_str()).await.unwrap().unwrap();
    kept.refresh_token = None;
    store.put(key.as_str(), Some(kept)).await.unwrap();
    world.twist(|twist| twist.life = 3600);
    let before = world.asked("/token").len();
    assert_eq!(
        world.call(&login(), "tools/list").await.unwrap(),
        StatusCode::OK
    );
    assert_eq!(world.asked("/token").len(), before + 1);
    assert!(world.asked(RESOURCE).is_empty(), "nothing is guessed");
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
        let (world, store) = ended(LONG).await;
        let login = with(&world, &store).build();
        world.twist(|twist| twist.instead = vec![("/token", status, String::new(), body)]);
        let before = world.asked("/token").len();
        let calls = (0..20).map(|_| world.call(&login, "tools/list"));
        for done in join_all(calls).await {
            let error = done.unwrap_err();
            assert_eq!(
                error.kind(),
                AuthErrorKind::Unreachable,
                "{status}: {error}"
            );
        }
        world.call(&login, "tools/list").await.unwrap_err();
        assert_eq!(world.asked("/token").len(), before + 1, "{status}");
        assert_eq!(refresh(&world, &store).await.as_deref(), Some("refresh-0"));
    }
}

#[tokio::test]
async fn a_new_token_that_the_server_refuses_is_not_renewed_at_once() {
    let (world, store) = ended(LONG).await;
    let login = with(&world, &store).build();
    world.twist(|twist| twist.deaf = true);
    let error = world.call(&login, "tools/list").await.unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Refused);
    let before = world.paths().len();
    for _ in 0..5 {
        let error = world.call(&login, "tools/list").await.unwrap_err();
        assert!(error.to_string().contains("rejects the token"), "{error}");
    }
    assert_eq!(world.paths().len(), before, "{:?}", world.paths());
    world.twist(|twist| twist.deaf = false);
    assert_eq!(
        world.call(&login, "tools/list").await.unwrap(),
        StatusCode::OK
    );
}
