//! Issuers that are slow, unreachable or in a private network, and requests that are canceled.

use super::{
    asking::{active, asked, status, with},
    *,
};
use crate::fetch::FetchLimits;
use futures_util::future::join_all;
use std::future::Future;

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

/// Starts a future and drops it as soon as the issuer got a number of requests.
async fn given_up(world: &TestIssuer, at: usize, begun: impl Future) {
    let is_asked = async {
        while asked(world) < at {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = begun => panic!("the issuer holds its answer back"),
        () = is_asked => {}
    }
}

#[test]
fn permits_operator_urls_and_restricts_issuer_urls() {
    let own = [
        "https://login.corp.test/realms/a",
        "https://keys.corp.test/k",
        "https://ask.corp.test/i",
    ]
    .map(url);
    let [login, keys, ask] = own.clone();
    let issuer = || {
        let issuer = TrustedIssuer::new("corp", login.clone()).keys(keys.clone());
        issuer.introspection(Some(ask.clone()), "gateway", Secret::new("secret"))
    };
    let (other, ip) = (url("https://other.corp.test/keys"), |ip: &str| {
        ip.parse().unwrap()
    });
    let fetcher = issuer().fetcher(FetchLimits::default());
    for url in &own {
        for at in ["10.1.2.3", "192.168.0.7", "fd00::1", "127.0.0.1", "8.8.8.8"] {
            assert_eq!(fetcher.permits(url, ip(at)), Ok(()), "{at}");
        }
    }
    assert!(fetcher.permits(&other, ip("8.8.8.8")).is_ok());
    for at in ["10.1.2.3", "fd00::1", "127.0.0.1", "169.254.169.254"] {
        assert!(fetcher.permits(&other, ip(at)).is_err(), "{at}");
    }
    let fetcher = issuer().danger_permit_private_addresses();
    let fetcher = fetcher.fetcher(FetchLimits::default());
    for at in ["10.1.2.3", "fd00::1", "8.8.8.8"] {
        assert_eq!(fetcher.permits(&other, ip(at)), Ok(()), "{at}");
    }
    for at in ["127.0.0.1", "169.254.169.254", "fe80::1"] {
        assert!(fetcher.permits(&other, ip(at)).is_err(), "{at}");
    }
}

/// The issuer's name is public; the operator configured its keys on this machine.
#[tokio::test]
async fn fetches_keys_from_the_configured_url() {
    let world = TestIssuer::new();
    let issuer = TrustedIssuer::new("corp", url("https://login.example.com"));
    let server = world.server(issuer.keys(url(&format!("{}/keys", world.url))));
    let mut payload = world.payload();
    payload["iss"] = json!("https://login.example.com");
    let token = world.es.token(&TestIssuer::header(), &payload);
    assert_eq!(status(&server, &token).await, 200);
}

#[tokio::test]
async fn a_canceled_request_does_not_cancel_the_fetch() {
    let world = TestIssuer::new();
    let token = world.es.token(&TestIssuer::header(), &world.payload());
    // The first request is for the metadata, the second for the keys.
    let places = ["/.well-known/oauth-authorization-server", "/keys"];
    for (path, at) in places.into_iter().zip(1..) {
        let server = with(&world, |_| {});
        let before = asked(&world);
        world.hold(path);
        given_up(&world, before + at, admit(&server, &token)).await;
        world.hold("");
        assert_eq!(status(&server, &token).await, 200, "{path}");
        assert_eq!(asked(&world), before + 2, "{path}: each was asked once");
    }
}

#[tokio::test]
async fn concurrent_introspections_of_one_token_share_a_response() {
    let world = TestIssuer::new();
    active(&world, true);
    let server = with(&world, |_| {});
    assert_eq!(status(&server, "opaque-1").await, 200);
    let before = asked(&world);
    world.hold("/introspect");
    // The first request is canceled, and the response is not lost.
    given_up(&world, before + 1, admit(&server, "opaque-2")).await;
    let all = join_all((0..20).map(|_| status(&server, "opaque-2")));
    let free = async { world.hold("") };
    let (all, ()) = tokio::join!(all, free);
    assert!(all.iter().all(|status| *status == 200), "{all:?}");
    assert_eq!(asked(&world), before + 1);
}

#[tokio::test]
async fn exceeding_introspections_wait_and_are_not_invalid() {
    let world = TestIssuer::new();
    active(&world, true);
    let limits = FetchLimits {
        timeout: Duration::from_millis(300),
        ..FetchLimits::default()
    };
    let issuer = world.issuer();
    let issuer = issuer.introspection(None, "gateway", Secret::new("s3cret of the gateway"));
    let fetcher = issuer.fetcher(limits);
    let bounds = ResourceLimits {
        max_introspections: 2,
        ..ResourceLimits::default()
    };
    let server = ResourceServer::new(url(RESOURCE)).issuer_with_fetcher(issuer, fetcher);
    let server = server.limits(bounds);
    assert_eq!(status(&server, "opaque").await, 200);
    let before = asked(&world);
    world.hold("/introspect");
    let tokens: Vec<String> = (0..12).map(|n| format!("opaque-{n}")).collect();
    let all = join_all(tokens.iter().map(|token| admit(&server, token))).await;
    for refused in all {
        let refused = refused.err().unwrap();
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(!refused.had_invalid_token(), "{refused:?}");
    }
    assert_eq!(asked(&world), before + 2, "two places");
    // The cached response is used, and nothing else is requested for a moment.
    assert_eq!(status(&server, "opaque").await, 200);
    world.hold("");
    assert_eq!(status(&server, "opaque-1").await, 503);
    assert_eq!(asked(&world), before + 2);
}

#[tokio::test]
async fn pauses_introspection_after_pushback() {
    let world = TestIssuer::new();
    for (said, pauses) in [
        (json!(429), true),
        (json!(503), true),
        (json!(401), true),
        // The failure may be specific to this token: one odd token must not lock out others.
        (json!(500), false),
        (json!(400), false),
        (json!("no object"), false),
    ] {
        let server = with(&world, |_| {});
        world.page("/introspect", said.clone());
        assert_eq!(status(&server, "opaque-1").await, 503, "{said}");
        active(&world, true);
        let before = asked(&world);
        let next = if pauses { 503 } else { 200 };
        assert_eq!(status(&server, "opaque-2").await, next, "{said}");
        assert_eq!(asked(&world) == before, pauses, "{said}");
        // Without a pause the next request follows at once.
        world.page("/introspect", said.clone());
        let server = with(&world, |limits| limits.min_fetch_interval = Duration::ZERO);
        assert_eq!(status(&server, "opaque-1").await, 503, "{said}");
        active(&world, true);
        assert_eq!(status(&server, "opaque-2").await, 200, "{said}");
    }
}

/// Returns the reason for the audit log, and checks that the client does not get it.
async fn cause(server: &ResourceServer, token: &str) -> String {
    let refused = admit(server, token).await.err().unwrap();
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    let issuers = server.issuer_status();
    assert!(issuers[0].id == "corp" && issuers[0].since.is_some());
    let error = issuers[0].error.clone().unwrap();
    assert!(refused.reason().contains(&error), "{refused:?}");
    assert!(!refused.message().contains(&error));
    error
}

#[tokio::test]
async fn reports_the_cause_of_issuer_failures() {
    let world = TestIssuer::new();
    let metadata = "/.well-known/oauth-authorization-server";
    let token = world.es.token(&TestIssuer::header(), &world.payload());
    let zero = || with(&world, |limits| limits.min_fetch_interval = Duration::ZERO);
    let names = |keys: &str| {
        json!({"issuer": world.url, "jwks_uri": keys,
        "introspection_endpoint": format!("{}/introspect", world.url)})
    };

    world.page(metadata, names("https://10.1.2.3/keys?a=secret"));
    let server = zero();
    let told = cause(&server, &token).await;
    assert!(
        told.contains("https://10.1.2.3: the URL leads to a private network"),
        "{told}"
    );
    assert!(!told.contains("secret"), "{told}");
    // The time of the first error stays until the issuer recovers.
    let since = server.issuer_status()[0].since;
    let _ = cause(&server, &token).await;
    assert_eq!(server.issuer_status()[0].since, since);
    world.page(metadata, names(&format!("{}/keys", world.url)));
    assert_eq!(status(&server, &token).await, 200);
    assert_eq!(server.issuer_status()[0].error, None);

    world.page(metadata, json!({"issuer": "https://\u{202e}other.test"}));
    let told = cause(&zero(), &token).await;
    assert!(
        told.contains("the metadata names another issuer, \"https://\\\\u202eother.test"),
        "{told}"
    );
    world.page(metadata, json!({"issuer": world.url}));
    let told = cause(&zero(), &token).await;
    assert_eq!(told, "its metadata has no jwks_uri");
    let told = cause(&zero(), "opaque").await;
    assert_eq!(told, "its metadata has no introspection_endpoint");
    world.page(metadata, names(&format!("{}/keys", world.url)));
    world.page("/keys", json!({"keys": {}}));
    let told = cause(&zero(), &token).await;
    assert!(told.contains("the response is not a JWK set"), "{told}");
    world.page("/introspect", json!(401));
    let told = cause(&zero(), "opaque").await;
    assert!(
        told.contains("HTTP 401: it rejects the client_id"),
        "{told}"
    );
    assert!(!told.contains("s3cret"), "{told}");

    // No listener: one attempt, because the other URLs are on the same machine.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = url(&format!("http://{}", listener.local_addr().unwrap()));
    drop(listener);
    let mut payload = world.payload();
    payload["iss"] = json!(gone.as_str());
    let token = world.es.token(&TestIssuer::header(), &payload);
    let server = ResourceServer::new(url(RESOURCE)).issuer(TrustedIssuer::new("corp", gone));
    let told = cause(&server, &token).await;
    assert!(
        told.contains("its metadata cannot be loaded: ") && told.contains("cannot be reached"),
        "{told}"
    );
}

#[tokio::test]
async fn accepts_configured_audiences() {
    let world = TestIssuer::new();
    let named = |issuer: TrustedIssuer| issuer.audiences(["api://gateway".to_owned()]);
    let token = |aud: Value| {
        let mut payload = world.payload();
        payload["aud"] = aud;
        world.es.token(&TestIssuer::header(), &payload)
    };
    let (plain, own) = (
        world.server(world.issuer()),
        world.server(named(world.issuer())),
    );
    for (aud, good) in [
        (json!("api://gateway"), true),
        (json!(["x", "api://gateway"]), true),
        (json!(RESOURCE), true),
        (json!("api://gateway/"), false),
        (json!("API://gateway"), false),
        (json!("other\u{7}"), false),
        (json!(""), false),
    ] {
        assert_eq!(
            status(&own, &token(aud.clone())).await == 200,
            good,
            "{aud}"
        );
        let is_plain = aud == RESOURCE;
        assert_eq!(
            status(&plain, &token(aud.clone())).await == 200,
            is_plain,
            "{aud}"
        );
    }
    // The audit record contains the audience, sanitized and shortened.
    let refused = admit(&own, &token(json!("other\u{202e}x".repeat(100)))).await;
    let refused = refused.err().unwrap();
    let start = "the token is for another audience: its aud is \"other\\u202ex";
    assert!(refused.reason().starts_with(start), "{refused:?}");
    assert!(
        refused.reason().contains(&world.url) && refused.reason().len() < 500,
        "{refused:?}"
    );
    // The same for an opaque token.
    let said = json!({"active": true, "sub": "bob", "aud": "api://gateway"});
    world.page("/introspect", said);
    let secret = || Secret::new("s3cret of the gateway");
    let asked = world.issuer().introspection(None, "gateway", secret());
    assert_eq!(status(&world.server(asked), "opaque").await, 401);
    let asked = named(world.issuer()).introspection(None, "gateway", secret());
    assert_eq!(status(&world.server(asked), "opaque").await, 200);
}

#[tokio::test]
async fn introspecting_signed_tokens_needs_a_client() {
    let world = TestIssuer::new();
    active(&world, false);
    let token = world.es.token(&TestIssuer::header(), &world.payload());
    let secret = Secret::new("s3cret of the gateway");
    let issuer = world.issuer().introspect_signed_tokens();
    let server = world.server(issuer.introspection(None, "gateway", secret));
    assert_eq!(status(&server, &token).await, 401, "it was withdrawn");
    // Introspection is not configured: no token is accepted.
    let server = world.server(world.issuer().introspect_signed_tokens());
    assert_eq!(status(&server, &token).await, 503);
}

#[tokio::test]
async fn replay_protection_survives_a_reload() {
    let world = TestIssuer::new();
    let before = world.server(world.issuer());
    let proof = TestProof::new(&world);
    let (header, payload) = (proof.header(), proof.payload("1"));
    assert_eq!(proof.shown(&before, &header, &payload).await, Ok(()));
    let next = world.server(world.issuer()).with_proofs_of(&before);
    let again = proof.shown(&next, &header, &payload).await;
    assert_eq!(
        again.unwrap_err().reason(),
        "the DPoP proof was used before; create a new one for each request"
    );
}

/// Holds: AUTH-37
#[tokio::test]
async fn never_requests_offline_access() {
    let world = TestIssuer::new();
    let scopes = ["offline_access", "files:read"].map(str::to_owned);
    let server = world.server(world.issuer()).scopes(scopes.clone());
    let nobody = server.authenticate(&Method::POST, &HeaderMap::new()).await;
    let nobody = nobody.err().unwrap().challenges().to_vec();
    for text in [
        server.metadata(),
        server.insufficient_scope_challenge(&scopes),
        nobody.concat(),
    ] {
        assert!(text.contains("files:read"), "{text}");
        assert!(!text.contains("offline_access"), "{text}");
    }
}
