//! Targets of `toolgate-auth`: tokens, metadata and headers.

use crate::protocol::read;
use http::{HeaderMap, HeaderValue, header};
use toolgate_auth::{
    __fuzz, Secret, Url,
    client::{self, OAuthCredential, RegisteredClient, ScopeSet},
    resource::RequestCredentials,
};
use toolgate_protocol::json::{Json, JsonLimits};

/// Server whose documents are read.
const SERVER: &str = "https://mcp.example/mcp";

/// URL reader: a parsed URL is parsed to itself. The second line is a reference to resolve.
pub fn url(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (base, reference) = text.split_once('\n').unwrap_or((&text, ""));
    let Ok(url) = Url::parse(base) else {
        return;
    };
    let again = Url::parse(url.as_str());
    assert!(
        again.is_ok_and(|again| again.as_str() == url.as_str()),
        "{url:?} is not stable"
    );
    assert!(!url.host().is_empty());
    if let Ok(resolved) = url.resolve(reference) {
        assert!(
            Url::parse(resolved.as_str()).is_ok(),
            "{resolved:?} is not a URL"
        );
    }
}

fn headers(name: header::HeaderName, lines: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in lines.split(|byte| *byte == b'\n') {
        if let Ok(value) = HeaderValue::from_bytes(line) {
            headers.append(name.clone(), value);
        }
    }
    headers
}

/// Parser of `WWW-Authenticate`, one line for each header.
pub fn challenge(bytes: &[u8]) {
    for challenge in client::parse_challenges(&headers(header::WWW_AUTHENTICATE, bytes)) {
        for name in ["resource_metadata", "scope", "error"] {
            let _ = challenge.parameter(name).map(ScopeSet::parse);
        }
    }
}

/// Reader of the credentials of a request.
pub fn request_credentials(bytes: &[u8]) {
    let headers = headers(header::AUTHORIZATION, bytes);
    let _ = RequestCredentials::from_headers(&headers);
}

/// Parser of the responses of token endpoints.
pub fn token_response(bytes: &[u8]) {
    if let Some(json) = read(bytes) {
        __fuzz::token_response(&json);
    }
}

/// Key set without a key, so that no token is valid.
fn no_keys() -> Json {
    Json::from_value(&serde_json::json!({"keys": []}))
}

/// Parser of signed access tokens, which no input may pass, since the key set is empty.
pub fn access_token(bytes: &[u8]) {
    let parts = bytes.split(|byte| *byte == b'.');
    // Seeds are readable: each part of the token is encoded here.
    let encoded: Vec<String> = parts.map(toolgate_auth::jose::encode).collect();
    let raw = String::from_utf8_lossy(bytes);
    for token in [&*encoded.join("."), &*raw] {
        assert!(
            !__fuzz::access_token(token, &no_keys()),
            "accepted without a key"
        );
    }
}

/// Parser of JWK sets.
pub fn key_set(bytes: &[u8]) {
    if let Some(json) = read(bytes) {
        __fuzz::key_set(&json);
        __fuzz::access_token("e30.e30.AA", &json);
    }
}

/// Verifier of DPoP proofs, which no input may pass, since the key is another one.
pub fn dpop_proof(bytes: &[u8]) {
    let parts = bytes.split(|byte| *byte == b'.');
    let encoded: Vec<String> = parts.map(toolgate_auth::jose::encode).collect();
    for proof in [encoded.join(".").as_bytes(), bytes] {
        assert!(!__fuzz::dpop_proof(proof, "another key", 1_790_000_000));
    }
}

/// Readers of metadata documents of authorization servers and of protected resources.
pub fn server_metadata(bytes: &[u8]) {
    let (Some(json), Ok(server)) = (read(bytes), Url::parse(SERVER)) else {
        return;
    };
    let issuer = json.get("issuer").and_then(|issuer| issuer.string());
    __fuzz::authorization_server(&json, issuer.as_deref().unwrap_or("https://auth.example"));
    __fuzz::resource_metadata(&json, &server);
    let other = __fuzz::authorization_server(&json, "https://other.example");
    assert!(!other || issuer.as_deref() == Some("https://other.example"));
}

/// Readers of stored credentials and clients: what is read can be written and read again.
pub fn stored_credential(bytes: &[u8]) {
    if read(bytes).is_none_or(|json| json.as_str().len() > JsonLimits::default().bytes) {
        return;
    }
    let text = Secret::new(String::from_utf8_lossy(bytes).into_owned());
    let credential = OAuthCredential::from_text(&text);
    if let Ok(Ok(written)) = credential.map(|credential| credential.to_text()) {
        assert!(OAuthCredential::from_text(&written).is_ok());
    }
    let client = RegisteredClient::from_text(&text);
    if let Ok(Ok(Some(written))) = client.map(|client| client.to_text()) {
        assert!(RegisteredClient::from_text(&written).is_ok());
    }
}
