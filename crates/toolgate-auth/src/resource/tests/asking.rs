//! Introspection: number of requests, choice of the issuer, and cache sizes.

use super::*;

/// Returns a server with these issuers, each with its prefix.
fn of(worlds: &[(&TestIssuer, &str)]) -> ResourceServer {
    let server = ResourceServer::new(Url::parse(RESOURCE).unwrap());
    worlds.iter().fold(server, |server, (world, prefix)| {
        let issuer = world.issuer().token_prefix(prefix);
        let issuer = issuer.introspection(None, "gateway", Secret::new("s3cret of the gateway"));
        server.issuer(issuer)
    })
}

/// Returns a server with changed limits.
pub(super) fn with(world: &TestIssuer, change: impl Fn(&mut ResourceLimits)) -> ResourceServer {
    let mut limits = ResourceLimits::default();
    change(&mut limits);
    of(&[(world, "")]).limits(limits)
}

pub(super) fn active(world: &TestIssuer, is: bool) {
    let said = json!({"active": is, "sub": "bob", "aud": RESOURCE, "client_id": "c"});
    world.page("/introspect", said);
}

pub(super) async fn status(server: &ResourceServer, token: &str) -> u16 {
    let admitted = admit(server, token).await;
    admitted.map_or_else(|refused| refused.status().as_u16(), |_| 200)
}

/// Returns the number of requests that an issuer got, about tokens or anything else.
pub(super) fn asked(world: &TestIssuer) -> usize {
    world.told.asked.load(SeqCst)
}

#[tokio::test]
async fn introspects_at_one_issuer_by_default() {
    let (one, two) = (TestIssuer::new(), TestIssuer::new());
    active(&one, false);
    active(&two, true);
    let server = of(&[(&one, ""), (&two, "")]);
    assert_eq!(status(&server, "opaque-1").await, 401);
    assert_eq!(asked(&two), 0, "the second sees no token of the first");

    // One after the other, until one knows the token.
    let server = of(&[(&one, ""), (&two, "")]).danger_introspect_at_every_issuer();
    assert_eq!(status(&server, "opaque-2").await, 200);
    active(&two, false);
    assert_eq!(status(&server, "opaque-3").await, 401);
    // An unreachable issuer may have known the token, so the token is not blamed.
    one.no_page("/introspect");
    assert_eq!(status(&server, "opaque-4").await, 503);
    active(&two, true);
    assert_eq!(status(&server, "opaque-5").await, 200);
}

#[tokio::test]
async fn a_token_prefix_selects_the_issuer() {
    let (one, two, rest) = (TestIssuer::new(), TestIssuer::new(), TestIssuer::new());
    for world in [&one, &two, &rest] {
        active(world, true);
    }
    // Even if all issuers may be asked, a token with a prefix goes to no other.
    let server =
        of(&[(&one, "a_"), (&two, "a_b_"), (&rest, "")]).danger_introspect_at_every_issuer();
    let count = || [asked(&one), asked(&two), asked(&rest)].map(|n| n > 0);
    assert_eq!(status(&server, "a_b_1").await, 200);
    assert_eq!(count(), [false, true, false]);
    active(&one, false);
    assert_eq!(status(&server, "a_1").await, 401);
    assert_eq!(count(), [true, true, false]);
    assert_eq!(status(&server, "A_1").await, 200);
    assert_eq!(count(), [true, true, true]);
}

#[tokio::test]
async fn caches_introspection_for_the_configured_time() {
    let world = TestIssuer::new();
    let server = with(&world, |limits| {
        limits.introspection_lifetime = Duration::ZERO
    });
    active(&world, true);
    assert_eq!(status(&server, "opaque-1").await, 200);
    active(&world, false);
    assert_eq!(
        status(&server, "opaque-1").await,
        401,
        "it is asked each time"
    );
    let server = with(&world, |limits| {
        limits.introspection_lifetime = Duration::from_secs(3600)
    });
    active(&world, true);
    assert_eq!(status(&server, "opaque-1").await, 200);
    active(&world, false);
    assert_eq!(status(&server, "opaque-1").await, 200);
    // A response that is too long for the cache is used for one request.
    let long = json!({"active": true, "sub": "bob", "aud": RESOURCE, "more": "x".repeat(4096)});
    world.page("/introspect", long);
    assert_eq!(status(&server, "opaque-2").await, 200);
    active(&world, false);
    assert_eq!(status(&server, "opaque-2").await, 401);
}

#[tokio::test]
async fn keys_are_looked_for_as_often_as_it_is_said() {
    let world = TestIssuer::new();
    let token = world.es.token(&TestIssuer::header(), &world.payload());
    let unknown = json!({"alg": "ES256", "typ": "at+jwt", "kid": "new"});
    let unknown = world.es.token(&unknown, &world.payload());
    // Metadata and keys; then no more requests, whatever keys are named: their validity is unknown.
    let server = with(&world, |_| {});
    assert_eq!(status(&server, &token).await, 200);
    assert_eq!(status(&server, &unknown).await, 503);
    assert_eq!(status(&server, &token).await, 200);
    assert_eq!(asked(&world), 2);
    // An unknown key causes a fetch each time.
    let server = with(&world, |limits| limits.min_fetch_interval = Duration::ZERO);
    assert_eq!(status(&server, &token).await, 200);
    for n in 1..4 {
        assert_eq!(status(&server, &unknown).await, 401);
        assert_eq!(asked(&world), 4 + n);
    }
    // So do known keys with a cache time of zero; nor is the metadata cached then.
    let server = with(&world, |limits| {
        (limits.min_fetch_interval, limits.key_lifetime) = (Duration::ZERO, Duration::ZERO);
    });
    let before = asked(&world);
    let _ = status(&server, &token).await;
    let _ = status(&server, &token).await;
    assert_eq!(asked(&world), before + 4);
}

#[tokio::test]
async fn rejects_one_proof_too_many() {
    let world = TestIssuer::new();
    let server = with(&world, |limits| limits.max_proofs = 2);
    let proof = TestProof::new(&world);
    let header = proof.header();
    for id in ["1", "2"] {
        let shown = proof.shown(&server, &header, &proof.payload(id)).await;
        assert_eq!(shown, Ok(()));
    }
    let over = proof.shown(&server, &header, &proof.payload("3")).await;
    assert_eq!(over.unwrap_err().status(), StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn a_proof_must_name_the_requested_url() {
    let world = TestIssuer::new();
    let server = world.server(world.issuer());
    let proof = TestProof::new(&world);
    let stream = Url::parse("https://tools.example.com/sse").unwrap();
    let at = async |id: &str, htu: &str| {
        let mut payload = proof.payload(id);
        (payload["htu"], payload["htm"]) = (json!(htu), json!("GET"));
        let headers = proof.headers(&proof.key.token(&proof.header(), &payload));
        let admitted = server
            .authenticate_at(&stream, &Method::GET, &headers, true)
            .await;
        admitted.is_ok()
    };
    assert!(at("1", "https://tools.example.com/sse").await);
    assert!(!at("2", RESOURCE).await, "a proof for another address");
    assert!(
        !at("1", "https://tools.example.com/sse").await,
        "shown before"
    );
}

/// A caller who must not cause introspection is still admitted if none is necessary.
#[tokio::test]
async fn accepts_known_tokens_without_introspection() {
    let world = TestIssuer::new();
    active(&world, true);
    let server = with(&world, |_| {});
    let at = Url::parse(RESOURCE).unwrap();
    let unasked = |token: String| {
        let (server, at) = (&server, &at);
        async move {
            let shown = bearer(&token);
            let admitted = server
                .authenticate_at(at, &Method::POST, &shown, false)
                .await;
            admitted.map(|_| ())
        }
    };
    let signed = world.es.token(&TestIssuer::header(), &world.payload());
    assert_eq!(unasked(signed.clone()).await, Ok(()), "it is checked here");
    let wrong = unasked(format!("{signed}A")).await.unwrap_err();
    assert!(wrong.had_invalid_token() && wrong.status() == StatusCode::UNAUTHORIZED);
    let before = asked(&world);
    let refused = unasked("opaque-1".to_owned()).await.unwrap_err();
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(!refused.had_invalid_token() && refused.challenges().is_empty());
    assert_eq!(asked(&world), before, "nobody was asked");
    // The response of its issuer is cached.
    assert_eq!(status(&server, "opaque-1").await, 200);
    assert_eq!(unasked("opaque-1".to_owned()).await, Ok(()));
    // If the issuer introspects signed tokens too, they are treated like opaque ones.
    let all = world.issuer();
    let all = all.introspection(None, "gateway", Secret::new("s3cret of the gateway"));
    let server = world.server(all.introspect_signed_tokens());
    let shown = bearer(&signed);
    let refused = server
        .authenticate_at(&at, &Method::POST, &shown, false)
        .await;
    let status = refused.err().unwrap().status();
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn a_revoked_token_ends_its_streams() {
    let world = TestIssuer::new();
    let server = Arc::new(with(&world, |limits| {
        limits.introspection_lifetime = Duration::ZERO;
        limits.introspection_recheck = Duration::from_millis(10);
    }));
    active(&world, true);
    assert_eq!(status(&server, "opaque").await, 200);
    let mut withdrawn = server.revoked("opaque").unwrap();
    let mut ends = async |within: u64| {
        let limit = Duration::from_millis(within);
        tokio::time::timeout(limit, &mut withdrawn).await.is_ok()
    };
    assert!(!ends(200).await, "it is good");
    world.no_page("/introspect");
    assert!(!ends(200).await, "who cannot be asked withdraws nothing");
    active(&world, false);
    assert!(ends(60_000).await);
    // Locally verified tokens need no introspection.
    let signed = world.es.token(&TestIssuer::header(), &world.payload());
    assert!(server.revoked(&signed).is_none());
}
