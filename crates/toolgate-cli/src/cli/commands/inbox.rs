//! `toolgate inbox`: the pending approvals.

use super::{Result, collect_lists, decisions::deduplicate, items::AnnotationsOutput, print};
use crate::{
    cli::output::{OutputTable, OutputTime, TableColumn, print_json, read_answer},
    operator::control::GatewaySockets,
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, value::RawValue};
use std::process::ExitCode;
use toolgate_core::visible_line;

/// Call that waits for an approval.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub(crate) struct PendingOutput {
    /// ID of the pending approval.
    id: String,
    /// ID of the newest call that waits for it.
    call: Option<String>,
    /// IDs of all calls that wait for it.
    calls: Vec<String>,
    #[serde(rename(deserialize = "at"))]
    requested_at: OutputTime,
    /// Time at which the call is denied.
    #[serde(rename(deserialize = "expires"))]
    expires_at: OutputTime,
    caller: String,
    /// Name and version that the client states about itself.
    client: Option<String>,
    /// Server in the config.
    server: String,
    /// Name on the server.
    tool: String,
    /// `tool`, `resource`, `template`, `skill` or `prompt`.
    kind: String,
    title: Option<String>,
    description: Option<String>,
    /// Annotations of the server.
    #[serde(rename(deserialize = "hints"))]
    annotations: AnnotationsOutput,
    /// True if the config trusts the annotations of the server.
    trusted: bool,
    /// Reasons for which an approval is required.
    reasons: Vec<String>,
    /// Arguments, exactly as they would be sent.
    #[serde(rename(deserialize = "arguments_raw"), deserialize_with = "raw_json")]
    #[schemars(with = "Value")]
    arguments: Option<Box<RawValue>>,
    /// Digest of the arguments.
    #[serde(rename(deserialize = "digest"))]
    arguments_digest: String,
    /// JSON Schema of the arguments.
    #[serde(rename(deserialize = "schema"))]
    input_schema: Value,
    /// True if a client waits for the decision.
    connected: bool,
    /// True if the gateway makes the call itself.
    own: bool,
    may_remember: bool,
    may_edit: bool,
    /// Number of required approvers.
    #[serde(rename(deserialize = "needs"))]
    required_approvers: u64,
    /// Approvers who approved so far.
    #[serde(rename(deserialize = "yeses"))]
    approved_by: Vec<String>,
}

/// Reads JSON text without changing its numbers.
fn raw_json<'de, D: Deserializer<'de>>(
    source: D,
) -> std::result::Result<Option<Box<RawValue>>, D::Error> {
    let text = Option::<String>::deserialize(source)?;
    Ok(text.and_then(|text| RawValue::from_string(text).ok()))
}

/// Prints the pending approvals: those with a waiting caller first, then by expiry.
pub(super) fn run(gateways: &GatewaySockets, json: bool) -> Result<ExitCode> {
    let pending = deduplicate(collect_lists(gateways, "inbox")?, "id");
    let pending = pending.into_iter().map(read_answer);
    let pending = pending.collect::<Result<Vec<PendingOutput>>>()?;
    if json {
        return print_json(&pending);
    }
    if pending.is_empty() {
        eprintln!("no calls are waiting for approval");
    }
    let mut table = OutputTable::new(&[TableColumn::Whole, TableColumn::Wrap]);
    for one in pending {
        let left = one.expires_at.time_left().as_secs();
        let arguments = one.arguments.as_ref().map_or("", |json| json.get());
        let what = format!(
            "{}.{} for {} ({left} s left) {}",
            one.server,
            one.tool,
            one.caller,
            arguments.replace('\n', " ")
        );
        table.add([visible_line(&one.id), visible_line(&what)]);
    }
    print(&table.text())
}
