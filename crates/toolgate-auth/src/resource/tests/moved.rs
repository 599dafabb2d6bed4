//! Key rotation, and documents that move to another URL.

use super::{
    asking::{active, asked, status, with},
    *,
};

/// Returns a token signed by a key that the issuer did not have at first.
fn by_new_key(world: &TestIssuer, key: &TestSigner, end: i64) -> String {
    let header = json!({"alg": "ES256", "typ": "at+jwt", "kid": "new"});
    let mut payload = world.payload();
    payload["exp"] = json!(crate::clock::now() as i64 + end);
    key.token(&header, &payload)
}

fn set_of(key: &TestSigner, id: Option<&str>) -> Value {
    let mut jwk = key.jwk();
    if let Some(id) = id {
        jwk["kid"] = json!(id);
    }
    json!({"keys": [jwk]})
}

#[tokio::test]
async fn a_token_of_a_rotated_key_is_not_invalid() {
    let (world, key) = (TestIssuer::new(), TestSigner::es256());
    let old = world.es.token(&TestIssuer::header(), &world.payload());
    let new = by_new_key(&world, &key, 300);
    // Too early for another fetch.
    let server = with(&world, |_| {});
    assert_eq!(status(&server, &old).await, 200);
    world.page("/keys", set_of(&key, Some("new")));
    let refused = admit(&server, &new).await.err().unwrap();
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(!refused.had_invalid_token() && refused.challenges().is_empty());
    assert!(refused.reason().contains("a moment ago"), "{refused:?}");
    // A token with invalid claims is rejected without the issuer.
    assert_eq!(status(&server, &by_new_key(&world, &key, -300)).await, 401);

    // The issuer is unreachable, and then recovers.
    world.page("/keys", world.keys());
    let server = with(&world, |limits| limits.min_fetch_interval = Duration::ZERO);
    assert_eq!(status(&server, &old).await, 200);
    world.page("/keys", json!(502));
    assert_eq!(status(&server, &new).await, 503);
    assert_eq!(status(&server, &old).await, 200, "what it said holds");
    world.page("/keys", set_of(&key, Some("new")));
    assert_eq!(status(&server, &new).await, 200);
    assert_eq!(status(&server, &old).await, 401, "a key that is gone");
}

#[tokio::test]
async fn rotates_keys_without_ids() {
    let (world, key) = (TestIssuer::new(), TestSigner::es256());
    world.page("/keys", set_of(&world.es, None));
    let server = with(&world, |limits| limits.min_fetch_interval = Duration::ZERO);
    let header = json!({"alg": "ES256"});
    let old = world.es.token(&header, &world.payload());
    let new = key.token(&header, &world.payload());
    assert_eq!(status(&server, &old).await, 200);
    world.page("/keys", set_of(&key, None));
    assert_eq!(status(&server, &new).await, 200);
    assert_eq!(status(&server, &old).await, 401);
}

#[tokio::test]
async fn refetches_metadata_after_an_endpoint_moved() {
    let world = TestIssuer::new();
    let token = world.es.token(&TestIssuer::header(), &world.payload());
    let server = with(&world, |limits| {
        (limits.min_fetch_interval, limits.introspection_lifetime) =
            (Duration::ZERO, Duration::ZERO);
    });
    active(&world, true);
    assert_eq!(status(&server, &token).await, 200);
    assert_eq!(status(&server, "opaque-1").await, 200);
    assert_eq!(asked(&world), 3);
    let metadata = json!({"issuer": world.url, "jwks_uri": format!("{}/keys/new", world.url),
        "introspection_endpoint": format!("{}/introspect/new", world.url)});
    world.page("/.well-known/oauth-authorization-server", metadata);
    let key = TestSigner::es256();
    world.page("/keys/new", set_of(&key, Some("new")));
    let said = json!({"active": true, "sub": "bob", "aud": RESOURCE});
    world.page("/introspect/new", said);
    world.no_page("/introspect");
    world.no_page("/keys");
    // Keys: at the old URL, then the metadata, then at the new URL.
    let new = by_new_key(&world, &key, 300);
    assert_eq!(status(&server, &new).await, 200);
    assert_eq!(asked(&world), 6);
    assert_eq!(status(&server, "opaque-2").await, 200);

    // A new introspection endpoint is discovered after the old one failed.
    let metadata = json!({"issuer": world.url, "introspection_endpoint": format!("{}/introspect/newer", world.url)});
    world.page("/.well-known/oauth-authorization-server", metadata);
    world.no_page("/introspect/new");
    let said = json!({"active": true, "sub": "bob", "aud": RESOURCE});
    world.page("/introspect/newer", said);
    assert_eq!(status(&server, "opaque-3").await, 503);
    assert_eq!(status(&server, "opaque-3").await, 200);
}

#[tokio::test]
async fn refetches_stale_metadata() {
    let world = TestIssuer::new();
    active(&world, true);
    let server = with(&world, |limits| {
        (
            limits.min_fetch_interval,
            limits.key_lifetime,
            limits.introspection_lifetime,
        ) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    });
    assert_eq!(status(&server, "opaque-1").await, 200);
    let metadata =
        json!({"issuer": world.url, "introspection_endpoint": format!("{}/new", world.url)});
    world.page("/.well-known/oauth-authorization-server", metadata);
    world.page(
        "/new",
        json!({"active": true, "sub": "eve", "aud": RESOURCE}),
    );
    let admitted = admit(&server, "opaque-1").await;
    let admitted = admitted.unwrap_or_else(|r| panic!("{r:?}"));
    assert_eq!(admitted.caller.name(), "corp:eve");
    // Metadata that is gone stays in use.
    world.no_page("/.well-known/oauth-authorization-server");
    assert_eq!(status(&server, "opaque-1").await, 200);
}
