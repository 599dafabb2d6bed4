//! A login from the first refusal to the last renewal.

use crate::test_servers::{CONFORMANT, ServerBehavior, TestServers, TestUser};
use futures_util::future::join_all;
use http::StatusCode;
use std::{sync::Arc, time::Duration};
use toolgate_auth::{
    Url,
    client::{
        AuthErrorKind, ClientAuthentication, CredentialStore, MemoryCredentialStore, OAuthClient,
        RegisteredClient, SignedOut,
    },
};

fn login(servers: &TestServers) -> OAuthClient {
    OAuthClient::builder(servers.server())
        .sign_in(TestUser(servers.clone()))
        .build()
}

async fn refused(behavior: ServerBehavior) -> (AuthErrorKind, TestServers) {
    let servers = TestServers::new(behavior).await;
    let error = servers
        .call(&login(&servers), "tools/list")
        .await
        .unwrap_err();
    (error.kind(), servers)
}

/// Holds: AUTH-04, AUTH-08, AUTH-22, AUTH-27, AUTH-29, AUTH-38, AUTH-45, AUTH-54.
#[tokio::test]
async fn a_refusal_leads_to_a_sign_in_and_a_token() {
    let servers = TestServers::new(CONFORMANT).await;
    let login = login(&servers);
    assert!(login.credential().await.unwrap().is_none());
    assert_eq!(
        servers.call(&login, "tools/list").await.unwrap(),
        StatusCode::OK
    );
    assert_eq!(
        servers.call(&login, "tools/list").await.unwrap(),
        StatusCode::OK
    );
    let visits = servers.visits();
    assert_eq!(visits.len(), 1);
    // Each request has the token in its header, and no URL has it.
    let shown = servers.shown();
    let [first, second, third] = shown.as_slice() else {
        panic!("{shown:?}")
    };
    assert!(first.is_empty() && second == third, "{shown:?}");
    let bearer = second.strip_prefix("Bearer ").unwrap();
    let urls = visits.iter().map(|url| url.as_str().to_owned());
    for url in urls.chain(servers.paths()) {
        assert!(
            !url.contains(bearer) && !url.contains("access_token="),
            "{url}"
        );
    }
    let token = &servers.asked("/token")[0];
    let resource = format!("{}/mcp", servers.origin());
    assert_eq!(token.field("resource").as_deref(), Some(resource.as_str()));
    assert_eq!(token.field("client_id").as_deref(), Some("id-of"));
    assert_eq!(
        token.field("code_verifier").map(|verifier| verifier.len()),
        Some(43)
    );
    let registered = &servers.asked("/register")[0].body;
    for part in [
        "\"application_type\":\"native\"",
        "\"refresh_token\"",
        "127.0.0.1:1/callback",
    ] {
        assert!(registered.contains(part), "{registered}");
    }
    assert_eq!(
        login.credential().await.unwrap().unwrap().issuer,
        servers.origin()
    );
}

/// Holds: AUTH-12, AUTH-24, AUTH-25, AUTH-27, AUTH-49, AUTH-54, AUTH-50.
#[tokio::test]
async fn t35_who_deceives_gets_no_code_and_no_token() {
    let other = "https://evil.test".to_owned();
    for (behavior, visits) in [
        (
            ServerBehavior {
                resource: Some(format!("{other}/mcp")),
                ..CONFORMANT
            },
            0,
        ),
        (
            ServerBehavior {
                issuer: Some(other.clone()),
                ..CONFORMANT
            },
            0,
        ),
        (
            ServerBehavior {
                no_s256: true,
                ..CONFORMANT
            },
            0,
        ),
        (
            ServerBehavior {
                state: Some("guessed".to_owned()),
                ..CONFORMANT
            },
            1,
        ),
        (
            ServerBehavior {
                iss: Some(other.clone()),
                ..CONFORMANT
            },
            1,
        ),
        (
            ServerBehavior {
                says_iss: true,
                ..CONFORMANT
            },
            1,
        ),
    ] {
        let (kind, servers) = refused(behavior).await;
        assert_eq!(kind, AuthErrorKind::Unsafe);
        assert_eq!(servers.visits().len(), visits);
        assert!(servers.asked("/token").is_empty());
    }
}

/// Holds: AUTH-50
#[tokio::test]
async fn t36_a_code_does_not_follow_a_redirect() {
    let thief = TestServers::new(CONFORMANT).await;
    let to = format!("{}/token", thief.origin());
    let (kind, servers) = refused(ServerBehavior {
        token_leads_to: Some(to),
        ..CONFORMANT
    })
    .await;
    assert_eq!(kind, AuthErrorKind::Unreachable);
    assert_eq!(servers.asked("/token").len(), 1);
    assert!(thief.asked("/token").is_empty());
    // Nor to another path of the same origin.
    let (_, servers) = refused(ServerBehavior {
        token_leads_to: Some("/elsewhere".to_owned()),
        ..CONFORMANT
    })
    .await;
    assert!(servers.asked("/elsewhere").is_empty());
}

/// Holds: AUTH-27, AUTH-35.
#[tokio::test]
async fn a_token_that_ends_is_renewed_once_for_all_who_wait() {
    let servers = TestServers::new(ServerBehavior {
        life: 0,
        ..CONFORMANT
    })
    .await;
    let login = login(&servers);
    servers.call(&login, "tools/list").await.unwrap();
    servers.behavior(|behavior| behavior.life = 3600);
    let calls = (0..20).map(|_| servers.call(&login, "tools/list"));
    for status in join_all(calls).await {
        assert_eq!(status.unwrap(), StatusCode::OK);
    }
    let asked = servers.asked("/token");
    // The code, a token that ended before it was used, and one renewal for twenty.
    assert_eq!(asked.len(), 3);
    assert_eq!(
        asked[2].field("refresh_token").as_deref(),
        Some("refresh-1")
    );
    let resource = format!("{}/mcp", servers.origin());
    assert_eq!(asked[2].field("resource"), Some(resource));
    assert_eq!(servers.visits().len(), 1);
    let kept = login.credential().await.unwrap().unwrap();
    assert!(
        kept.refresh_token.unwrap().matches("refresh-2"),
        "the new one replaces the old"
    );
}

/// Holds: AUTH-35.
#[tokio::test]
async fn without_a_refresh_token_a_person_signs_in_again() {
    let servers = TestServers::new(ServerBehavior {
        no_refresh: true,
        ..CONFORMANT
    })
    .await;
    let store: Arc<dyn CredentialStore> = Arc::new(MemoryCredentialStore::new());
    let builder = || OAuthClient::builder(servers.server()).shared_store(store.clone());
    let login = builder().sign_in(TestUser(servers.clone())).build();
    servers.call(&login, "tools/list").await.unwrap();
    assert!(
        login
            .credential()
            .await
            .unwrap()
            .unwrap()
            .refresh_token
            .is_none()
    );
    servers.revoke();
    servers.call(&login, "tools/list").await.unwrap();
    assert_eq!(servers.visits().len(), 2);
    servers.revoke();
    // Where nobody is there, the words say so, and nothing is tried.
    let error = servers.call(&builder().build(), "tools/list").await;
    assert_eq!(error.unwrap_err().kind(), AuthErrorKind::NeedsSignIn);
    let asked = servers.asked("/token");
    assert!(asked.iter().all(|one| one.field("refresh_token").is_none()));
    assert_eq!(asked.len(), 2);
}

#[tokio::test]
async fn a_token_that_is_not_taken_is_asked_for_once() {
    for bound in [false, true] {
        let servers = TestServers::new(ServerBehavior {
            deaf: true,
            bound,
            ..CONFORMANT
        })
        .await;
        let error = servers
            .call(&login(&servers), "tools/list")
            .await
            .unwrap_err();
        assert!(error.to_string().contains("rejected"), "{error}");
        assert_eq!(servers.visits().len(), 1);
    }
}

#[tokio::test]
async fn a_token_that_ends_at_once_is_not_asked_for_again_and_again() {
    let servers = TestServers::new(ServerBehavior {
        life: 0,
        no_refresh: true,
        ..CONFORMANT
    })
    .await;
    let error = servers
        .call(&login(&servers), "tools/list")
        .await
        .unwrap_err();
    assert!(error.to_string().contains("expired before"), "{error}");
    assert_eq!(servers.visits().len(), 1);
}

#[tokio::test]
async fn a_renewal_goes_on_when_nobody_waits_for_it() {
    let servers = TestServers::new(ServerBehavior {
        life: 0,
        ..CONFORMANT
    })
    .await;
    let login = login(&servers);
    servers.call(&login, "tools/list").await.unwrap();
    servers.behavior(|behavior| behavior.life = 3600);
    let mut call = Box::pin(servers.call(&login, "tools/list"));
    // Polled until the renewal has begun, and dropped.
    tokio::select! {
        biased;
        _ = &mut call => panic!("it cannot be there yet"),
        () = std::future::ready(()) => {}
    }
    drop(call);
    let renewed = async {
        while servers.asked("/token").len() < 3 {
            tokio::task::yield_now().await;
        }
    };
    // A bound on a hang, not a measurement.
    tokio::time::timeout(Duration::from_secs(20), renewed)
        .await
        .expect("it goes on");
    servers.call(&login, "tools/list").await.unwrap();
    assert_eq!(
        (servers.asked("/token").len(), servers.visits().len()),
        (3, 1)
    );
}

#[tokio::test]
async fn a_revoked_token_is_renewed_and_a_revoked_grant_needs_a_sign_in() {
    let servers = TestServers::new(CONFORMANT).await;
    let login = login(&servers);
    servers.call(&login, "tools/list").await.unwrap();
    servers.revoke();
    assert_eq!(
        servers.call(&login, "tools/list").await.unwrap(),
        StatusCode::OK
    );
    assert_eq!(servers.visits().len(), 1);
    servers.revoke();
    servers.forget_refresh();
    assert_eq!(
        servers.call(&login, "tools/list").await.unwrap(),
        StatusCode::OK
    );
    assert_eq!(servers.visits().len(), 2);
}

/// Somebody else signed in there meanwhile, and came back to another address, as another client.
#[tokio::test]
async fn a_grant_is_renewed_by_the_client_that_it_was_given_to() {
    let servers = TestServers::new(CONFORMANT).await;
    let store = Arc::new(MemoryCredentialStore::new());
    let login = OAuthClient::builder(servers.server())
        .shared_store(store.clone())
        .sign_in(TestUser(servers.clone()))
        .build();
    servers.call(&login, "tools/list").await.unwrap();
    let other = RegisteredClient::new("other", ClientAuthentication::None);
    let kept = store.put_client(&servers.origin(), Some(other)).await;
    kept.unwrap();
    servers.revoke();
    servers.call(&login, "tools/list").await.unwrap();
    let last = servers.asked("/token").pop().unwrap();
    let field = |key: &str| last.field(key).unwrap();
    assert_eq!(
        (field("grant_type"), field("client_id")),
        ("refresh_token".to_owned(), "id-of".to_owned())
    );
}

#[tokio::test]
async fn without_a_person_the_words_say_where_to_sign_in() {
    let servers = TestServers::new(CONFORMANT).await;
    let login = OAuthClient::builder(servers.server()).build();
    let error = servers.call(&login, "tools/list").await.unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::NeedsSignIn);
    assert!(error.to_string().contains(&servers.origin()), "{error}");
}

/// Holds: AUTH-17, AUTH-18.
#[tokio::test]
async fn more_is_asked_for_a_few_times_and_old_scopes_stay() {
    let servers = TestServers::new(ServerBehavior {
        scope: Some("read"),
        ..CONFORMANT
    })
    .await;
    let login = login(&servers);
    servers.call(&login, "tools/list").await.unwrap();
    servers.behavior(|behavior| behavior.scope = Some("write"));
    servers.call(&login, "tools/call a").await.unwrap();
    assert!(
        servers.visits()[1].as_str().contains("scope=read+write"),
        "{:?}",
        servers.visits()[1]
    );
    servers.behavior(|behavior| behavior.insatiable = true);
    let error = servers.call(&login, "tools/call b").await.unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::LimitReached);
    assert_eq!(servers.visits().len(), 4, "two more, and then no more");
    servers.call(&login, "tools/call b").await.unwrap_err();
    assert_eq!(servers.visits().len(), 4);
}

/// Holds: AUTH-13, AUTH-32, AUTH-47.
#[tokio::test]
async fn what_one_authorization_server_gave_is_never_sent_to_another() {
    let servers = TestServers::new(CONFORMANT).await;
    let store: Arc<dyn CredentialStore> = Arc::new(MemoryCredentialStore::new());
    let with_store = || {
        OAuthClient::builder(servers.server())
            .shared_store(store.clone())
            .sign_in(TestUser(servers.clone()))
    };
    let login = with_store().build();
    servers.call(&login, "tools/list").await.unwrap();
    servers.revoke();
    servers.behavior(|behavior| behavior.tenant = "/other");
    // Also where the server changed while we were gone.
    for login in [login, with_store().build()] {
        servers.call(&login, "tools/list").await.unwrap();
        let grants: Vec<_> = servers
            .asked("/token")
            .iter()
            .map(|one| one.field("grant_type").unwrap())
            .collect();
        assert!(
            !grants.iter().any(|grant| grant == "refresh_token"),
            "{grants:?}"
        );
    }
    let ids: Vec<_> = servers
        .asked("/token")
        .iter()
        .map(|one| one.field("client_id").unwrap())
        .collect();
    assert_eq!(ids, ["id-of", "id-of-other"]);
    // Once the server named another one, it got nothing more of the first.
    let (first, other) = ("Bearer access-0", "Bearer access-other-1");
    assert_eq!(servers.shown(), ["", first, first, other, other]);
    // And another server gets nothing of all this, though what it is granted is kept in the same place.
    let neighbour = TestServers::new(CONFORMANT).await;
    neighbour.behavior(|behavior| behavior.tenant = "/third");
    let login = OAuthClient::builder(neighbour.server()).shared_store(store.clone());
    let login = login.sign_in(TestUser(neighbour.clone())).build();
    neighbour.call(&login, "tools/list").await.unwrap();
    assert_eq!(neighbour.shown(), ["", "Bearer access-third-0"]);
}

#[tokio::test]
async fn a_refresh_token_is_not_sent_to_whom_the_server_names_later() {
    let servers = TestServers::new(ServerBehavior {
        life: 0,
        ..CONFORMANT
    })
    .await;
    let store: Arc<dyn CredentialStore> = Arc::new(MemoryCredentialStore::new());
    let login = || {
        let login = OAuthClient::builder(servers.server()).shared_store(store.clone());
        // Known wherever the server leads to, so that nothing but the issuer stands in the way.
        let login = login.client(
            None,
            RegisteredClient::new("me", ClientAuthentication::None),
        );
        login.sign_in(TestUser(servers.clone())).build()
    };
    servers.call(&login(), "tools/list").await.unwrap();
    let before = servers.asked("/token").len();
    servers.revoke();
    servers.behavior(|behavior| (behavior.tenant, behavior.life) = ("/other", 3600));
    servers.call(&login(), "tools/list").await.unwrap();
    let after = servers.asked("/token").split_off(before);
    let grants: Vec<_> = after
        .iter()
        .map(|one| one.field("grant_type").unwrap())
        .collect();
    assert_eq!(grants, ["authorization_code"]);
}

#[tokio::test]
async fn a_sign_out_in_another_process_ends_the_renewals() {
    let servers = TestServers::new(ServerBehavior {
        life: 0,
        ..CONFORMANT
    })
    .await;
    let store: Arc<dyn CredentialStore> = Arc::new(MemoryCredentialStore::new());
    let builder = || OAuthClient::builder(servers.server()).shared_store(store.clone());
    builder()
        .sign_in(TestUser(servers.clone()))
        .build()
        .sign_in()
        .await
        .unwrap();
    let running = builder().build();
    assert_eq!(
        servers.call(&running, "tools/list").await.unwrap(),
        StatusCode::OK
    );
    let before = servers.asked("/token").len();
    builder().build().sign_out().await.unwrap();
    let error = servers.call(&running, "tools/list").await.unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::NeedsSignIn);
    assert_eq!(servers.asked("/token").len(), before);
}

#[tokio::test]
async fn a_sign_out_gives_back_what_was_granted_and_forgets_it_in_any_case() {
    let signed_out = async |takes_back: Option<u16>| {
        let servers = TestServers::new(ServerBehavior {
            takes_back,
            ..CONFORMANT
        })
        .await;
        let login = login(&servers);
        login.sign_in().await.unwrap();
        let out = login.sign_out().await.unwrap();
        assert!(login.credential().await.unwrap().is_none());
        let again = login.sign_out().await.unwrap();
        assert!(matches!(again, SignedOut::NotSignedIn), "{again:?}");
        (out, servers)
    };
    let (out, servers) = signed_out(Some(200)).await;
    assert!(
        matches!(&out, SignedOut::Revoked(issuer) if *issuer == servers.origin()),
        "{out:?}"
    );
    let told = servers.asked("/back");
    let tokens: Vec<_> = told.iter().filter_map(|one| one.field("token")).collect();
    assert_eq!(tokens, ["refresh-0", "access-0"]);
    assert!(
        told.iter()
            .all(|one| one.field("client_id").as_deref() == Some("id-of"))
    );
    let (out, servers) = signed_out(None).await;
    assert!(matches!(out, SignedOut::Deleted(_)), "{out:?}");
    assert!(servers.asked("/back").is_empty());
    let (out, _) = signed_out(Some(503)).await;
    let SignedOut::RevocationFailed(_, error) = out else {
        panic!("{out:?}");
    };
    assert!(
        error.to_string().contains("refused the request (HTTP 503)"),
        "{error}"
    );
}

#[tokio::test]
async fn a_sign_in_of_another_process_is_used() {
    let servers = TestServers::new(CONFORMANT).await;
    let store: Arc<dyn CredentialStore> = Arc::new(MemoryCredentialStore::new());
    let builder = || OAuthClient::builder(servers.server()).shared_store(store.clone());
    let running = builder().sign_in_hint("run: my-app login").build();
    let error = servers.call(&running, "tools/list").await.unwrap_err();
    assert!(
        error.to_string().ends_with("; run: my-app login"),
        "{error}"
    );
    let other = builder().sign_in(TestUser(servers.clone())).build();
    assert_eq!(other.sign_in().await.unwrap().issuer, servers.origin());
    assert_eq!(
        servers.call(&running, "tools/list").await.unwrap(),
        StatusCode::OK
    );
}

#[tokio::test]
async fn what_another_process_renewed_is_renewed_by_its_own_token() {
    let servers = TestServers::new(ServerBehavior {
        life: 0,
        ..CONFORMANT
    })
    .await;
    let store: Arc<dyn CredentialStore> = Arc::new(MemoryCredentialStore::new());
    let person = || OAuthClient::builder(servers.server()).shared_store(store.clone());
    let person = || person().sign_in(TestUser(servers.clone())).build();
    let (first, second) = (person(), person());
    first.sign_in().await.unwrap();
    second.credential().await.unwrap();
    for login in [&first, &first, &second, &first, &second] {
        assert_eq!(
            servers.call(login, "tools/list").await.unwrap(),
            StatusCode::OK
        );
    }
    assert_eq!(servers.visits().len(), 1);
    let renewed = servers.asked("/token").into_iter().skip(1);
    let shown: Vec<_> = renewed
        .filter_map(|one| one.field("refresh_token"))
        .collect();
    let expected: Vec<_> = (0..5).map(|n| format!("refresh-{n}")).collect();
    assert_eq!(shown, expected, "each of them once");
}

#[tokio::test]
async fn what_is_wanted_where_nobody_is_there_is_asked_for_at_the_next_sign_in() {
    let servers = TestServers::new(CONFORMANT).await;
    let store: Arc<dyn CredentialStore> = Arc::new(MemoryCredentialStore::new());
    let builder = || OAuthClient::builder(servers.server()).shared_store(store.clone());
    let person = || builder().sign_in(TestUser(servers.clone())).build();
    person().sign_in().await.unwrap();
    let running = builder().sign_in_hint("run: my-app login").build();
    servers.call(&running, "tools/call a").await.unwrap();
    let wants = async |scope: &'static str| {
        servers.behavior(|behavior| behavior.scope = Some(scope));
        let error = servers.call(&running, "tools/call a").await.unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::NeedsSignIn, "{error}");
        let end = format!(" again, to allow more: {scope}; run: my-app login");
        assert!(error.to_string().ends_with(&end), "{error}");
    };
    // However often somebody tries meanwhile.
    for _ in 0..5 {
        wants("write").await;
    }
    person().sign_in().await.unwrap();
    let asked = |at: usize| servers.visits()[at].query().unwrap().to_owned();
    // The server asks as little as at first: what it wanted since was remembered.
    assert!(asked(1).contains("scope=write"), "{}", asked(1));
    assert_eq!(
        servers.call(&running, "tools/call a").await.unwrap(),
        StatusCode::OK
    );
    // What the authorization server does not give is not asked for twice.
    wants("moon").await;
    servers.behavior(|behavior| (behavior.scope, behavior.refuses) = (None, Some("invalid_scope")));
    assert!(person().sign_in().await.is_err());
    assert!(asked(2).contains("scope=moon+write"), "{}", asked(2));
    servers.behavior(|behavior| behavior.refuses = None);
    person().sign_in().await.unwrap();
    assert!(asked(3).contains("scope=write"), "{}", asked(3));
}

/// Holds: AUTH-48.
#[tokio::test]
async fn a_client_of_another_issuer_is_an_error() {
    let servers = TestServers::new(CONFORMANT).await;
    let client = RegisteredClient::new("me", ClientAuthentication::None);
    let login = OAuthClient::builder(servers.server()).client(Some("https://as.test"), client);
    let login = login.sign_in(TestUser(servers.clone())).build();
    let error = servers.call(&login, "tools/list").await.unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Unsafe);
    assert!(servers.visits().is_empty() && servers.asked("/register").is_empty());
}

/// Holds: AUTH-46.
#[tokio::test]
async fn a_registration_that_is_refused_is_told_with_the_address_to_register() {
    let servers = TestServers::new(ServerBehavior {
        registers_not: Some("invalid_redirect_uri"),
        ..CONFORMANT
    })
    .await;
    let error = login(&servers).sign_in().await.map(drop).unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Refused);
    let said = error.to_string();
    for part in [
        "refused to register this client (HTTP 400): invalid_redirect_uri",
        "with the redirect URI http://127.0.0.1:1/callback",
        "set its client_id",
    ] {
        assert!(said.contains(part), "{said}");
    }
    assert!(servers.visits().is_empty() && servers.asked("/token").is_empty());
    // Nothing of it is remembered: once the server takes it, it is asked again.
    servers.behavior(|behavior| behavior.registers_not = None);
    login(&servers).sign_in().await.unwrap();
    assert_eq!(servers.asked("/register").len(), 2);
}

/// Holds: AUTH-40.
#[tokio::test]
async fn a_document_that_cannot_be_our_id_is_an_error() {
    let servers = TestServers::new(CONFORMANT).await;
    servers.behavior(|behavior| behavior.takes_documents = true);
    let id_for = async |address: &str| {
        let document = Url::parse(address).unwrap();
        let login = OAuthClient::builder(servers.server()).client_document(document);
        let login = login.sign_in(TestUser(servers.clone())).build();
        let signed = login.sign_in().await.map(drop);
        let asked = servers.asked("/token");
        signed.map(|()| asked.last().unwrap().field("client_id").unwrap())
    };
    for wrong in [
        "http://127.0.0.1:1/client.json",
        "https://app.test",
        "https://app.test/",
        "https://app.test/?client.json",
    ] {
        let error = id_for(wrong).await.unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Unsafe, "{wrong}");
        assert!(
            error.to_string().contains("must use https and have a path"),
            "{error}"
        );
    }
    assert!(servers.visits().is_empty() && servers.asked("/register").is_empty());
    let good = "https://app.test/client.json";
    assert_eq!(id_for(good).await.unwrap(), good);
    assert!(servers.asked("/register").is_empty());
}

/// Holds: AUTH2-02, AUTH2-03.
#[tokio::test]
async fn a_server_of_2025_03_26_is_its_own_authorization_server() {
    let servers = TestServers::new(ServerBehavior {
        silent: true,
        ..CONFORMANT
    })
    .await;
    assert_eq!(
        servers.call(&login(&servers), "tools/list").await.unwrap(),
        StatusCode::OK
    );
    assert!(
        servers.visits()[0]
            .as_str()
            .starts_with(&format!("{}/authorize?", servers.origin()))
    );
    let looked = &servers.asked("/.well-known/oauth-authorization-server")[0];
    assert!(
        looked.head.contains("mcp-protocol-version:"),
        "{}",
        looked.head
    );
}
