//! Evaluation of the tool calls in transcripts under a config: `toolgate replay`.

use super::{
    recorded::RecordedDecision,
    replay::access_decision,
    rule_proposals::{AskedCalls, propose},
    transcript::{TranscriptCall, TranscriptHost, read_calls},
};
use crate::{
    config::{hook_caller, normalize_id},
    hosts::HookHost,
    runtime::{dry_run, offline::OfflineView},
};
use std::{cmp::Reverse, collections::BTreeMap, io, path::PathBuf, sync::Arc, time::SystemTime};
use toolgate_core::{
    Call, Caller, Definition, Item, ItemKind, Json, Op, Origin, PredictedOutcome, visible_line,
};
use toolgate_protocol::plural::count_of;

/// Caller of MCP servers in a host that starts the gateway.
const STDIO_CALLER: &str = "local@stdio";
/// Name of the gateway itself in the files of hosts.
const GATEWAY_NAME: &str = "toolgate";
/// Maximum number of tools in the output.
const MAX_TOOLS_SHOWN: usize = 50;

/// Decisions about the calls of one tool.
#[derive(Clone, Copy, Debug, Default)]
struct DecisionCounts {
    allowed: u64,
    asked: u64,
    denied: u64,
}

/// Decisions about the calls of transcripts.
#[derive(Debug, Default)]
pub(crate) struct SessionTally {
    tools: BTreeMap<String, DecisionCounts>,
    asked: BTreeMap<String, AskedCalls>,
    /// Calls of servers that the config does not have, by server.
    unknown: BTreeMap<String, u64>,
}

/// Evaluates the calls of transcripts.
///
/// # Errors
/// A transcript cannot be read; the message names it.
pub(crate) async fn evaluate_sessions(
    files: &[PathBuf],
    caller: Option<&str>,
    view: &OfflineView,
) -> Result<SessionTally, String> {
    let mut tally = SessionTally::default();
    for file in files {
        let mut calls = Vec::new();
        let read: io::Result<()> = read_calls(file, |call| calls.push(call));
        read.map_err(|error| format!("{} cannot be read: {error}", file.display()))?;
        for call in calls {
            tally.add(call, caller, view).await;
        }
    }
    Ok(tally)
}

impl SessionTally {
    async fn add(&mut self, call: TranscriptCall, caller: Option<&str>, view: &OfflineView) {
        let caller = match (caller, call.server.as_str(), call.host) {
            (Some(name), ..) => Caller::new(name),
            (None, "host", TranscriptHost::ClaudeCode) => {
                Caller::new(hook_caller(HookHost::ClaudeCode))
            }
            (None, "host", TranscriptHost::Codex) => Caller::new(hook_caller(HookHost::Codex)),
            _ => Caller::new(STDIO_CALLER),
        };
        let Some(item) = find_item(&call, view) else {
            *self.unknown.entry(call.server).or_default() += 1;
            return;
        };
        let tool = item.item.full_name();
        let arguments = Json::from_value(&call.arguments);
        let request = Call::new("replay", caller, Op::Tool, item.item.def.name(), arguments);
        let now = SystemTime::now();
        let outcome = match item.is_stored {
            true => view.dry_run_at(&request, &item.item, now).await.outcome,
            false => {
                let decision: RecordedDecision =
                    access_decision(view.rules().to_vec(), &request, &item.item, now);
                decision.outcome
            }
        };
        let counts = self.tools.entry(tool.clone()).or_default();
        match outcome {
            PredictedOutcome::Allow => counts.allowed += 1,
            PredictedOutcome::Ask => {
                counts.asked += 1;
                self.asked.entry(tool).or_default().add(&call.arguments);
            }
            _ => counts.denied += 1,
        }
    }

    /// Returns the text for the terminal.
    pub(crate) fn text(&self) -> String {
        let total = |of: fn(&DecisionCounts) -> u64| self.tools.values().map(of).sum::<u64>();
        let asked = total(|counts| counts.asked);
        let unknown: u64 = self.unknown.values().sum();
        let mut text = String::new();
        for (count, what) in [
            (total(|counts| counts.allowed), "would be allowed"),
            (asked, "would need an approval"),
            (total(|counts| counts.denied), "would be denied"),
            (unknown, "to servers that the config does not have"),
        ] {
            text.push_str(&format!("{count:>7} {what}\n"));
        }
        text.push_str(&self.tool_table());
        for (server, count) in &self.unknown {
            let server = visible_line(server);
            let calls = count_of(*count, "call");
            text.push_str(&format!("\nthe config has no server {server:?} ({calls})"));
        }
        let (count, rules) = propose(&self.asked);
        if count > 0 {
            text.push_str(&format!(
                "\n\nThese rules would have made {count} of {asked} approvals unnecessary. Read each one before you add it:\n\n{rules}"
            ));
        }
        text
    }

    fn tool_table(&self) -> String {
        let mut tools: Vec<_> = self.tools.iter().collect();
        tools.sort_by_key(|(_, counts)| Reverse((counts.asked, counts.denied, counts.allowed)));
        let row = |(tool, counts): &(&String, &DecisionCounts)| {
            format!(
                "{:>7} {:>7} {:>7}  {}\n",
                counts.asked,
                counts.denied,
                counts.allowed,
                visible_line(tool)
            )
        };
        let rows: String = tools.iter().take(MAX_TOOLS_SHOWN).map(row).collect();
        match tools.len() {
            0 => String::new(),
            n if n > MAX_TOOLS_SHOWN => format!(
                "\n    ask    deny   allow\n{rows}  and {} more tools\n",
                n - MAX_TOOLS_SHOWN
            ),
            _ => format!("\n    ask    deny   allow\n{rows}"),
        }
    }
}

/// Item of a call.
struct ReplayedItem {
    item: Arc<Item>,
    /// True if a gateway stored the definition. Otherwise only the rules decide, by the name and the arguments.
    is_stored: bool,
}

/// Returns the item of a call: stored by a gateway, or made of its name. `None` if the config has no such server.
fn find_item(call: &TranscriptCall, view: &OfflineView) -> Option<ReplayedItem> {
    let server = normalize_id(&call.server);
    let name = match server.as_str() {
        GATEWAY_NAME => call.tool.clone(),
        server => format!("{server}.{}", call.tool),
    };
    if let Some(found) = dry_run::resolve_name(view.catalogs(), &name) {
        return Some(ReplayedItem {
            item: found.item,
            is_stored: true,
        });
    }
    let (server, tool) = match server.as_str() {
        GATEWAY_NAME => call.tool.split_once('_')?,
        server => (server, call.tool.as_str()),
    };
    if !view.has_server(server) {
        return None;
    }
    let definition = serde_json::json!({"name": tool, "inputSchema": {"type": "object"}});
    let definition = Definition::tool(Json::from_value(&definition)).ok()?;
    debug_assert_eq!(definition.kind(), ItemKind::Tool);
    let origin = Origin {
        server: server.into(),
        trusted: false,
    };
    Some(ReplayedItem {
        item: Arc::new(Item::new(origin, definition)),
        is_stored: false,
    })
}
