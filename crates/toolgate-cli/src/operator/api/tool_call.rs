//! Calls of tools by the operator, which pass the same layers as all calls.

use super::{ActionError, ActionResult, OperatorApi, call_arguments};
use crate::{
    banner::shell_quote,
    config::{ConfigSource, hook_caller},
    hosts::HookHost,
    runtime::dry_run::nearest_name,
};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::mpsc;
use toolgate::edge::call_in_process;
use toolgate_core::{
    CallReporter, Caller, Catalog, ErrorKind, EventSink, Item, ItemKind, Json, Output,
    ReporterEvent, ToolResult,
};
use toolgate_policy::{ApprovalChannel, Approver};
use toolgate_protocol::{dialect, json::JsonKind};

impl OperatorApi {
    /// Calls a tool, with the arguments as text, as pairs of keys and values, or as JSON.
    pub(super) async fn call_tool(
        &self,
        tool: &str,
        with: &Value,
        who: &Approver,
        notes: mpsc::Sender<String>,
    ) -> ActionResult {
        let item = self.resolve_tool(tool).await?;
        let arguments = arguments(with, &item)?;
        let by = who.channel.as_str();
        // A session with a label belongs to a person of its own in rules and approvals.
        let person = who.name.as_deref().filter(|_| !who.is_owner).unwrap_or(by);
        // Hooks use the control socket; a page of the console is not the host.
        let hook = with.get("hook").and_then(Value::as_str);
        let hook = hook.filter(|_| who.channel == ApprovalChannel::Terminal);
        let caller =
            match hook {
                None => Caller::new(format!("operator@{person}")),
                Some(host) => Caller::new(hook_caller(HookHost::find(host).ok_or_else(|| {
                    ActionError::Refused(format!("the host {host:?} has no hooks"))
                })?)),
            };
        let reporter = CallReporter::new(Arc::new(ProgressLines(notes)));
        let (name, server) = (item.def.name(), &self.server);
        let called = call_in_process(
            server,
            caller.clone(),
            by,
            name,
            arguments.clone(),
            reporter,
        );
        match called.await {
            Ok(output) => Ok(output_json(&output)),
            // A denial is a decision, unlike a call that no gateway can judge; its text is for a model.
            Err(error) if hook.is_some() => Ok(json!({
                "isError": true,
                "content": [{"type": "text", "text": error.public_message()}],
            })),
            Err(error) => {
                let mut why = error.public_message().to_owned();
                if matches!(error.kind(), ErrorKind::Refused(_) | ErrorKind::NotFound)
                    && let Some(denial) = self.explain_denial(&item, &caller, &arguments).await
                {
                    why = format!("{why}\n{denial}");
                }
                Err(ActionError::Refused(why))
            }
        }
    }

    /// Explains which part of the policy denies a call or hides its tool. A model does not get this text.
    async fn explain_denial(
        &self,
        item: &Item,
        caller: &Caller,
        arguments: &Json,
    ) -> Option<String> {
        let (tool, name) = (item.full_name(), caller.name());
        let with = json!({"tool": tool, "caller": name, "text": arguments.as_str()});
        let dry_run = self.explain(&with).await.ok()?;
        if !matches!(dry_run["verdict"].as_str(), Some("deny" | "hide")) {
            return None;
        }
        let word = |step: &Value, key: &str| step[key].as_str().unwrap_or_default().to_owned();
        let steps = dry_run["steps"].as_array().into_iter().flatten();
        let steps: Vec<&Value> = steps
            .filter(|step| step["verdict"] == "refuse" || step["verdict"] == "hide")
            .collect();
        let line = |step: &&Value| format!("denied by {}: {}", word(step, "by"), word(step, "why"));
        let mut lines: Vec<String> = steps.iter().map(line).collect();
        let by_rule = |step: &&Value| step["by"] == "access" || step["by"] == "resolve";
        if let (ConfigSource::File(path), true) = (
            &self.active.snapshot().config.source,
            steps.iter().any(by_rule),
        ) {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            lines.push(format!(
                "the rules are in {}; after a change, run: toolgate reload{}",
                path.display(),
                self.flags
            ));
        }
        lines.push(format!(
            "to see every step, run: toolgate explain {tool} --caller {}{}",
            shell_quote(name),
            self.flags
        ));
        Some(lines.join("\n"))
    }

    /// Resolves `server.tool`, or else a client's name, to the tool.
    async fn resolve_tool(&self, tool: &str) -> Result<Arc<Item>, ActionError> {
        let find = |catalog: &Catalog| {
            let items = || catalog.items().iter();
            // A tool of that very name comes before another one whose name for clients is the same.
            let exact = items().find(|item| item.full_name() == tool);
            let found = exact.or_else(|| items().find(|item| item.def.name() == tool));
            found.cloned()
        };
        if let Some(item) = find(&self.known_items(ItemKind::Tool).await) {
            return Ok(item);
        }
        // A server may just have started, so list all servers again.
        self.list_servers().await;
        let catalog = self.known_items(ItemKind::Tool).await;
        if let Some(item) = find(&catalog) {
            return Ok(item);
        }
        let names = catalog.items().iter().map(|item| item.full_name());
        Err(ActionError::Unknown(match nearest_name(tool, names) {
            Some(name) => format!("there is no tool {tool:?}; did you mean {name:?}?"),
            None => format!("there is no tool {tool:?}; `toolgate tools` lists the tools"),
        }))
    }
}

/// Reads the arguments. The control socket sends exact text or pairs; the console sends parsed JSON.
fn arguments(with: &Value, item: &Item) -> Result<Json, String> {
    if let Some(pairs) = with.get("pairs") {
        let definition = item.def.json().to_value();
        return call_arguments::from_pairs(pairs, &definition["inputSchema"]);
    }
    let arguments = match with.get("text").and_then(Value::as_str) {
        Some(text) => Json::read(text.as_bytes().to_vec(), &Default::default())
            .map_err(|e| format!("the arguments cannot be read: {e}; correct them"))?,
        None => Json::from_value(with.get("arguments").unwrap_or(&json!({}))),
    };
    if arguments.kind() != JsonKind::Object {
        return Err(
            "the arguments must be a JSON object, for example {\"name\": \"x\"}".to_owned(),
        );
    }
    Ok(arguments)
}

/// Renders a tool result as the protocol writes it, for a terminal or the console.
fn output_json(output: &ToolResult) -> Value {
    let nobody = toolgate_protocol::method::initialize::Implementation::default();
    let mut value = dialect::MODERN
        .output(&Output::Tool(output.clone()), &nobody)
        .to_value();
    if let Some(map) = value.as_object_mut() {
        map.remove("_meta");
        map.remove("resultType");
    }
    value
}

/// Reporter that sends progress as lines for a terminal.
struct ProgressLines(mpsc::Sender<String>);

impl EventSink for ProgressLines {
    fn report(&self, event: ReporterEvent) {
        let text = match event {
            ReporterEvent::Progress(p) => p.message.unwrap_or_else(|| p.progress.to_string()),
            ReporterEvent::Log(log) => format!("{}: {}", log.level, log.data.as_str()),
        };
        let _ = self.0.try_send(text);
    }
}
