//! Entry points for fuzz targets: documents of authorization servers and of protected resources.

use super::{
    discovery::{resource, server},
    tokens::TokenResponse,
};
use crate::Url;
use toolgate_protocol::json::Json;

/// Parses the response of a token endpoint, and returns whether it is valid.
pub fn token_response(json: &Json) -> bool {
    TokenResponse::parse(json).is_ok()
}

/// Parses the metadata of an authorization server with this issuer identifier.
pub fn authorization_server(json: &Json, issuer: &str) -> bool {
    server::parse_metadata(json, issuer).is_ok()
}

/// Parses the metadata of a protected resource that a server at this URL belongs to.
pub fn resource_metadata(json: &Json, server: &Url) -> bool {
    resource::parse_metadata(json, server).is_ok()
}
