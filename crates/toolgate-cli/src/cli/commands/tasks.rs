//! `toolgate tasks`: list and cancellation of tasks.

use super::{Result, collect_lists, print, send_by_id};
use crate::{
    args::TasksCommand,
    cli::output::{OutputTable, OutputTime, TableColumn, print_json, read_answer},
    operator::control::GatewaySockets,
    timestamp::millis,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::{path::Path, process::ExitCode, time::SystemTime};
use toolgate_core::visible_line;

/// Task: a call that continues after its response.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub(crate) struct TaskOutput {
    /// ID of the call.
    call: String,
    caller: String,
    /// Full name of the tool.
    tool: String,
    /// `working`, `input_required`, `completed`, `failed` or `cancelled`.
    status: String,
    message: Option<String>,
    #[serde(rename(deserialize = "created"))]
    created_at: OutputTime,
    /// Time after its creation at which the task is deleted.
    #[serde(rename(deserialize = "ttl"))]
    ttl_ms: u64,
}

/// Runs a task command at the running gateways.
pub(super) fn run(data: &Path, command: &TasksCommand) -> Result<ExitCode> {
    match command {
        TasksCommand::List(output) => list(&GatewaySockets::find(data)?, output.json),
        TasksCommand::Stop { id } => send_by_id(data, "tasks/stop", &json!({"id": id})),
    }
}

/// Lists one line per task; each gateway has its own tasks.
fn list(gateways: &GatewaySockets, json: bool) -> Result<ExitCode> {
    let tasks = collect_lists(gateways, "tasks")?
        .into_iter()
        .map(read_answer);
    let tasks = tasks.collect::<Result<Vec<TaskOutput>>>()?;
    if json {
        return print_json(&tasks);
    }
    let mut table = OutputTable::new(&[
        TableColumn::Whole,
        TableColumn::State,
        TableColumn::Whole,
        TableColumn::Whole,
        TableColumn::Whole,
        TableColumn::Cut,
        TableColumn::Cut,
    ]);
    for task in &tasks {
        let age = millis(SystemTime::now()).saturating_sub(task.created_at.as_millis());
        table.add([
            visible_line(&task.call),
            visible_line(&task.status),
            span(age),
            span(task.ttl_ms.saturating_sub(age)),
            visible_line(&task.tool),
            visible_line(&task.caller),
            visible_line(task.message.as_deref().unwrap_or_default()),
        ]);
    }
    print(&table.text())
}

/// Formats milliseconds for a column.
fn span(ms: u64) -> String {
    match ms / 1000 {
        s @ 0..=119 => format!("{s} s"),
        s @ 120..=7_199 => format!("{} min", s / 60),
        s => format!("{} h", s / 3_600),
    }
}
