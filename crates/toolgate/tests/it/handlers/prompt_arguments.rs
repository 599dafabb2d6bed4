//! Types of prompt arguments, which clients send as text.

use super::peer::{NEWEST_REVISION, Peer};
use serde_json::{Value, json};
use std::{collections::BTreeMap, str::FromStr};
use toolgate::{HandlerExit, Prompt, Server, prompt};

/// Enum that implements only `FromStr`.
#[derive(Debug)]
enum Tone {
    Mild,
    Harsh,
}

impl FromStr for Tone {
    type Err = String;

    fn from_str(text: &str) -> Result<Tone, String> {
        match text {
            "mild" => Ok(Tone::Mild),
            "harsh" => Ok(Tone::Harsh),
            _ => Err("expected mild or harsh".to_owned()),
        }
    }
}

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Celsius,
    Kelvin,
}

#[prompt]
fn numbers(count: i32, small: Option<u8>, ratio: Option<f32>) -> String {
    format!("{count} {small:?} {ratio:?}")
}

#[prompt]
fn choices(sure: bool, tone: Option<Tone>, unit: Option<Unit>, first: Tone) -> String {
    format!("{sure} {tone:?} {unit:?} {first:?}")
}

#[prompt]
fn others(
    letter: char,
    lines: Vec<u8>,
    #[serde(default)] days: u8,
    #[serde(rename = "for")] whom: Option<String>,
) -> String {
    format!("{letter} {lines:?} {days} {whom:?}")
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Fields {
    count: i64,
    tags: Option<BTreeMap<String, bool>>,
}

async fn peer() -> Peer {
    let typed = Prompt::typed("typed", |fields: Fields, _| async move {
        Ok::<_, HandlerExit>(format!("{} {:?}", fields.count, fields.tags))
    });
    let server = Server::new("prompts", "1")
        .prompt(numbers)
        .prompt(choices)
        .prompt(others)
        .prompt(typed);
    Peer::open(&server.build().unwrap(), NEWEST_REVISION, json!({})).await
}

async fn text(peer: &mut Peer, name: &str, arguments: Value) -> Value {
    let params = json!({"name": name, "arguments": arguments});
    let result = peer.result("prompts/get", params).await;
    result["messages"][0]["content"]["text"].clone()
}

#[tokio::test]
async fn reads_arguments_from_text() {
    let mut peer = peer().await;
    for (name, arguments, expected) in [
        ("numbers", json!({"count": "-3"}), "-3 None None"),
        (
            "numbers",
            json!({"count": "7", "small": "255", "ratio": "0.5"}),
            "7 Some(255) Some(0.5)",
        ),
        (
            "choices",
            json!({"sure": "true", "first": "mild"}),
            "true None None Mild",
        ),
        (
            "choices",
            json!({"sure": "false", "first": "harsh", "tone": "mild", "unit": "kelvin"}),
            "false Some(Mild) Some(Kelvin) Harsh",
        ),
        (
            "others",
            json!({"letter": "x", "lines": "[1, 2]", "for": "Ada"}),
            "x [1, 2] 0 Some(\"Ada\")",
        ),
        (
            "typed",
            json!({"count": "9", "tags": "{\"a\": true}"}),
            "9 Some({\"a\": true})",
        ),
    ] {
        assert_eq!(text(&mut peer, name, arguments).await, expected, "{name}");
    }
}

#[tokio::test]
async fn an_unreadable_argument_is_named_with_what_is_expected() {
    let mut peer = peer().await;
    for (name, arguments, expected) in [
        (
            "numbers",
            json!({"count": "many"}),
            "argument `count`: expected a whole number from -2147483648 to 2147483647",
        ),
        (
            "numbers",
            json!({"count": "1", "small": "256"}),
            "argument `small`: expected a whole number from 0 to 255",
        ),
        (
            "numbers",
            json!({"count": "1", "ratio": "half"}),
            "argument `ratio`: expected a number",
        ),
        (
            "choices",
            json!({"sure": "maybe", "first": "mild"}),
            "argument `sure`: expected `true` or `false`",
        ),
        (
            "choices",
            json!({"sure": "true", "first": "cold"}),
            "argument `first`: expected mild or harsh",
        ),
        (
            "choices",
            json!({"sure": "true", "first": "mild", "unit": "feet"}),
            "argument `unit`: expected `celsius` or `kelvin`, got another value",
        ),
        (
            "others",
            json!({"letter": "x", "lines": "1, 2"}),
            "argument `lines`: expected JSON",
        ),
        ("typed", json!({"count": "x"}), "argument `count`: expected"),
    ] {
        let params = json!({"name": name, "arguments": arguments});
        let error = peer.error("prompts/get", params).await;
        assert_eq!(error["code"], -32602, "{error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(expected), "{message}");
    }
}

#[tokio::test]
async fn optional_arguments_are_not_required() {
    let list = peer().await.result("prompts/list", json!({})).await;
    let required = |prompt: &Value| -> Vec<(String, bool)> {
        let arguments = prompt["arguments"].as_array().unwrap().iter();
        let one = |a: &Value| {
            (
                a["name"].as_str().unwrap().to_owned(),
                a["required"] == true,
            )
        };
        arguments.map(one).collect()
    };
    let expected = |pairs: &[(&str, bool)]| -> Vec<(String, bool)> {
        pairs.iter().map(|(n, r)| ((*n).to_owned(), *r)).collect()
    };
    let prompts = list["prompts"].as_array().unwrap();
    let numbers = [("count", true), ("small", false), ("ratio", false)];
    assert_eq!(required(&prompts[0]), expected(&numbers));
    let choices = [
        ("sure", true),
        ("tone", false),
        ("unit", false),
        ("first", true),
    ];
    assert_eq!(required(&prompts[1]), expected(&choices));
}
