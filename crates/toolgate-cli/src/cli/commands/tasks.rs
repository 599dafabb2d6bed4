//! `toolgate tasks`: list and cancellation of tasks.

use super::{Result, collect_lists, print, send_by_id};
use crate::{args::TasksCommand, operator::control::GatewaySockets, timestamp::millis};
use serde_json::{Value, json};
use std::{path::Path, process::ExitCode, time::SystemTime};
use toolgate_core::visible;

/// Runs a task command at the running gateways.
pub(super) fn run(data: &Path, command: &TasksCommand) -> Result<ExitCode> {
    match command {
        TasksCommand::List => list(&GatewaySockets::find(data)?),
        TasksCommand::Stop { id } => send_by_id(data, "tasks/stop", &json!({"id": id})),
    }
}

/// Lists one line per task; each gateway has its own tasks.
fn list(gateways: &GatewaySockets) -> Result<ExitCode> {
    let tasks = collect_lists(gateways, "tasks")?;
    print(&tasks.iter().map(line).collect::<String>())
}

/// Formats a task: call id, status, age, remaining lifetime, tool, caller and status message.
fn line(task: &Value) -> String {
    let word = |key: &str| visible(task[key].as_str().unwrap_or_default());
    let number = |key: &str| task[key].as_u64().unwrap_or_default();
    let now = millis(SystemTime::now());
    let age = now.saturating_sub(number("created"));
    let left = number("ttl").saturating_sub(age);
    format!(
        "{:<10} {:<15} {:<12} {:<12} {:<32} {:<24} {}\n",
        word("call"),
        word("status"),
        span(age),
        span(left),
        word("tool"),
        word("caller"),
        word("message"),
    )
}

/// Formats milliseconds for a column.
fn span(ms: u64) -> String {
    match ms / 1000 {
        s @ 0..=119 => format!("{s} s"),
        s @ 120..=7_199 => format!("{} min", s / 60),
        s => format!("{} h", s / 3_600),
    }
}
