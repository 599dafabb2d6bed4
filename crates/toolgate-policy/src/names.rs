//! The names by which rules speak of a use: of a resource that a template has, also those of its URI.

use crate::Pattern;
use toolgate_core::{Item, ItemKind};

/// All names of a thing, or of the resource at a URI that fits a template: the template's, the URI's as it came, and
/// the one of the same URI without escapes and detours, so that no rule is got round by them.
pub(crate) fn of(item: &Item, uri: Option<&str>) -> Vec<String> {
    let mut names = vec![item.full_name()];
    let uri = match item.kind() {
        ItemKind::Tool | ItemKind::Prompt => None,
        ItemKind::Resource => Some(item.local.as_str()),
        ItemKind::Template => uri.filter(|uri| *uri != item.def.name()),
    };
    if let Some(uri) = uri {
        let name = |uri: &str| format!("{}.{}{uri}", item.origin.server, Item::RESOURCE);
        names.extend([name(uri), name(&plain(uri))]);
        names.dedup();
    }
    names
}

/// Whether some name fits one of these, and no name one of those.
pub(crate) fn fit(these: &[Pattern], those: &[Pattern], names: &[String]) -> bool {
    let any = |globs: &[Pattern]| {
        let fits = |glob: &Pattern| names.iter().any(|name| glob.matches(name));
        globs.iter().any(fits)
    };
    any(these) && !any(those)
}

/// The same URI with a small scheme and host, without escapes, empty steps and `.`; `file` is on this machine.
fn plain(uri: &str) -> String {
    let uri = unescaped(uri);
    let Some((scheme, rest)) = uri.split_once(':') else {
        return uri;
    };
    let scheme = scheme.to_ascii_lowercase();
    let (host, path) = match rest.strip_prefix("//") {
        Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
        None => return format!("{scheme}:{rest}"),
    };
    let host = host.to_ascii_lowercase();
    let host = if scheme == "file" && host == "localhost" {
        ""
    } else {
        &host
    };
    let mut steps: Vec<&str> = path.split('/').skip(1).collect();
    let last = steps.pop();
    steps.retain(|step| !matches!(*step, "" | "."));
    steps.extend(last);
    let root = if path.is_empty() { "" } else { "/" };
    format!("{scheme}://{host}{root}{}", steps.join("/"))
}

/// The text without escapes, however often it was escaped. What is no text stays as it is.
fn unescaped(text: &str) -> String {
    let mut text = text.to_owned();
    loop {
        let once = unescaped_once(&text);
        if once == text {
            return text;
        }
        text = once;
    }
}

fn unescaped_once(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| *first == b'%');
        let byte = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = match byte {
            Some(_) => after.get(2..).unwrap_or_default(),
            None => after,
        };
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_resource_has_one_plain_uri() {
        for same in [
            "file:///secret/a",
            "FILE:///secret/a",
            "file:///%73ecret/a",
            "file:///%2573ecret/a",
            "file:////secret//./a",
            "file://localhost/secret/a",
            "file://LocalHost/secret/a",
            "file:///secret%2fa",
        ] {
            assert_eq!(plain(same), "file:///secret/a", "{same}");
        }
        for (uri, as_is) in [
            ("HTTPS://Host/A?q=%41", "https://host/A?q=A"),
            ("urn:A:b", "urn:A:b"),
            ("test://x", "test://x"),
            ("test://x/", "test://x/"),
            ("a:%zz%", "a:%zz%"),
            ("a:%ff", "a:%ff"),
        ] {
            assert_eq!(plain(uri), as_is);
        }
    }
}
