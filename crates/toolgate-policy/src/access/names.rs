//! Names of an item that rules match, with all spellings of a resource's URI.

use crate::{GlobPattern, access::whatwg};
use std::sync::{Arc, OnceLock};
use toolgate_core::{Item, ItemKind};

/// All names of an item, or of the resource at a URI that matches a template or belongs to a skill.
pub(crate) struct ItemNames {
    /// The full name of the template or skill.
    of: Option<String>,
    /// The full names of the item itself. For a resource: with the URI unchanged and with the normalized URI, without
    /// escapes and redundant segments, so that these cannot bypass a rule.
    own: Vec<String>,
    /// The part of a full name before the URI.
    prefix: String,
    /// The URI, or the text of a template.
    uri: Option<String>,
    /// True if the URI is also matched without query, fragment and empty segments at the end.
    cut: bool,
    /// Further spellings for restrictive rules, computed lazily: the results of URL parsers, and the shortened ones.
    others: OnceLock<Vec<Vec<String>>>,
}

/// Returns the names of an item, or of the resource at a URI. Tools and prompts have one name, which their item caches.
pub(crate) fn of(item: &Item, uri: Option<&str>) -> Arc<ItemNames> {
    match item.kind() {
        ItemKind::Tool | ItemKind::Prompt => item.cached(|item| read_names(item, None)),
        ItemKind::Resource | ItemKind::Template | ItemKind::Skill => {
            Arc::new(read_names(item, uri))
        }
    }
}

fn read_names(item: &Item, uri: Option<&str>) -> ItemNames {
    let name = |uri: &str| format!("{}.{}{uri}", item.origin.server, Item::RESOURCE_PREFIX);
    let full = item.full_name();
    let (of, at) = match item.kind() {
        ItemKind::Tool | ItemKind::Prompt => (None, None),
        ItemKind::Resource => (None, Some(item.local_name.as_str())),
        ItemKind::Template => match uri.filter(|uri| *uri != item.def.name()) {
            Some(uri) => (Some(&full), Some(uri)),
            None => (None, None),
        },
        ItemKind::Skill => (Some(&full), Some(uri.unwrap_or(&item.local_name))),
    };
    let of = of.cloned();
    let cut = of.is_some() && uri.is_some_and(|uri| uri != item.def.name());
    let mut own = match at {
        Some(uri) => vec![name(uri), name(&normalize_uri(uri))],
        None => vec![full],
    };
    own.dedup();
    // A template is listed under its own text, which has other spellings just as a URI has.
    let listed = (item.kind() == ItemKind::Template).then_some(item.local_name.as_str());
    ItemNames {
        of,
        own,
        prefix: name(""),
        uri: at.or(listed).map(str::to_owned),
        cut,
        others: OnceLock::new(),
    }
}

/// Returns the spellings that URL parsers make of a URI. With `cut`, also the URI and each of these without the parts
/// that many servers ignore.
fn other_spellings(uri: &str, cut: bool) -> Vec<Vec<String>> {
    let mut all = whatwg::readings(uri);
    if cut {
        let short = |texts: &Vec<String>| texts.iter().map(|uri| shortened(uri)).collect();
        let cut: Vec<Vec<String>> = all.iter().map(short).collect();
        all.push(vec![shortened(uri)]);
        all.extend(cut);
    }
    all
}

impl ItemNames {
    /// Returns whether an allow rule matches: some name matches one of these patterns, and no spelling of the URI
    /// matches one of those. Only the unchanged and the normalized spelling can be allowed.
    pub(crate) fn allowed_by(&self, these: &[GlobPattern], those: &[GlobPattern]) -> bool {
        let mut names = self.of.iter().chain(&self.own);
        names.any(|name| any(these, name)) && !self.all().any(|name| any(those, name))
    }

    /// Returns whether a restrictive rule matches: some spelling matches one of these patterns and none of those. An
    /// exception for one spelling of a URI does not except another. A template is excepted only if a pattern is its
    /// own name, not because the end of its text matches.
    pub(crate) fn restricted_by(&self, these: &[GlobPattern], those: &[GlobPattern]) -> bool {
        let of = |globs| self.of.as_ref().is_some_and(|name| any(globs, name));
        let named = |name: &String| those.iter().any(|glob| glob.as_str() == name);
        let (all, none) = (of(these), self.of.as_ref().is_some_and(named));
        let holds = |texts: &[String]| {
            let fits = |globs| texts.iter().any(|name| any(globs, name));
            (all || fits(these)) && !fits(those)
        };
        let mut own = self.own.iter().map(std::slice::from_ref);
        !none && (own.any(holds) || self.others().iter().any(|texts| holds(texts)))
    }

    #[cfg(test)]
    pub(crate) fn tool(name: &str) -> ItemNames {
        ItemNames {
            of: None,
            own: vec![name.to_owned()],
            prefix: String::new(),
            uri: None,
            cut: false,
            others: OnceLock::new(),
        }
    }

    fn others(&self) -> &[Vec<String>] {
        self.others.get_or_init(|| {
            let Some(uri) = &self.uri else {
                return Vec::new();
            };
            let full = |uri: String| [&self.prefix, uri.as_str()].concat();
            let spellings = other_spellings(uri, self.cut).into_iter();
            let names = spellings.map(|texts| texts.into_iter().map(full).collect());
            let known = |texts: &Vec<String>| texts.iter().all(|name| self.own.contains(name));
            names.filter(|texts| !known(texts)).collect()
        })
    }

    fn all(&self) -> impl Iterator<Item = &String> {
        let others = self.others().iter().flatten();
        self.of.iter().chain(&self.own).chain(others)
    }
}

fn any(globs: &[GlobPattern], name: &str) -> bool {
    globs.iter().any(|glob| glob.matches(name))
}

/// Returns other spellings of a URI, on which conditions are evaluated too.
///
/// These are the normalized URI, the results of URL parsers, and each without query, fragment and empty segments at
/// the end.
pub(crate) fn uri_spellings(uri: &str) -> Vec<String> {
    let mut all = other_spellings(uri, true).concat();
    all.push(normalize_uri(uri));
    all.sort_unstable();
    all.dedup();
    all
}

fn shortened(uri: &str) -> String {
    let uri = uri.split(['?', '#']).next().unwrap_or_default();
    let mut uri = normalize_uri(uri);
    while uri.ends_with('/') || uri.ends_with("/.") {
        uri.truncate(uri.rfind('/').unwrap_or_default());
    }
    uri
}

/// Normalizes a URI: scheme and host in lower case, no escapes, no empty or `.` segments, and no `localhost` for
/// `file`.
pub(crate) fn normalize_uri(uri: &str) -> String {
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
    // A dot at the end denotes the directory itself (RFC 3986, section 5.2.4).
    steps.extend(last.map(|step| if step == "." { "" } else { step }));
    let root = if path.is_empty() { "" } else { "/" };
    format!("{scheme}://{host}{root}{}", steps.join("/"))
}

/// Removes all levels of percent-escapes in one pass: an escape that a decoded byte completes is decoded at once.
/// Bytes that are not UTF-8 stay escaped.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    for byte in text.bytes() {
        bytes.push(byte);
        while let Some((rest, plain)) = escape_at_end(&bytes) {
            bytes.truncate(rest);
            bytes.push(plain);
        }
    }
    let mut plain = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        plain.push_str(chunk.valid());
        let strange = chunk.invalid().iter();
        strange.for_each(|byte| plain.push_str(&format!("%{byte:02x}")));
    }
    plain
}

/// Returns the length of the text before an escape at the end, and the byte that it encodes.
fn escape_at_end(bytes: &[u8]) -> Option<(usize, u8)> {
    let (rest, last) = bytes.split_last_chunk::<3>()?;
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let (high, low) = (digit(last[1])?, digit(last[2])?);
    let byte = u8::try_from(high * 16 + low).ok()?;
    (last[0] == b'%').then_some((rest.len(), byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalizes_equivalent_uris_to_one() {
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
            assert_eq!(normalize_uri(same), "file:///secret/a", "{same}");
        }
        for (uri, as_is) in [
            ("HTTPS://Host/A?q=%41", "https://host/A?q=A"),
            ("urn:A:b", "urn:A:b"),
            ("test://x", "test://x"),
            ("test://x/", "test://x/"),
            ("test://x/a/.", "test://x/a/"),
            ("a:%zz%", "a:%zz%"),
            ("a:%ff", "a:%ff"),
            ("file:///%73ecret/a?%ff", "file:///secret/a?%ff"),
            ("a:%%341", "a:A"),
        ] {
            assert_eq!(normalize_uri(uri), as_is);
        }
    }

    /// A million nested escapes: with one pass for each level, this would not terminate in time.
    #[test]
    fn normalizes_in_linear_time() {
        let uri = format!("file:///%{}41", "25".repeat(1_000_000));
        assert_eq!(normalize_uri(&uri), "file:///A");
    }
}
