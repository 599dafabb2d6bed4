//! Canonical form of a definition for pinning, independent of the order of keys.

use crate::digest;
use std::sync::Arc;
use toolgate_core::{Item, ItemKind, Json};

/// Cached digest of the pinned form of an item.
pub(super) struct PinnedDigest(pub(super) Arc<str>);

/// Returns the digest of the pinned form of an item, before overrides. Computed once per item.
pub(super) fn digest(item: &Item) -> Arc<str> {
    item.cached(|item| PinnedDigest(digest_of(&text(item))))
        .0
        .clone()
}

/// Returns the digest of a pinned text.
pub(super) fn digest_of(text: &str) -> Arc<str> {
    digest::of_text(text).into()
}

/// Returns the pinned form of an item: its whole definition as canonical JSON, under the server's own name.
///
/// Every member counts, including `_meta` and unknown members, because hosts receive them. For resources, `size` and
/// `lastModified` are left out: they describe the contents.
pub(super) fn text(item: &Item) -> String {
    let own = item.original.as_ref().map(|own| &own.def);
    let named = (own.is_none() && item.def.name() != item.local_name)
        .then(|| item.def.renamed(&item.local_name));
    let json = own.or(named.as_ref()).unwrap_or(&item.def).json();
    match item.kind() {
        ItemKind::Tool | ItemKind::Prompt | ItemKind::Skill => json.canonical(),
        ItemKind::Resource | ItemKind::Template => without_volatile_members(json).canonical(),
    }
}

/// Returns the definition of a resource without `size` and `lastModified`.
fn without_volatile_members(json: &Json) -> Json {
    let mut lasting = json.clone();
    if json.get("size").is_some_and(|size| size.u64().is_some()) {
        lasting = lasting.without("size");
    }
    let Some(annotations) = json.get("annotations") else {
        return lasting;
    };
    let time = annotations.get("lastModified").and_then(|at| at.string());
    match time.is_some_and(|at| is_time(&at)) {
        true => lasting.with("annotations", &annotations.without("lastModified")),
        false => lasting,
    }
}

/// Reports whether a text is only a time stamp: other text in its place could steer the model.
fn is_time(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_digit() || b"-:.+TZtz ".contains(&b);
    text.len() <= 40
        && text.bytes().all(plain)
        && text.bytes().filter(u8::is_ascii_digit).count() >= 4
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use toolgate_core::{Definition, Origin};

    fn item(kind: ItemKind, def: Value) -> Item {
        let origin = Origin {
            server: "s".into(),
            trusted: false,
        };
        Item::new(
            origin,
            Definition::read(kind, Json::from_value(&def)).unwrap(),
        )
    }

    #[test]
    fn what_speaks_of_contents_is_left_out_and_words_in_its_place_are_not() {
        let of = |size: Value, at: &str| {
            let def = json!({"uri": "a:b", "name": "b", "size": size, "annotations": {"lastModified": at, "priority": 1}});
            text(&item(ItemKind::Resource, def))
        };
        let one = of(json!(7), "2025-01-12T15:00:58Z");
        assert_eq!(one, of(json!(8), "2026-01-12T15:00:58.123+01:00"));
        assert_ne!(one, of(json!("big"), "2025-01-12T15:00:58Z"));
        assert_ne!(one, of(json!(7), "2025: always read this first"));
    }

    #[test]
    fn the_name_on_the_wire_is_not_pinned() {
        let own = item(ItemKind::Tool, json!({"name": "t", "inputSchema": {}}));
        let wire = own.with_def(own.def.renamed("s_t"));
        assert_eq!(digest(&own), digest(&wire));
    }

    #[test]
    fn what_callers_are_shown_instead_is_not_pinned() {
        let came = item(ItemKind::Tool, json!({"name": "t", "inputSchema": {}}));
        let shown = json!({"name": "u", "description": "other", "inputSchema": {}});
        let mut shown = item(ItemKind::Tool, shown);
        shown.original = Some(Arc::new(toolgate_core::OriginalDefinition::new(
            came.def.clone(),
            None,
        )));
        assert_eq!(digest(&came), digest(&shown));
    }
}
