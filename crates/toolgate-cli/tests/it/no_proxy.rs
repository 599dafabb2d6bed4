//! T32: nobody gets a code, a token or a client here: the gateway stands between no client and an authorization server.

use crate::help::{Response, Setup, send};
use serde_json::Value;

/// Well-known paths of an authorization server, and the usual paths of its endpoints.
const PLACES: [&str; 20] = [
    "/.well-known/oauth-authorization-server",
    "/.well-known/oauth-authorization-server/mcp",
    "/mcp/.well-known/oauth-authorization-server",
    "/.well-known/openid-configuration",
    "/.well-known/openid-configuration/mcp",
    "/mcp/.well-known/openid-configuration",
    "/.well-known/jwks.json",
    "/authorize",
    "/token",
    "/register",
    "/revoke",
    "/introspect",
    "/oauth/authorize",
    "/oauth/token",
    "/oauth/register",
    "/oauth2/authorize",
    "/callback",
    "/auth/callback",
    "/consent",
    "/login",
];

/// Parameters that an OAuth client would send there.
const FLOW: &str = "response_type=code&client_id=c&state=s&code_challenge_method=S256\
                    &code_challenge=0123456789012345678901234567890123456789012\
                    &redirect_uri=https%3A%2F%2Fevil.test%2Fcb&resource=https%3A%2F%2Ftools.test%2Fmcp";

fn leads_nowhere(response: &Response, what: &str) {
    assert_eq!(response.status, 404, "{what}: {response:?}");
    for name in ["location", "set-cookie"] {
        assert_eq!(response.header(name), None, "{what}");
    }
    for word in ["client_id", "access_token", "code=", "evil.test"] {
        assert!(!response.body.contains(word), "{what}: {}", response.body);
    }
}

#[test]
fn t32_nobody_gets_a_code_a_token_or_a_client_here() {
    let auth = "[auth]\nresource = \"https://tools.test/mcp\"\n[auth.issuer.corp]\nurl = \"https://login.test\"\n";
    let mut tried = 0;
    for auth in ["", "[auth]\nrequired = true\n", auth] {
        let gate = Setup::fast_demo(auth).start();
        let form = ["Content-Type: application/x-www-form-urlencoded".to_owned()];
        let json = ["Content-Type: application/json".to_owned()];
        for place in PLACES {
            let asked = format!("{place}?{FLOW}");
            let got = send(gate.port, "GET", &asked, &[], b"");
            leads_nowhere(&got, &asked);
            let code = format!("grant_type=authorization_code&code=x&{FLOW}");
            let got = send(gate.port, "POST", place, &form, code.as_bytes());
            leads_nowhere(&got, place);
            let client = b"{\"redirect_uris\": [\"https://evil.test/cb\"]}";
            let got = send(gate.port, "POST", place, &json, client);
            leads_nowhere(&got, place);
            tried += 3;
        }
        // Whoever asks whose tokens are taken is sent to the issuers of the config, never here.
        let metadata = send(
            gate.port,
            "GET",
            "/.well-known/oauth-protected-resource",
            &[],
            b"",
        );
        if !auth.contains("issuer") {
            assert_eq!(metadata.status, 404, "{metadata:?}");
            continue;
        }
        let metadata: Value = serde_json::from_str(&metadata.body).unwrap();
        let issuers = serde_json::json!(["https://login.test"]);
        assert_eq!(metadata["authorization_servers"], issuers, "{metadata}");
    }
    println!("T32: {tried} requests of 3 kinds with 3 configs, 0 codes, tokens or clients");
}
