//! Decisions of a person: approvals, grants and freezes.

use super::{Result, collect_lists, print, send_by_id};
use crate::{
    args::{ApproveOptions, FreezeCommand, FreezeTarget, GrantsCommand, ThawCommand},
    cli::output::{OutputTable, OutputTime, TableColumn, print_json, read_answer},
    operator::control::GatewaySockets,
    timestamp::millis,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{path::Path, process::ExitCode, time::SystemTime};
use toolgate_core::visible_line;
use toolgate_protocol::plural::count_of;

/// Runs `toolgate approve`.
pub(super) fn approve(data: &Path, approve: &ApproveOptions) -> Result<ExitCode> {
    let done = GatewaySockets::find(data)?.request_any("approve", &approve_request(approve))?;
    eprintln!("{}", approved_text(approve, &done));
    Ok(ExitCode::SUCCESS)
}

/// Returns the request of an approval, as the control protocol has it.
pub(super) fn approve_request(approve: &ApproveOptions) -> Value {
    let lasts = approve.lasts.map(|span| SystemTime::now() + span);
    let remember = approve.remember.then(|| {
        json!({
            "until": lasts.or(approve.until).map(millis), "uses": approve.uses, "when": approve.when,
            "all_callers": approve.all_callers,
        })
    });
    json!({"id": approve.id, "edit": approve.edit, "remember": remember})
}

/// Returns the confirmation of an approval, from the response of the gateway.
pub(super) fn approved_text(approve: &ApproveOptions, done: &Value) -> String {
    let id = visible_line(&approve.id);
    match (done["more"] == true, approve.remember) {
        (true, _) => "your approval is recorded; another approver has to approve too".to_owned(),
        (false, true) => {
            format!("approved: {id}; `toolgate grants list` lists the remembered approvals")
        }
        (false, false) => format!("approved: {id}"),
    }
}

/// Runs `toolgate deny`.
pub(super) fn deny(data: &Path, id: &str, reason: &str) -> Result<ExitCode> {
    let with = json!({"id": id, "reason": reason});
    send_and_confirm(data, "deny", &with, &format!("denied: {id}"))
}

/// Sends an action and prints a confirmation.
fn send_and_confirm(data: &Path, action: &str, with: &Value, words: &str) -> Result<ExitCode> {
    let code = send_by_id(data, action, with)?;
    eprintln!("{}", visible_line(words));
    Ok(code)
}

/// Runs `toolgate grants`.
pub(super) fn grants(data: &Path, grants: &GrantsCommand) -> Result<ExitCode> {
    match grants {
        GrantsCommand::List(output) => list(data, output.json),
        GrantsCommand::Revoke { id, all } => {
            let with = json!({"id": id, "all": all});
            let what = id.as_deref().unwrap_or("all grants");
            send_and_confirm(data, "grants/revoke", &with, &format!("revoked: {what}"))
        }
    }
}

/// Runs `toolgate freeze`.
pub(super) fn freeze(data: &Path, freeze: &FreezeCommand) -> Result<ExitCode> {
    if let FreezeCommand::List(output) = freeze {
        return frozen(data, output.json);
    }
    match freeze.target() {
        Some(what) => {
            let with = json!({"what": what, "reason": freeze.reason()});
            let frozen = GatewaySockets::find(data)?.request_any("freeze", &with)?;
            eprintln!("{}", visible_line(&format!("frozen: {what}")));
            if let Some(note) = frozen["note"].as_str() {
                eprintln!("{}", visible_line(note));
            }
            Ok(ExitCode::SUCCESS)
        }
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Runs `toolgate thaw`.
pub(super) fn thaw(data: &Path, thaw: &ThawCommand) -> Result<ExitCode> {
    let what = thaw.target();
    let words = format!("thawed: {}", what.as_deref().unwrap_or_default());
    send_and_confirm(data, "thaw", &json!({"what": what}), &words)
}

/// Remembered approval.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub(crate) struct GrantOutput {
    id: String,
    /// Caller; `null` for all callers.
    caller: Option<String>,
    /// Server in the config.
    server: String,
    /// Name on the server.
    tool: String,
    /// Person who approved, and the channel.
    #[serde(rename(deserialize = "by"))]
    approver: String,
    #[serde(rename(deserialize = "made"))]
    created_at: OutputTime,
    #[serde(rename(deserialize = "until"))]
    expires_at: OutputTime,
    /// Maximum number of calls; `null` for any number.
    #[serde(rename(deserialize = "uses"))]
    max_uses: Option<u64>,
    /// Number of calls so far.
    used: u64,
    #[serde(rename(deserialize = "last"))]
    last_used_at: Option<OutputTime>,
    /// CEL condition that the calls match.
    #[serde(rename(deserialize = "when"))]
    condition: Option<String>,
    /// Reason why it is no longer valid, such as `expired`; `null` if it is.
    #[serde(rename(deserialize = "over"))]
    end_reason: Option<String>,
}

/// Active freeze.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub(crate) struct FreezeOutput {
    /// `all`, `caller NAME` or `server NAME`.
    #[serde(rename(deserialize = "what"))]
    target: String,
    reason: Option<String>,
    /// Person who froze it, and the channel.
    by: String,
    #[serde(rename(deserialize = "since"))]
    frozen_at: OutputTime,
}

fn list(data: &Path, json: bool) -> Result<ExitCode> {
    let grants = deduplicate(collect_lists(&GatewaySockets::find(data)?, "grants")?, "id");
    let grants = grants.into_iter().map(read_answer);
    let grants = grants.collect::<Result<Vec<GrantOutput>>>()?;
    if json {
        return print_json(&grants);
    }
    if grants.is_empty() {
        eprintln!("no approvals are remembered");
    }
    let mut table = OutputTable::new(&[TableColumn::Whole, TableColumn::Wrap]);
    for grant in &grants {
        table.add([visible_line(&grant.id), grant_text(grant)]);
    }
    print(&table.text())
}

fn grant_text(grant: &GrantOutput) -> String {
    let caller = grant.caller.as_deref().map(visible_line);
    let caller = caller.unwrap_or_else(|| "all callers".to_owned());
    let holds = match &grant.end_reason {
        Some(over) => visible_line(over),
        None => format!("until {}", grant.expires_at),
    };
    let used = match grant.max_uses {
        None => format!("used {}", count_of(grant.used, "time")),
        Some(most) => format!("used {} of {}", grant.used, count_of(most, "time")),
    };
    let last = grant.last_used_at.map(|last| format!(", last {last}"));
    let when = grant.condition.as_deref();
    let when = when.map(|when| format!(" when {}", visible_line(when)));
    format!(
        "{}.{} for {caller}{}; {holds}; {used}{}; by {}",
        visible_line(&grant.server),
        visible_line(&grant.tool),
        when.unwrap_or_default(),
        last.unwrap_or_default(),
        visible_line(&grant.approver)
    )
}

fn frozen(data: &Path, json: bool) -> Result<ExitCode> {
    let gateways = GatewaySockets::find(data)?;
    let freezes = deduplicate(collect_lists(&gateways, "freezes")?, "what");
    let freezes = freezes.into_iter().map(read_answer);
    let freezes = freezes.collect::<Result<Vec<FreezeOutput>>>()?;
    if json {
        return print_json(&freezes);
    }
    if freezes.is_empty() {
        eprintln!("nothing is frozen");
    }
    let mut table = OutputTable::new(&[TableColumn::Whole, TableColumn::Wrap]);
    for freeze in &freezes {
        let reason = match freeze.reason.as_deref() {
            None | Some("") => String::new(),
            Some(reason) => format!(": {}", visible_line(reason)),
        };
        let by = visible_line(&freeze.by);
        table.add([
            visible_line(&freeze.target),
            format!("since {} by {by}{reason}", freeze.frozen_at),
        ]);
    }
    print(&table.text())
}

/// Removes duplicates: all gateways of a data directory return the same entries.
pub(super) fn deduplicate(list: Vec<Value>, key: &str) -> Vec<Value> {
    let mut seen: Vec<Value> = Vec::new();
    for one in list {
        if !seen.iter().any(|other| other[key] == one[key]) {
            seen.push(one);
        }
    }
    seen
}
