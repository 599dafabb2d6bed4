//! What a request shows of who sends it (RFC 9110 s. 11.6.2, RFC 6750 s. 2.1).

use http::{HeaderMap, header};

/// How a token is shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Scheme {
    /// Whoever has it can use it.
    Bearer,
    /// With a proof of the key that it is bound to.
    Dpop,
}

/// What stands in `Authorization`.
#[derive(Clone, Copy, Eq, PartialEq)]
pub enum Shown<'a> {
    /// Nothing.
    Nothing,
    /// What is no token: credentials of another scheme.
    Other,
    /// What cannot be read; why.
    Malformed(&'static str),
    /// One token.
    Token(Scheme, &'a str),
}

impl<'a> Shown<'a> {
    /// What stands in these headers.
    pub fn of(headers: &'a HeaderMap) -> Shown<'a> {
        let mut values = headers.get_all(header::AUTHORIZATION).iter();
        let value = match (values.next(), values.next()) {
            (None, _) => return Shown::Nothing,
            (Some(value), None) => value,
            (Some(_), Some(_)) => return Shown::Malformed("there are two Authorization headers"),
        };
        let Ok(value) = value.to_str() else {
            return Shown::Malformed("the Authorization header is no plain text");
        };
        let value = value.trim();
        let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
        // As many blanks as one likes stand before the token, and none in it.
        let token = token.trim_start_matches(' ');
        let scheme = match scheme {
            "" => return Shown::Malformed("the Authorization header is empty"),
            bearer if bearer.eq_ignore_ascii_case("bearer") => Scheme::Bearer,
            dpop if dpop.eq_ignore_ascii_case("dpop") => Scheme::Dpop,
            _ => return Shown::Other,
        };
        match token {
            "" => Shown::Malformed("no token stands behind the scheme"),
            token if token.contains([' ', '\t']) => {
                Shown::Malformed("more than one word stands behind the scheme")
            }
            token => Shown::Token(scheme, token),
        }
    }
}
