//! A person who shows who it is.

use crate::test_servers::{ServerBehavior, TestServers, TestUser};
use toolgate_auth::{
    Secret, Url,
    client::{
        AuthError, AuthErrorKind, ClientAuthentication, RegisteredClient, ScopeSet,
        UserIdentification,
    },
};

const RESOURCE: &str = "https://tools.example.com/mcp";

async fn token(servers: &TestServers) -> Result<Secret, AuthError> {
    let url = |text: &str| Url::parse(text).unwrap();
    let client = RegisteredClient::new(
        "pages",
        ClientAuthentication::Secret(Secret::new("of-the-pages")),
    );
    UserIdentification::new(url(&servers.origin()), url(RESOURCE), client)
        .scopes(ScopeSet::parse("openid"))
        .token(&TestUser(servers.clone()))
        .await
}

/// Holds: AUTH-24, AUTH-27.
#[tokio::test]
async fn a_person_comes_back_with_a_token_for_the_resource() {
    let servers = TestServers::new(ServerBehavior::default()).await;
    assert!(token(&servers).await.unwrap().matches("access-0"));
    let page = servers.visits().pop().unwrap();
    let page = page.query().unwrap();
    for part in [
        "client_id=pages",
        "code_challenge_method=S256",
        "resource=https%3A%2F%2Ftools.example.com%2Fmcp",
        "scope=openid",
        "state=",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("offline_access"), "{page}");
    let asked = servers.asked("/token").pop().unwrap();
    assert_eq!(asked.field("resource").as_deref(), Some(RESOURCE));
    assert_eq!(asked.field("code").as_deref(), Some("the-code"));
    // Only the issuer is gone to, and nobody registers there.
    for path in [
        "/register",
        "/mcp",
        "/.well-known/oauth-protected-resource/mcp",
    ] {
        assert!(servers.asked(path).is_empty(), "{path}");
    }
}

/// Holds: AUTH-24, AUTH-25.
#[tokio::test]
async fn t35_an_answer_that_is_not_for_us_is_no_token() {
    type Change = fn(&mut ServerBehavior);
    let cases: [(Change, AuthErrorKind); 6] = [
        (
            |behavior| behavior.state = Some("x".to_owned()),
            AuthErrorKind::Unsafe,
        ),
        (
            |behavior| behavior.iss = Some("https://evil.test".to_owned()),
            AuthErrorKind::Unsafe,
        ),
        (|behavior| behavior.no_s256 = true, AuthErrorKind::Unsafe),
        (
            |behavior| behavior.issuer = Some("https://evil.test".to_owned()),
            AuthErrorKind::Unsafe,
        ),
        (
            |behavior| behavior.silent = true,
            AuthErrorKind::Unsupported,
        ),
        (
            |behavior| behavior.refuses = Some("invalid_grant"),
            AuthErrorKind::Refused,
        ),
    ];
    for (n, (change, kind)) in cases.into_iter().enumerate() {
        let mut behavior = ServerBehavior::default();
        change(&mut behavior);
        let servers = TestServers::new(behavior).await;
        assert_eq!(
            token(&servers).await.map(drop).unwrap_err().kind(),
            kind,
            "{n}"
        );
    }
}
