//! Entry points for fuzz targets: access tokens, key sets and DPoP proofs.

use super::{
    ClaimMapping, DpopVerifier, TokenScheme,
    dpop::ProofRequest,
    jwt::{ExpectedClaims, ParsedJwt, validate_claims},
    keys::{JwkSet, SignatureCheck, SignedText},
};
use crate::Url;
use http::{HeaderMap, HeaderValue, Method};
use toolgate_protocol::json::Json;

/// Parses an access token and validates its claims. Returns true only if a key of the set verifies it.
pub fn access_token(token: &str, keys: &Json) -> bool {
    let Some(jwt) = ParsedJwt::parse(token) else {
        return false;
    };
    let mapping = ClaimMapping {
        groups: Some(vec!["groups".to_owned()]),
        roles: Some(vec!["realm".to_owned(), "roles".to_owned()]),
        claims: vec![("act".to_owned(), vec!["act".to_owned()])],
        group_prefix: String::new(),
    };
    let resources: Vec<Url> = Url::parse("https://mcp.example/mcp").into_iter().collect();
    let expected = ExpectedClaims {
        issuer: "https://auth.example",
        resources: &resources,
        audiences: &["toolgate".to_owned()],
        now: 1_790_000_000,
        strict: true,
        mapping: &mapping,
    };
    let claims = validate_claims(jwt.payload(), &expected);
    let typed = jwt.is_access_token_type();
    let (Some(keys), Ok(algorithm)) = (JwkSet::parse(keys), jwt.algorithm()) else {
        return false;
    };
    let named = jwt.header.get("alg").and_then(|name| name.string());
    let signed = SignedText {
        key: (None, named.as_deref().unwrap_or_default()),
        algorithm,
        text: jwt.text.as_bytes(),
        signature: &jwt.signature,
    };
    typed && claims.is_ok() && keys.verify(&signed) == SignatureCheck::Valid
}

/// Parses a JWK set, and returns whether the document is one.
pub fn key_set(json: &Json) -> bool {
    JwkSet::parse(json).is_some()
}

/// Verifies a DPoP proof for a fixed request, and returns whether it is valid.
pub fn dpop_proof(proof: &[u8], bound_to: &str, now: u64) -> bool {
    let (Ok(value), Ok(url)) = (
        HeaderValue::from_bytes(proof),
        Url::parse("https://mcp.example/mcp"),
    ) else {
        return false;
    };
    let mut headers = HeaderMap::new();
    headers.insert("dpop", value);
    let request = ProofRequest {
        method: &Method::POST,
        url: &url,
        headers: &headers,
        token: "token",
        scheme: TokenScheme::Dpop,
        required: true,
        max_remembered: 16,
    };
    let verified = DpopVerifier::default().verify(&request, Some(bound_to), now);
    verified.is_ok()
}
