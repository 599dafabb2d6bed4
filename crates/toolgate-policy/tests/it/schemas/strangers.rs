//! T48: arguments that nobody expects, against the schemas of real tools.
//!
//! `real/tools.jsonl` has the argument schemas that 17 published servers listed in November 2026, without their words.
#![allow(clippy::print_stdout, reason = "the figures of the tests")]

use super::bombs::explode;
use serde_json::{Map, Value, json};
use toolgate_core::Caller;
use toolgate_policy::SchemaBounds;

/// Returns whether a schema is closed, independently of the implementation of the rule.
fn closed(schema: &Map<String, Value>) -> bool {
    if schema.get("additionalProperties") == Some(&json!(false)) {
        return true;
    }
    let plain = [
        "$schema",
        "type",
        "properties",
        "required",
        "$defs",
        "definitions",
        "x-",
        "$id",
    ];
    let known = |key: &String| plain.iter().any(|word| key.starts_with(word));
    schema.contains_key("properties") && schema.keys().all(known)
}

#[tokio::test]
async fn t48_unknown_arguments_of_real_tools_are_refused() {
    let caller = Caller::new("key:test");
    let (mut tools, mut refused, mut open, mut withheld, mut wrong) = (0, 0, 0, 0, 0);
    for line in include_str!("real/tools.jsonl").lines() {
        let mut tool: Value = serde_json::from_str(line).unwrap();
        let schema = tool["schema"].as_object_mut().unwrap();
        // What is missing would be refused too, and hide what is too much.
        schema.remove("required");
        let closed = closed(schema);
        let string = schema
            .get("properties")
            .and_then(Value::as_object)
            .and_then(|known| {
                let mut known = known.iter();
                known.find_map(|(name, of)| (of.get("type")? == "string").then(|| name.clone()))
            });
        let schema = Value::Object(schema.clone());
        let judge =
            async |value: Value| explode(SchemaBounds::default(), &schema, &value, &caller).await;
        tools += 1;
        match judge(json!({})).await.as_str() {
            "passed" => {}
            "withheld" => {
                withheld += 1;
                continue;
            }
            other => panic!("{other} without arguments: {line}"),
        }
        let expected = if closed { "refused" } else { "passed" };
        for stranger in ["sidenote_of_the_model", "__proto__", "Path ", "$ref", ""] {
            let said = judge(json!({stranger: "everything that the model knows"})).await;
            assert_eq!(said, expected, "{stranger:?}: {line}");
        }
        if closed {
            refused += 1;
        } else {
            open += 1;
        }
        if let Some(name) = string {
            assert_eq!(judge(json!({name: 1})).await, "refused", "{line}");
            wrong += 1;
        }
    }
    println!(
        "T48: {tools} real schemas: {refused} closed in effect refuse 5 of 5 strangers, {open} are open and take them, \
         {withheld} withheld; {wrong} of {wrong} wrong types refused"
    );
    assert!(tools >= 500 && refused >= 400);
}
