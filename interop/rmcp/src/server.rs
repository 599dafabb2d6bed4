//! The server: the tools that all servers of the tests have.

use crate::{Failed, say};
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ElicitRequestParams,
        Implementation, InputRequiredResult, ListToolsResult, PaginatedRequestParams,
        ProgressNotificationParam, ProtocolVersion, ServerCapabilities, ServerConfig,
        SubscriptionFilter, Tool,
    },
    service::{RequestContext, SubscriptionContext},
    transport::{
        stdio,
        streamable_http_server::{StreamableHttpService, session::local::LocalSessionManager},
    },
};
use serde_json::{Value, json};
use std::{borrow::Cow, io::Write, sync::Arc, time::Duration};
use tokio::{net::TcpListener, sync::watch};

/// The tools, the same for all sessions; whether the last one is there already is what changes.
#[derive(Clone)]
struct Tools {
    setting: Value,
    grown: watch::Sender<bool>,
}

/// Serves standard input and output until the input ends, or HTTP on a free port.
pub(crate) async fn run(setting: &str) -> Result<(), Failed> {
    let tools = Tools {
        setting: serde_json::from_str(setting)?,
        grown: watch::Sender::new(false),
    };
    if tools.setting["http"] == true {
        return over_http(tools).await;
    }
    tools.serve(stdio()).await?.waiting().await?;
    Ok(())
}

async fn over_http(tools: Tools) -> Result<(), Failed> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    let sessions = Arc::<LocalSessionManager>::default();
    let each = move || Ok(tools.clone());
    let service = StreamableHttpService::new(each, sessions, Default::default());
    say("listening", json!({"url": url}));
    loop {
        let (stream, _) = listener.accept().await?;
        let service = TowerToHyperService::new(service.clone());
        let serving = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(stream), service);
        tokio::spawn(serving);
    }
}

fn definitions(grown: bool) -> Value {
    let tool = |name: &str, about: &str, properties: Value| {
        let required: Vec<&String> = properties
            .as_object()
            .into_iter()
            .flatten()
            .map(|p| p.0)
            .collect();
        json!({
            "name": name, "description": about, "annotations": {"readOnlyHint": true},
            "inputSchema": {"type": "object", "properties": properties, "required": required},
        })
    };
    let number = json!({"type": "number"});
    let mut sum = tool(
        "sum",
        "Adds two numbers.",
        json!({"a": number, "b": number}),
    );
    sum["outputSchema"] =
        json!({"type": "object", "properties": {"sum": number}, "required": ["sum"]});
    let mut all = vec![
        tool("echo", "Says it back.", json!({"text": {"type": "string"}})),
        sum,
        tool("fail", "Fails, as tools do.", json!({})),
        tool("slow", "Counts slowly.", json!({"to": {"type": "integer"}})),
        tool("grow", "Adds a tool.", json!({})),
        tool("ask", "Asks for a name.", json!({})),
    ];
    if grown {
        all.push(tool("grown", "Came later.", json!({})));
    }
    Value::Array(all)
}

fn text(words: impl Into<String>) -> CallToolResult {
    let content = json!({"content": [{"type": "text", "text": words.into()}]});
    serde_json::from_value(content).unwrap_or_default()
}

fn wrong(words: &str) -> CallToolResult {
    let mut result = text(words);
    result.is_error = Some(true);
    result
}

fn internal(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

impl Tools {
    fn is_legacy(&self) -> bool {
        self.setting["legacy"] == true
    }

    /// Returns whether it sends a request of its own, which is possible only in a session.
    fn asks_by_request(&self) -> bool {
        self.is_legacy() || self.setting["way"] == "request"
    }

    fn note(&self, line: &str) {
        let file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.setting["notes"].as_str().unwrap_or_default());
        let _ = file.and_then(|mut file| writeln!(file, "{line}"));
    }

    async fn slow(&self, to: u64, cx: RequestContext<RoleServer>) -> CallToolResult {
        for n in 1..=to {
            tokio::select! {
                () = cx.ct.cancelled() => {
                    self.note("cancelled");
                    return text("cancelled");
                }
                () = tokio::time::sleep(Duration::from_millis(50)) => self.note(&format!("step {n}")),
            }
            if let Some(token) = cx.meta.get_progress_token() {
                let progress =
                    ProgressNotificationParam::new(token, n as f64).with_total(to as f64);
                let _ = cx.peer.notify_progress(progress).await;
            }
        }
        self.note(&format!("counted to {to}"));
        text(format!("counted to {to}"))
    }

    async fn grow(&self, cx: RequestContext<RoleServer>) -> CallToolResult {
        self.grown.send_replace(true);
        if self.is_legacy() {
            let _ = cx.peer.notify_tool_list_changed().await;
        }
        text("grown")
    }

    /// Up to 2025-11-25 the question is a request of its own, since then it is a result.
    async fn ask(
        &self,
        request: &CallToolRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let form: ElicitRequestParams = serde_json::from_value(json!({
            "mode": "form", "message": "What is your name?",
            "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        }))
        .map_err(internal)?;
        let answer = if self.asks_by_request() {
            let able = cx
                .client_capabilities()
                .is_some_and(|can| can.elicitation.is_some());
            if !able {
                return Ok(wrong("the client cannot be asked").into());
            }
            serde_json::to_value(cx.peer.create_elicitation(form).await.map_err(internal)?)
        } else if let Some(answers) = &request.input_responses {
            serde_json::to_value(answers.get("name"))
        } else {
            let form = serde_json::to_value(form).map_err(internal)?;
            let requests = json!({"name": {"method": "elicitation/create", "params": form}});
            let requests = serde_json::from_value(requests).map_err(internal)?;
            return Ok(InputRequiredResult::new(Some(requests), None).into());
        };
        let answer = answer.map_err(internal)?;
        Ok(text(match answer["content"]["name"].as_str() {
            Some(name) => format!("hello, {name}"),
            None => format!("you said {}", answer["action"].as_str().unwrap_or_default()),
        })
        .into())
    }
}

impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        let can = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed();
        let mut info = ServerConfig::new(can.build());
        info.server_info = Implementation::new("rmcp", "1.0.0");
        info
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        if self.setting["both"] == true {
            Cow::Borrowed(&[ProtocolVersion::V_2026_07_28, ProtocolVersion::V_2025_11_25])
        } else if self.is_legacy() {
            Cow::Borrowed(&[ProtocolVersion::V_2025_11_25])
        } else {
            Cow::Borrowed(&[ProtocolVersion::V_2026_07_28])
        }
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools: Vec<Tool> =
            serde_json::from_value(definitions(*self.grown.borrow())).map_err(internal)?;
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let args = Value::Object(request.arguments.clone().unwrap_or_default());
        let result = match request.name.as_ref() {
            "echo" => text(args["text"].as_str().unwrap_or_default()),
            "sum" => {
                let number = |key: &str| args[key].as_i64().unwrap_or_default();
                let sum = json!({"sum": number("a") + number("b")});
                let mut result = text(sum.to_string());
                result.structured_content = Some(sum);
                result
            }
            "fail" => wrong("the printer is on fire"),
            "slow" => self.slow(args["to"].as_u64().unwrap_or_default(), cx).await,
            "grow" => self.grow(cx).await,
            "grown" if *self.grown.borrow() => text("here I am"),
            "ask" => return self.ask(&request, cx).await,
            other => {
                let words = format!("unknown tool: {other}");
                return Err(ErrorData::invalid_params(words, None));
            }
        };
        Ok(result.into())
    }

    fn accepted_subscription_filter(&self, _: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(SubscriptionFilter::builder().tools_list_changed().build())
    }

    async fn listen(&self, cx: SubscriptionContext) -> Result<(), ErrorData> {
        let mut grown = self.grown.subscribe();
        let telling = async {
            while grown.changed().await.is_ok() {
                let _ = cx.sink().notify_tool_list_changed().await;
            }
        };
        tokio::select! {
            () = telling => {}
            () = cx.cancelled() => {}
        }
        Ok(())
    }
}
