//! A login from the first refusal to the last renewal.

use crate::world::{LONG, Person, Twist, World};
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

fn login(world: &World) -> OAuthClient {
    OAuthClient::builder(world.server())
        .sign_in(Person(world.clone()))
        .build()
}

async fn refused(twist: Twist) -> (AuthErrorKind, World) {
    let world = World::new(twist).await;
    let error = world.call(&login(&world), "tools/list").await.unwrap_err();
    (error.kind(), world)
}

/// Holds: AUTH-04, AUTH-08, AUTH-22, AUTH-27, AUTH-29, AUTH-38, AUTH-45, AUTH-54.
#[tokio::test]
async fn a_refusal_leads_to_a_sign_in_and_a_token() {
    let world = World::new(LONG).await;
    let login = login(&world);
    assert!(login.credential().await.unwrap().is_none());
    assert_eq!(
        world.call(&login, "tools/list").await.unwrap(),
        StatusCode::OK
    );
    assert_eq!(
        world.call(&login, "tools/list").await.unwrap(),
        StatusCode::OK
    );
    let visits = world.visits();
    assert_eq!(visits.len(), 1);
    // Each request has the token in its header, and no URL has it.
    let shown = world.shown();
    let [first, second, third] = shown.as_slice() else {
        panic!("{shown:?}")
    };
    assert!(first.is_empty() && second == third, "{shown:?}");
    let bearer = second.strip_prefix("Bearer ").unwrap();
    let urls = visits.iter().map(|url| url.as_str().to_owned());
    for url in urls.chain(world.paths()) {
        assert!(
            !url.contains(bearer) && !url.contains("access_token="),
            "{url}"
        );
    }
    let token = &world.asked("/token")[0];
    let resource = format!("{}/mcp", world.origin());
    assert_eq!(token.field("resource").as_deref(), Some(resource.as_str()));
    assert_eq!(token.field("client_id").as_deref(), Some("id-of"));
    assert_eq!(
        token.field("code_verifier").map(|verifier| verifier.len()),
        Some(43)
    );
    let registered = &world.asked("/register")[0].body;
    for part in [
        "\"application_type\":\"native\"",
        "\"refresh_token\"",
        "127.0.0.1:1/callback",
    ] {
        assert!(registered.contains(part), "{registered}");
    }
    assert_eq!(
        login.credential().await.unwrap().unwrap().issuer,
        world.origin()
    );
}

/// Holds: AUTH-12, AUTH-24, AUTH-25, AUTH-27, AUTH-49, AUTH-54, AUTH-50.
#[tokio::test]
async fn t35_who_deceives_gets_no_code_and_no_token() {
    let other = "https://evil.test".to_owned();
    for (twist, visits) in [
        (
            Twist {
                resource: Some(format!("{other}/mcp")),
                ..LONG
            },
            0,
        ),
        (
            Twist {
                issuer: Some(other.clone()),
                ..LONG
            },
            0,
        ),
        (
            Twist {
                no_s256: true,
                ..LONG
            },
            0,
        ),
        (
            Twist {
                state: Some("guessed".to_owned()),
                ..LONG
            },
            1,
        ),
        (
            Twist {
                iss: Some(other.clone()),
                ..LONG
            },
            1,
        ),
        (
            Twist {
                says_iss: true,
                ..LONG
            },
            1,
        ),
    ] {
        let (kind, world) = refused(twist).await;
        assert_eq!(kind, AuthErrorKind::Unsafe);
        assert_eq!(world.visits().len(), visits);
        assert!(world.asked("/token").is_empty());
    }
}

/// Holds: AUTH-50
#[tokio::test]
async fn t36_a_code_does_not_follow_a_redirect() {
    let thief = World::new(LONG).await;
    let to = format!("{}/token", thief.origin());
    let (kind, world) = refused(Twist {
        token_leads_to: Some(to),
        ..LONG
    })
    .await;
    assert_eq!(kind, AuthErrorKind::Unreachable);
    assert_eq!(world.asked("/token").len(), 1);
    assert!(thief.asked("/token").is_empty());
    // Nor to another path of the same origin.
    let (_, world) = refused(Twist {
        token_leads_to: Some("/elsewhere".to_owned()),
        ..LONG
    })
    .await;
    assert!(world.asked("/elsewhere").is_empty());
}

/// Holds: AUTH-27, AUTH-35.
#[tokio::test]
async fn a_token_that_ends_is_renewed_once_for_all_who_wait() {
    let world = World::new(Twist { life: 0, ..LONG }).await;
    let login = login(&world);
    world.call(&login, "tools/list").await.unwrap();
    world.twist(|twist| twist.life = 3600);
    let calls = (0..20).map(|_| world.call(&login, "tools/list"));
    for status in join_all(calls).await {
        assert_eq!(status.unwrap(), StatusCode::OK);
    }
    let asked = world.asked("/token");
    // The code, a token that ended before it was used, and one renewal for twenty.
    assert_eq!(asked.len(), 3);
    assert_eq!(
        asked[2].field("refresh_token").as_deref(),
        Some("refresh-1")
    );
    let resource = format!("{}/mcp", world.origin());
    assert_eq!(asked[2].field("resource"), Some(resource));
    assert_eq!(world.visits().len(), 1);
    let kept = login.credential().await.unwrap().unwrap();
    assert!(
        kept.refresh_token.unwrap().matches("refresh-2"),
        "the new one replaces the old"
    );
}

/// Holds: AUTH-35.
#[tokio::test]
async fn without_a_refresh_token_a_person_signs_in_again() {
    let world = World::new(Twist {
        no_refresh: true,
        ..LONG
    })
    .await;
    let store: Arc<dyn CredentialStore> = Arc::new(MemoryCredentialStore::new());
    let builder = || OAuthClient::builder(world.server()).shared_store(store.clone());
    let login = builder().sign_in(Person(world.clone())).build();
    world.call(&login, "tools/list").await.unwrap();
    assert!(
        login
            .credential()
            .await
            .unwrap()
            .unwrap()
            .refresh_token
            .is_none()
    );
    world.revoke();
    world.call(&login, "tools/list").await.unwrap();
    assert_eq!(world.visits().len(), 2);
    world.revoke();
    // Where nobody is there, the words say so, and nothing is tried.
    let error = world.call(&builder().build(), "tools/list").await;
    assert_eq!(error.unwrap_err().kind(), AuthErrorKind::NeedsSignIn);
    let asked = world.asked("/token");
    assert!(asked.iter().all(|one| one.field("refresh_token").is_none()));
    assert_eq!(asked.len(), 2);
}

#[tokio::test]
async fn a_token_that_is_not_taken_is_asked_for_once() {
    for bound in [false, true] {
        let world = World::new(Twist {
            deaf: true,
            bound,
            ..LONG
        })
        .await;
        let error = world.call(&login(&world), "tools/list").await.unwrap_err();
        assert!(error.to_string().contains("rejects"), "{error}");
        assert_eq!(world.visits().len(), 1);
    }
}

#[tokio::test]
async fn a_token_that_ends_at_once_is_not_asked_for_again_and_again() {
    let world = World::new(Twist {
        life: 0,
        no_refresh: true,
        ..LONG
    })
    .await;
    let error = world.call(&login(&world), "tools/list").await.unwrap_err();
    assert!(error.to_string().contains("expired before"), "{error}");
    assert_eq!(world.visits().len(), 1);
}

#[tokio::test]
async fn a_renewal_goes_on_when_nobody_waits_for_it() {
    let world = World::new(Twist { life: 0, ..LONG }).await;
    let login = login(&world);
    world.call(&login, "tools/list").await.unwrap();
    world.twist(|twist| twist.life = 3600);
    let mut call = Box::pin(world.call(&login, "tools/list"));
    // Polled until the renewal has begun, and dropped.
    tokio::select! {
        biased;
        _ = &mut call => panic!("it cannot be there yet"),
        () = std::future::ready(()) => {}
    }
    drop(call);
    let renewed = async {
        while world.asked("/token").len() < 3 {
            tokio::task::yield_now().await;
        }
    };
    // A bound on a hang, not a measurement.
    tokio::time::timeout(Duration::from_secs(20), renewed)
        .await
        .expect("it goes on");
    world.call(&login, "tools/list").await.unwrap();
    assert_eq!((world.asked("/token").len(), world.visits().len()), (3, 1));
}

#[tokio::test]
async fn a_revoked_token_is_renewed_and_a_revoked_grant_needs_a_sign_in() {
    let world = World::new(LONG).await;
    let login = login(&world);
    world.call(&login, "tools/list").await.unwrap();
    world.revoke();
    assert_eq!(
        world.call(&login, "tools/list").await.unwrap(),
        StatusCode::OK
    );
    assert_eq!(world.visits().len(), 1);
    world.revoke();
    world.forget_refresh();
    assert_eq!(
        world.call(&login, "tools/list").await.unwrap(),
        StatusCode::OK
    );
    assert_eq!(world.visits().len(), 2);
}

/// Somebody else signed in there meanwhile, and came back to another address, as another client.
#[tokio::test]
async fn a_grant_is_renewed_by_the_client_that_it_was_given_to() {
    let world = World::new(LONG).await;
    let store = Arc::new(MemoryCredentialStore::new());
    let login = OAuthClient::builder(world.server())
        .shared_store(store.clone())
        .sign_in(Person(world.clone()))
        .build();
    world.call(&login, "tools/list").await.unwrap();
    let other = RegisteredClient::new("other", ClientAuthentication::None);
    let kept = store.put_client(&world.origin(), Some(other)).await;
    kept.unwrap();
    world.revoke();
    world.call(&login, "tools/list").await.unwrap();
    let last = world.asked("/token").pop().unwrap();
    let field = |key: &str| last.field(key).unwrap();
    assert_eq!(
        (field("grant_type"), field("client_id")),
        ("refresh_token".to_owned(), "id-of".to_owned())
    );
}

#[tokio::test]
async fn without_a_person_the_words_say_where_to_sign_in() {
    let world = World::new(LONG).await;
    let login = OAuthClient::builder(world.server()).build();
    let error = world.call(&login, "tools/list").await.unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::NeedsSignIn);
    assert!(error.to_string().contains(&world.origin()), "{error}");
}

/// Holds: AUTH-17, AUTH-18.
#[tokio::test]
async fn more_is_asked_for_a_few_times_and_old_scopes_stay() {
    let world = World::new(Twist {
        scope: Some("read"),
        ..LONG
    })
    .await;
    let login = login(&world);
    world.call(&login, "tools/list").await.unwrap();
    world.twist(|twist| twist.scope = Some("write"));
    world.call(&login, "tools/call a").await.unwrap();
    assert!(
        world.visits()[1].as_str().contains("scope=read+write"),
        "{:?}",
        world.visits()[1]
    );
    world.twist(|twist| twist.insatiable = true);
    let error = world.call(&login, "tools/call b").await.unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::LimitReached);
    assert_eq!(world.visits().len(), 4, "two more, and then no more");
    world.call(&login, "tools/call b").await.unwrap_err();
    assert_eq!(world.visits().len(), 4);
}

/// Holds: AUTH-13, AUTH-32, AUTH-47.
#[tokio::test]
async fn what_one_authorization_server_gave_is_never_sent_to_another() {
    let world = World::new(LONG).await;
    let store: Arc<dyn CredentialStore> = Arc::new(MemoryCredentialStore::new());
    let with_store = || {
        OAuthClient::builder(world.server())
            .shared_store(store.clone())
            .sign_in(Person(world.clone()))
    };
    let login = with_store().build();
    world.call(&login, "tools/list").await.unwrap();
    world.revoke();
    world.twist(|twist| twist.tenant = "/other");
    // Also where the server changed while we were gone.
    for login in [login, with_store().build()] {
        world.call(&login, "tools/list").await.unwrap();
        let grants: Vec<_> = world
            .asked("/token")
            .iter()
            .map(|one| one.field("grant_type").unwrap())
            .collect();
        assert!(
            !grants.iter().any(|grant| grant == "refresh_token"),
            "{grants:?}"
        );
    }
    let ids: Vec<_> = world
        .asked("/token")
        .iter()
        .map(|one| one.field("client_id").unwrap())
        .collect();
    assert_eq!(ids, ["id-of", "id-of-other"]);
    // Once the server named another one, it got nothing more of the first.
    let (first, other) = ("Bearer access-0", "Bearer access-other-1");
    assert_eq!(world.shown(), ["", first, first, other, other]);
    // And another server gets nothing of all this, though what it is granted is kept in the same place.
    let neighbour = World::new(LONG).await;
    neighbour.twist(|twist| twist.tenant = "/third");
    let login = OAuthClient::builder(neighbour.server()).shared_store(store.clone());
    let login = login.sign_in(Person(neighbour.clone())).build();
    neighbour.call(&login, "tools/list").await.unwrap();
    assert_eq!(neighbour.shown(), ["", "Bearer access-third-0"]);
}

#[tokio::test]
async fn a_refresh_token_is_not_sent_to_whom_the_server_names_later() {
    let world = World::new(Twist { life: 0, ..LONG }).await;
    let store: Arc<dyn CredentialStore> = Arc::new(MemoryCredentialStore::new());
    let login = || {
        let login = OAuthClient::builder(world.server()).shared_store(store.clone());
        // Known wherever the server leads to, so that nothing but the issuer stands in the way.
        let login = login.client(
            None,
            RegisteredClient::new("me", ClientAuthentication::None),
        );
        login.sign_in(Person(world.clone())).build()
    };
    world.call(&login(), "tools/list").await.unwrap();
    let before = world.asked("/token").len();
    world.revoke();
    world.twist(|twist| (twist.tenant, twist.life) = ("/other", 3600));
    world.call(&login(), "tools/list").await.unwrap();
    let after = world.asked("/token").split_off(before);
    let grants: Vec<_> = after
        .iter()
        .map(|one| one.field("grant_type").unwrap())
        .collect();
    assert_eq!(grants, ["authorization_code"]);
}

#[tokio::test]
async fn a_sign_out_in_another_process_ends_the_renewals() {
    let world = World::new(Twist { life: 0, ..LONG }).await;
    let store: Arc<dyn CredentialStore> = Arc::new(MemoryCredentialStore::new());
    let builder = || OAuthClient::builder(world.server()).shared_store(store.clone());
    builder()
        .sign_in(Person(world.clone()))
        .build()
        .sign_in()
        .await
        .unwrap();
    let running = builder().build();
    assert_eq!(
        world.call(&running, "tools/list").await.unwrap(),
        StatusCode::OK
    );
    let before = world.asked("/token").len();
    builder().build().sign_out().await.unwrap();
    let error = world.call(&running, "tools/list").await.unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::NeedsSignIn);
    assert_eq!(world.asked("/token").len(), before);
}

#[tokio::test]
async fn a_sign_out_gives_back_what_was_granted_and_forgets_it_in_any_case() {
    let signed_out = async |takes_back: Option<u16>| {
        let world = World::new(Twist { takes_back, ..LONG }).await;
        let login = login(&world);
        login.sign_in().await.unwrap();
        let out = login.sign_out().await.unwrap();
        assert!(login.credential().await.unwrap().is_none());
        let again = login.sign_out().await.unwrap();
        assert!(matches!(again, SignedOut::NotSignedIn), "{again:?}");
        (out, world)
    };
    let (out, world) = signed_out(Some(200)).await;
    assert!(
        matches!(&out, SignedOut::Revoked(issuer) if *issuer == world.origin()),
        "{out:?}"
    );
    let told = world.asked("/back");
    let tokens: Vec<_> = told.iter().filter_map(|one| one.field("token")).collect();
    assert_eq!(tokens, ["refresh-0", "access-0"]);
    assert!(
        told.iter()
            .all(|one| one.field("client_id").as_deref() == Some("id-of"))
    );
    let (out, world) = signed_out(None).await;
    assert!(matches!(out, SignedOut::Deleted(_)), "{out:?}");
    assert!(world.asked("/back").is_empty());
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
    let world = World::new(LONG).await;
    let store: Arc<dyn CredentialStore> = Arc::new(MemoryCredentialStore::new());
    let builder = || OAuthClient::builder(world.server()).shared_store(store.clone());
    let running = builder().sign_in_hint("run: my-app login").build();
    let error = world.call(&running, "tools/list").await.unwrap_err();
    assert!(
        error.to_string().ends_with("; run: my-app login"),
        "{error}"
    );
    let other = builder().sign_in(Person(world.clone())).build();
    assert_eq!(other.sign_in().await.unwrap().issuer, world.origin());
    assert_eq!(
        world.call(&running, "tools/list").await.unwrap(),
        StatusCode::OK
    );
}

#[tokio::test]
async fn what_another_process_renewed_is_renewed_by_its_own_token() {
    let world = World::new(Twist { life: 0, ..LONG }).await;
    let store: Arc<dyn CredentialStore> = Arc::new(MemoryCredentialStore::new());
    let person = || OAuthClient::builder(world.server()).shared_store(store.clone());
    let person = || person().sign_in(Person(world.clone())).build();
    let (first, second) = (person(), person());
    first.sign_in().await.unwrap();
    second.credential().await.unwrap();
    for login in [&first, &first, &second, &first, &second] {
        assert_eq!(
            world.call(login, "tools/list").await.unwrap(),
            StatusCode::OK
        );
    }
    assert_eq!(world.visits().len(), 1);
    let renewed = world.asked("/token").into_iter().skip(1);
    let shown: Vec<_> = renewed
        .filter_map(|one| one.field("refresh_token"))
        .collect();
    let expected: Vec<_> = (0..5).map(|n| format!("refresh-{n}")).collect();
    assert_eq!(shown, expected, "each of them once");
}

#[tokio::test]
async fn what_is_wanted_where_nobody_is_there_is_asked_for_at_the_next_sign_in() {
    let world = World::new(LONG).await;
    let store: Arc<dyn CredentialStore> = Arc::new(MemoryCredentialStore::new());
    let builder = || OAuthClient::builder(world.server()).shared_store(store.clone());
    let person = || builder().sign_in(Person(world.clone())).build();
    person().sign_in().await.unwrap();
    let running = builder().sign_in_hint("run: my-app login").build();
    world.call(&running, "tools/call a").await.unwrap();
    let wants = async |scope: &'static str| {
        world.twist(|twist| twist.scope = Some(scope));
        let error = world.call(&running, "tools/call a").await.unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::NeedsSignIn, "{error}");
        let end = format!(" again, to allow more: {scope}; run: my-app login");
        assert!(error.to_string().ends_with(&end), "{error}");
    };
    // However often somebody tries meanwhile.
    for _ in 0..5 {
        wants("write").await;
    }
    person().sign_in().await.unwrap();
    let asked = |at: usize| world.visits()[at].query().unwrap().to_owned();
    // The server asks as little as at first: what it wanted since was remembered.
    assert!(asked(1).contains("scope=write"), "{}", asked(1));
    assert_eq!(
        world.call(&running, "tools/call a").await.unwrap(),
        StatusCode::OK
    );
    // What the authorization server does not give is not asked for twice.
    wants("moon").await;
    world.twist(|twist| (twist.scope, twist.refuses) = (None, Some("invalid_scope")));
    assert!(person().sign_in().await.is_err());
    assert!(asked(2).contains("scope=moon+write"), "{}", asked(2));
    world.twist(|twist| twist.refuses = None);
    person().sign_in().await.unwrap();
    assert!(asked(3).contains("scope=write"), "{}", asked(3));
}

/// Holds: AUTH-48.
#[tokio::test]
async fn a_client_of_another_issuer_is_an_error() {
    let world = World::new(LONG).await;
    let client = RegisteredClient::new("me", ClientAuthentication::None);
    let login = OAuthClient::builder(world.server()).client(Some("https://as.test"), client);
    let login = login.sign_in(Person(world.clone())).build();
    let error = world.call(&login, "tools/list").await.unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Unsafe);
    assert!(world.visits().is_empty() && world.asked("/register").is_empty());
}

/// Holds: AUTH-46.
#[tokio::test]
async fn a_registration_that_is_refused_is_told_with_the_address_to_register() {
    let world = World::new(Twist {
        registers_not: Some("invalid_redirect_uri"),
        ..LONG
    })
    .await;
    let error = login(&world).sign_in().await.map(drop).unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Refused);
    let said = error.to_string();
    for part in [
        "refused to register this client (HTTP 400): invalid_redirect_uri",
        "with the redirect URI http://127.0.0.1:1/callback",
        "set its client_id",
    ] {
        assert!(said.contains(part), "{said}");
    }
    assert!(world.visits().is_empty() && world.asked("/token").is_empty());
    // Nothing of it is remembered: once the server takes it, it is asked again.
    world.twist(|twist| twist.registers_not = None);
    login(&world).sign_in().await.unwrap();
    assert_eq!(world.asked("/register").len(), 2);
}

/// Holds: AUTH-40.
#[tokio::test]
async fn a_document_that_cannot_be_our_id_is_an_error() {
    let world = World::new(LONG).await;
    world.twist(|twist| twist.takes_documents = true);
    let id_for = async |address: &str| {
        let document = Url::parse(address).unwrap();
        let login = OAuthClient::builder(world.server()).client_document(document);
        let login = login.sign_in(Person(world.clone())).build();
        let signed = login.sign_in().await.map(drop);
        let asked = world.asked("/token");
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
        assert!(error.to_string().contains("https and a path"), "{error}");
    }
    assert!(world.visits().is_empty() && world.asked("/register").is_empty());
    let good = "https://app.test/client.json";
    assert_eq!(id_for(good).await.unwrap(), good);
    assert!(world.asked("/register").is_empty());
}

/// Holds: AUTH2-02, AUTH2-03.
#[tokio::test]
async fn a_server_of_2025_03_26_is_its_own_authorization_server() {
    let world = World::new(Twist {
        silent: true,
        ..LONG
    })
    .await;
    assert_eq!(
        world.call(&login(&world), "tools/list").await.unwrap(),
        StatusCode::OK
    );
    assert!(
        world.visits()[0]
            .as_str()
            .starts_with(&format!("{}/authorize?", world.origin()))
    );
    let looked = &world.asked("/.well-known/oauth-authorization-server")[0];
    assert!(
        looked.head.contains("mcp-protocol-version:"),
        "{}",
        looked.head
    );
}
