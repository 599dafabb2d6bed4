//! `toolgate explain`: what would become of a call.

use super::{Result, print};
use crate::control::Gateways;
use serde_json::json;
use std::process::ExitCode;
use toolgate::visible;

/// Asks the running gateways; the first that knows the tool answers.
pub(super) fn run(
    gateways: &Gateways,
    tool: &str,
    caller: Option<&str>,
    arguments: Option<&str>,
) -> Result<ExitCode> {
    let with = json!({"tool": tool, "caller": caller, "text": arguments.unwrap_or("{}")});
    let way = gateways.ask_any("explain", &with)?;
    let mut text = String::new();
    for step in way["steps"].as_array().into_iter().flatten() {
        let word = |key: &str| visible(step[key].as_str().unwrap_or_default());
        let line = format!("{:<10} {:<8} {}", word("by"), word("verdict"), word("why"));
        text.push_str(&format!("{}\n", line.trim_end()));
    }
    let verdict = way["verdict"].as_str().map(visible).unwrap_or_default();
    text.push_str(&format!(
        "so: {verdict} (as a running gateway has it; nothing was called)\n"
    ));
    print(&text)
}
