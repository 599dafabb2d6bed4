//! Server `host`: the tools of hosts themselves, such as the shell of Claude Code.
//!
//! A hook of the host calls the tool here before the host runs its own. So rules, approvals and the audit log apply to
//! it like to any tool. The tools here do nothing: a call that gets through means that the host may go on.

use super::tool_server;
use serde_json::json;
use std::{process::ExitCode, sync::Arc};
use toolgate_core::{
    BoxFuture, Call, Catalog, ChangeCounters, ChangeFilter, ChangeStream, Error, ItemKind,
    ListRequest, Op, Outcome, Output, Service, ToolResult,
};

/// Tools and their descriptions.
const TOOLS: &[(&str, &str)] = &[
    ("bash", "Shell command that the host runs itself."),
    ("edit", "Change of a file by the host itself."),
    ("write", "New, replaced or deleted file of the host itself."),
    ("read", "File or directory that the host reads itself."),
    ("fetch", "URL that the host fetches itself."),
    ("search", "Web search by the host itself."),
    ("other", "Another tool of the host itself."),
];

/// Serves the tools on stdin and stdout until stdin ends.
pub(crate) async fn run() -> ExitCode {
    let definition = |(name, description): &(&str, &str)| json!({"name": name, "description": description, "inputSchema": {"type": "object"}});
    let service = HostTools {
        catalog: tool_server::catalog("host", TOOLS.iter().map(definition).collect()),
        changes: Default::default(),
    };
    tool_server::serve(Arc::new(service), "toolgate-host-tools").await
}

struct HostTools {
    catalog: Catalog,
    changes: tokio::sync::watch::Sender<ChangeCounters>,
}

impl Service for HostTools {
    fn list(&self, ask: ListRequest) -> BoxFuture<'_, Result<Catalog, Error>> {
        let tools = (ask.kind == ItemKind::Tool).then(|| self.catalog.clone());
        Box::pin(async { Ok(tools.unwrap_or_default()) })
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(async move {
            if call.op != Op::Tool || self.catalog.find(call.name()).is_none() {
                return Err(call.unknown_item_error());
            }
            Ok(Outcome::Done(Output::Tool(ToolResult::text("allowed"))))
        })
    }

    fn changes(&self, _: ChangeFilter) -> BoxFuture<'_, Result<ChangeStream, Error>> {
        Box::pin(async { Ok(ChangeStream::new(self.changes.subscribe())) })
    }
}
