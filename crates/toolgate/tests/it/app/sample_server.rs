//! Sample server with one item of each kind, and clients of it.

use crate::official::{Side, tapped};
use serde_json::{Value, json};
use toolgate::{
    Caller, Client, Cx, HandlerExit, Prompt, Resource, ResourceTemplate, Server, Structured, Tool,
    client::{ClientBuilder, IntoServer},
    edge::stdio,
    handlers::{LogLevel, ask},
};

/// All revisions.
pub(crate) const REVISIONS: [&str; 5] = [
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    "2026-07-28",
];
/// Those in which a server can put a form to the user.
pub(crate) const ASKING: [&str; 3] = ["2025-06-18", "2025-11-25", "2026-07-28"];

fn tool<F, A>(name: &str, run: F) -> Tool
where
    F: Fn(Value, Cx) -> A + Send + Sync + 'static,
    A: Future<Output = Result<Value, HandlerExit>> + Send + 'static,
{
    let schema = json!({"type": "object"});
    Tool::dynamic(name, schema, move |args: Value, cx: Cx| {
        let run = run(args, cx);
        async move { run.await.map(Structured) }
    })
}

/// The server.
pub(crate) fn server() -> Server {
    let add = Tool::dynamic(
        "add",
        json!({"type": "object", "required": ["a", "b"], "properties":
            {"a": {"type": "integer"}, "b": {"type": "integer"}}}),
        |args: Value, _: Cx| async move {
            let sum = args["a"].as_i64().unwrap() + args["b"].as_i64().unwrap();
            Ok::<_, HandlerExit>(Structured(json!({"sum": sum})))
        },
    );
    let fail = tool("fail", |_, _| async { Err(HandlerExit::new("no luck")) });
    let count = tool("count", |_, cx| async move {
        for n in 1..=3 {
            cx.progress(f64::from(n), 3.0, "counting");
        }
        cx.log(LogLevel::Warning, "counted");
        Ok(json!({}))
    });
    let asks = tool("asks", |_, cx| async move {
        let unit = cx.ask("unit", ask::choice("Which unit?", ["C", "F"]))?;
        Ok(json!({"unit": unit}))
    });
    let name_of = tool("name_of", |args, cx| async move {
        let who = args["who"].as_str().unwrap_or_default().to_owned();
        let name = cx.ask("name", ask::text(&format!("Name of {who}")))?;
        Ok(json!({"said": format!("{who} is {name}")}))
    });
    let form = tool("form", |_, cx| async move {
        let schema = json!({"type": "object", "properties": {
            "name": {"type": "string", "default": "Ada"}, "age": {"type": "integer", "default": 36}}});
        cx.ask("form", ask::form_with("Who are you?", schema))
    });
    let model = tool("model", |_, cx| async move {
        let said = cx.ask("said", ask::model("Say something.", 2))?;
        Ok(json!({"said": said}))
    });
    let roots = tool("roots", |_, cx| async move {
        let roots = cx.ask("roots", ask::roots())?;
        let uris: Vec<String> = roots.into_iter().map(|root| root.uri).collect();
        Ok(json!({"roots": uris}))
    });
    let note = Resource::new("note://today", "today", |_| async {
        Ok::<_, HandlerExit>("Sunny.")
    });
    let notes = ResourceTemplate::new("note://of/{day}", "of", |vars, _| async move {
        Ok::<_, HandlerExit>(format!("Notes of {}.", vars.get("day")))
    });
    let greet = Prompt::new("greet", |args, _| async move {
        Ok::<_, HandlerExit>(format!("Greet {}.", args["who"]))
    })
    .argument("who", "Who it is.", true)
    .complete("who", |typed, _| async move {
        let names = ["Ada", "Alan", "Grace"].map(str::to_owned);
        Ok::<_, HandlerExit>(
            names
                .into_iter()
                .filter(|n| n.starts_with(&*typed))
                .collect(),
        )
    });
    Server::new("world", "1.0.0")
        .instructions("Use it well.")
        .extension(
            "com.example/thing",
            toolgate::Json::from_value(&json!({"x": 1})),
        )
        .tool(add)
        .tool(fail)
        .tool(count)
        .tool(asks)
        .tool(name_of)
        .tool(form)
        .tool(model)
        .tool(roots)
        .resource(note)
        .template(notes)
        .prompt(greet)
}

/// A client of it.
pub(crate) async fn client(revision: &str, with: ClientBuilder) -> Client {
    let client = over(with.revision(revision), server()).await;
    assert_eq!(client.revision(), revision);
    client
}

/// A client of a server in this very program. Every message of both is checked against the official schemas.
#[allow(clippy::disallowed_methods, reason = "ends with its stream")]
pub(crate) async fn over(with: ClientBuilder, server: impl IntoServer) -> Client {
    let server = server.into_server().unwrap();
    let (end, other) = tapped(&[Side::Client, Side::Server]);
    let (reader, writer) = tokio::io::split(other);
    let caller = Caller::new("in-process");
    tokio::spawn(stdio::serve(server, caller, reader, writer));
    let (reader, writer) = tokio::io::split(end);
    with.id("world").open(reader, writer).await.unwrap()
}
