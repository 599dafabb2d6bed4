//! Validation of resource URIs: RFC 3986 syntax, and no path traversal.

use crate::{
    access::whatwg::{self, UriForm},
    sanitize::text::sanitize_text,
    validation::schema,
};
use toolgate_core::SchemaViolation;

/// Accepted spellings of resource URIs in calls (`resources/read`): canonical ones or all.
///
/// Standard: [URL Standard](https://url.spec.whatwg.org/).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum UriSpelling {
    /// Only canonical URI spellings, which the URL Standard leaves unchanged. Escapes and differences that cannot
    /// denote another resource are accepted.
    #[default]
    Canonical,
    /// All URI spellings, for servers that compare URIs as text.
    Verbatim,
}

/// Maximum length of a URI, in bytes.
const MAX_URI_BYTES: usize = 8 * 1024;

/// Returns the problems of a resource URI.
pub(super) fn problems(uri: &str, spelling: UriSpelling) -> Vec<SchemaViolation> {
    let found = match (syntax_problem(uri), spelling) {
        (Some((expected, got)), _) => Some((expected.to_owned(), got)),
        (None, UriSpelling::Canonical) => spelling_problem(uri),
        (None, UriSpelling::Verbatim) => None,
    };
    let problem = |(expected, got): (String, &str)| SchemaViolation::new("/uri", expected, got);
    found.map(problem).into_iter().collect()
}

/// Returns the problem of a URI that URL parsers rewrite or reject.
fn spelling_problem(uri: &str) -> Option<(String, &'static str)> {
    match whatwg::classify_uri(uri) {
        UriForm::Canonical => None,
        UriForm::Rewritten(read) => Some((
            schema::truncate(&sanitize_text(&format!(
                "the URI as URL parsers write it: {read}"
            ))),
            "a spelling that URL parsers read as different resources",
        )),
        UriForm::Unparsable => Some((
            "a URI that URL parsers accept".to_owned(),
            "a URI that URL parsers reject",
        )),
    }
}

fn syntax_problem(uri: &str) -> Option<(&'static str, &'static str)> {
    if uri.len() > MAX_URI_BYTES {
        return Some(("a URI of at most 8 KiB", "a longer one"));
    }
    let Some((scheme, rest)) = uri.split_once(':') else {
        return Some(("a URI with a scheme, such as file:///a", "no scheme"));
    };
    let mut letters = scheme.chars();
    let good = letters.next().is_some_and(|c| c.is_ascii_alphabetic())
        && letters.all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    if !good {
        return Some((
            "a URI with a valid scheme, such as file:///a",
            "an invalid scheme",
        ));
    }
    if rest.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Some((
            "a URI without white space or control characters",
            "a URI that contains one of them",
        ));
    }
    if has_parent_segment(rest) {
        return Some(("a URI without .. in its path", "a path with .. in it"));
    }
    // Whatever the setting of the server: rules know no other spelling of this URI.
    if !whatwg::is_supported(uri) {
        return Some((
            "a plain URI such as file:///a/b.txt; the Cargo feature \"full-uri\" of the crate toolgate, which is off, accepts other spellings",
            "a URI that this build cannot compare with rules",
        ));
    }
    None
}

/// Reports whether a path segment is `..`, at any level of percent-encoding.
fn has_parent_segment(rest: &str) -> bool {
    let mut path = rest.split(['?', '#']).next().unwrap_or_default().to_owned();
    loop {
        if path.split(['/', '\\']).any(|step| step == "..") {
            return true;
        }
        let plain = unescaped(&path);
        if plain == path {
            return false;
        }
        path = plain;
    }
}

/// Decodes escaped dots, slashes, backslashes and percent signs; everything else stays.
fn unescaped(path: &str) -> String {
    let pairs = [
        ("%2e", "."),
        ("%2E", "."),
        ("%2f", "/"),
        ("%2F", "/"),
        ("%5c", "\\"),
        ("%5C", "\\"),
        ("%25", "%"),
    ];
    pairs
        .iter()
        .fold(path.to_owned(), |path, (escaped, plain)| {
            path.replace(escaped, plain)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds: RES-08, RES-09
    #[test]
    fn a_uri_is_checked_before_a_server_sees_it() {
        let check =
            |uri: &str, good: bool| assert_eq!(syntax_problem(uri).is_none(), good, "{uri}");
        check("file:///srv/docs/a.txt", true);
        check("test://template/1/data?x=..", true);
        check("urn:a:b", true);
        check("ui://app/a..b/...", true);
        check("/etc/passwd", false);
        check("9p://x", false);
        check("file:///srv/../etc", false);
        check("file:///srv/%2e%2E/etc", false);
        check("file:///srv/%252e%252e/etc", false);
        check("file:///srv/..%2fetc", false);
        check("file:///srv/..%5cetc", false);
        check("file:///a b", false);
        check("file:///a\u{7}", false);
        check(&format!("a:{}", "x".repeat(MAX_URI_BYTES)), false);
    }
}
