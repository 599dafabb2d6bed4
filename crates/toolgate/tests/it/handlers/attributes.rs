//! Functions that the attributes generate, free of lint warnings.

#![deny(
    missing_debug_implementations,
    missing_docs,
    non_camel_case_types,
    unreachable_pub,
    clippy::pedantic
)]
#![allow(
    clippy::unnecessary_wraps,
    clippy::unused_async,
    reason = "the methods stay as they are written, and here nothing is waited for"
)]

use super::peer::{NEWEST_REVISION, Peer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicI64, Ordering};
use toolgate::{Cx, HandlerExit, Server, Structured, prompt, tool, tools};

#[derive(Debug, JsonSchema, Serialize)]
struct Sum {
    sum: i64,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Celsius,
    Kelvin,
}

/// Weather of tomorrow.
///
/// In any unit.
#[tool(title = "Forecast", read_only, idempotent, open_world = false)]
async fn forecast(
    /// City name or postal code.
    place: String,
    cx: Cx,
    unit: Option<Unit>,
    #[serde(default)]
    #[schemars(range(max = 14))]
    days: u8,
) -> Result<String, HandlerExit> {
    // A variable may have the name of a tool.
    let forecast = format!("{place} {unit:?} {days} for {}", cx.caller().name());
    Ok(forecast)
}

#[tool(name = "math.add", destructive = false)]
fn add(a: i64, r#type: Option<String>, b: i64) -> Structured<Sum> {
    drop(r#type);
    Structured(Sum { sum: a + b })
}

#[tool(output = false, description = "Another word.")]
async fn untold() -> Structured<Sum> {
    Structured(Sum { sum: 1 })
}

/// Fails with an error of the standard library.
#[tool]
fn number(text: String) -> Result<String, std::num::ParseIntError> {
    Ok(text.parse::<i32>()?.to_string())
}

#[tool]
fn nothing() {}

/// Public items without documentation cause no warning.
pub(crate) mod public {
    use ::toolgate as renamed;
    use renamed::tool;

    #[tool(crate = "renamed")]
    pub async fn undocumented(mut text: String) -> String {
        text.push('!');
        text
    }
}

struct Counter<T> {
    at: AtomicI64,
    _more: T,
}

#[tools]
impl<T: Send + Sync + 'static> Counter<T> {
    /// Counts up.
    #[tool(destructive = false)]
    async fn up(
        &self,
        /// Distance.
        by: i64,
    ) -> String {
        self.add(by)
    }

    #[toolgate::tool(read_only, name = "value")]
    fn get(&self, _cx: Cx) -> Result<String, HandlerExit> {
        Ok(self.add(0))
    }

    #[cfg(any())]
    #[tool]
    fn not_there(&self) -> Nothing {}

    #[tool]
    fn zero() -> String {
        "0".to_owned()
    }

    fn add(&self, by: i64) -> String {
        (self.at.fetch_add(by, Ordering::Relaxed) + by).to_string()
    }
}

/// Reviews a text.
#[prompt(title = "Review")]
async fn review(
    /// The text.
    text: String,
    /// Strictness of the review.
    tone: Option<String>,
    cx: Cx,
) -> Result<String, HandlerExit> {
    Ok(format!("{} {text} {tone:?}", cx.caller().name()))
}

async fn peer() -> Peer {
    let counter = Counter {
        at: AtomicI64::new(0),
        _more: "anything",
    };
    let server = Server::new("attributes", "1.0.0")
        .tool(forecast)
        .tool(add)
        .tool(untold)
        .tool(number)
        .tool(nothing)
        .tool(public::undocumented().title("Loud"))
        .tools(counter)
        .prompt(review)
        .prompt(noted());
    Peer::open(&server.build().unwrap(), NEWEST_REVISION, json!({})).await
}

#[prompt]
fn noted() -> &'static str {
    "Noted."
}

async fn call(peer: &mut Peer, name: &str, arguments: Value) -> Value {
    let params = json!({"name": name, "arguments": arguments});
    let result = peer.result("tools/call", params).await;
    result["content"][0]["text"].clone()
}

#[tokio::test]
async fn definitions() {
    let tools = peer().await.result("tools/list", json!({})).await;
    let tools = tools["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|t| t["name"].as_str().unwrap()).collect();
    let expected = [
        "forecast",
        "math.add",
        "untold",
        "number",
        "nothing",
        "undocumented",
        "up",
        "value",
        "zero",
    ];
    assert_eq!(names, expected);
    assert_eq!(
        tools[0],
        json!({
            "name": "forecast",
            "title": "Forecast",
            "description": "Weather of tomorrow.\n\nIn any unit.",
            "annotations": {"readOnlyHint": true, "idempotentHint": true, "openWorldHint": false},
            "inputSchema": {"type": "object", "required": ["place"], "additionalProperties": false,
                "properties": {
                    "place": {"type": "string", "description": "City name or postal code."},
                    "unit": {"type": "string", "enum": ["celsius", "kelvin"]},
                    "days": {"type": "integer", "minimum": 0, "maximum": 14, "default": 0}}}
        })
    );
    let sum =
        json!({"type": "object", "required": ["sum"], "properties": {"sum": {"type": "integer"}}});
    assert_eq!(tools[1]["outputSchema"], sum);
    assert!(tools[1]["inputSchema"]["properties"].get("type").is_some());
    assert_eq!(
        (tools[2].get("outputSchema"), &tools[2]["description"]),
        (None, &json!("Another word."))
    );
    let none = json!({"type": "object", "additionalProperties": false});
    assert_eq!(tools[2]["inputSchema"], none);
    assert_eq!(tools[5]["title"], "Loud");
    assert_eq!(
        tools[6]["inputSchema"]["properties"]["by"]["description"],
        "Distance."
    );
    assert_eq!(tools[7]["annotations"], json!({"readOnlyHint": true}));
}

#[tokio::test]
async fn calls() {
    let mut peer = peer().await;
    let place = json!({"place": "Oslo", "unit": "kelvin"});
    assert_eq!(
        call(&mut peer, "forecast", place).await,
        "Oslo Some(Kelvin) 0 for peer"
    );
    assert_eq!(
        call(&mut peer, "math.add", json!({"a": 1, "b": 2})).await,
        "{\"sum\":3}"
    );
    let failed = call(&mut peer, "number", json!({"text": "x"})).await;
    assert_eq!(failed, "invalid digit found in string");
    assert_eq!(call(&mut peer, "nothing", json!({})).await, Value::Null);
    assert_eq!(
        call(&mut peer, "undocumented", json!({"text": "hey"})).await,
        "hey!"
    );
    assert_eq!(call(&mut peer, "up", json!({"by": 2})).await, "2");
    assert_eq!(call(&mut peer, "value", json!({})).await, "2");
    assert_eq!(call(&mut peer, "zero", json!({})).await, "0");
    let unknown = call(&mut peer, "up", json!({"by": 2, "more": 1})).await;
    assert!(unknown.as_str().unwrap().contains("more"), "{unknown}");
    assert_eq!(public::undocumented::call("hey".to_owned()).await, "hey!");
}

#[tokio::test]
async fn prompts() {
    let mut peer = peer().await;
    let list = peer.result("prompts/list", json!({})).await;
    let expected = json!({"name": "review", "title": "Review", "description": "Reviews a text.",
        "arguments": [{"name": "text", "description": "The text.", "required": true},
            {"name": "tone", "description": "Strictness of the review.", "required": false}]});
    assert_eq!(list["prompts"][0], expected);
    let params = json!({"name": "review", "arguments": {"text": "x", "tone": "mild"}});
    let said = peer.result("prompts/get", params).await;
    assert_eq!(
        said["messages"][0]["content"]["text"],
        "peer x Some(\"mild\")"
    );
}
