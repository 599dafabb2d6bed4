//! Evaluation of the tool calls in transcripts under a config: `toolgate replay`.

use super::{
    rule_proposals::{AskedCalls, propose},
    transcript::{TranscriptCall, TranscriptHost, read_calls},
};
use crate::{
    cli::output::OutputTable,
    cli::progress::ProgressLine,
    config::{hook_caller, normalize_id},
    history::{
        RecordedArguments, RecordedCall, RecordedDecision, ReplayResult, ReplayedCall,
        access_decision,
    },
    hosts::HookHost,
    runtime::{dry_run, offline::OfflineView},
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
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
    /// Recorded calls whose decision cannot be determined.
    undecided: u64,
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
    let progress = ProgressLine::start("Reading transcripts");
    for (n, file) in files.iter().enumerate() {
        progress.set(format!("Reading transcript {} of {}", n + 1, files.len()));
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
        self.count(tool, outcome, &call.arguments);
    }

    /// Adds a call of the audit log.
    pub(super) fn add_recorded(&mut self, call: &RecordedCall, judged: ReplayedCall) {
        let ReplayResult::Decided(decision) = judged.result else {
            self.undecided += 1;
            return;
        };
        let arguments = match &call.arguments {
            RecordedArguments::Whole(json) | RecordedArguments::Redacted(json) => json.to_value(),
            RecordedArguments::Digest => Value::Null,
        };
        self.count(judged.tool, decision.outcome, &arguments);
    }

    fn count(&mut self, tool: String, outcome: PredictedOutcome, arguments: &Value) {
        let counts = self.tools.entry(tool.clone()).or_default();
        match outcome {
            PredictedOutcome::Allow => counts.allowed += 1,
            PredictedOutcome::Ask => {
                counts.asked += 1;
                self.asked.entry(tool).or_default().add(arguments);
            }
            _ => counts.denied += 1,
        }
    }

    /// Returns the output. `source` names the config, and `sessions` is the number of transcripts, or `None` for the
    /// audit log.
    pub(crate) fn output(self, sessions: Option<u64>, source: String) -> ReplayOutput {
        let total = |of: fn(&DecisionCounts) -> u64| self.tools.values().map(of).sum::<u64>();
        let (saved, rules) = propose(&self.asked);
        let tool = |(tool, counts): (&String, &DecisionCounts)| ReplayedToolOutput {
            tool: tool.clone(),
            asked: counts.asked,
            denied: counts.denied,
            allowed: counts.allowed,
        };
        let mut tools: Vec<ReplayedToolOutput> = self.tools.iter().map(tool).collect();
        tools.sort_by_key(|one| Reverse((one.asked, one.denied, one.allowed)));
        let server = |(server, calls): (&String, &u64)| UnknownServerOutput {
            server: server.clone(),
            calls: *calls,
        };
        ReplayOutput {
            source,
            sessions,
            allowed: total(|counts| counts.allowed),
            asked: total(|counts| counts.asked),
            denied: total(|counts| counts.denied),
            unknown: self.unknown.values().sum(),
            undecided: self.undecided,
            tools,
            unknown_servers: self.unknown.iter().map(server).collect(),
            unnecessary_approvals: saved,
            proposed_rules: rules,
        }
    }
}

/// Past calls under a config.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct ReplayOutput {
    /// Config.
    source: String,
    /// Number of transcripts; `null` for the audit log.
    sessions: Option<u64>,
    /// Calls that would be allowed.
    allowed: u64,
    /// Calls that would need an approval.
    asked: u64,
    /// Calls that would be denied.
    denied: u64,
    /// Calls to servers that the config does not have.
    unknown: u64,
    /// Calls of the audit log whose decision cannot be determined, such as those of a removed server, or those whose
    /// arguments a rule needs that the audit log does not have.
    undecided: u64,
    /// Decisions by tool, those with most approvals first.
    tools: Vec<ReplayedToolOutput>,
    unknown_servers: Vec<UnknownServerOutput>,
    /// Number of approvals that the proposed rules make unnecessary.
    unnecessary_approvals: u64,
    /// Proposed rules, as sections of a config; empty if there are none.
    proposed_rules: String,
}

/// Decisions about the calls of a tool.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct ReplayedToolOutput {
    /// Full name.
    tool: String,
    asked: u64,
    denied: u64,
    allowed: u64,
}

/// Server of a transcript that the config does not have.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct UnknownServerOutput {
    /// Name in the transcript.
    server: String,
    /// Number of calls.
    calls: u64,
}

impl ReplayOutput {
    /// Returns the text for the terminal.
    pub(crate) fn text(&self) -> String {
        let mut table = OutputTable::new(&[]);
        for (count, what) in [
            (self.allowed, "would be allowed"),
            (self.asked, "would need an approval"),
            (self.denied, "would be denied"),
            (self.unknown, "to servers that the config does not have"),
        ] {
            table.add_line(format!("{count:>7} {what}"));
        }
        if self.undecided > 0 {
            let what =
                "cannot be evaluated, because the audit log lacks an argument or a definition";
            table.add_line(format!("{:>7} {what}", self.undecided));
        }
        let mut text = table.text() + &self.tool_table();
        for one in &self.unknown_servers {
            let (server, calls) = (visible_line(&one.server), count_of(one.calls, "call"));
            text.push_str(&format!("\nthe config has no server {server:?} ({calls})"));
        }
        if self.unnecessary_approvals > 0 {
            let (count, asked, rules) =
                (self.unnecessary_approvals, self.asked, &self.proposed_rules);
            text.push_str(&format!(
                "\n\nThese rules would have made {count} of {asked} approvals unnecessary. Read each one before you add it:\n\n{rules}"
            ));
        }
        let sessions = match self.sessions {
            Some(sessions) => count_of(sessions, "session"),
            None => "the audit log".to_owned(),
        };
        let source = &self.source;
        format!("{text}\n{sessions}, evaluated with {source}; nothing was called\n")
    }

    fn tool_table(&self) -> String {
        let row = |one: &ReplayedToolOutput| {
            let tool = visible_line(&one.tool);
            format!(
                "{:>7} {:>7} {:>7}  {tool}\n",
                one.asked, one.denied, one.allowed
            )
        };
        let rows: String = self.tools.iter().take(MAX_TOOLS_SHOWN).map(row).collect();
        match self.tools.len() {
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
