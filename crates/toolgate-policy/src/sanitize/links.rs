//! Sanitizer for links: removes URIs by which a host would run a script or start a program.

use crate::{PerServer, humanize};
use std::{collections::HashMap, sync::Arc};
use toolgate_core::{
    Content, ContentKind, Definition, Error, ErrorKind, Item, ItemKind, Json, Origin, Output,
    SanitizeContext, Sanitizer, UntrustedContent,
};
use toolgate_protocol::{json::ArrayWriter, placeholder};

/// Sanitizer that withholds resource links that run a program or a script.
///
/// A `resource_link` in a result is a link: a host may show it and open it in a browser. The URI of a resource, a
/// template or an embedded resource is a name that only `resources/read` uses, so servers may choose any scheme for
/// it. Only script schemes are withheld there, since a host that renders a list of resources as links would run them.
/// The source of an icon is an `https:` or `http:` URL, or a `data:` image that is not SVG.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LinkSanitizer {
    /// True to check links, by server. Default: all servers.
    pub check: PerServer<bool>,
    /// Allowlist of URI schemes of links, in lower case, by configured server id. Without one, a server may use all
    /// schemes except the dangerous ones.
    pub allowed_schemes: HashMap<String, Vec<String>>,
}

impl Default for LinkSanitizer {
    fn default() -> LinkSanitizer {
        LinkSanitizer {
            check: PerServer::all(true),
            allowed_schemes: HashMap::new(),
        }
    }
}

/// Schemes that run the rest of the URI as a script. No server needs one for a resource.
const SCRIPTS: [&str; 4] = ["javascript", "vbscript", "livescript", "mocha"];

/// Schemes that start a program of the system, or that wrap another link.
const LAUNCHERS: [&str; 6] = [
    "shell",
    "search-ms",
    "intent",
    "view-source",
    "jar",
    "mhtml",
];

/// The use of a URI.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum UriUse {
    /// The target of a `resource_link`, which a host may open.
    Link,
    /// The name of a resource, for `resources/read`.
    Name,
}

/// Returns the scheme of a link as a browser parses it: spaces, tabs and line endings are ignored.
pub(crate) fn scheme(link: &str) -> Option<String> {
    let mut scheme = String::new();
    for c in link.chars().filter(|c| *c > ' ' && *c != '\u{7f}') {
        match c {
            ':' => return (!scheme.is_empty()).then_some(scheme),
            c if c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.') => {
                scheme.push(c.to_ascii_lowercase());
            }
            _ => return None,
        }
    }
    None
}

/// Returns the scheme of a URI that must not be forwarded.
fn dangerous_scheme(uri: &str, used: UriUse) -> Option<String> {
    let scheme = scheme(uri)?;
    let script = SCRIPTS.contains(&scheme.as_str());
    let opened = || {
        LAUNCHERS.contains(&scheme.as_str())
            || scheme.starts_with("ms-")
            || (scheme == "data" && has_payload(uri))
    };
    (script || (used == UriUse::Link && opened())).then_some(scheme)
}

/// A URI in lower case without blanks, tabs, line ends and control characters: browsers ignore them.
fn visible(uri: &str) -> String {
    let visible = uri.chars().filter(|c| *c > ' ' && *c != '\u{7f}');
    visible.map(|c| c.to_ascii_lowercase()).collect()
}

/// Returns whether a `data:` URI holds a document (RFC 2397): a media type, a comma, and the data. `data://config` is a
/// name.
fn has_payload(uri: &str) -> bool {
    let text = visible(uri);
    let rest = text.split_once(':').map_or("", |(_, rest)| rest);
    !rest.starts_with("//") && rest.contains(',')
}

/// Returns whether the source of an icon is allowed.
fn is_allowed_icon(link: &str) -> bool {
    match scheme(link).as_deref() {
        Some("https" | "http") => true,
        Some("data") => {
            let link = visible(link);
            link.starts_with("data:image/") && !link.starts_with("data:image/svg")
        }
        _ => false,
    }
}

impl Sanitizer for LinkSanitizer {
    fn name(&self) -> &'static str {
        "links"
    }

    fn sanitize(
        &self,
        from: Option<&Origin>,
        _: Option<&Arc<Item>>,
        value: UntrustedContent<'_>,
    ) -> Result<(), Error> {
        self.work(from, value).map(|_| ())
    }

    fn sanitize_for_call(
        &self,
        asked: &SanitizeContext,
        from: Option<&Origin>,
        _: Option<&Arc<Item>>,
        value: UntrustedContent<'_>,
    ) -> Result<(), Error> {
        let taken = self.work(from, value)?;
        if !taken.is_empty() {
            asked
                .decision_log
                .add("links", "withhold", taken.join(", "));
        }
        Ok(())
    }
}

/// Maximum number of schemes in the audit record of one result.
const MAX_LINK_REASONS: usize = 8;

impl LinkSanitizer {
    fn work(
        &self,
        from: Option<&Origin>,
        value: UntrustedContent<'_>,
    ) -> Result<Vec<String>, Error> {
        if from.is_some_and(|from| !self.check.of(&from.server)) {
            return Ok(Vec::new());
        }
        let mut taken: Vec<String> = Vec::new();
        let only = from.and_then(|from| self.allowed_schemes.get(&*from.server));
        let bad = |uri: &str, used: UriUse| match only {
            None => dangerous_scheme(uri, used),
            Some(only) => disallowed_scheme(uri, only),
        };
        match value {
            UntrustedContent::Item(item) => definition(item, &bad)?,
            UntrustedContent::Output(Output::Tool(result)) => {
                taken.extend(result.content.iter_mut().filter_map(|b| block(b, &bad)));
            }
            UntrustedContent::Output(Output::Prompt(result)) => {
                let blocks = result.messages.iter_mut().map(|m| &mut m.content);
                taken.extend(blocks.filter_map(|b| block(b, &bad)));
            }
            UntrustedContent::Output(Output::Resource(result)) => {
                let bad = |part: &Json| bad(&part.get("uri")?.string()?, UriUse::Name);
                taken.extend(result.contents.iter().filter_map(bad));
                result.contents.retain(|part| bad(part).is_none());
            }
            // URLs of URL-mode elicitation are checked by the input request policy.
            UntrustedContent::Output(Output::Complete(_))
            | UntrustedContent::Instructions(_)
            | UntrustedContent::Error(_)
            | UntrustedContent::Event(_)
            | UntrustedContent::InputRequests(_) => {}
        }
        taken.truncate(MAX_LINK_REASONS);
        Ok(taken)
    }
}

/// Returns the scheme of a link that is not in the allowlist.
fn disallowed_scheme(link: &str, only: &[String]) -> Option<String> {
    let scheme = scheme(link).unwrap_or_default();
    (!only.contains(&scheme)).then_some(scheme)
}

/// A check of a URI and its use. It returns the scheme if the URI must not be forwarded.
type UriCheck<'a> = &'a dyn Fn(&str, UriUse) -> Option<String>;

fn block(block: &mut Content, bad: UriCheck<'_>) -> Option<String> {
    let (uri, used) = match block.kind {
        ContentKind::ResourceLink => (block.json.get("uri"), UriUse::Link),
        ContentKind::Resource => {
            let resource = block.json.get("resource");
            (resource.and_then(|r| r.get("uri")), UriUse::Name)
        }
        _ => return None,
    };
    if let Some(scheme) = uri.and_then(|uri| bad(&uri.string()?, used)) {
        let scheme = humanize::printable(&scheme);
        let why = format!("a link with the scheme {scheme}:, which is not allowed");
        *block = Content::text(&placeholder::withheld(&why));
        return Some(scheme);
    }
    if let Some(clean) = without_bad_icons(&block.json) {
        block.json = clean;
        return Some("icon".to_owned());
    }
    None
}

fn definition(item: &mut Arc<Item>, bad: UriCheck<'_>) -> Result<(), Error> {
    let linked = !matches!(item.kind(), ItemKind::Tool | ItemKind::Prompt);
    if let Some(scheme) = bad(item.def.name(), UriUse::Name).filter(|_| linked) {
        let text = format!(
            "its URI has the scheme {}:, which is not allowed",
            humanize::printable(&scheme)
        );
        return Err(Error::new(ErrorKind::Upstream, text));
    }
    let Some(clean) = without_bad_icons(item.def.json()) else {
        return Ok(());
    };
    let def = Definition::read(item.kind(), clean);
    let def = def.map_err(|why| Error::new(ErrorKind::Upstream, why))?;
    *item = Arc::new(item.with_def(def));
    Ok(())
}

/// Returns the object without icons that are not allowed; `None` if all are.
fn without_bad_icons(json: &Json) -> Option<Json> {
    let icons = json.get("icons")?;
    let good = |one: &Json| {
        let src = one.get("src").and_then(|src| src.string());
        src.is_some_and(|src| is_allowed_icon(&src))
    };
    if icons.items().all(|one| good(&one))
        && icons.kind() == toolgate_protocol::json::JsonKind::Array
    {
        return None;
    }
    let mut kept = ArrayWriter::new();
    icons.items().filter(good).for_each(|one| kept.raw(&one));
    Some(json.with("icons", &kept.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn withholds_links_that_run_something_and_names_that_are_scripts() {
        for (uri, link, name) in [
            ("javascript:alert(1)", true, true),
            ("JaVaScRiPt:alert(1)", true, true),
            (" java\nscript\t:alert(1)", true, true),
            ("\u{1}javascript:1", true, true),
            ("vbscript:x", true, true),
            ("data:text/html,<script>", true, false),
            ("da\nta:text/html;base64,PHNjcmlwdD4=", true, false),
            ("data:,x", true, false),
            ("view-source:javascript:1", true, false),
            ("ms-msdt:/id", true, false),
            ("shell:startup", true, false),
            ("https://example.com/javascript:1", false, false),
            ("file:///srv/docs/a", false, false),
            ("github://repo/x", false, false),
            ("demo:note/1", false, false),
            ("note", false, false),
            ("resource://example", false, false),
            ("resource://greeting", false, false),
            ("data://config", false, false),
            ("data://table,with,commas", false, false),
            ("data:config", false, false),
            ("about://server", false, false),
            ("chrome://tabs/1", false, false),
            ("blob://store/1", false, false),
        ] {
            assert_eq!(
                dangerous_scheme(uri, UriUse::Link).is_some(),
                link,
                "{uri:?}"
            );
            assert_eq!(
                dangerous_scheme(uri, UriUse::Name).is_some(),
                name,
                "{uri:?}"
            );
        }
    }

    #[test]
    fn allows_only_listed_schemes() {
        let only = ["https".to_owned(), "github".to_owned()];
        for (link, bad) in [
            ("https://example.com/", false),
            (" HTTPS://example.com/", false),
            ("github://repo/x", false),
            ("http://example.com/", true),
            ("file:///srv/docs/a", true),
            ("javascript:1", true),
            ("note", true),
            ("", true),
        ] {
            assert_eq!(disallowed_scheme(link, &only).is_some(), bad, "{link:?}");
        }
    }

    #[test]
    fn checks_icon_sources() {
        for (link, good) in [
            ("https://example.com/a.png", true),
            ("data:image/png;base64,AAAA", true),
            ("data:image/svg+xml,<svg/>", false),
            ("data:image/\nsvg+xml,<svg/>", false),
            ("da\tta:im\rage/s\nvg+xml,<svg/>", false),
            ("data:text/html,x", false),
            ("javascript:1", false),
            ("file:///a.png", false),
            ("a.png", false),
        ] {
            let icons = json!({"icons": [{"src": "https://a.test/"}, {"src": link}], "n": 1});
            let clean = without_bad_icons(&Json::from_value(&icons));
            assert_eq!(clean.is_none(), good, "{link}");
            if let Some(clean) = clean {
                let left = json!({"icons": [{"src": "https://a.test/"}], "n": 1});
                assert_eq!(clean.to_value(), left);
            }
        }
    }

    #[test]
    fn replaces_a_dangerous_link_by_text() {
        for json in [
            json!({"type": "resource_link", "uri": "javascript:alert(1)", "name": "x"}),
            json!({"type": "resource_link", "uri": "data:text/html,x", "name": "x"}),
            json!({"type": "resource", "resource": {"uri": "javascript:alert(1)", "text": "x"}}),
        ] {
            let mut link = Content::read(Json::from_value(&json)).unwrap();
            assert!(block(&mut link, &dangerous_scheme).is_some());
            assert!(link.kind == ContentKind::Text && link.json.as_str().contains("withheld"));
        }
    }

    #[test]
    fn a_uri_that_only_the_server_reads_stays() {
        for json in [
            json!({"type": "resource", "resource": {"uri": "resource://example", "text": "x"}}),
            json!({"type": "resource", "resource": {"uri": "data://config", "text": "x"}}),
            json!({"type": "resource_link", "uri": "resource://example", "name": "x"}),
        ] {
            let mut link = Content::read(Json::from_value(&json)).unwrap();
            assert_eq!(block(&mut link, &dangerous_scheme), None);
            assert_eq!(link.json.to_value(), json);
        }
    }
}
