//! Discovery of the authorization server of an MCP server.

use crate::test_servers::{CONFORMANT, ServerBehavior, TestServers, TestUser};
use http::StatusCode;
use toolgate_auth::client::{AuthErrorKind, OAuthClient};

fn login(servers: &TestServers) -> OAuthClient {
    let login = OAuthClient::builder(servers.server());
    login.sign_in(TestUser(servers.clone())).build()
}

/// Holds: AUTH-07, AUTH-09, AUTH-10, AUTH-11.
#[tokio::test]
async fn it_is_looked_for_at_each_place_until_it_is_there() {
    let at = |tenant: &'static str, metadata_at: &'static str| ServerBehavior {
        tenant,
        metadata_at: Some(metadata_at),
        // The metadata of the server is at its root.
        hint: Some("/.well-known/oauth-protected-resource"),
        ..CONFORMANT
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
                let servers = TestServers::new(at(tenant, places[count - 1])).await;
                let path_form = "/.well-known/oauth-protected-resource/mcp";
                servers.behavior(|behavior| {
                    let no = |path| (path, refusal, String::new(), "");
                    behavior.instead = vec![("/mcp", 401, String::new(), ""), no(path_form)];
                    behavior
                        .instead
                        .extend(places[..count - 1].iter().copied().map(no));
                });
                login(&servers).sign_in().await.unwrap();
                let looked: Vec<_> = servers
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
    let hint = |servers: &TestServers| {
        let at = format!("{}/elsewhere", servers.origin());
        format!("WWW-Authenticate: Bearer resource_metadata=\"{at}\"")
    };
    let servers = TestServers::new(ServerBehavior {
        hint: Some("/elsewhere"),
        tenant: "/t",
        ..CONFORMANT
    })
    .await;
    servers.behavior(|behavior| {
        let led = format!("Location: {}/mcp/", servers.origin());
        behavior.instead = vec![("/mcp", 307, led, ""), ("/mcp/", 401, hint(&servers), "")];
    });
    let grant = login(&servers).sign_in().await.unwrap();
    assert_eq!(grant.issuer, format!("{}/t", servers.origin()));
    // Elsewhere it is not followed, and the known places do.
    let other = TestServers::new(CONFORMANT).await;
    for (status, line) in [
        (307, format!("Location: {}/mcp", other.origin())),
        (308, "Location: /mcp".to_owned()),
        (503, String::new()),
        (200, "Transfer-Encoding: chunked".to_owned()),
    ] {
        let servers = TestServers::new(CONFORMANT).await;
        servers.behavior(|behavior| behavior.instead = vec![("/mcp", status, line, "")]);
        login(&servers).sign_in().await.unwrap();
    }
    assert!(other.paths().is_empty());
}

/// Holds: AUTH2-03.
#[tokio::test]
async fn a_server_of_2025_03_26_without_words_can_be_signed_in_to() {
    let servers = TestServers::new(ServerBehavior {
        silent: true,
        ..CONFORMANT
    })
    .await;
    let running = OAuthClient::builder(servers.server()).sign_in_hint("run: my-app login");
    let error = servers
        .call(&running.build(), "tools/list")
        .await
        .unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::NeedsSignIn);
    let said = error.to_string();
    for part in [
        "a user has to sign in at",
        "; run: my-app login",
        "if it does not use OAuth, configure its credentials as headers",
    ] {
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(
        servers.call(&login(&servers), "tools/list").await.unwrap(),
        StatusCode::OK
    );
}

#[tokio::test]
async fn a_server_that_names_nobody_is_told_who_mends_it() {
    let servers = TestServers::new(CONFORMANT).await;
    let body = format!("{{\"resource\":\"{}/mcp\"}}", servers.origin());
    let body: &'static str = body.leak();
    let path = "/.well-known/oauth-protected-resource/mcp";
    servers.behavior(|behavior| behavior.instead = vec![(path, 200, String::new(), body)]);
    let error = login(&servers).sign_in().await.map(drop).unwrap_err();
    let said = error.to_string();
    assert!(
        said.contains(&servers.origin())
            && said.contains("the operator of the server has to add one"),
        "{said}"
    );
}
