//! Parser of the header `WWW-Authenticate`.
//!
//! Source: RFC 9110, section 11.6.1; RFC 6750, section 3; RFC 9728, section 5.1; RFC 9449, section 7.1.

use http::{HeaderMap, header::WWW_AUTHENTICATE};

/// Maximum total length in bytes of the header values that are parsed.
const MAX_CHALLENGE_BYTES: usize = 16 << 10;

/// Authentication challenge of a `WWW-Authenticate` header: a scheme and its parameters.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct AuthChallenge {
    /// Authentication scheme in lower case, for example `bearer`.
    pub scheme: String,
    parameters: Vec<(String, String)>,
}

impl AuthChallenge {
    /// Returns the value of a challenge parameter such as `scope`. `name` is in lower case; the names in a header are
    /// case-insensitive.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.parameters.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// Parses all `WWW-Authenticate` challenges of a response, in header order. Skips what it cannot parse.
pub fn parse_challenges(headers: &HeaderMap) -> Vec<AuthChallenge> {
    let mut all = Vec::new();
    let mut room = MAX_CHALLENGE_BYTES;
    for value in headers.get_all(WWW_AUTHENTICATE) {
        let Some(left) = room.checked_sub(value.len()) else {
            break;
        };
        room = left;
        if let Ok(text) = value.to_str() {
            read(text, &mut all);
        }
    }
    all
}

fn read(text: &str, all: &mut Vec<AuthChallenge>) {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let (word, after) = token(rest);
        if word.is_empty() {
            return;
        }
        let spaced = after.trim_start_matches([' ', '\t']);
        if let (Some(value), Some(challenge)) = (spaced.strip_prefix('='), all.last_mut()) {
            let Some((value, after)) = parameter(value.trim_start_matches([' ', '\t'])) else {
                return;
            };
            let name = word.to_ascii_lowercase();
            // On duplicates the first parameter counts, whoever added the second.
            if challenge.parameter(&name).is_none() {
                challenge.parameters.push((name, value));
            }
            rest = after;
            continue;
        }
        all.push(AuthChallenge {
            scheme: word.to_ascii_lowercase(),
            parameters: Vec::new(),
        });
        rest = after;
    }
}

/// Splits a token off the front.
fn token(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~/".contains(c)));
    text.split_at(end.unwrap_or(text.len()))
}

/// Splits a parameter value, quoted or not, off the front. `None` if its quote is not closed.
fn parameter(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ' ', '\t']).unwrap_or(text.len());
        let (value, after) = text.split_at(end);
        return Some((value.to_owned(), after));
    };
    let mut value = String::new();
    let mut signs = quoted.char_indices();
    while let Some((at, sign)) = signs.next() {
        match sign {
            '"' => return Some((value, &quoted[at + 1..])),
            '\\' => value.push(signs.next()?.1),
            _ => value.push(sign),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn of(values: &[&str]) -> Vec<AuthChallenge> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(WWW_AUTHENTICATE, HeaderValue::from_str(value).unwrap());
        }
        parse_challenges(&headers)
    }

    #[test]
    fn parses_challenges_with_parameters() {
        let all = of(&[
            r#"Bearer realm="a, b=\"c\"", error="insufficient_scope" , scope = "x y",resource_metadata="https://a.test/m""#,
            "Negotiate, DPoP algs=\"ES256\", error=use_dpop_nonce",
        ]);
        let schemes: Vec<&str> = all.iter().map(|one| one.scheme.as_str()).collect();
        assert_eq!(schemes, ["bearer", "negotiate", "dpop"]);
        assert_eq!(all[0].parameter("realm"), Some("a, b=\"c\""));
        assert_eq!(all[0].parameter("scope"), Some("x y"));
        assert_eq!(
            all[0].parameter("resource_metadata"),
            Some("https://a.test/m")
        );
        assert_eq!(all[2].parameter("error"), Some("use_dpop_nonce"));
    }

    #[test]
    fn skips_malformed_challenges() {
        assert_eq!(of(&["Bearer scope=\"x"])[0].parameter("scope"), None);
        assert_eq!(
            of(&["Bearer scope=a, scope=b"])[0].parameter("scope"),
            Some("a")
        );
        assert!(of(&["", " , ,", "=\"x\""]).is_empty());
        assert!(of(&[&"a ".repeat(9000)]).is_empty());
    }
}
