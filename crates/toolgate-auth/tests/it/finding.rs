//! Where the authorization server of a server is looked for.

use crate::world::{LONG, Person, Twist, World};
use http::StatusCode;
use toolgate_auth::client::{AuthErrorKind, OAuthClient};

fn login(world: &World) -> OAuthClient {
    let login = OAuthClient::builder(world.server());
    login.sign_in(Person(world.clone())).build()
}

/// Holds: AUTH-07, AUTH-09, AUTH-10, AUTH-11.
#[tokio::test]
async fn it_is_looked_for_at_each_place_until_it_is_there() {
    let at = |tenant: &'static str, metadata_at: &'static str| Twist {
        tenant,
        metadata_at: Some(metadata_at),
        // The metadata of the server is at its root.
        hint: Some("/.well-known/oauth-protected-resource"),
        ..LONG
    };
    let resource = "/.well-known/oauth-protected-resource";
    let oauth = "/.well-known/oauth-authorization-server";
    let oidc = "/.well-known/openid-configuration";
    for (tenant, places) in [
        ("", vec![oauth, oidc]),
        (
            "/t",
            vec![
                "/.well-known/oauth-authorization-server/t",
                "/.well-known/openid-configuration/t",
                "/t/.well-known/openid-configuration",
            ],
        ),
    ] {
        for count in 1..=places.len() {
            // Absent, and refused as some refuse all that they do not have.
            for refusal in [404, 403] {
                let world = World::new(at(tenant, places[count - 1])).await;
                let path_form = "/.well-known/oauth-protected-resource/mcp";
                world.twist(|twist| {
                    let no = |path| (path, refusal, String::new(), "");
                    twist.instead = vec![("/mcp", 401, String::new(), ""), no(path_form)];
                    twist
                        .instead
                        .extend(places[..count - 1].iter().copied().map(no));
                });
                login(&world).sign_in().await.unwrap();
                let looked: Vec<_> = world
                    .paths()
                    .into_iter()
                    .filter(|path| path.contains(".well-known"))
                    .collect();
                let expected = [&[path_form, resource][..], &places[..count]].concat();
                assert_eq!(looked, expected);
            }
        }
    }
}

/// As servers do whose routes end with a slash; and what is no answer is none.
#[tokio::test]
async fn a_sign_in_follows_the_server_within_its_origin() {
    let hint = |world: &World| {
        let at = format!("{}/elsewhere", world.origin());
        format!("WWW-Authenticate: Bearer resource_metadata=\"{at}\"")
    };
    let world = World::new(Twist {
        hint: Some("/elsewhere"),
        tenant: "/t",
        ..LONG
    })
    .await;
    world.twist(|twist| {
        let led = format!("Location: {}/mcp/", world.origin());
        twist.instead = vec![("/mcp", 307, led, ""), ("/mcp/", 401, hint(&world), "")];
    });
    let grant = login(&world).sign_in().await.unwrap();
    assert_eq!(grant.issuer, format!("{}/t", world.origin()));
    // Elsewhere it is not followed, and the known places do.
    let other = World::new(LONG).await;
    for (status, line) in [
        (307, format!("Location: {}/mcp", other.origin())),
        (308, "Location: /mcp".to_owned()),
        (503, String::new()),
        (200, "Transfer-Encoding: chunked".to_owned()),
    ] {
        let world = World::new(LONG).await;
        world.twist(|twist| twist.instead = vec![("/mcp", status, line, "")]);
        login(&world).sign_in().await.unwrap();
    }
    assert!(other.paths().is_empty());
}

/// Holds: AUTH2-03.
#[tokio::test]
async fn a_server_of_2025_03_26_without_words_can_be_signed_in_to() {
    let world = World::new(Twist {
        silent: true,
        ..LONG
    })
    .await;
    let running = OAuthClient::builder(world.server()).sign_in_hint("run: my-app login");
    let error = world
        .call(&running.build(), "tools/list")
        .await
        .unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::NeedsSignIn);
    let said = error.to_string();
    for part in [
        "a user has to sign in at",
        "; run: my-app login",
        "if it has no sign-in, configure its credentials as headers",
    ] {
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(
        world.call(&login(&world), "tools/list").await.unwrap(),
        StatusCode::OK
    );
}

#[tokio::test]
async fn a_server_that_names_nobody_is_told_who_mends_it() {
    let world = World::new(LONG).await;
    let body = format!("{{\"resource\":\"{}/mcp\"}}", world.origin());
    let body: &'static str = body.leak();
    let path = "/.well-known/oauth-protected-resource/mcp";
    world.twist(|twist| twist.instead = vec![(path, 200, String::new(), body)]);
    let error = login(&world).sign_in().await.map(drop).unwrap_err();
    let said = error.to_string();
    assert!(
        said.contains(&world.origin()) && said.contains("its operator has to add one"),
        "{said}"
    );
}
