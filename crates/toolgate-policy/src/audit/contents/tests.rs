use super::*;
use serde_json::{Value, json};
use std::sync::Arc;
use toolgate_core::{Definition, Origin};

fn item(schema: Value) -> Arc<Item> {
    let tool = json!({"name": "t", "inputSchema": schema});
    let tool = Definition::tool(Json::from_value(&tool)).unwrap();
    let origin = Origin {
        server: "s".into(),
        trusted: false,
    };
    Arc::new(Item::new(origin, tool))
}

fn held(schema: Value, arguments: Value) -> Option<String> {
    let hidden = MarkedArguments::of(&item(schema));
    AuditContents::default().redacted(&Json::from_value(&arguments), &hidden)
}

#[test]
fn what_a_schema_marks_is_not_held() {
    let schema = json!({"type": "object", "properties": {
        "pin": {"type": "integer", "writeOnly": true},
        "all": {"type": "array", "items": {"format": "password"}},
        "deep": {"anyOf": [{"properties": {"word": {"format": "password"}}}]},
        "name": {"default": {"writeOnly": true}},
        "writeOnly": true,
    }});
    let arguments = json!({"pin": 4711, "all": ["geheim"], "deep": [{"word": {"x": "geheim"}}], "name": "ok", "n": 1.50});
    assert_eq!(
        serde_json::from_str::<Value>(&held(schema, arguments).unwrap()).unwrap(),
        json!({"pin": "[redacted:schema]", "all": "[redacted:schema]", "deep": [{"word": "[redacted:schema]"}], "name": "ok", "n": 1.5})
    );
}

#[test]
fn where_nobody_can_tell_nothing_is_held() {
    let marked = json!({"writeOnly": true});
    for schema in [
        json!({"type": "object", "writeOnly": true}),
        json!({"type": "object", "$defs": {"p": marked}, "properties": {"a": {"$ref": "#/$defs/p"}}}),
        json!({"type": "object", "patternProperties": {"^x": marked}}),
        json!({"type": "object", "additionalProperties": marked}),
    ] {
        assert_eq!(held(schema.clone(), json!({"a": 1})), None, "{schema}");
    }
}

#[test]
fn numbers_stay_to_the_letter() {
    let json = Json::read(
        b"{\"n\": 1.50, \"p\": 1}".to_vec(),
        &toolgate_protocol::json::JsonLimits::default(),
    );
    let hidden = MarkedArguments::of(&item(
        json!({"type": "object", "properties": {"p": {"writeOnly": true}}}),
    ));
    let text = AuditContents::default().redacted(&json.unwrap(), &hidden);
    assert_eq!(text.unwrap(), "{\"n\":1.50,\"p\":\"[redacted:schema]\"}");
}

#[test]
fn one_byte_over_is_omitted() {
    let contents = AuditContents {
        max_bytes: 9,
        ..AuditContents::default()
    };
    let held = |value| contents.redacted(&Json::from_value(&value), &MarkedArguments::default());
    assert_eq!(held(json!({"a": 123})).unwrap(), "{\"a\":123}");
    assert_eq!(held(json!({"a": 1234})).unwrap(), "[omitted: 10 bytes]");
}

#[test]
fn every_kind_of_result_is_one_json_text() {
    use toolgate_core::Op;
    let text = json!({"type": "text", "text": "a \"b\" \n"});
    let meta = json!({"own/x": 1});
    let table = [
        (
            Op::Tool,
            json!({"content": [text, text], "structuredContent": {"n": [1]}, "isError": true, "_meta": meta}),
        ),
        (Op::Tool, json!({"content": []})),
        (
            Op::Resource,
            json!({"contents": [{"uri": "a:b", "text": "x"}], "_meta": meta}),
        ),
        (
            Op::Prompt,
            json!({"messages": [{"role": "user", "content": text}, {"role": "assistant", "content": text}], "description": "a \"b\""}),
        ),
    ];
    for (op, result) in table {
        let output = Output::read(op, &Json::from_value(&result)).unwrap();
        assert_eq!(output::json(&output).unwrap().to_value(), result);
    }
}
