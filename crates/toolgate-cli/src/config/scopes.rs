//! Lists of OAuth scopes.

use schemars::JsonSchema;
use serde::Deserialize;

/// At least one OAuth scope.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<Scope>")]
#[schemars(inline)]
pub(super) struct Scopes(pub(super) Vec<String>);

impl TryFrom<Vec<Scope>> for Scopes {
    type Error = &'static str;

    fn try_from(scopes: Vec<Scope>) -> Result<Scopes, &'static str> {
        match scopes.is_empty() {
            true => Err("is empty; name at least one scope"),
            false => Ok(Scopes(scopes.into_iter().map(|scope| scope.0).collect())),
        }
    }
}

/// OAuth scope.
#[derive(Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(inline, title = "scope")]
struct Scope(String);

impl TryFrom<String> for Scope {
    type Error = String;

    fn try_from(text: String) -> Result<Scope, String> {
        let plain = |b: u8| b.is_ascii_graphic() && b != b'"' && b != b'\\';
        match (1..=255).contains(&text.len()) && text.bytes().all(plain) {
            // The specification excludes `offline_access` from the scopes that a resource requests.
            true if text != "offline_access" => Ok(Scope(text)),
            true => Err("has \"offline_access\", which is not a scope for tools: it requests a refresh token; remove it".to_owned()),
            false => Err(format!(
                "has {text:?}, which is not a valid scope; write one such as \"files:read\", with at most 255 characters and without spaces, quotes and backslashes"
            )),
        }
    }
}
