//! `toolgate calls`: the newest calls and their state.

use super::{Result, collect_lists, print};
use crate::{
    cli::output::{OutputTable, OutputTime, TableColumn, print_json, read_answer},
    operator::control::GatewaySockets,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::process::ExitCode;
use toolgate_core::visible_line;

/// Call of a running gateway.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub(crate) struct CallOutput {
    /// ID of the call.
    id: String,
    #[serde(rename(deserialize = "at"))]
    started_at: OutputTime,
    caller: String,
    /// Name and version that the client states about itself.
    client: Option<String>,
    /// Server in the config; empty if the name is unknown.
    server: String,
    /// Name on the server.
    tool: String,
    /// Method of MCP, such as `tools/call`.
    method: String,
    /// Protocol revision of the client.
    revision: Option<String>,
    /// `http`, `stdio` or `console`.
    transport: Option<String>,
    /// `judging`, `waiting`, `running` or `done`.
    state: String,
    /// Decision of the rules: `allow`, `ask` or `deny`.
    #[serde(rename(deserialize = "verdict"))]
    decision: String,
    /// Rule that decided.
    rule: Option<String>,
    /// Steps that led to the decision.
    #[serde(rename(deserialize = "trail"))]
    steps: Vec<DecisionStepOutput>,
    /// Arguments as JSON text, with secrets masked, and cut if they are long.
    #[serde(rename(deserialize = "arguments"))]
    arguments_text: String,
    /// Number of masked values.
    #[serde(rename(deserialize = "masked"))]
    masked_values: u64,
    /// Outcome of a call that is done, such as `ok`; see the audit log.
    outcome: Option<String>,
    /// Class of the refusal.
    refusal: Option<String>,
    /// Details of a failure.
    detail: Option<String>,
    progress: Option<CallProgressOutput>,
    #[serde(rename(deserialize = "took_ms"))]
    duration_ms: Option<u64>,
    /// ID of the pending approval.
    approval: Option<String>,
    /// Who cancelled the call.
    #[serde(rename(deserialize = "cancel"))]
    cancelled: Option<CancellationOutput>,
}

/// Step of a decision.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub(crate) struct DecisionStepOutput {
    /// Layer of the policy, such as `access`.
    pub(crate) by: String,
    #[serde(rename(deserialize = "verdict"))]
    pub(crate) decision: String,
    #[serde(rename(deserialize = "why"))]
    pub(crate) reason: String,
}

/// Progress that a server reported.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub(crate) struct CallProgressOutput {
    progress: f64,
    total: Option<f64>,
    message: Option<String>,
}

/// Cancellation of a call.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub(crate) struct CancellationOutput {
    /// Origin, such as `caller`.
    by: String,
    reason: Option<String>,
}

/// Prints the calls, newest first.
pub(super) fn run(gateways: &GatewaySockets, json: bool) -> Result<ExitCode> {
    let calls = collect_lists(gateways, "calls")?
        .into_iter()
        .map(read_answer);
    let calls = calls.collect::<Result<Vec<CallOutput>>>()?;
    if json {
        return print_json(&calls);
    }
    let mut table = OutputTable::new(&[
        TableColumn::Whole,
        TableColumn::State,
        TableColumn::Whole,
        TableColumn::Cut,
        TableColumn::Cut,
    ]);
    for call in calls {
        table.add([
            visible_line(&call.id),
            visible_line(call.outcome.as_deref().unwrap_or(&call.state)),
            visible_line(&format!("{}.{}", call.server, call.tool)),
            visible_line(&format!("for {}", call.caller)),
            visible_line(call.detail.as_deref().unwrap_or_default()),
        ]);
    }
    print(&table.text())
}
