//! Definitions and pages.

use super::{json, object, text};
use proptest::prelude::*;
use serde_json::{Value, json as tree};
use toolgate_protocol::{
    dialect::{self, Dialect},
    json::Json,
    method::{
        definition::{Definition, ItemKind},
        initialize::Implementation,
        list::{CacheHint, ListPage},
    },
};

const KNOWN: [&str; 9] = [
    "title",
    "description",
    "icons",
    "annotations",
    "execution",
    "_meta",
    "mimeType",
    "size",
    "x-own",
];

fn kind() -> impl Strategy<Value = ItemKind> {
    prop::sample::select(ItemKind::ALL.to_vec())
}

fn definition() -> impl Strategy<Value = Definition> {
    let members = prop::collection::vec((prop::sample::select(KNOWN.to_vec()), object()), 0..5);
    let output = prop::option::of(prop::sample::select(vec!["object", "array", "string"]));
    (kind(), "[a-z]{1,9}", members, output, object()).prop_map(
        |(kind, name, members, output, input)| {
            let mut def = tree!({});
            for (key, value) in members {
                def[key] = value;
            }
            def["name"] = name.clone().into();
            def[kind.key_member()] = name.clone().into();
            if kind == ItemKind::Skill {
                as_skill(&mut def, &name);
            }
            if kind == ItemKind::Tool {
                def["inputSchema"] = input;
                if let Some(output) = output {
                    def["outputSchema"] = tree!({"type": output});
                }
            }
            Definition::read(kind, json(&def)).expect("a definition")
        },
    )
}

/// Adds the members of a skill entry.
fn as_skill(def: &mut Value, name: &str) {
    def["uri"] = format!("skill://{name}/SKILL.md").into();
    def["frontmatter"] = tree!({"name": name, "description": "what it is for"});
    def["resources"] = "dynamic".into();
}

/// Returns whether the revision has a member of a definition, independently of the table under test.
fn knows(dialect: &Dialect, kind: ItemKind, key: &str, value: &Json) -> bool {
    let tool = kind == ItemKind::Tool;
    match key {
        "icons" => dialect.revision >= "2025-11-25",
        "execution" => dialect.revision == "2025-11-25",
        "title" | "_meta" => dialect.revision >= "2025-06-18",
        "annotations" if tool => dialect.revision >= "2025-03-26",
        "outputSchema" => {
            let object = value.get("type").and_then(|t| t.string()).as_deref() == Some("object");
            dialect.revision >= "2025-06-18" && (object || dialect.stateless)
        }
        _ => true,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Members that the revision knows stay to the letter; of the others at most those stay that no schema forbids.
    ///
    /// Holds: TOOL-10, TOOL-11.
    #[test]
    fn a_definition_is_read_back(def in definition()) {
        for dialect in dialect::ALL {
            let written = dialect.definition(&def).expect("it is allowed");
            let read = Definition::read(def.kind(), written.clone()).expect("a definition");
            prop_assert_eq!(read.name(), def.name());
            for (key, value) in def.json().members() {
                let kept = written.get(&key);
                if knows(dialect, def.kind(), &key, &value) {
                    prop_assert_eq!(kept.as_ref().map(Json::as_str), Some(value.as_str()), "{} {}", dialect.revision, key);
                } else if matches!(&*key, "icons" | "execution" | "outputSchema") {
                    prop_assert!(kept.is_none(), "{} {}", dialect.revision, key);
                }
            }
            for (key, _) in written.members() {
                prop_assert!(def.json().get(&key).is_some(), "{} made {}", dialect.revision, key);
            }
        }
    }

    #[test]
    fn a_page_is_read_back(defs in prop::collection::vec(definition(), 0..5), kind in kind(), next in prop::option::of(text()), ttl in 0..i64::MAX as u64, public in any::<bool>(), missing in 0usize..3) {
        let items: Vec<Json> = defs.iter().map(|d| d.json().clone()).collect();
        let hint = CacheHint { ttl_ms: ttl, public };
        for dialect in dialect::ALL {
            let written = dialect.list(kind, &items, next.as_deref(), hint, missing, &Implementation::new("s", "1"));
            let page = ListPage::read(kind, &written).expect("a page");
            prop_assert_eq!(&page.items, &items);
            let told = written.get("_meta").and_then(|meta| meta.get("toolgate/missing")?.u64());
            prop_assert_eq!(told, (missing > 0).then_some(missing as u64));
            prop_assert_eq!(page.next.and_then(|n| n.string()), next.clone());
            prop_assert_eq!(page.hint, if dialect.stateless { hint } else { CacheHint::default() });
            for other in ItemKind::ALL.into_iter().filter(|k| k.list_member() != kind.list_member()) {
                prop_assert!(ListPage::read(other, &written).is_none(), "read as another kind");
            }
        }
    }
}

/// The accessors of a definition return its members.
#[test]
fn a_definition_without_its_key_is_none() {
    for kind in ItemKind::ALL {
        let mut whole = tree!({"name": "n", "uri": "a:b", "uriTemplate": "a:{b}", "inputSchema": {"type": "object"}});
        if kind == ItemKind::Skill {
            as_skill(&mut whole, "n");
        }
        assert!(Definition::read(kind, json(&whole)).is_ok());
        whole[kind.key_member()] = Value::Null;
        assert!(Definition::read(kind, json(&whole)).is_err(), "{kind:?}");
    }
}

/// Holds: TOOL-22
#[test]
fn hints_that_are_absent_have_a_meaning_and_some_mean_nothing_beside_others() {
    let check = |annotations: Value, expected: [bool; 4]| {
        let mut def = tree!({"name": "a", "inputSchema": {"type": "object"}});
        if !annotations.is_null() {
            def["annotations"] = annotations.clone();
        }
        let hints = Definition::tool(json(&def)).expect("a tool").annotations();
        let found = [
            hints.read_only,
            hints.destructive,
            hints.idempotent,
            hints.open_world,
        ];
        assert_eq!(found, expected, "{annotations}");
    };
    let absent = [false, true, false, true];
    for nothing in [
        Value::Null,
        tree!({}),
        tree!({"title": "A"}),
        tree!({"readOnlyHint": null, "destructiveHint": "no", "idempotentHint": 1}),
        tree!({"readonlyhint": true, "DestructiveHint": false}),
    ] {
        check(nothing, absent);
    }
    check(tree!({"readOnlyHint": false}), absent);
    check(
        tree!({"destructiveHint": false}),
        [false, false, false, true],
    );
    check(tree!({"idempotentHint": true}), [false, true, true, true]);
    check(tree!({"openWorldHint": false}), [false, true, false, false]);
    // What only reads destroys nothing, however often it is called, whatever else it says.
    for (destructive, idempotent) in [(true, true), (true, false), (false, false)] {
        let said = tree!({"readOnlyHint": true, "destructiveHint": destructive,
            "idempotentHint": idempotent, "openWorldHint": false});
        check(said, [true, false, true, false]);
    }
    check(tree!({"readOnlyHint": true}), [true, false, true, true]);
}
