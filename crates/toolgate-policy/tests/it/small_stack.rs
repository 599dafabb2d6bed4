//! T24: deep and wide JSON through all duties, on a stack of 256 KiB: a value or an error, never an overflow.

use crate::pipeline_fixture::{PipelineFixture, item, rule};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use toolgate_core::{
    Call, Content, Error, ErrorKind, Json, ListRequest, Outcome, Output, Service, ToolResult,
};
use toolgate_policy::RuleAction;
use toolgate_protocol::json::{ArrayWriter, JsonLimits, ObjectWriter};

/// A bound on a hang, not a measurement.
const HANG: Duration = Duration::from_secs(120);

fn on_small_stack(work: impl Future<Output = ()> + Send + 'static) {
    let run = move || {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        runtime.block_on(work);
    };
    let thread = std::thread::Builder::new().stack_size(256 * 1024);
    thread.spawn(run).unwrap().join().unwrap();
}

/// An object that nests so deep; deeper than any reader takes, as a program may write it.
fn deep(levels: usize) -> Json {
    let mut nest = ObjectWriter::new().finish();
    for n in 0..levels {
        if n % 2 == 0 {
            let mut a = ArrayWriter::new();
            a.raw(&nest);
            nest = a.finish();
        } else {
            nest = ObjectWriter::new().finish().with("k", &nest);
        }
    }
    ObjectWriter::new().finish().with("a", &nest)
}

/// Reads JSON with limits that accept the deepest nesting and a million keys.
fn read(text: String) -> Json {
    let wide = JsonLimits {
        bytes: usize::MAX,
        depth: JsonLimits::MAX_DEPTH,
        keys: usize::MAX,
        elements: usize::MAX,
    };
    Json::read(text.into_bytes(), &wide).unwrap()
}

fn wide(keys: usize) -> Json {
    let keys: Vec<String> = (0..keys).map(|n| format!("\"k{n}\":{n}")).collect();
    read(format!("{{{}}}", keys.join(",")))
}

/// Number of keys of a test object; as arguments each of them is checked, which takes time.
const KEYS: usize = 1_000_000;

/// Values that come close to a limit, or go far beyond it.
fn values(keys: usize) -> Vec<(&'static str, Json)> {
    let nested = |n: usize| read(format!("{}1{}", "{\"a\":".repeat(n), "}".repeat(n)));
    let items = format!("{{\"a\":[{}1]}}", "1,".repeat(1_000_000));
    vec![
        ("64 deep", nested(64)),
        ("128 deep", nested(128)),
        ("10,000 deep", deep(10_000)),
        ("many keys", wide(keys)),
        ("a million items", read(items)),
        (
            "a long text",
            wide(0).with(
                "a",
                &Json::from_value(&"\\\"<\u{202e}x".repeat(100_000).into()),
            ),
        ),
    ]
}

/// Tools whose schemas lead a checker down or along.
fn tools() -> Vec<Value> {
    vec![
        json!({"name": "open", "inputSchema": {"type": "object"}}),
        json!({"name": "again", "inputSchema": {"type": "object",
            "additionalProperties": {"$ref": "#/$defs/any"},
            "$defs": {"any": {"anyOf": [
                {"type": "object", "additionalProperties": {"$ref": "#/$defs/any"}},
                {"type": "array", "items": {"$ref": "#/$defs/any"}},
                {"type": ["number", "string"]}]}}},
            "outputSchema": {"type": "object", "additionalProperties": {"$ref": "#/$defs/any"},
                "$defs": {"any": {"anyOf": [
                    {"type": "object", "additionalProperties": {"$ref": "#/$defs/any"}},
                    {"type": "array", "items": {"$ref": "#/$defs/any"}},
                    {"type": ["number", "string"]}]}}}}),
    ]
}

async fn go(fixture: &PipelineFixture, tool: &str, arguments: Json) -> Result<Outcome, Error> {
    let call = Call::tool("c", fixture.caller.clone(), tool, arguments);
    let began = Instant::now();
    let outcome = fixture.go(call).await;
    assert!(began.elapsed() < HANG);
    outcome
}

#[test]
fn t24_arguments_overflow_no_stack() {
    on_small_stack(async {
        let fixture = PipelineFixture::with(|m| m.rules = vec![rule("*", RuleAction::Allow)]);
        fixture.tools(tools().into_iter().map(item).collect());
        let (mut through, mut refused) = (0, 0);
        for (what, value) in values(KEYS / 10) {
            for tool in ["open", "again"] {
                match go(&fixture, tool, value.clone()).await {
                    Ok(_) => through += 1,
                    Err(error) if *error.kind() == ErrorKind::Bug => {
                        panic!("{what} {tool}: {error:?}")
                    }
                    Err(_) => refused += 1,
                }
            }
        }
        println!("T24: arguments, {through} through all duties, {refused} refused, no overflow");
    });
}

#[test]
fn t24_results_overflow_no_stack() {
    on_small_stack(async {
        let fixture = PipelineFixture::with(|m| m.rules = vec![rule("*", RuleAction::Allow)]);
        fixture.tools(tools().into_iter().map(item).collect());
        let (mut through, mut refused) = (0, 0);
        for (what, value) in values(KEYS) {
            let block = value.clone();
            fixture.handle(move |_| {
                let structured = Some(block.clone());
                let mut content = vec![Content::text(block.as_str())];
                let odd = ObjectWriter::new()
                    .finish()
                    .with("type", &Json::from_value(&json!("text")));
                let odd = odd
                    .with("text", &Json::from_value(&json!("x")))
                    .with("_meta", &block);
                content.extend(Content::read(odd));
                let result = ToolResult {
                    content,
                    structured,
                    ..ToolResult::default()
                };
                Box::pin(async { Ok(Outcome::Done(Output::Tool(result))) })
            });
            for tool in ["open", "again"] {
                match go(&fixture, tool, wide(0)).await {
                    Ok(_) => through += 1,
                    Err(error) if *error.kind() == ErrorKind::Bug => {
                        panic!("{what} {tool}: {error:?}")
                    }
                    Err(_) => refused += 1,
                }
            }
        }
        println!("T24: results, {through} through all duties, {refused} refused, no overflow");
    });
}

/// A schema that is too deep or too wide costs its tool, and nothing else.
#[test]
fn t24_definitions_overflow_no_stack() {
    on_small_stack(async {
        let fixture = PipelineFixture::with(|m| m.rules = vec![rule("*", RuleAction::Allow)]);
        let schema = |inside: &Json| {
            let plain = Json::from_value(&json!({"type": "object"}));
            let def = Json::from_value(&json!({"name": "bad"}));
            def.with("inputSchema", &plain.with("properties", inside))
        };
        let mut withheld = 0;
        for (what, value) in values(KEYS) {
            let good = item(json!({"name": "good", "inputSchema": {"type": "object"}}));
            let origin = good.origin.clone();
            let Ok(def) = toolgate_core::Definition::tool(schema(&value)) else {
                withheld += 1;
                continue;
            };
            let bad = std::sync::Arc::new(toolgate_core::Item::new(origin, def));
            fixture.tools(vec![good, bad]);
            let ask = ListRequest::all(fixture.caller.clone(), toolgate_core::ItemKind::Tool);
            let listed = fixture.pipeline().list(ask).await.unwrap();
            assert!(listed.find("good").is_some(), "{what}");
            withheld += usize::from(listed.find("bad").is_none());
            let _ = go(&fixture, "bad", wide(0)).await;
        }
        println!(
            "T24: {withheld} of {} definitions withheld, no overflow",
            values(0).len()
        );
        assert!(withheld >= 4);
    });
}
