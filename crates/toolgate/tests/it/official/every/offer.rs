//! A server with all that there are words for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use toolgate::{
    Content, Json,
    core::{PromptMessage, ToolResult},
    edge,
    edge::ServerLimits,
    handlers::{
        Cx, HandlerExit, IntoOutput, ItemRegistry, LogLevel, Prompt, Resource, ResourceContents,
        ResourceTemplate, Server, Structured, Tool, ask,
    },
};

/// Number of items on a page of a list.
pub(super) const PAGE: usize = 2;

/// Offered tools, in order.
pub(super) const TOOLS: [&str; 27] = [
    "all", "blocks", "broken", "choice", "empty", "fails", "fields", "form", "list", "many",
    "meta", "missing", "model", "noisy", "null", "number", "object", "page", "panics", "roots",
    "sample", "sure", "text", "titled", "tools", "typed", "whole",
];
pub(super) const PROMPTS: [&str; 3] = ["blocks", "coded", "typed"];
pub(super) const RESOURCES: [&str; 3] = ["test://bytes", "test://parts", "test://text"];
pub(super) const TEMPLATES: [&str; 3] = ["draft://{a}", "note://{a}", "old://{a}"];

pub(super) fn object() -> Value {
    json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"})
}

fn tool<R: IntoOutput + Send + 'static>(
    name: &str,
    run: impl Fn(Cx) -> Result<R, HandlerExit> + Send + Sync + 'static,
) -> Tool {
    Tool::dynamic(name, object(), move |_, cx| {
        let done = run(cx);
        async move { done }
    })
}

/// A tool that asks one thing.
fn asks<T: std::fmt::Debug + 'static>(name: &str, question: fn() -> ask::Question<T>) -> Tool {
    tool(name, move |cx| {
        Ok(format!("{:?}", cx.ask("q", question())?))
    })
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct City {
    /// Name of the city.
    city: String,
    /// Number of inhabitants.
    count: Option<u32>,
}

fn icons() -> Value {
    json!([{"src": "data:image/png;base64,AAAA", "mimeType": "image/png", "sizes": ["48x48"], "theme": "dark"}])
}

fn annotations() -> Value {
    json!({"audience": ["user", "assistant"], "priority": 0.5, "lastModified": "2026-07-28T00:00:00Z"})
}

fn blocks() -> Vec<Content> {
    let text = ResourceContents::text("x").json("test://a", Some("text/plain"));
    let bytes = ResourceContents::bytes([0, 255]).json("test://b", None);
    let meta = Json::from_value(&json!({"example.com/a": [1, null]}));
    let annotations = Json::from_value(&annotations());
    let blocks = [
        Content::text("t"),
        Content::image("AAAA", "image/png"),
        Content::audio("AAAA", "audio/wav"),
        Content::resource(&text),
        Content::resource(&bytes),
        Content::link("test://a", "a"),
        Content::read(Json::from_value(&json!({"type": "smell", "of": "roses"}))).unwrap(),
    ];
    let with = |block: Content| block.with("annotations", &annotations).with("_meta", &meta);
    blocks.clone().into_iter().chain(blocks.map(with)).collect()
}

fn results() -> Vec<Tool> {
    let typed = Tool::new("typed", |args: City, _| async move {
        Ok::<_, HandlerExit>(Structured(args))
    });
    vec![
        tool("blocks", |_| Ok(blocks())),
        tool("object", |_| Ok(Structured(json!({"a": 1})))),
        tool("list", |_| Ok(Structured(vec![1, 2]))).output_schema(json!({"type": "array"})),
        tool("null", |_| Ok(Structured(()))),
        typed
            .title("Typed")
            .description("Says it again.")
            .read_only()
            .destructive(false)
            .idempotent()
            .open_world(false)
            .icons(icons())
            .meta("example.com/ui", json!({"a": 1})),
        tool("empty", |_| Ok(())),
        tool("fails", |_| Err::<(), _>(HandlerExit::new("it failed"))),
        tool("missing", |_| {
            Err::<(), _>(HandlerExit::not_found("no such row"))
        }),
        tool("broken", |_| Ok("not what it promised")).output_schema(json!({"type": "object"})),
        tool("panics", |_| -> Result<(), HandlerExit> {
            panic!("on purpose")
        }),
        tool("meta", |_| {
            Ok(ToolResult {
                meta: Some(Json::from_value(&json!({"example.com/a": 1}))),
                ..ToolResult::error("no")
            })
        }),
        tool("noisy", |cx| {
            cx.progress(1.0, None, "one");
            cx.progress(2.0, 3.0, "");
            for level in [LogLevel::Debug, LogLevel::Emergency] {
                cx.log(level, json!({"a": [1]}));
                cx.log(level, "words");
            }
            Ok("done")
        }),
    ]
}

fn questions() -> Vec<Tool> {
    let fields = || {
        json!({"type": "object", "required": ["mail"], "properties": {
            "mail": {"type": "string", "title": "Mail", "description": "Yours.", "format": "email", "default": "a@b"},
            "share": {"type": "number", "minimum": 0, "maximum": 100, "default": 0.5},
            "count": {"type": "integer", "default": 1},
            "sure": {"type": "boolean", "default": true},
        }})
    };
    let titled = || {
        json!({"type": "object", "properties": {"one": {"type": "string", "default": "a",
            "oneOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]}}})
    };
    let many = || {
        json!({"type": "object", "properties": {
            "plain": {"type": "array", "minItems": 1, "items": {"type": "string", "enum": ["a", "b"]}, "default": ["a"]},
            "titled": {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}},
        }})
    };
    vec![
        asks("text", || ask::text("Who?")),
        asks("sure", || ask::confirm("Sure?")),
        asks("whole", || ask::integer("How many?")),
        asks("number", || ask::number("How much?")),
        asks("choice", || ask::choice("Which?", ["a", "b"])),
        asks("form", || ask::form::<City>("Where?")),
        tool("fields", move |cx| {
            Ok(cx
                .ask("q", ask::form_with("Fill in.", fields()))?
                .to_string())
        }),
        tool("titled", move |cx| {
            Ok(cx.ask("q", ask::form_with("Which?", titled()))?.to_string())
        }),
        tool("many", move |cx| {
            Ok(cx.ask("q", ask::form_with("Which?", many()))?.to_string())
        }),
        asks("page", || ask::url("Log in.", "https://example.com/login")),
        asks("model", || ask::model("Say hello.", 10)),
        asks("sample", || ask::sample(everything())),
        asks("tools", || ask::sample(with_tools())),
        asks("roots", ask::roots),
        tool("all", |cx| {
            let (who, said) = cx.ask_all((
                ("who", ask::text("Who?")),
                ("said", ask::model("Say hello.", 10)),
            ))?;
            Ok(format!("{who} {said}"))
        }),
    ]
}

fn everything() -> Value {
    let say = |content: Value| json!({"role": "user", "content": content});
    json!({
        "messages": [
            say(json!({"type": "text", "text": "t"})),
            say(json!({"type": "image", "data": "AAAA", "mimeType": "image/png"})),
            say(json!({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"})),
        ],
        "modelPreferences": {"hints": [{"name": "small"}], "costPriority": 1, "speedPriority": 0.5, "intelligencePriority": 0},
        "systemPrompt": "s", "includeContext": "none", "temperature": 0.1, "maxTokens": 10,
        "stopSequences": ["."], "metadata": {"a": 1},
    })
}

fn with_tools() -> Value {
    let used = json!({"type": "tool_use", "id": "1", "name": "a", "input": {}});
    let result = json!({"type": "tool_result", "toolUseId": "1", "content": [{"type": "text", "text": "t"}]});
    json!({
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "t"}]},
            {"role": "assistant", "content": [used]},
            {"role": "user", "content": [result]},
        ],
        "maxTokens": 10, "tools": [{"name": "a", "inputSchema": {"type": "object"}}], "toolChoice": {"mode": "auto"},
    })
}

pub(super) fn resource(uri: &str) -> Resource {
    Resource::fixed(uri, "r", ResourceContents::text("x"))
        .title("R")
        .description("It is R.")
        .mime("text/plain")
        .icons(icons())
        .annotations(annotations())
        .meta("example.com/a", 1)
}

fn prompts() -> [Prompt; 3] {
    let all = Prompt::new("blocks", |_, _| async {
        let user = blocks().into_iter().map(PromptMessage::user);
        let model = blocks().into_iter().map(PromptMessage::assistant);
        Ok::<_, HandlerExit>(user.chain(model).collect::<Vec<_>>())
    });
    let typed = Prompt::typed("typed", |args: City, _| async move {
        Ok::<_, HandlerExit>(args.city)
    });
    let coded = Prompt::new("coded", |_, _| async {
        Err::<&str, _>(HandlerExit::code(7, "no"))
    });
    [
        all.title("Blocks")
            .description("All of them.")
            .icons(icons())
            .meta("example.com/a", 1)
            .argument("a", "It.", true)
            .complete(
                "a",
                |typed, _| async move { Ok::<_, HandlerExit>(vec![typed]) },
            ),
        typed,
        coded,
    ]
}

pub(super) fn offer() -> (Arc<edge::ProtocolServer>, ItemRegistry) {
    let parts = Resource::new("test://parts", "parts", |_| async {
        let meta = Json::from_value(&json!({"example.com/a": 1}));
        Ok::<_, HandlerExit>(vec![
            ResourceContents::text("x").meta(meta),
            ResourceContents::bytes([1]).uri("test://other").mime("a/b"),
        ])
    });
    let note = ResourceTemplate::new("note://{a}", "note", |vars, _| async move {
        match vars.get("a") {
            "9" => Err(HandlerExit::not_found("unknown note: 9")),
            a => Ok(format!("note {a}")),
        }
    });
    let plain =
        |uri: &str| ResourceTemplate::new(uri, "plain", |_, _| async { Ok::<_, HandlerExit>("x") });
    let mut limits = ServerLimits::default();
    limits.page_items = PAGE;
    let mut server = Server::new("s", "1")
        .title("S")
        .description("It is S.")
        .website("https://example.com")
        .icons(icons())
        .instructions("Be kind.")
        .cache(60_000, true)
        .limits(limits)
        .resource(resource("test://text"))
        .resource(
            Resource::fixed("test://bytes", "b", ResourceContents::bytes([0])).cache(7, false),
        )
        .resource(parts)
        .template(plain("draft://{a}"))
        .template(plain("old://{a}"))
        .template(
            note.title("N")
                .mime("text/plain")
                .icons(icons())
                .annotations(annotations())
                .complete(
                    "a",
                    |typed, _| async move { Ok::<_, HandlerExit>(vec![typed]) },
                ),
        );
    for tool in results().into_iter().chain(questions()) {
        server = server.tool(tool);
    }
    for prompt in prompts() {
        server = server.prompt(prompt);
    }
    server.build_with_registry().unwrap()
}
