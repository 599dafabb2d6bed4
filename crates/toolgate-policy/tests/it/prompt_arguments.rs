//! Validation of prompt arguments against the list that the prompt declares.

use crate::pipeline_fixture::{PipelineFixture, rule};
use serde_json::{Value, json};
use std::sync::Arc;
use toolgate_core::{
    Call, Definition, ErrorKind, Item, ItemKind, Json, Op, Origin, Outcome, Output,
};
use toolgate_policy::RuleAction;

fn prompt(name: &str, arguments: Option<Value>) -> Arc<Item> {
    let mut json = json!({"name": name});
    if let Some(arguments) = arguments {
        json["arguments"] = arguments;
    }
    let origin = Origin {
        server: "forms".into(),
        trusted: false,
    };
    let definition = Definition::read(ItemKind::Prompt, Json::from_value(&json)).unwrap();
    Arc::new(Item::new(origin, definition))
}

fn fixture() -> PipelineFixture {
    let rules = vec![rule("*", RuleAction::Allow)];
    let fixture = PipelineFixture::with(|m| m.rules = rules);
    fixture.tools(vec![
        prompt("free", None),
        prompt("closed", Some(json!([]))),
        prompt("listed", Some(json!([{"name": "city", "required": true}]))),
    ]);
    fixture.handle(|_| Box::pin(async { Ok(Outcome::Done(Output::text("done"))) }));
    fixture
}

/// Returns the paths of the invalid arguments of a call.
async fn invalid(fixture: &PipelineFixture, op: Op, name: &str, arguments: Value) -> Vec<String> {
    let arguments = Json::from_value(&arguments);
    let call = Call::new("c", fixture.caller.clone(), op, name, arguments);
    match fixture.go(call).await {
        Ok(_) => Vec::new(),
        Err(error) => match error.kind() {
            ErrorKind::InvalidArguments(problems) => problems
                .iter()
                .map(|problem| problem.path.clone())
                .collect(),
            other => panic!("{other:?}"),
        },
    }
}

#[tokio::test]
async fn only_a_prompt_without_a_list_accepts_any_arguments() {
    let fixture = fixture();
    for (name, arguments, expected) in [
        ("free", json!({"city": "Oslo", "unit": "K"}), &[][..]),
        ("free", json!({}), &[]),
        ("closed", json!({"city": "Oslo"}), &["/city"]),
        ("closed", json!({}), &[]),
        ("listed", json!({"city": "Oslo", "unit": "K"}), &["/unit"]),
        ("listed", json!({}), &["/city"]),
    ] {
        let found = invalid(&fixture, Op::Prompt, name, arguments).await;
        assert_eq!(found, expected, "{name}");
    }
}

#[tokio::test]
async fn only_a_prompt_without_a_list_completes_arguments_of_any_name() {
    let fixture = fixture();
    for (name, argument, expected) in [
        ("free", "city", &[][..]),
        ("free", "", &["/"]),
        ("closed", "city", &["/city"]),
        ("listed", "city", &[]),
        ("listed", "unit", &["/unit"]),
    ] {
        let params = json!({"argument": {"name": argument, "value": ""}});
        let op = Op::Complete(ItemKind::Prompt);
        let found = invalid(&fixture, op, name, params).await;
        assert_eq!(found, expected, "{name} {argument}");
    }
}
