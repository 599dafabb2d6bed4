//! Links lead nowhere but to where a person may follow them.

use crate::{PerServer, words};
use std::{collections::HashMap, sync::Arc};
use toolgate_core::{
    Asked, Content, ContentKind, Definition, Error, Item, ItemKind, Json, Kind, Origin, Output,
    Returned, Scrub,
};
use toolgate_wire::json::ArrayWriter;

/// Takes out links whose scheme makes a program of them.
///
/// A link to a resource may have any scheme of the server's own, but none that a browser or a system runs. An icon is at
/// `https:` or `http:`, or a picture in `data:` that is not SVG.
#[derive(Clone, Debug)]
pub struct Links {
    /// Whether it looks, by server.
    pub check: PerServer<bool>,
    /// The only schemes that the links of a server may have, in lower case, by its configured id. Where it has none
    /// here, all but those by which something runs.
    pub only: HashMap<String, Vec<String>>,
}

impl Default for Links {
    fn default() -> Links {
        Links {
            check: PerServer::all(true),
            only: HashMap::new(),
        }
    }
}

/// Schemes by which something runs, or by which one document reaches into another.
const RUNS: [&str; 16] = [
    "javascript",
    "vbscript",
    "livescript",
    "mocha",
    "data",
    "blob",
    "filesystem",
    "view-source",
    "jar",
    "about",
    "chrome",
    "resource",
    "shell",
    "search-ms",
    "mhtml",
    "intent",
];

/// The scheme of a link as a browser reads it: blanks, tabs and line ends do not count.
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

fn runs(link: &str) -> Option<String> {
    let scheme = scheme(link)?;
    let bad = RUNS.contains(&scheme.as_str()) || scheme.starts_with("ms-");
    bad.then_some(scheme)
}

/// Whether an icon may stay.
fn icon(link: &str) -> bool {
    match scheme(link).as_deref() {
        Some("https" | "http") => true,
        Some("data") => {
            let link = link.trim().to_ascii_lowercase();
            link.starts_with("data:image/") && !link.starts_with("data:image/svg")
        }
        _ => false,
    }
}

impl Scrub for Links {
    fn name(&self) -> &'static str {
        "links"
    }

    fn scrub(
        &self,
        from: Option<&Origin>,
        _: Option<&Arc<Item>>,
        value: Returned<'_>,
    ) -> Result<(), Error> {
        self.work(from, value).map(|_| ())
    }

    fn scrub_for(
        &self,
        asked: &Asked,
        from: Option<&Origin>,
        _: Option<&Arc<Item>>,
        value: Returned<'_>,
    ) -> Result<(), Error> {
        let taken = self.work(from, value)?;
        if !taken.is_empty() {
            asked.trail.add("links", "withhold", taken.join(", "));
        }
        Ok(())
    }
}

/// Schemes that the record has of one result.
const MOST: usize = 8;

impl Links {
    fn work(&self, from: Option<&Origin>, value: Returned<'_>) -> Result<Vec<String>, Error> {
        if from.is_some_and(|from| !self.check.of(&from.server)) {
            return Ok(Vec::new());
        }
        let mut taken: Vec<String> = Vec::new();
        let only = from.and_then(|from| self.only.get(&*from.server));
        let bad = |link: &str| match only {
            None => runs(link),
            Some(only) => outside(link, only),
        };
        match value {
            Returned::Item(item) => definition(item, &bad)?,
            Returned::Output(Output::Tool(result)) => {
                taken.extend(result.content.iter_mut().filter_map(|b| block(b, &bad)));
            }
            Returned::Output(Output::Prompt(result)) => {
                let blocks = result.messages.iter_mut().map(|m| &mut m.content);
                taken.extend(blocks.filter_map(|b| block(b, &bad)));
            }
            Returned::Output(Output::Resource(result)) => {
                let bad = |part: &Json| bad(&part.get("uri")?.string()?);
                taken.extend(result.contents.iter().filter_map(bad));
                result.contents.retain(|part| bad(part).is_none());
            }
            // Pages that a question opens are looked at where questions are.
            Returned::Output(Output::Complete(_))
            | Returned::About(_)
            | Returned::Error(_)
            | Returned::Event(_)
            | Returned::Questions(_) => {}
        }
        taken.truncate(MOST);
        Ok(taken)
    }
}

/// The scheme of a link, where it is none of these.
fn outside(link: &str, only: &[String]) -> Option<String> {
    let scheme = scheme(link).unwrap_or_default();
    (!only.contains(&scheme)).then_some(scheme)
}

fn block(block: &mut Content, bad: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let uri = match block.kind {
        ContentKind::ResourceLink => block.json.get("uri"),
        ContentKind::Resource => block.json.get("resource").and_then(|r| r.get("uri")),
        _ => return None,
    };
    if let Some(scheme) = uri.and_then(|uri| bad(&uri.string()?)) {
        let scheme = words::shown(&scheme);
        *block = Content::text(&format!(
            "[withheld by this gateway: a link of the scheme {scheme}:]"
        ));
        return Some(scheme);
    }
    if let Some(clean) = without_bad_icons(&block.json) {
        block.json = clean;
        return Some("icon".to_owned());
    }
    None
}

fn definition(item: &mut Arc<Item>, bad: &dyn Fn(&str) -> Option<String>) -> Result<(), Error> {
    let linked = !matches!(item.kind(), ItemKind::Tool | ItemKind::Prompt);
    if let Some(scheme) = bad(item.def.name()).filter(|_| linked) {
        let text = format!("its URI has the scheme {}:", words::shown(&scheme));
        return Err(Error::new(Kind::Upstream, text));
    }
    let Some(clean) = without_bad_icons(item.def.json()) else {
        return Ok(());
    };
    let def = Definition::read(item.kind(), clean);
    let def = def.map_err(|why| Error::new(Kind::Upstream, why))?;
    *item = Arc::new(item.with_def(def));
    Ok(())
}

/// The object without the icons that may not stay; `None` where all may.
fn without_bad_icons(json: &Json) -> Option<Json> {
    let icons = json.get("icons")?;
    let good = |one: &Json| {
        let src = one.get("src").and_then(|src| src.string());
        src.is_some_and(|src| icon(&src))
    };
    if icons.items().all(|one| good(&one)) && icons.kind() == toolgate_wire::json::Kind::Array {
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
    fn schemes_as_a_browser_reads_them() {
        for (link, bad) in [
            ("javascript:alert(1)", true),
            ("JaVaScRiPt:alert(1)", true),
            (" java\nscript\t:alert(1)", true),
            ("\u{1}javascript:1", true),
            ("vbscript:x", true),
            ("data:text/html,<script>", true),
            ("view-source:javascript:1", true),
            ("ms-msdt:/id", true),
            ("https://example.com/javascript:1", false),
            ("file:///srv/docs/a", false),
            ("github://repo/x", false),
            ("demo:note/1", false),
            ("note", false),
        ] {
            assert_eq!(runs(link).is_some(), bad, "{link:?}");
        }
    }

    #[test]
    fn only_the_schemes_of_a_list() {
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
            assert_eq!(outside(link, &only).is_some(), bad, "{link:?}");
        }
    }

    #[test]
    fn icons_by_their_addresses() {
        for (link, good) in [
            ("https://example.com/a.png", true),
            ("data:image/png;base64,AAAA", true),
            ("data:image/svg+xml,<svg/>", false),
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
    fn a_bad_link_becomes_a_text() {
        for json in [
            json!({"type": "resource_link", "uri": "javascript:alert(1)", "name": "x"}),
            json!({"type": "resource", "resource": {"uri": "data:text/html,x", "text": "x"}}),
        ] {
            let mut link = Content::read(Json::from_value(&json)).unwrap();
            assert!(block(&mut link, &runs).is_some());
            assert!(link.kind == ContentKind::Text && link.json.as_str().contains("withheld"));
        }
    }
}
