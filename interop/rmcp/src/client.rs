//! The client: one job, step by step.

use crate::{Failed, say};
use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData, RoleClient, ServiceError,
    model::{
        CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ClientRequest,
        ElicitRequestParams, ElicitResult, Implementation, ProgressNotificationParam,
        ProtocolVersion, Request, SubscriptionFilter,
    },
    service::{NotificationContext, PeerRequestOptions, RequestContext, RunningService},
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::{io::AsyncBufReadExt, process::Command, sync::watch};

type Client = RunningService<RoleClient, Handler>;

/// Handler of the server's requests and notifications.
struct Handler {
    job: Value,
    asked: AtomicUsize,
    /// Number of received progress notifications.
    progress: watch::Sender<u64>,
    changed: watch::Sender<bool>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let capabilities = match self.job["elicit"].is_null() {
            true => ClientCapabilities::default(),
            false => ClientCapabilities::builder().enable_elicitation().build(),
        };
        let info = ClientConfig::new(capabilities, Implementation::new("interop-rmcp", "1.0.0"));
        info.with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let request = serde_json::to_value(request).map_err(internal)?;
        let answers = self.job["elicit"].as_array().cloned().unwrap_or_default();
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let answer = answers.get(number).or(answers.last());
        let properties = request["requestedSchema"]["properties"].as_object();
        let fields: Vec<&String> = properties.into_iter().flat_map(|p| p.keys()).collect();
        say(
            "asked",
            json!({"message": request["message"], "fields": fields}),
        );
        serde_json::from_value(answer.cloned().unwrap_or_default()).map_err(internal)
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        say(
            "progress",
            json!({"progress": params.progress, "total": params.total}),
        );
        self.progress.send_modify(|seen| *seen += 1);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.send_replace(true);
    }
}

fn internal(error: serde_json::Error) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

/// Does a job.
pub(crate) async fn run(job: &str) -> Result<(), Failed> {
    let job: Value = serde_json::from_str(job)?;
    let client = connect(&job).await?;
    let info = client.peer_info();
    let revision = info.as_ref().map(|info| info.protocol_version.to_string());
    say("connected", json!({"revision": revision}));
    let steps = job["steps"].as_array().cloned().unwrap_or_default();
    if job["mode"] == "modern" && steps.iter().any(|step| step["do"] == "changed") {
        listen(&client).await?;
    }
    for step in steps {
        match one(&client, &step).await {
            Ok(()) => {}
            Err(ServiceError::McpError(error)) => {
                say(
                    "error",
                    json!({"code": error.code.0, "message": error.message}),
                );
            }
            Err(error) => return Err(error.into()),
        }
    }
    client.cancel().await?;
    say("done", json!({}));
    Ok(())
}

async fn connect(job: &Value) -> Result<Client, Failed> {
    let handler = Handler {
        job: job.clone(),
        asked: AtomicUsize::new(0),
        progress: watch::Sender::new(0),
        changed: watch::Sender::new(false),
    };
    let life = match job["mode"].as_str() {
        Some("legacy") => ClientLifecycleMode::Initialize,
        _ => ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        },
    };
    if let Some(address) = job["http"].as_str() {
        let transport = StreamableHttpClientTransport::from_uri(address);
        return Ok(handler.serve_with_lifecycle(transport, life).await?);
    }
    let words: Vec<String> = serde_json::from_value(job["stdio"].clone())?;
    let (program, args) = words.split_first().ok_or("the job names no server")?;
    let mut command = Command::new(program);
    command.args(args);
    let transport = TokioChildProcess::new(command)?;
    Ok(handler.serve_with_lifecycle(transport, life).await?)
}

/// Since 2026-07-28 there is a stream for changes.
async fn listen(client: &Client) -> Result<(), Failed> {
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    let mut stream = client.listen(filter).await?;
    let changed = client.service().changed.clone();
    tokio::spawn(async move {
        while let Ok(Some(_)) = stream.next().await {
            changed.send_replace(true);
        }
    });
    Ok(())
}

async fn one(client: &Client, step: &Value) -> Result<(), ServiceError> {
    match step["do"].as_str() {
        Some("list") => {
            let tools = client.list_all_tools().await?;
            let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
            say("tools", json!({"names": names, "tools": tools}));
        }
        Some("changed") => {
            let mut changed = client.service().changed.subscribe();
            let _ = changed.wait_for(|changed| *changed).await;
            say("changed", json!({}));
        }
        Some("wait") => {
            say("waiting", json!({}));
            let mut line = String::new();
            let mut stdin = tokio::io::BufReader::new(tokio::io::stdin());
            let _ = stdin.read_line(&mut line).await;
        }
        _ => call(client, step).await?,
    }
    Ok(())
}

async fn call(client: &Client, step: &Value) -> Result<(), ServiceError> {
    let name = step["name"].as_str().unwrap_or_default().to_owned();
    let mut params = CallToolRequestParams::new(name);
    params.arguments = step["arguments"].as_object().cloned();
    let Some(after) = step["cancel_after"].as_u64() else {
        result(&client.call_tool(params).await?);
        return Ok(());
    };
    let mut progress = client.service().progress.subscribe();
    let enough = *progress.borrow() + after;
    let request = ClientRequest::CallToolRequest(Request::new(params));
    let options = PeerRequestOptions::no_options();
    let handle = client.send_cancellable_request(request, options).await?;
    let _ = progress.wait_for(|seen| *seen >= enough).await;
    let reason = "the user changed their mind".to_owned();
    handle.cancel(Some(reason)).await?;
    say("cancelled", json!({}));
    Ok(())
}

fn result(result: &CallToolResult) {
    let result = serde_json::to_value(result).unwrap_or_default();
    let content = result["content"].as_array().cloned().unwrap_or_default();
    let texts: Vec<&str> = content.iter().filter_map(|c| c["text"].as_str()).collect();
    say(
        "result",
        json!({
            "is_error": result["isError"] == true,
            "text": texts.join("\n"),
            "kinds": content.iter().map(|c| c["type"].clone()).collect::<Vec<_>>(),
            "structured": result["structuredContent"],
        }),
    );
}
