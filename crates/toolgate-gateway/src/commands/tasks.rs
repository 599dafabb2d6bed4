//! `toolgate tasks`: calls that go on after their answer.

use super::{Result, all, one, print};
use crate::{cli::TasksCommand, control::Gateways};
use serde_json::{Value, json};
use std::{path::Path, process::ExitCode};
use toolgate::visible;

/// Does what is asked of the tasks of the running gateways.
pub(super) fn run(data: &Path, command: &TasksCommand) -> Result<ExitCode> {
    match command {
        TasksCommand::List => list(&Gateways::find(data)?),
        TasksCommand::Stop { id } => one(data, "tasks/stop", &json!({"id": id})),
    }
}

/// One line a task; each gateway has its own.
fn list(gateways: &Gateways) -> Result<ExitCode> {
    let tasks = all(gateways, "tasks")?;
    print(&tasks.iter().map(line).collect::<String>())
}

fn line(task: &Value) -> String {
    let word = |key: &str| visible(task[key].as_str().unwrap_or_default());
    format!(
        "{:<10} {:<15} {:<32} {:<24} {}\n",
        word("call"),
        word("status"),
        word("tool"),
        word("caller"),
        word("message"),
    )
}
