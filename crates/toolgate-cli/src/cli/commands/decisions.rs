//! Decisions of a person: approvals, grants and freezes.

use super::{Result, collect_lists, print, send_by_id};
use crate::{
    args::{ApproveOptions, FreezeCommand, FreezeTarget, GrantsCommand, ThawCommand},
    operator::control::GatewaySockets,
    timestamp::format_timestamp,
    timestamp::millis,
};
use serde_json::{Value, json};
use std::{path::Path, process::ExitCode, time::SystemTime};
use toolgate_core::visible_line;
use toolgate_protocol::plural::count_of;

/// Runs `toolgate approve`.
pub(super) fn approve(data: &Path, approve: &ApproveOptions) -> Result<ExitCode> {
    let lasts = approve.lasts.map(|span| SystemTime::now() + span);
    let remember = approve.remember.then(|| {
        json!({
            "until": lasts.or(approve.until).map(millis), "uses": approve.uses, "when": approve.when,
            "all_callers": approve.all_callers,
        })
    });
    let with = json!({"id": approve.id, "edit": approve.edit, "remember": remember});
    let done = GatewaySockets::find(data)?.request_any("approve", &with)?;
    let id = visible_line(&approve.id);
    match (done["more"] == true, approve.remember) {
        (true, _) => eprintln!("your approval is recorded; another approver has to approve too"),
        (false, true) => {
            eprintln!("approved: {id}; `toolgate grants list` lists the remembered approvals");
        }
        (false, false) => eprintln!("approved: {id}"),
    }
    Ok(ExitCode::SUCCESS)
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
        GrantsCommand::List => list(data),
        GrantsCommand::Revoke { id, all } => {
            let with = json!({"id": id, "all": all});
            let what = id.as_deref().unwrap_or("all grants");
            send_and_confirm(data, "grants/revoke", &with, &format!("revoked: {what}"))
        }
    }
}

/// Runs `toolgate freeze`.
pub(super) fn freeze(data: &Path, freeze: &FreezeCommand) -> Result<ExitCode> {
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
        None => frozen(data),
    }
}

/// Runs `toolgate thaw`.
pub(super) fn thaw(data: &Path, thaw: &ThawCommand) -> Result<ExitCode> {
    let what = thaw.target();
    let words = format!("thawed: {}", what.as_deref().unwrap_or_default());
    send_and_confirm(data, "thaw", &json!({"what": what}), &words)
}

fn list(data: &Path) -> Result<ExitCode> {
    let grants = deduplicate(collect_lists(&GatewaySockets::find(data)?, "grants")?, "id");
    if grants.is_empty() {
        eprintln!("no approvals are remembered");
    }
    print(&grants.iter().map(grant).collect::<String>())
}

fn grant(grant: &Value) -> String {
    let word = |key: &str| visible_line(grant[key].as_str().unwrap_or_default());
    let caller = match grant["caller"].as_str() {
        Some(caller) => visible_line(caller),
        None => "all callers".to_owned(),
    };
    let holds = match grant["over"].as_str() {
        Some(over) => over.to_owned(),
        None => format!("until {}", format_timestamp(&grant["until"])),
    };
    let used = match (grant["used"].as_u64().unwrap_or(0), &grant["uses"]) {
        (used, Value::Null) => format!("used {}", count_of(used, "time")),
        (used, most) => {
            let most = count_of(most.as_u64().unwrap_or(0), "time");
            format!("used {used} of {most}")
        }
    };
    let last = match &grant["last"] {
        Value::Null => String::new(),
        last => format!(", last {}", format_timestamp(last)),
    };
    let when = match grant["when"].as_str() {
        Some(when) => format!(" when {}", visible_line(when)),
        None => String::new(),
    };
    let (server, tool) = (word("server"), word("tool"));
    format!(
        "{} {server}.{tool} for {caller}{when}; {holds}; {used}{last}; by {}\n",
        word("id"),
        word("by")
    )
}

fn frozen(data: &Path) -> Result<ExitCode> {
    let freezes = deduplicate(
        collect_lists(&GatewaySockets::find(data)?, "freezes")?,
        "what",
    );
    if freezes.is_empty() {
        eprintln!("nothing is frozen");
    }
    let line = |freeze: &Value| {
        let word = |key: &str| visible_line(freeze[key].as_str().unwrap_or_default());
        let since = format_timestamp(&freeze["since"]);
        let line = format!(
            "{} since {since} by {}: {}",
            word("what"),
            word("by"),
            word("reason")
        );
        format!("{}\n", line.trim_end_matches([':', ' ']))
    };
    print(&freezes.iter().map(line).collect::<String>())
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
