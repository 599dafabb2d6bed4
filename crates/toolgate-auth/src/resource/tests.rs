#![allow(clippy::print_stdout, reason = "figures of the tests")]

use super::{
    DpopVerifier, ResourceLimits, ResourceServer, TokenRejection, TrustedIssuer, VerifiedToken,
};
use crate::{Secret, Url, jose::encode};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use ring::{
    digest::{SHA256, digest},
    hmac,
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair},
};
use serde_json::{Value, json};
use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, UNIX_EPOCH},
};

mod asking;
mod away;
mod moved;

const RESOURCE: &str = "https://tools.example.com/mcp";

/// Signing key of one of two algorithms.
enum TestSigner {
    Es256(EcdsaKeyPair),
    EdDsa(Ed25519KeyPair),
}

impl TestSigner {
    fn es256() -> TestSigner {
        let (rng, alg) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(alg, &rng).unwrap();
        TestSigner::Es256(EcdsaKeyPair::from_pkcs8(alg, pkcs8.as_ref(), &rng).unwrap())
    }

    fn eddsa() -> TestSigner {
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        TestSigner::EdDsa(Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap())
    }

    fn jwk(&self) -> Value {
        match self {
            TestSigner::Es256(pair) => {
                let point = pair.public_key().as_ref();
                json!({"kty": "EC", "crv": "P-256", "x": encode(&point[1..33]), "y": encode(&point[33..])})
            }
            TestSigner::EdDsa(pair) => {
                json!({"kty": "OKP", "crv": "Ed25519", "x": encode(pair.public_key().as_ref())})
            }
        }
    }

    fn sign(&self, text: &str) -> String {
        match self {
            TestSigner::Es256(pair) => {
                let signature = pair.sign(&SystemRandom::new(), text.as_bytes()).unwrap();
                encode(signature.as_ref())
            }
            TestSigner::EdDsa(pair) => encode(pair.sign(text.as_bytes()).as_ref()),
        }
    }

    fn token(&self, header: &Value, payload: &Value) -> String {
        self.token_of(&header.to_string(), &payload.to_string())
    }

    fn token_of(&self, header: &str, payload: &str) -> String {
        let text = format!("{}.{}", encode(header), encode(payload));
        format!("{text}.{}", self.sign(&text))
    }
}

/// Test issuer: serves configured pages and counts requests.
struct TestIssuer {
    url: String,
    told: Arc<TestIssuerState>,
    es: TestSigner,
    ed: TestSigner,
}

#[derive(Default)]
struct TestIssuerState {
    /// Response per path: a document, or a status code.
    pages: Mutex<Vec<(String, Value)>>,
    asked: AtomicUsize,
    /// Head and body of the last request.
    last: Mutex<String>,
    /// Path that gets no response for now.
    held: Mutex<String>,
    freed: Condvar,
}

impl TestIssuerState {
    fn answer(&self, mut stream: TcpStream) {
        let mut bytes = [0; 65536];
        let mut all = String::new();
        while let Ok(read @ 1..) = stream.read(&mut bytes) {
            all.push_str(&String::from_utf8_lossy(&bytes[..read]));
            let head = all.to_ascii_lowercase();
            let length = head.split_once("content-length:").map_or(0, |(_, rest)| {
                let line = rest.lines().next().unwrap();
                line.trim().parse().unwrap()
            });
            if all
                .find("\r\n\r\n")
                .is_some_and(|at| all.len() >= at + 4 + length)
            {
                break;
            }
        }
        let path = all.split(' ').nth(1).unwrap_or_default().to_owned();
        *self.last.lock().unwrap() = all;
        self.asked.fetch_add(1, SeqCst);
        let held = self.held.lock().unwrap();
        drop(self.freed.wait_while(held, |held| *held == path).unwrap());
        let pages: Vec<(String, Value)> = self.pages.lock().unwrap().clone();
        let page = pages.iter().find(|(known, _)| *known == path);
        let (status, body) = match page {
            Some((_, Value::Number(status))) => (status.to_string(), "{}".to_owned()),
            Some((_, body)) => ("200".to_owned(), body.to_string()),
            None => ("404".to_owned(), "{}".to_owned()),
        };
        let answer = format!(
            "HTTP/1.1 {status} So\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        let _ = stream.write_all(answer.as_bytes());
    }
}

impl TestIssuer {
    fn new() -> TestIssuer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let told = Arc::new(TestIssuerState::default());
        let all = told.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (told, stream) = (all.clone(), stream.unwrap());
                std::thread::spawn(move || told.answer(stream));
            }
        });
        let world = TestIssuer {
            url,
            told,
            es: TestSigner::es256(),
            ed: TestSigner::eddsa(),
        };
        let metadata = json!({"issuer": world.url, "jwks_uri": format!("{}/keys", world.url),
            "introspection_endpoint": format!("{}/introspect", world.url)});
        world.page("/.well-known/oauth-authorization-server", metadata);
        world.page("/keys", world.keys());
        world
    }

    fn page(&self, path: &str, body: Value) {
        self.no_page(path);
        let mut pages = self.told.pages.lock().unwrap();
        pages.push((path.to_owned(), body));
    }

    fn no_page(&self, path: &str) {
        let mut pages = self.told.pages.lock().unwrap();
        pages.retain(|(known, _)| known != path);
    }

    /// Withholds responses at a path until another path is set.
    fn hold(&self, path: &str) {
        path.clone_into(&mut self.told.held.lock().unwrap());
        self.told.freed.notify_all();
    }

    fn keys(&self) -> Value {
        let with = |signer: &TestSigner, id: &str| {
            let mut jwk = signer.jwk();
            jwk["kid"] = json!(id);
            jwk
        };
        json!({"keys": [with(&self.es, "es"), with(&self.ed, "ed"),
            {"kty": "oct", "kid": "secret", "k": "c2VjcmV0"}, {"kty": "RSA"}]})
    }

    fn issuer(&self) -> TrustedIssuer {
        TrustedIssuer::new("corp", Url::parse(&self.url).unwrap())
    }

    fn server(&self, issuer: TrustedIssuer) -> ResourceServer {
        ResourceServer::new(Url::parse(RESOURCE).unwrap()).issuer(issuer)
    }

    fn payload(&self) -> Value {
        let now = super::now();
        json!({"iss": self.url, "sub": "alice", "aud": RESOURCE, "exp": now + 300, "iat": now,
            "client_id": "agent", "scope": "files:read files:write"})
    }

    fn header() -> Value {
        json!({"alg": "ES256", "typ": "at+jwt", "kid": "es"})
    }
}

fn bearer(token: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let value = HeaderValue::from_str(&format!("Bearer {token}")).unwrap();
    headers.insert(header::AUTHORIZATION, value);
    headers
}

async fn admit(server: &ResourceServer, token: &str) -> Result<VerifiedToken, TokenRejection> {
    server.authenticate(&Method::POST, &bearer(token)).await
}

/// Holds: AUTH-30, AUTH-31
#[tokio::test]
async fn a_valid_token_yields_its_caller_and_claims() {
    let world = TestIssuer::new();
    let server = world.server(world.issuer());
    let mut payload = world.payload();
    payload["aud"] = json!(["https://other.example.com", RESOURCE]);
    payload["act"] = json!({"sub": "agent-2", "act": {"sub": "agent-1"}});
    let token = world.es.token(&TestIssuer::header(), &payload);
    let admitted = admit(&server, &token)
        .await
        .unwrap_or_else(|r| panic!("{r:?}"));
    assert_eq!(admitted.caller.name(), "corp:alice");
    let principal = admitted.caller.principal().unwrap();
    assert_eq!(principal.issuer, world.url);
    assert_eq!(principal.subject, "alice");
    assert_eq!(principal.client.as_deref(), Some("agent"));
    assert_eq!(principal.scopes, ["files:read", "files:write"]);
    assert_eq!(principal.actors, ["agent-2", "agent-1"]);
    assert!(admitted.expires_at.is_some());
    assert!(!format!("{:?}", admitted.caller).contains(&token));
    // The other algorithm, without a type, and without a key id.
    let token = world.ed.token(&json!({"alg": "EdDSA"}), &world.payload());
    assert!(admit(&server, &token).await.is_ok());
}

/// Returns invalid tokens: each differs from a valid one in one detail.
fn wrong_tokens(world: &TestIssuer) -> Vec<(String, String)> {
    let (now, header) = (super::now(), TestIssuer::header());
    let good = world.es.token(&header, &world.payload());
    let mut wrong: Vec<(String, String)> = Vec::new();
    let mut claim = |key: &str, value: Value| {
        let mut payload = world.payload();
        payload[key] = value;
        let token = world.es.token(&header, &payload);
        wrong.push((format!("claim {key}: {}", payload[key]), token));
    };
    for aud in [
        json!(null),
        json!(""),
        json!("https://tools.example.com"),
        json!("https://tools.example.com/mcp/"),
        json!("https://TOOLS.example.com/mcp"),
        json!("http://tools.example.com/mcp"),
        json!("https://tools.example.com/mcp2"),
        json!(["https://other.example.com"]),
        json!([]),
        json!({"aud": RESOURCE}),
        json!("*"),
    ] {
        claim("aud", aud);
    }
    for iss in [
        json!(null),
        json!(""),
        json!(format!("{}/", world.url)),
        json!(world.url.to_uppercase()),
        json!("https://login.example.com"),
        json!([world.url]),
    ] {
        claim("iss", iss);
    }
    for exp in [
        json!(null),
        json!(0),
        json!(now - 61),
        json!(-1),
        json!("4102444800"),
        json!(1e30),
        json!([4102444800_u64]),
        json!(true),
    ] {
        claim("exp", exp);
    }
    for key in ["nbf", "iat"] {
        claim(key, json!(now + 120));
        claim(key, json!("soon"));
    }
    for sub in [
        json!(null),
        json!(""),
        json!(7),
        json!("a\nb"),
        json!("a\u{0}"),
        json!(" alice"),
        json!("client=ci"),
        json!("a".repeat(256)),
    ] {
        claim("sub", sub);
    }
    claim("scope", json!("a\"b"));
    claim("act", json!({"name": "x"}));
    claim("cnf", json!({"x5t#S256": "abc"}));
    claim("cnf", json!({"jkt": "abc"}));
    let mut deep = json!({"sub": "a"});
    for _ in 0..9 {
        deep = json!({"sub": "a", "act": deep});
    }
    claim("act", deep);

    let mut head = |header: Value| {
        let token = world.es.token(&header, &world.payload());
        wrong.push((format!("header {header}"), token));
    };
    for alg in [
        "none", "None", "NONE", "nOnE", "", "HS256", "HS384", "HS512", "RS256", "PS256", "ES384",
        "ES512", "EdDSA", "es256", "ES256 ", "ES256K", "RSA1_5", "dir",
    ] {
        head(json!({"alg": alg, "typ": "at+jwt", "kid": "es"}));
    }
    for typ in [
        "dpop+jwt",
        "JWE",
        "id_token",
        "oauth-id-jag+jwt",
        "logout+jwt",
        "at+jwt ",
    ] {
        head(json!({"alg": "ES256", "typ": typ, "kid": "es"}));
    }
    for kid in [
        json!("ed"),
        json!("nobody"),
        json!("../../keys"),
        json!("es' OR '1'='1"),
        json!("/dev/null"),
        json!(""),
        json!("secret"),
    ] {
        head(json!({"alg": "ES256", "typ": "at+jwt", "kid": kid}));
    }
    head(json!({"alg": "ES256", "kid": "es", "crit": ["exp"]}));
    head(json!({"alg": "ES256", "kid": "es", "b64": false}));
    head(json!({"typ": "at+jwt", "kid": "es"}));
    head(json!({"alg": ["ES256"], "kid": "es"}));
    head(json!(["ES256"]));

    // A key that the token embeds or links to is not trusted.
    let mallory = TestSigner::es256();
    let jwk = mallory.jwk();
    for header in [
        json!({"alg": "ES256", "typ": "at+jwt", "kid": "es"}),
        json!({"alg": "ES256", "typ": "at+jwt", "jwk": jwk}),
        json!({"alg": "ES256", "typ": "at+jwt", "kid": "es", "jku": format!("{}/mallory", world.url)}),
        json!({"alg": "ES256", "typ": "at+jwt", "kid": "es", "x5u": format!("{}/mallory", world.url)}),
    ] {
        let token = mallory.token(&header, &world.payload());
        wrong.push((format!("signed by another: {header}"), token));
    }
    // A public key used as a shared secret (algorithm confusion).
    let point = world.es.jwk().to_string();
    for secret in [point.as_bytes(), b"secret", b""] {
        let text = format!(
            "{}.{}",
            encode(json!({"alg": "HS256", "typ": "at+jwt", "kid": "es"}).to_string()),
            encode(world.payload().to_string())
        );
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), text.as_bytes());
        wrong.push((
            "HS256".to_owned(),
            format!("{text}.{}", encode(tag.as_ref())),
        ));
    }
    // Malformed serialization.
    let parts: Vec<&str> = good.split('.').collect();
    let (h, p, s) = (parts[0], parts[1], parts[2]);
    let other = encode(
        json!({"iss": world.url, "sub": "admin", "aud": RESOURCE, "exp": now + 300}).to_string(),
    );
    let twice = format!(
        "{{\"iss\":{0:?},\"sub\":\"alice\",\"sub\":\"admin\",\"aud\":{RESOURCE:?},\"exp\":{1}}}",
        world.url,
        now + 300
    );
    for (what, token) in [
        ("no signature", format!("{h}.{p}.")),
        ("two parts", format!("{h}.{p}")),
        ("one more dot", format!("{good}.")),
        ("a dot in front", format!(".{good}")),
        ("four parts", format!("{good}.{s}")),
        ("five parts", format!("{h}.{p}.{s}.{p}.{s}")),
        ("another payload", format!("{h}.{other}.{s}")),
        ("padding", format!("{good}=")),
        ("a cut signature", good[..good.len() - 2].to_owned()),
        ("no payload", format!("{h}..{s}")),
        (
            "twice the same name",
            world.es.token_of(&header.to_string(), &twice),
        ),
        (
            "a mark in front",
            world
                .es
                .token_of(&format!("\u{feff}{header}"), &world.payload().to_string()),
        ),
        (
            "a text",
            world.es.token_of(&header.to_string(), "\"alice\""),
        ),
        ("too long", format!("{good}{}", "A".repeat(20_000))),
        ("all zeros", format!("{h}.{p}.{}", encode([0; 64]))),
        ("something else", "opaque-token-of-nobody".to_owned()),
    ] {
        wrong.push((what.to_owned(), token));
    }
    wrong
}

/// Holds: AUTH-05, AUTH-06, AUTH-30, AUTH-31, AUTH-33, AUTH-34, SEC-01
#[tokio::test]
async fn t30_a_wrong_token_is_refused_with_the_same_words() {
    let world = TestIssuer::new();
    // Every unknown key causes a fetch; otherwise the signature could not be called invalid.
    let limits = ResourceLimits {
        min_fetch_interval: Duration::ZERO,
        ..ResourceLimits::default()
    };
    let server = world.server(world.issuer()).limits(limits);
    let good = world.es.token(&TestIssuer::header(), &world.payload());
    assert!(admit(&server, &good).await.is_ok());
    let wrong = wrong_tokens(&world);
    let metadata = "https://tools.example.com/.well-known/oauth-protected-resource/mcp";
    let challenge = format!("Bearer resource_metadata=\"{metadata}\", error=\"invalid_token\"");
    let mut told = Vec::new();
    for (what, token) in &wrong {
        let Err(refused) = admit(&server, token).await else {
            panic!("{what} was taken");
        };
        assert_eq!(refused.status(), StatusCode::UNAUTHORIZED, "{what}");
        assert_eq!(
            refused.challenges(),
            std::slice::from_ref(&challenge),
            "{what}"
        );
        told.push(refused.message());
        assert!(!refused.reason().contains("alice"), "{what}");
    }
    told.dedup();
    assert_eq!(told.len(), 1, "constant words");
    assert!(admit(&server, &good).await.is_ok());
    println!("T30: {} wrong tokens refused, 0 taken", wrong.len());
}

#[tokio::test]
async fn missing_tokens_get_a_challenge() {
    let world = TestIssuer::new();
    let server = world
        .server(world.issuer())
        .scopes(["a".to_owned(), "b".to_owned()]);
    let good = world.es.token(&TestIssuer::header(), &world.payload());
    let with = |values: &[String]| {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        }
        headers
    };
    for values in [vec![], vec!["Basic dTpw".to_owned()], vec![good.clone()]] {
        let refused = server.authenticate(&Method::POST, &with(&values)).await;
        let refused = refused.err().unwrap();
        assert!(!refused.had_invalid_token());
        assert_eq!(
            refused.challenges(),
            [
                "Bearer resource_metadata=\"https://tools.example.com/.well-known/oauth-protected-resource/mcp\", scope=\"a b\""
            ]
        );
    }
    for form in ["bearer", "BEARER  ", "Bearer   "] {
        let form = with(&[format!("{form} {good}")]);
        assert!(server.authenticate(&Method::POST, &form).await.is_ok());
    }
}

/// Malformed credentials are not an invalid token: another token would not help (RFC 6750 s. 3.1).
///
/// Holds: AUTH-34
#[tokio::test]
async fn malformed_credentials_are_a_bad_request() {
    let world = TestIssuer::new();
    let server = world.server(world.issuer());
    let good = world.es.token(&TestIssuer::header(), &world.payload());
    let one = |text: String| vec![text.into_bytes()];
    for values in [
        vec![format!("Bearer {good}").into_bytes(); 2],
        vec![
            b"Basic dTpw".to_vec(),
            format!("Bearer {good}").into_bytes(),
        ],
        one("Bearer".to_owned()),
        one("Bearer  ".to_owned()),
        one("DPoP".to_owned()),
        one(String::new()),
        one(format!("Bearer {good} {good}")),
        one(format!("Bearer {good}, Bearer {good}")),
        one(format!("Bearer {good}\u{e9}")),
        vec![b"Bearer \xff".to_vec()],
    ] {
        let mut headers = HeaderMap::new();
        for value in &values {
            headers.append(
                header::AUTHORIZATION,
                HeaderValue::from_bytes(value).unwrap(),
            );
        }
        let refused = server
            .authenticate(&Method::POST, &headers)
            .await
            .err()
            .unwrap();
        assert_eq!(refused.status(), StatusCode::BAD_REQUEST, "{values:?}");
        assert!(refused.had_invalid_token(), "it counts as a wrong one");
        assert_eq!(
            refused.challenges(),
            [
                "Bearer resource_metadata=\"https://tools.example.com/.well-known/oauth-protected-resource/mcp\", error=\"invalid_request\""
            ]
        );
    }
}

/// The tolerated clock skew extends the authentication too: an accepted token does not end its own calls.
#[tokio::test]
async fn authentication_lasts_as_long_as_the_token_is_accepted() {
    let world = TestIssuer::new();
    let server = world.server(world.issuer());
    let mut payload = world.payload();
    let end = super::now() - 30;
    payload["exp"] = json!(end);
    let token = world.es.token(&TestIssuer::header(), &payload);
    let admitted = admit(&server, &token)
        .await
        .unwrap_or_else(|r| panic!("{r:?}"));
    let until = admitted
        .expires_at
        .unwrap()
        .duration_since(UNIX_EPOCH)
        .unwrap();
    assert_eq!(until.as_secs(), end + 60);
}

/// Holds: AUTH-03
#[tokio::test]
async fn the_metadata_names_the_resource_and_its_issuers() {
    let world = TestIssuer::new();
    let server = world
        .server(world.issuer())
        .scopes(["b".to_owned(), "a".to_owned()]);
    let document: Value = serde_json::from_str(&server.metadata()).unwrap();
    assert_eq!(document["resource"], RESOURCE);
    assert_eq!(document["authorization_servers"], json!([world.url]));
    assert_eq!(document["scopes_supported"], json!(["a", "b"]));
    assert_eq!(document["bearer_methods_supported"], json!(["header"]));
    assert!(server.is_metadata_path("/.well-known/oauth-protected-resource/mcp"));
    assert!(server.is_metadata_path("/.well-known/oauth-protected-resource"));
    assert!(!server.is_metadata_path("/.well-known/oauth-protected-resource/other"));
}

#[tokio::test]
async fn an_unknown_key_causes_one_fetch() {
    let world = TestIssuer::new();
    let server = world.server(world.issuer());
    let good = world.es.token(&TestIssuer::header(), &world.payload());
    assert!(admit(&server, &good).await.is_ok());
    let before = world.told.asked.load(SeqCst);
    for n in 0..200 {
        let header = json!({"alg": "ES256", "kid": format!("k{n}")});
        let token = world.es.token(&header, &world.payload());
        assert!(admit(&server, &token).await.is_err());
    }
    assert_eq!(world.told.asked.load(SeqCst), before, "within the floor");
    assert!(admit(&server, &good).await.is_ok());
}

#[tokio::test]
async fn an_unreachable_issuer_yields_unavailable_not_invalid() {
    let world = TestIssuer::new();
    for (path, body) in [
        (
            "/.well-known/oauth-authorization-server",
            json!({"issuer": "https://other.example.com", "jwks_uri": format!("{}/keys", world.url)}),
        ),
        ("/keys", json!({"keys": "none"})),
    ] {
        let pages = world.told.pages.lock().unwrap().clone();
        world.page(path, body);
        let server = world.server(world.issuer());
        let good = world.es.token(&TestIssuer::header(), &world.payload());
        let refused = admit(&server, &good).await.err().unwrap();
        *world.told.pages.lock().unwrap() = pages;
        assert_eq!(
            refused.status(),
            StatusCode::SERVICE_UNAVAILABLE,
            "{path}: {refused:?}"
        );
    }
}

fn introspecting(world: &TestIssuer) -> ResourceServer {
    let secret = Secret::new("s3cret of the gateway");
    world.server(world.issuer().introspection(None, "gate way", secret))
}

#[tokio::test]
async fn introspects_an_opaque_token() {
    let world = TestIssuer::new();
    let server = introspecting(&world);
    let active =
        json!({"active": true, "sub": "bob", "aud": RESOURCE, "scope": "x", "client_id": "c"});
    world.page("/introspect", active.clone());
    let admitted = admit(&server, "opaque-1")
        .await
        .unwrap_or_else(|r| panic!("{r:?}"));
    assert_eq!(admitted.caller.name(), "corp:bob");
    let asked = world.told.last.lock().unwrap().clone();
    assert!(
        asked.contains("token=opaque-1")
            && asked.contains("Z2F0ZSt3YXk6czNjcmV0K29mK3RoZStnYXRld2F5"),
        "{asked}"
    );
    // The introspection response is cached for a moment.
    let before = world.told.asked.load(SeqCst);
    assert!(admit(&server, "opaque-1").await.is_ok());
    assert_eq!(world.told.asked.load(SeqCst), before);
    for (n, change) in [
        json!({"active": false}),
        json!({"active": "true"}),
        json!({"active": null}),
        json!({"aud": "https://other.example.com"}),
        json!({"aud": null}),
        json!({"exp": 1}),
        json!({"iss": "https://other.example.com"}),
        json!({"sub": "client=c"}),
    ]
    .into_iter()
    .enumerate()
    {
        let mut said = active.clone();
        for (key, value) in change.as_object().unwrap() {
            said[key] = value.clone();
        }
        world.page("/introspect", said);
        let refused = admit(&server, &format!("opaque-wrong-{n}")).await;
        assert_eq!(
            refused.err().unwrap().status(),
            StatusCode::UNAUTHORIZED,
            "{change}"
        );
    }
    // A revoked signed token.
    world.page("/introspect", json!({"active": false}));
    let signed = world.es.token(&TestIssuer::header(), &world.payload());
    assert!(admit(&server, &signed).await.is_ok(), "nobody was asked");
    let secret = Secret::new("s3cret of the gateway");
    let all = world.issuer().introspection(None, "gate way", secret);
    let all = world.server(all.introspect_signed_tokens());
    assert!(admit(&all, &signed).await.is_err());
    // Without a response nobody is admitted, and the token is not blamed.
    world.no_page("/introspect");
    let refused = admit(&server, "opaque-9").await.err().unwrap();
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
}

struct TestProof<'a> {
    world: &'a TestIssuer,
    key: TestSigner,
    token: String,
}

impl TestProof<'_> {
    fn new(world: &TestIssuer) -> TestProof<'_> {
        let mut proof = TestProof {
            world,
            key: TestSigner::es256(),
            token: String::new(),
        };
        proof.token = proof.bound_token(RESOURCE);
        proof
    }

    /// A token for that audience, bound to the key.
    fn bound_token(&self, audience: &str) -> String {
        let jwk = self.key.jwk();
        let thumb = format!(
            "{{\"crv\":\"P-256\",\"kty\":\"EC\",\"x\":{},\"y\":{}}}",
            jwk["x"], jwk["y"]
        );
        let mut payload = self.world.payload();
        payload["aud"] = json!(audience);
        payload["cnf"] = json!({"jkt": encode(digest(&SHA256, thumb.as_bytes()).as_ref())});
        self.world.es.token(&TestIssuer::header(), &payload)
    }

    fn header(&self) -> Value {
        json!({"typ": "dpop+jwt", "alg": "ES256", "jwk": self.key.jwk()})
    }

    fn payload(&self, id: &str) -> Value {
        let ath = encode(digest(&SHA256, self.token.as_bytes()).as_ref());
        json!({"jti": id, "htm": "POST", "htu": RESOURCE, "iat": super::now(), "ath": ath})
    }

    fn headers(&self, proof: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let value = HeaderValue::from_str(&format!("DPoP {}", self.token)).unwrap();
        headers.insert(header::AUTHORIZATION, value);
        headers.insert("dpop", HeaderValue::from_str(proof).unwrap());
        headers
    }

    async fn shown(
        &self,
        server: &ResourceServer,
        header: &Value,
        payload: &Value,
    ) -> Result<(), TokenRejection> {
        let proof = self.key.token(header, payload);
        let admitted = server
            .authenticate(&Method::POST, &self.headers(&proof))
            .await;
        admitted.map(|_| ())
    }
}

/// Holds: XAUTH-04
#[tokio::test]
async fn a_bound_token_needs_a_proof_of_the_same_request() {
    let world = TestIssuer::new();
    let server = world.server(world.issuer());
    let proof = TestProof::new(&world);
    let header = proof.header();
    assert_eq!(
        proof.shown(&server, &header, &proof.payload("1")).await,
        Ok(())
    );
    let again = proof.shown(&server, &header, &proof.payload("1")).await;
    assert_eq!(
        again.unwrap_err().reason(),
        "the DPoP proof was used before; create a new one for each request"
    );
    let with = |key: &str, value: Value| {
        let mut payload = proof.payload(&format!("{key}{value}"));
        payload[key] = value;
        payload
    };
    let now = super::now();
    for fresh in [now - 290, now + 290] {
        let payload = with("iat", json!(fresh));
        assert_eq!(proof.shown(&server, &header, &payload).await, Ok(()));
    }
    for wrong in [
        with("htm", json!("GET")),
        with("htm", json!("post")),
        with("htu", json!("https://tools.example.com/other")),
        with("htu", json!("https://other.example.com/mcp")),
        with("htu", json!("http://tools.example.com/mcp")),
        with("htu", json!(null)),
        with("iat", json!(now - 301)),
        with("iat", json!(now + 302)),
        with("iat", json!("now")),
        with("ath", json!("")),
        with("ath", json!(encode([0; 32]))),
        with("jti", json!("")),
        with("jti", json!(null)),
    ] {
        let refused = proof.shown(&server, &header, &wrong).await.unwrap_err();
        assert_eq!(refused.status(), StatusCode::UNAUTHORIZED, "{wrong}");
        assert!(
            refused.challenges()[0].starts_with("DPoP ")
                && refused.challenges()[0].contains("invalid_dpop_proof")
        );
    }
    let mut private = proof.key.jwk();
    private["d"] = json!("AAAA");
    for wrong in [
        json!({"typ": "at+jwt", "alg": "ES256", "jwk": proof.key.jwk()}),
        json!({"typ": "dpop+jwt", "alg": "none", "jwk": proof.key.jwk()}),
        json!({"typ": "dpop+jwt", "alg": "HS256", "jwk": proof.key.jwk()}),
        json!({"typ": "dpop+jwt", "alg": "ES256"}),
        json!({"typ": "dpop+jwt", "alg": "ES256", "jwk": world.es.jwk()}),
        json!({"typ": "dpop+jwt", "alg": "ES256", "jwk": private}),
    ] {
        assert!(
            proof
                .shown(&server, &wrong, &proof.payload("h"))
                .await
                .is_err(),
            "{wrong}"
        );
    }
    // A valid proof does not admit a token for another audience.
    let mut other = TestProof::new(&world);
    assert_eq!(
        other
            .shown(&server, &other.header(), &other.payload("here"))
            .await,
        Ok(())
    );
    for audience in ["https://other.example.com/mcp", "https://tools.example.com"] {
        other.token = other.bound_token(audience);
        let payload = other.payload(audience);
        let shown = other.shown(&server, &other.header(), &payload).await;
        let refused = shown.unwrap_err();
        assert_eq!(refused.status(), StatusCode::UNAUTHORIZED, "{audience}");
    }
    // A stolen token with a proof of another key.
    let mallory = TestProof {
        key: TestSigner::es256(),
        token: proof.token.clone(),
        world: &world,
    };
    let stolen = mallory
        .shown(&server, &mallory.header(), &mallory.payload("m"))
        .await;
    assert_eq!(
        stolen.unwrap_err().reason(),
        "the DPoP proof is signed with another key than the one that the token is bound to"
    );
    // A bound token needs a proof, and a proof does not bind an unbound token.
    assert!(admit(&server, &proof.token).await.is_err());
    let free = world.es.token(&TestIssuer::header(), &world.payload());
    let unbound = TestProof {
        key: TestSigner::es256(),
        token: free.clone(),
        world: &world,
    };
    assert!(
        unbound
            .shown(&server, &unbound.header(), &unbound.payload("u"))
            .await
            .is_err()
    );
    let strict = world.server(world.issuer().require_dpop());
    // A client without a token, with an unbound one, or with an invalid one is told that tokens must be bound.
    for (shown, error) in [
        (HeaderMap::new(), ""),
        (bearer(&free), ", error=\"invalid_token\""),
        (bearer("x"), ", error=\"invalid_token\""),
    ] {
        let refused = strict
            .authenticate(&Method::POST, &shown)
            .await
            .err()
            .unwrap();
        let wanted = format!(
            "DPoP algs=\"ES256 EdDSA PS256 RS256\", resource_metadata=\"https://tools.example.com/.well-known/oauth-protected-resource/mcp\"{error}"
        );
        assert_eq!(refused.challenges(), [wanted]);
    }
    assert!(
        strict
            .insufficient_scope_challenge(&["a".to_owned()])
            .starts_with("DPoP ")
    );
    // If another issuer does not require binding, both challenges are sent, for clients that know one of them.
    let other = Url::parse("https://other.example.com").unwrap();
    let both = world.server(world.issuer().require_dpop());
    let both = both.issuer(TrustedIssuer::new("other", other));
    let refused = both.authenticate(&Method::POST, &HeaderMap::new()).await;
    let refused = refused.err().unwrap();
    let schemes = refused.challenges().iter();
    let schemes: Vec<_> = schemes.map(|c| c.split(' ').next().unwrap()).collect();
    assert_eq!(schemes, ["Bearer", "DPoP"]);
    let unbound = both.authenticate(&Method::POST, &bearer(&free)).await;
    assert!(unbound.err().unwrap().challenges()[0].starts_with("DPoP "));
    assert_eq!(
        proof.shown(&strict, &header, &proof.payload("s")).await,
        Ok(())
    );
    let _ = proof.world;
}

/// Holds: XAUTH-04
#[tokio::test]
async fn a_proof_needs_a_server_nonce_if_configured() {
    let world = TestIssuer::new();
    let server = world
        .server(world.issuer())
        .proofs(DpopVerifier::with_nonces().unwrap());
    let proof = TestProof::new(&world);
    let refused = proof
        .shown(&server, &proof.header(), &proof.payload("1"))
        .await
        .unwrap_err();
    assert!(refused.challenges()[0].contains("use_dpop_nonce") && !refused.had_invalid_token());
    let nonce = refused.nonce().unwrap().to_owned();
    let mut payload = proof.payload("2");
    payload["nonce"] = json!(format!("{nonce}x"));
    assert!(
        proof
            .shown(&server, &proof.header(), &payload)
            .await
            .is_err()
    );
    payload["nonce"] = json!(nonce);
    assert_eq!(
        proof.shown(&server, &proof.header(), &payload).await,
        Ok(())
    );
}
