//! Our server, as any author gets it with all duties on: over stdio, with tools that break each duty.
//!
//! `ours [--http] [--core N] [--tools N] [--quota N] [--audit FOLDER] [--without-secrets] [--layers N]`: lists N tools at
//! least, lets each be called N times a century, records in a folder instead of as events that nobody hears, looks for no
//! secrets in answers, adds N layers of a function.

use hyper_util::service::TowerToHyperService;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use toolgate::{
    Call, Caller, Content, Cx, Error, HandlerExit, Http, Server, Tool,
    core::{ErrorKind, Item, RefusalReason, ToolResult},
    edge::http::HttpLimits,
    layer,
    policy::{CallTimeout, OnSecret, PerServer, RateQuota},
    rule::{MaybeReady, Rule, RuleDecision},
    tool,
};
use toolgate_bench::{breaking::key, has};

/// Says the text again.
#[tool(read_only)]
async fn echo(
    /// The text.
    text: String,
) -> String {
    text
}

/// Hides one tool, and refuses another.
struct Door;

impl Rule for Door {
    fn name(&self) -> &'static str {
        "door"
    }

    fn is_visible(&self, _: &Caller, item: &Item) -> bool {
        item.local_name != "hidden"
    }

    fn decide<'a>(&'a self, _: &'a Call, item: &'a Item) -> MaybeReady<'a> {
        MaybeReady::Ready(match item.local_name.as_str() {
            "denied" => RuleDecision::Deny(Error::new(
                ErrorKind::Refused(RefusalReason::Rule),
                "refused: this door is shut",
            )),
            _ => RuleDecision::Allow,
        })
    }
}

/// A tool without arguments.
fn plain<F, Fut>(name: &str, work: F) -> Tool
where
    F: Fn() -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<ToolResult, HandlerExit>> + Send + 'static,
{
    let schema = serde_json::json!({"type": "object"});
    Tool::dynamic(name, schema, move |_, _: Cx| work())
}

/// One tool for each duty that answers would break.
fn breakers() -> Vec<Tool> {
    let promise = serde_json::json!({"type": "object", "required": ["count"]});
    vec![
        plain("hidden", || async { Ok(ToolResult::text("seen")) }),
        plain("denied", || async { Ok(ToolResult::text("passed")) }),
        plain("key", || async { Ok(ToolResult::text(&key())) }),
        plain("unseen", || async {
            Ok(ToolResult::text("a\u{200b}b\u{1b}[2Jc"))
        }),
        plain("broken", || async {
            let structured = Some(toolgate::Json::from_value(&serde_json::json!({"no": 1})));
            Ok(ToolResult {
                structured,
                ..ToolResult::text("{}")
            })
        })
        .output_schema(promise),
        plain("blocks", || async {
            let content = vec![Content::text("x"); 1001];
            Ok(ToolResult {
                content,
                ..ToolResult::default()
            })
        }),
        plain("panics", || async { panic!("as it should") }),
        plain("slow", || async { std::future::pending().await }),
    ]
}

/// A layer of its author: counts calls, and those that fail.
fn counting() -> impl toolgate::layer::Layer {
    let counts = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
    layer::from_fn("count", move |call, next| {
        let counts = counts.clone();
        Box::pin(async move {
            counts.0.fetch_add(1, Ordering::Relaxed);
            let outcome = next.call(call).await;
            if outcome.is_err() {
                counts.1.fetch_add(1, Ordering::Relaxed);
            }
            outcome
        })
    })
}

fn server() -> Server {
    let quota = toolgate_bench::number("--quota").unwrap_or(u32::MAX);
    let century = Duration::from_secs(3_155_760_000);
    let mut timeout = CallTimeout::default();
    timeout.idle = PerServer::all(Duration::from_millis(500));
    let mut server = Server::new("bench", "1.0.0")
        .rate_limit(RateQuota {
            count: quota,
            per: century,
        })
        .deadline(timeout)
        .rule(Door)
        .tool(echo);
    let mut count = 1;
    for tool in breakers() {
        server = server.tool(tool);
        count += 1;
    }
    let tools = toolgate_bench::number("--tools").unwrap_or(0) as usize;
    // The hidden one is not listed.
    for definition in toolgate_bench::many((tools + 1).saturating_sub(count)) {
        let text = |key: &str| definition[key].as_str().unwrap_or_default().to_owned();
        let schema = definition["inputSchema"].clone();
        let tool = Tool::dynamic(&text("name"), schema, |_, _: Cx| async {
            Ok::<_, HandlerExit>("")
        });
        server = server.tool(tool.title(&text("title")).description(&text("description")));
    }
    for _ in 0..toolgate_bench::number("--layers").unwrap_or(0) {
        server = server.layer(counting());
    }
    if has("--without-secrets") {
        server = server.secrets(OnSecret::Pass);
    }
    match toolgate_bench::word("--audit") {
        Some(folder) => server.audit_in(folder),
        None => server,
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    std::panic::set_hook(Box::new(|_| {}));
    toolgate_bench::stay()?;
    if !has("--http") {
        toolgate::stdio(server()).await?;
        return Ok(());
    }
    let mut limits = HttpLimits::default();
    limits.max_sessions = 2000;
    limits.max_listen_streams_per_caller = 1000;
    let http = Http::new(server().build()?, limits);
    toolgate_bench::serve_http(move || TowerToHyperService::new(http.clone())).await?;
    Ok(())
}
