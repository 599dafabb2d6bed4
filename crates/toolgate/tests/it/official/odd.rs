//! Odd but real definitions and results: normalized, then written for each revision, they fit its schema.

use super::{schema::wrong, table::REVISIONS};
use serde_json::{Value, json};
use toolgate_protocol::{
    dialect,
    json::{Json, JsonLimits},
    method::{
        definition::ItemKind, initialize::Implementation, list::CacheHint, operation::Op,
        output::Output,
    },
    normalize,
};

/// Values that are not what a member should be; one of them is, for each member.
fn ill_typed() -> [Value; 10] {
    [
        json!(null),
        json!(true),
        json!(false),
        json!(7),
        json!(-1.5),
        json!("v1"),
        json!([]),
        json!([1, null, {}]),
        json!({}),
        json!({"a": null}),
    ]
}

fn read(value: &Value) -> Json {
    Json::read(value.to_string().into_bytes(), &JsonLimits::default()).unwrap()
}

/// The definitions of one kind, each with every known member ill-typed in every way.
fn odd_definitions(kind: ItemKind) -> Vec<Value> {
    let (base, members): (Value, &[&str]) = match kind {
        ItemKind::Tool => (
            json!({"name": "t", "inputSchema": {"type": "object"}}),
            &[
                "title",
                "description",
                "inputSchema",
                "outputSchema",
                "annotations",
                "icons",
                "execution",
                "_meta",
            ],
        ),
        ItemKind::Resource => (
            json!({"uri": "a:b", "name": "r"}),
            &[
                "name",
                "title",
                "description",
                "mimeType",
                "size",
                "annotations",
                "icons",
                "_meta",
            ],
        ),
        ItemKind::Template => (
            json!({"uriTemplate": "a:{b}", "name": "r"}),
            &[
                "name",
                "title",
                "description",
                "mimeType",
                "annotations",
                "icons",
                "_meta",
            ],
        ),
        _ => (
            json!({"name": "p"}),
            &["title", "description", "arguments", "icons", "_meta"],
        ),
    };
    let mut all = Vec::new();
    for member in members {
        for value in ill_typed() {
            let mut odd = base.clone();
            odd[*member] = value;
            all.push(odd);
        }
        let mut odd = base.clone();
        odd.as_object_mut().unwrap().remove(*member);
        all.push(odd);
    }
    for (outer, inner) in inner_members(kind) {
        for value in ill_typed() {
            let mut odd = base.clone();
            odd[outer] = match outer {
                "icons" => {
                    let mut icon = json!({"src": "https://a.example/i.png"});
                    icon[inner] = value;
                    json!([icon])
                }
                "arguments" => {
                    let mut argument = json!({"name": "a"});
                    argument[inner] = value;
                    json!([argument])
                }
                _ => json!({ inner: value }),
            };
            all.push(odd);
        }
    }
    all
}

fn inner_members(kind: ItemKind) -> Vec<(&'static str, &'static str)> {
    let annotations: &[&str] = match kind {
        ItemKind::Tool => &[
            "title",
            "readOnlyHint",
            "destructiveHint",
            "idempotentHint",
            "openWorldHint",
        ],
        ItemKind::Prompt => &[],
        _ => &["audience", "priority", "lastModified"],
    };
    let of = |outer, inner: &[&'static str]| inner.iter().map(|i| (outer, *i)).collect::<Vec<_>>();
    let mut all = of("annotations", annotations);
    all.extend(of("icons", &["src", "mimeType", "sizes", "theme"]));
    match kind {
        ItemKind::Tool => {
            all.push(("execution", "taskSupport"));
            let schema = [
                "type",
                "properties",
                "required",
                "$schema",
                "additionalProperties",
            ];
            all.extend(of("inputSchema", &schema));
            all.extend(of("outputSchema", &schema));
        }
        ItemKind::Prompt => all.extend(of("arguments", &["title", "description", "required"])),
        _ => {}
    }
    all
}

/// Schemas that servers have, each of which is the input schema of one tool.
fn odd_schemas() -> Vec<Value> {
    vec![
        json!({"properties": {"a": {"type": "string"}}}),
        json!({"type": ["object", "null"]}),
        json!({"type": "string"}),
        json!({"type": "any"}),
        json!({"type": "object", "properties": {"a": true, "b": false, "c": {}}}),
        json!({"type": "object", "properties": {"a": null, "b": [], "c": "string", "d": 5}}),
        json!({"type": "object", "properties": [], "required": {}}),
        json!({"type": "object", "required": ["a", 5, null]}),
        json!({"type": "object", "properties": ["a"]}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "properties": {"x": true}}}}),
        json!({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
        json!({"$schema": "http://json-schema.org/draft-04/schema#", "type": "object"}),
        json!({"$schema": 7, "type": "object"}),
    ]
}

/// The definitions as a list in each revision; how many are offered.
fn lists(kind: ItemKind, definitions: &[Value]) -> usize {
    let result = match kind {
        ItemKind::Tool => "ListToolsResult",
        ItemKind::Resource => "ListResourcesResult",
        ItemKind::Template => "ListResourceTemplatesResult",
        _ => "ListPromptsResult",
    };
    let normal = |value: &Value| normalize::definition(kind, read(value)).ok();
    let normal: Vec<_> = definitions.iter().filter_map(normal).collect();
    for dialect in REVISIONS.map(|revision| dialect::find(revision).unwrap()) {
        for one in normal.iter().filter(|one| one.withheld.is_none()) {
            let json = dialect.definition(&one.definition).unwrap();
            let server = Implementation::new("s", "1");
            let list = dialect.list(kind, &[json], None, CacheHint::default(), 0, &server);
            let list = list.to_value();
            assert_eq!(wrong(dialect.revision, result, &list), None, "{list}");
        }
    }
    normal.iter().filter(|one| one.withheld.is_none()).count()
}

#[test]
fn an_odd_definition_fits_the_schema_of_every_revision() {
    let mut count = 0;
    for kind in [
        ItemKind::Tool,
        ItemKind::Resource,
        ItemKind::Template,
        ItemKind::Prompt,
    ] {
        let odd = odd_definitions(kind);
        let offered = lists(kind, &odd);
        println!("{}: {offered} of {} are offered", kind.as_str(), odd.len());
        assert!(offered * 10 >= odd.len() * 8, "too many are lost");
        count += odd.len();
    }
    let schemas: Vec<Value> = odd_schemas()
        .into_iter()
        .map(|schema| json!({"name": "t", "inputSchema": schema}))
        .collect();
    assert_eq!(
        lists(ItemKind::Tool, &schemas),
        schemas.len() - 2,
        "a string and an array of properties"
    );
    let outputs: Vec<Value> = odd_schemas()
        .into_iter()
        .map(|schema| json!({"name": "t", "inputSchema": {"type": "object"}, "outputSchema": schema}))
        .collect();
    assert_eq!(lists(ItemKind::Tool, &outputs), outputs.len());
    assert!(count > 250, "{count}");
}

#[test]
fn a_definition_in_order_keeps_its_bytes() {
    let text = r#"{"name":"a", "inputSchema":{"type":"object","properties":{"b":true}},"icons":[{"src":"https://a.example/"}],"x":1e400}"#;
    let json = Json::read(text.as_bytes().to_vec(), &JsonLimits::default()).unwrap();
    let normal = normalize::definition(ItemKind::Tool, json).unwrap();
    assert_eq!(normal.definition.json().as_str(), text);
    assert!(normal.repairs.is_empty() && normal.withheld.is_none());
}

/// Results of tools that servers send.
fn odd_results() -> Vec<Value> {
    let mut all = vec![
        json!({"content": "plain"}),
        json!({"content": {"type": "text", "text": "alone"}}),
        json!({"content": ["a", "b"]}),
        json!({"content": [], "isError": "true"}),
        json!({"content": [], "isError": null, "_meta": "v1"}),
        json!({"content": [{"text": "no type"}]}),
        json!({"content": [{"type": "new_kind", "data": 5}]}),
        json!({"content": [], "structuredContent": {"a": 1}}),
        json!({"content": [], "structuredContent": 7}),
        json!({"content": [], "structuredContent": null}),
        json!({"structuredContent": [1]}),
    ];
    let blocks = [
        (
            json!({"type": "text", "text": "t"}),
            &["text", "annotations", "_meta"][..],
        ),
        (
            json!({"type": "image", "data": "AA==", "mimeType": "image/png"}),
            &["data", "mimeType", "annotations"],
        ),
        (
            json!({"type": "audio", "data": "AA==", "mimeType": "audio/wav"}),
            &["data", "mimeType", "_meta"],
        ),
        (
            json!({"type": "resource_link", "uri": "a:b", "name": "n"}),
            &[
                "uri",
                "name",
                "title",
                "description",
                "size",
                "icons",
                "mimeType",
            ],
        ),
        (
            json!({"type": "resource", "resource": {"uri": "a:b", "text": "t"}}),
            &["resource"],
        ),
    ];
    for (block, members) in blocks {
        for member in members {
            for value in ill_typed() {
                let mut odd = block.clone();
                odd[*member] = value;
                all.push(json!({"content": [odd]}));
            }
        }
    }
    for member in ["uri", "text", "mimeType", "_meta"] {
        for value in ill_typed() {
            let mut resource = json!({"uri": "a:b", "text": "t"});
            resource[member] = value;
            all.push(json!({"content": [{"type": "resource", "resource": resource}]}));
        }
    }
    all
}

#[test]
fn an_odd_result_fits_the_schema_of_every_revision() {
    for odd in odd_results() {
        let (result, _) = normalize::result(Op::Tool, &read(&odd), "t");
        let output = Output::read(Op::Tool, &result).unwrap_or_else(|why| panic!("{why}: {odd}"));
        fits(&output, "CallToolResult", &odd);
    }
    for part in [
        json!({"text": "no uri"}),
        json!({"uri": "with space", "text": "t"}),
        json!({"uri": null, "text": "t", "mimeType": null}),
        json!({"uri": "a:b", "text": {"a": 1}}),
        json!({"uri": "a:b", "blob": "AA==", "text": null, "_meta": []}),
    ] {
        for odd in [json!({"contents": [part]}), json!({"contents": part})] {
            let (result, _) = normalize::result(Op::Resource, &read(&odd), "a:asked");
            let output = Output::read(Op::Resource, &result);
            let output = output.unwrap_or_else(|why| panic!("{why}: {odd}"));
            fits(&output, "ReadResourceResult", &odd);
        }
    }
    for content in [
        json!("text"),
        json!([{"type": "text", "text": "t"}]),
        json!({"type": "text", "text": null}),
    ] {
        let odd = json!({"messages": [{"role": "user", "content": content}], "description": 5});
        let (result, _) = normalize::result(Op::Prompt, &read(&odd), "p");
        let output = Output::read(Op::Prompt, &result).unwrap_or_else(|why| panic!("{why}: {odd}"));
        fits(&output, "GetPromptResult", &odd);
    }
}

fn fits(output: &Output, definition: &str, odd: &Value) {
    for dialect in REVISIONS.map(|revision| dialect::find(revision).unwrap()) {
        let written = dialect
            .output(output, &Implementation::new("s", "1"))
            .to_value();
        assert_eq!(
            wrong(dialect.revision, definition, &written),
            None,
            "{odd} became {written}"
        );
    }
}

/// In every pair of revisions a client gets the structured content, as it is or as text.
#[test]
fn structured_content_reaches_every_client() {
    for (structured, first_with) in [
        (json!({"a": 1.0}), "2025-06-18"),
        (json!([1]), "2026-07-28"),
        (json!(null), "2026-07-28"),
    ] {
        let text = structured.to_string();
        for content in [
            json!([]),
            json!([{"type": "image", "data": "AA==", "mimeType": "image/png"}]),
        ] {
            let sent = json!({"content": content, "structuredContent": structured});
            let (result, _) = normalize::result(Op::Tool, &read(&sent), "t");
            let output = Output::read(Op::Tool, &result).unwrap();
            for dialect in REVISIONS.map(|revision| dialect::find(revision).unwrap()) {
                let written = dialect
                    .output(&output, &Implementation::new("s", "1"))
                    .to_value();
                let as_text = written["content"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .any(|b| b["text"] == text);
                let as_is = written.get("structuredContent") == Some(&structured);
                let knows = dialect.revision >= first_with;
                assert_eq!(
                    (as_is, as_text),
                    (knows, !knows),
                    "{} {written}",
                    dialect.revision
                );
            }
        }
        let both =
            json!({"content": [{"type": "text", "text": "said"}], "structuredContent": structured});
        let output = Output::read(Op::Tool, &read(&both)).unwrap();
        for dialect in dialect::ALL {
            let written = dialect
                .output(&output, &Implementation::new("s", "1"))
                .to_value();
            assert_eq!(
                written["content"].as_array().map(Vec::len),
                Some(1),
                "{written}"
            );
        }
    }
}
