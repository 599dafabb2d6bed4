//! Errors of a token endpoint: their messages, and the cached rejections.

use crate::test_servers::{CONFORMANT, ServerBehavior, TestServers, TestUser};
use http::{Method, Uri};
use std::sync::Arc;
use toolgate_auth::{
    Secret, Url,
    client::{
        AuthErrorKind, ClientAuthentication, CredentialProvider, CredentialRequest,
        CredentialStore, MemoryCredentialStore, OAuthClient, RegisteredClient, SignedOut,
        SubjectToken, TokenExchange, WorkloadIdentity,
    },
    jose::SigningKey,
};

fn of_workload(servers: &TestServers, workload: &WorkloadIdentity) -> OAuthClient {
    let client = RegisteredClient::new("me", ClientAuthentication::None);
    let login = OAuthClient::builder(servers.server()).client(None, client);
    login.workload(workload.clone()).build()
}

/// Holds: XAUTH-05.
#[tokio::test]
async fn a_refusal_without_a_person_is_not_tried_again_at_once() {
    let servers = TestServers::new(ServerBehavior {
        refuses: Some("invalid_grant"),
        ..CONFORMANT
    })
    .await;
    let workload = WorkloadIdentity::new(Secret::new("a.b.c"));
    let login = of_workload(&servers, &workload);
    for _ in 0..3 {
        let error = servers.call(&login, "tools/list").await.unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Refused);
    }
    let asked = servers.asked("/token");
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].field("assertion").as_deref(), Some("a.b.c"));
    // Nor later: who begins anew has waited long enough for anything but this.
    let error = servers
        .call(&of_workload(&servers, &workload), "tools/list")
        .await
        .unwrap_err();
    let said = error.to_string();
    assert!(
        said.contains("invalid_grant; the same assertion is not sent again"),
        "{said}"
    );
    assert_eq!(servers.asked("/token").len(), 1);
    // Another one is.
    servers.behavior(|behavior| behavior.refuses = None);
    let other = WorkloadIdentity::new(Secret::new("d.e.f"));
    servers
        .call(&of_workload(&servers, &other), "tools/list")
        .await
        .unwrap();
}

/// Holds: XAUTH-05.
#[tokio::test]
async fn what_an_assertion_may_not_ask_for_does_not_end_it() {
    let servers = TestServers::new(ServerBehavior {
        scope: Some("moon"),
        refuses: Some("invalid_scope"),
        ..CONFORMANT
    })
    .await;
    let workload = WorkloadIdentity::new(Secret::new("a.b.c"));
    for _ in 0..2 {
        let login = of_workload(&servers, &workload);
        servers.call(&login, "tools/list").await.unwrap_err();
    }
    assert_eq!(servers.asked("/token").len(), 1);
    servers.behavior(|behavior| (behavior.scope, behavior.refuses) = (None, None));
    let login = of_workload(&servers, &workload);
    servers.call(&login, "tools/list").await.unwrap();
}

/// Holds: XAUTH-05.
#[tokio::test]
async fn a_refusal_in_other_words_holds_for_a_while_and_so_does_a_pause() {
    for (status, kind) in [
        (401, AuthErrorKind::Refused),
        (403, AuthErrorKind::Refused),
        (404, AuthErrorKind::Refused),
        (429, AuthErrorKind::LimitReached),
    ] {
        let servers = TestServers::new(ServerBehavior {
            refuses_with: Some((status, "a proxy does not know you")),
            ..CONFORMANT
        })
        .await;
        let workload = WorkloadIdentity::new(Secret::new("a.b.c"));
        let login = of_workload(&servers, &workload);
        for _ in 0..3 {
            let error = servers.call(&login, "tools/list").await.unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
        }
        assert_eq!(servers.asked("/token").len(), 1, "{status}");
        // Without a word of the protocol it may have been somebody on the way: nothing is final.
        servers.behavior(|behavior| behavior.refuses_with = None);
        let again = of_workload(&servers, &workload);
        assert!(servers.call(&again, "tools/list").await.is_ok(), "{status}");
    }
}

/// Holds: AUTH-35.
#[tokio::test]
async fn what_was_sent_is_not_repeated_in_the_words_of_an_error() {
    let repeat = r#"{"error":"invalid_request","error_description":"you sent BODY"}"#;
    let check = async |login: &OAuthClient, servers: &TestServers, secrets: &[&str]| {
        let error = servers.call(login, "tools/list").await.unwrap_err();
        let said = error.to_string();
        assert!(
            said.contains("(HTTP 400): the message is not shown"),
            "{said}"
        );
        for secret in secrets {
            assert!(!said.contains(secret), "{said}");
        }
    };
    let servers = TestServers::new(ServerBehavior {
        refuses_with: Some((400, repeat)),
        ..CONFORMANT
    })
    .await;
    let builder = || OAuthClient::builder(servers.server());
    let person = builder().sign_in(TestUser(servers.clone())).build();
    check(&person, &servers, &["the-code"]).await;
    let assertion = "e.0123456789abcdef.signature";
    let workload = WorkloadIdentity::new(Secret::new(assertion));
    check(
        &of_workload(&servers, &workload),
        &servers,
        &["0123456789abcdef"],
    )
    .await;
    for authenticate in [
        ClientAuthentication::Post(Secret::new("a secret of ours")),
        ClientAuthentication::Key(Arc::new(SigningKey::generate().unwrap().0)),
    ] {
        servers.behavior(|behavior| {
            behavior.methods = Some(&["client_secret_post", "private_key_jwt"])
        });
        let client = RegisteredClient::new("me", authenticate);
        let login = builder().client(None, client).client_credentials().build();
        check(&login, &servers, &["a secret of ours", "eyJ"]).await;
    }
    // A renewal, and a sign-out.
    servers.behavior(|behavior| {
        (behavior.refuses_with, behavior.life, behavior.methods) = (None, 0, None)
    });
    let person = builder().sign_in(TestUser(servers.clone())).build();
    servers.call(&person, "tools/list").await.unwrap();
    servers.behavior(|behavior| behavior.refuses_with = Some((400, repeat)));
    check(&person, &servers, &["refresh-"]).await;
    // Words that repeat nothing are shown.
    let plain = r#"{"error":"invalid_request","error_description":"come on monday"}"#;
    servers.behavior(|behavior| behavior.refuses_with = Some((400, plain)));
    let error = servers.call(&person, "tools/list").await.unwrap_err();
    assert!(error.to_string().contains("come on monday"), "{error}");
    servers.behavior(|behavior| (behavior.takes_back, behavior.refuses_with) = (Some(400), None));
    let out = person.sign_out().await.unwrap();
    assert!(matches!(out, SignedOut::RevocationFailed(..)), "{out:?}");
}

/// Holds: AUTH-27.
#[tokio::test]
async fn an_exchange_names_the_server_by_its_address() {
    let servers = TestServers::new(CONFORMANT).await;
    let url = |path: &str| Url::parse(&format!("{}{path}", servers.origin())).unwrap();
    let client = || RegisteredClient::new("me", ClientAuthentication::None);
    for audience in [None, Some("far")] {
        let exchange = TokenExchange::new(url("/token"), client());
        let exchange = match audience {
            Some(audience) => exchange.audience(audience),
            None => exchange,
        };
        let token = Secret::new("the token of a caller");
        let subject = move || {
            Some(SubjectToken {
                token: token.clone(),
                expires_at: None,
            })
        };
        let caller = exchange.on_behalf(url("/mcp/?key=s3cret"), subject);
        let uri = Uri::from_static("http://127.0.0.1/mcp");
        let leaving = CredentialRequest::new(&Method::POST, &uri, None);
        // That servers gives a token without its kind.
        caller.headers(leaving).await.unwrap_err();
        let asked = servers.asked("/token").pop().unwrap();
        assert_eq!(
            asked.field("resource"),
            Some(format!("{}/mcp", servers.origin()))
        );
        assert_eq!(asked.field("audience").as_deref(), audience);
    }
}

/// Holds: XAUTH-01.
#[tokio::test]
async fn a_signature_is_sent_only_where_the_server_names_that_way() {
    for (methods, algorithms, lacks) in [
        (&["client_secret_basic"][..], None, Some("private_key_jwt")),
        (
            &["private_key_jwt"],
            Some(&["RS256"][..]),
            Some("private_key_jwt with ES256"),
        ),
        (&["private_key_jwt"], Some(&["RS256", "ES256"]), None),
        (&["private_key_jwt"], None, None),
    ] {
        let servers = TestServers::new(ServerBehavior {
            methods: Some(methods),
            algorithms,
            ..CONFORMANT
        })
        .await;
        let key = ClientAuthentication::Key(Arc::new(SigningKey::generate().unwrap().0));
        let login =
            OAuthClient::builder(servers.server()).client(None, RegisteredClient::new("me", key));
        let login = login.client_credentials().build();
        let called = servers.call(&login, "tools/list").await;
        match lacks {
            None => assert!(called.is_ok()),
            Some(what) => {
                let error = called.unwrap_err();
                assert_eq!(error.kind(), AuthErrorKind::Unsupported);
                let said = format!("does not list {what} among its client authentication methods");
                assert!(error.to_string().contains(&said), "{error}");
                assert!(servers.asked("/token").is_empty());
            }
        }
    }
}

/// Holds: XAUTH-03.
#[tokio::test]
async fn a_new_nonce_does_not_stand_in_the_way_of_a_new_token() {
    let servers = TestServers::new(ServerBehavior {
        bound: true,
        ..CONFORMANT
    })
    .await;
    let login = OAuthClient::builder(servers.server());
    let login = login
        .sign_in(TestUser(servers.clone()))
        .always_dpop()
        .build();
    servers.call(&login, "tools/list").await.unwrap();
    for renewals in 1..=3 {
        // Another nonce and no good token: first the one is told, then the other.
        servers.revoke();
        servers.call(&login, "tools/list").await.unwrap();
        assert_eq!(servers.asked("/token").len(), 1 + renewals);
    }
    assert_eq!(servers.visits().len(), 1);
}

/// Whatever a server wants, the store does not grow by it without end.
#[tokio::test]
async fn what_a_server_wants_is_remembered_up_to_a_bound() {
    let servers = TestServers::new(CONFORMANT).await;
    let store: Arc<dyn CredentialStore> = Arc::new(MemoryCredentialStore::new());
    let builder = || OAuthClient::builder(servers.server()).shared_store(store.clone());
    let person = builder().sign_in(TestUser(servers.clone())).build();
    person.sign_in().await.unwrap();
    let running = builder().build();
    for round in 0..5 {
        let words: Vec<String> = (0..40).map(|n| format!("r{round}w{n}")).collect();
        let words: &'static str = words.join(" ").leak();
        servers.behavior(|behavior| behavior.scope = Some(words));
        let error = servers.call(&running, "tools/call a").await.unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::NeedsSignIn);
    }
    let kept = store
        .grant(servers.server().as_str())
        .await
        .unwrap()
        .unwrap();
    let wanted = kept.demanded_scopes.to_string();
    assert_eq!(wanted.split(' ').count(), 64);
    assert!(wanted.contains("r0w39"), "what came first stays: {wanted}");
}

#[tokio::test]
async fn what_is_too_big_to_be_kept_is_given_back() {
    let folder = std::env::temp_dir().join(format!("toolgate-auth-big-{}", std::process::id()));
    let word = |n: usize| format!("{n:0>255}");
    let many: Vec<String> = (0..256).map(word).collect();
    let servers = TestServers::new(ServerBehavior {
        granted: Some(many.join(" ").leak()),
        takes_back: Some(200),
        ..CONFORMANT
    })
    .await;
    let store = toolgate_auth::client::FileCredentialStore::new(&folder);
    let login = OAuthClient::builder(servers.server()).store(store);
    let login = login.sign_in(TestUser(servers.clone())).build();
    let error = login.sign_in().await.map(drop).unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Store);
    assert!(
        error.for_operator().contains("the limit is 32768"),
        "{error}"
    );
    assert_eq!(servers.asked("/back").len(), 2);
    // A word that is none is left out, however long.
    servers.behavior(|behavior| behavior.granted = Some("x".repeat(900_000).leak()));
    assert!(login.sign_in().await.unwrap().scopes.is_empty());
    let _ = std::fs::remove_dir_all(&folder);
}
