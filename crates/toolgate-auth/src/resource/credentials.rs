//! Credentials in the `Authorization` header (RFC 9110 s. 11.6.2, RFC 6750 s. 2.1).

use http::{HeaderMap, header};

/// Authentication scheme of an access token: `Bearer` or `DPoP`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum TokenScheme {
    /// `Bearer`: possession of the token is sufficient.
    Bearer,
    /// `DPoP`: with a proof of the key that the token is bound to.
    Dpop,
}

/// Credentials of a request, from its `Authorization` header.
#[derive(Clone, Copy, Eq, PartialEq)]
#[non_exhaustive]
pub enum RequestCredentials<'a> {
    /// The request has no `Authorization` header.
    Missing,
    /// Credentials of a scheme other than `Bearer` and `DPoP`.
    OtherScheme,
    /// Credentials that cannot be parsed; with the reason.
    Malformed(&'static str),
    /// Access token and its scheme.
    Token(TokenScheme, &'a str),
}

impl<'a> RequestCredentials<'a> {
    /// Parses the credentials in the `Authorization` header of a request.
    pub fn from_headers(headers: &'a HeaderMap) -> RequestCredentials<'a> {
        let mut values = headers.get_all(header::AUTHORIZATION).iter();
        let value = match (values.next(), values.next()) {
            (None, _) => return RequestCredentials::Missing,
            (Some(value), None) => value,
            (Some(_), Some(_)) => {
                return RequestCredentials::Malformed(
                    "there is more than one Authorization header",
                );
            }
        };
        let Ok(value) = value.to_str() else {
            return RequestCredentials::Malformed("the Authorization header is not plain text");
        };
        let value = value.trim();
        let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
        // RFC 9110 allows several spaces before the token and none in it.
        let token = token.trim_start_matches(' ');
        let scheme = match scheme {
            "" => return RequestCredentials::Malformed("the Authorization header is empty"),
            bearer if bearer.eq_ignore_ascii_case("bearer") => TokenScheme::Bearer,
            dpop if dpop.eq_ignore_ascii_case("dpop") => TokenScheme::Dpop,
            _ => return RequestCredentials::OtherScheme,
        };
        match token {
            "" => RequestCredentials::Malformed("no token follows the scheme"),
            token if token.contains([' ', '\t']) => {
                RequestCredentials::Malformed("more than one token follows the scheme")
            }
            token => RequestCredentials::Token(scheme, token),
        }
    }
}
