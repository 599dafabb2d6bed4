//! Prefixed URIs of UI resources (MCP Apps) and skills. A member's `ui://` and `skill://` URIs get its prefix, so that
//! two members may use the same URI. Tools and results refer to the prefixed URI.
//!
//! Source: the extension `io.modelcontextprotocol/ui`, SEP-1865.

use super::MemberCatalog;
use std::{borrow::Cow, sync::Arc};
use toolgate_core::{
    Content, ContentKind, Definition, DefinitionPin, Item, ItemKind, Json, Outcome, Output,
};
use toolgate_protocol::json::ObjectWriter;

const UI_SCHEME: &str = "ui://";
/// Schemes whose URIs each member assigns on its own: UI resources and files of skills.
const MEMBER_ASSIGNED_SCHEMES: [&str; 2] = [UI_SCHEME, "skill://"];
/// Member of `_meta` that names the UI resource of a tool, and its deprecated name.
const UI_META_KEY: &str = "ui";
const DEPRECATED_URI_META_KEY: &str = "ui/resourceUri";
const RESOURCE_URI_KEY: &str = "resourceUri";
/// MIME type of a UI resource.
const UI_RESOURCE_MIME: &str = "text/html;profile=mcp-app";

/// Returns the prefixed URI of a member's UI resource or skill file; any other URI unchanged.
pub(super) fn prefixed_uri<'u>(prefix: &str, uri: &'u str) -> Cow<'u, str> {
    match split_scheme(uri) {
        Some((scheme, rest)) if !prefix.is_empty() => format!("{scheme}{prefix}/{rest}").into(),
        _ => uri.into(),
    }
}

/// Returns whether a URI has one of the schemes whose URIs each member assigns on its own.
pub(super) fn is_member_assigned(uri: &str) -> bool {
    split_scheme(uri).is_some()
}

/// Splits a URI with one of these schemes into scheme and rest.
fn split_scheme(uri: &str) -> Option<(&'static str, &str)> {
    let of = |scheme: &'static str| Some((scheme, uri.strip_prefix(scheme)?));
    MEMBER_ASSIGNED_SCHEMES.into_iter().find_map(of)
}

/// Returns the member's own URI for a prefixed one; `None` if the prefix is another member's. Any other URI is returned
/// unchanged.
pub(super) fn unprefixed_uri<'u>(prefix: &str, uri: &'u str) -> Option<Cow<'u, str>> {
    match split_scheme(uri) {
        Some((scheme, rest)) if !prefix.is_empty() => {
            let own = rest.strip_prefix(prefix)?.strip_prefix('/')?;
            Some(format!("{scheme}{own}").into())
        }
        _ => Some(uri.into()),
    }
}

/// Returns the definition of a tool with the prefixed URI of its UI resource; `None` if nothing changes.
pub(super) fn prefixed_tool(prefix: &str, def: &Definition) -> Option<Definition> {
    let meta = prefixed_meta(prefix, &def.json().get("_meta")?)?;
    Definition::read(def.kind(), def.json().with("_meta", &meta)).ok()
}

/// Returns the prefixed URIs of the UI resources that a tool refers to.
pub(super) fn ui_resource_uris(prefix: &str, def: &Definition) -> Vec<String> {
    let Some(meta) = def.json().get("_meta") else {
        return Vec::new();
    };
    let new = meta
        .get(UI_META_KEY)
        .and_then(|ui| ui.get(RESOURCE_URI_KEY)?.string());
    let old = meta
        .get(DEPRECATED_URI_META_KEY)
        .and_then(|uri| uri.string());
    let pages = new.into_iter().chain(old);
    let pages = pages.filter(|uri| uri.starts_with(UI_SCHEME));
    pages
        .map(|uri| prefixed_uri(prefix, &uri).into_owned())
        .collect()
}

fn prefixed_meta(prefix: &str, meta: &Json) -> Option<Json> {
    let mut new = None;
    if let Some(ui) = meta.get(UI_META_KEY)
        && let Some(uri) = with_prefixed_uri(prefix, &ui, RESOURCE_URI_KEY)
    {
        new = Some(meta.with(UI_META_KEY, &uri));
    }
    let so_far = new.as_ref().unwrap_or(meta);
    with_prefixed_uri(prefix, so_far, DEPRECATED_URI_META_KEY).or(new)
}

/// Returns the object with the URI in `key` prefixed; `None` if nothing changes.
fn with_prefixed_uri(prefix: &str, json: &Json, key: &str) -> Option<Json> {
    let uri = json.get(key)?.string()?;
    match prefixed_uri(prefix, &uri) {
        Cow::Borrowed(_) => None,
        Cow::Owned(uri) => Some(json.with(key, &Json::from_value(&uri.into()))),
    }
}

/// Prefixes the URIs of UI resources and skill files in an outcome.
pub(super) fn prefix_outcome(prefix: &str, outcome: &mut Outcome) {
    let Outcome::Done(output) = outcome else {
        return;
    };
    if prefix.is_empty() {
        return;
    }
    match output {
        Output::Resource(read) => {
            for part in &mut read.contents {
                replace(part, |part| with_prefixed_uri(prefix, part, "uri"));
            }
        }
        Output::Tool(result) => {
            result
                .content
                .iter_mut()
                .for_each(|one| prefix_block(prefix, one));
            if let Some(of) = &mut result.meta {
                replace(of, |of| prefixed_meta(prefix, of));
            }
        }
        Output::Prompt(prompt) => {
            let messages = prompt.messages.iter_mut();
            messages.for_each(|message| prefix_block(prefix, &mut message.content));
        }
        Output::Complete(_) => {}
    }
}

fn prefix_block(prefix: &str, block: &mut Content) {
    match block.kind {
        ContentKind::ResourceLink => replace(&mut block.json, |json| {
            with_prefixed_uri(prefix, json, "uri")
        }),
        ContentKind::Resource => replace(&mut block.json, |json| {
            let resource = with_prefixed_uri(prefix, &json.get("resource")?, "uri")?;
            Some(json.with("resource", &resource))
        }),
        _ => {}
    }
}

fn replace(json: &mut Json, by: impl FnOnce(&Json) -> Option<Json>) {
    if let Some(new) = by(json) {
        *json = new;
    }
}

/// Returns the UI resource that one of a member's tools refers to, as an unlisted item.
pub(super) fn ui_resource(tools: &MemberCatalog, uri: &str) -> Option<Arc<Item>> {
    let tool = tools.tool_of_ui_resource(uri)?;
    let mut o = ObjectWriter::new();
    o.str("uri", uri);
    o.str("name", uri);
    o.str("mimeType", UI_RESOURCE_MIME);
    let def = Definition::read(ItemKind::Resource, o.finish()).ok()?;
    let item = Item::new(tool.origin.clone(), def);
    Some(Arc::new(item.with_pin(Arc::new(DefinitionPin::unlisted()))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_page_has_one_name_here_and_leads_back() {
        for own in [
            "ui://app",
            "ui://a/b.html?x=1",
            "ui://",
            "ui://b/app",
            "skill://pdf/SKILL.md",
        ] {
            let here = prefixed_uri("a", own);
            assert_eq!(unprefixed_uri("a", &here).as_deref(), Some(own));
            assert_eq!(unprefixed_uri("b", &here), None);
            assert_eq!(prefixed_uri("", own), own);
        }
        assert_ne!(
            prefixed_uri("a", "ui://b/app"),
            prefixed_uri("b", "ui://a/app")
        );
        assert_eq!(prefixed_uri("a", "file:///x"), "file:///x");
        assert_eq!(
            unprefixed_uri("a", "file:///x").as_deref(),
            Some("file:///x")
        );
        assert_eq!(
            unprefixed_uri("a", "ui://app"),
            None,
            "nobody has it by that name"
        );
    }

    #[test]
    fn both_names_of_the_link_are_changed_and_nothing_else() {
        let def = json!({
            "name": "t", "inputSchema": {},
            "_meta": {"x/y": 1.50, "ui": {"visibility": ["app"], "resourceUri": "ui://app"}, "ui/resourceUri": "ui://app"},
        });
        let def = Definition::tool(Json::from_value(&def)).unwrap();
        let here = prefixed_tool("a", &def).unwrap();
        let meta = here.json().get("_meta").unwrap();
        let text = r#"{"ui":{"resourceUri":"ui://a/app","visibility":["app"]},"ui/resourceUri":"ui://a/app","x/y":1.5}"#;
        assert_eq!(meta.canonical(), text);
        assert_eq!(ui_resource_uris("a", &def), ["ui://a/app", "ui://a/app"]);
        assert!(prefixed_tool("", &def).is_none());
    }
}
