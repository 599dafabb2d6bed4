//! `toolgate hook`: decides about a tool of a host itself, for a hook of that host.

use super::{CommandError, Result, data_dir::DataLocation, print};
use crate::{
    args::{HookOptions, HookUnavailable},
    hosts::{HookAnswer, HookCall, HookHost},
    operator::control::GatewaySockets,
};
use serde_json::{Value, json};
use std::{
    io::{Read, stdin},
    path::Path,
    process::ExitCode,
    sync::mpsc,
    thread,
    time::Duration,
};

/// Maximum size of a hook's input in bytes.
const MAX_INPUT_BYTES: u64 = 16 * 1024 * 1024;

/// Decision about a call.
enum HookDecision {
    /// The host may run its tool.
    Allowed,
    /// The host must not run its tool, with the reason.
    Denied(String),
    /// No gateway decided, with the reason.
    Undecided(String),
}

/// Answers a hook. Whatever fails denies the call, unless the options say otherwise.
pub(super) fn run(place: &DataLocation<'_>, options: &HookOptions) -> Result<ExitCode> {
    let host = HookHost::find(&options.host).ok_or_else(|| unknown_host(&options.host))?;
    let decision = match (read_call(host), place.data()) {
        (Ok(call), Ok(data)) => decide(&data, host, call, Duration::from_secs(options.wait)),
        (Err(why), _) => HookDecision::Denied(why),
        (_, Err(CommandError::Usage(why) | CommandError::Failure(why))) => {
            HookDecision::Undecided(why)
        }
    };
    let answer = match decision {
        HookDecision::Allowed => host.allow(),
        HookDecision::Denied(why) => host.deny(&format!("toolgate: {why}")),
        HookDecision::Undecided(why) => match options.if_unavailable {
            HookUnavailable::Allow => {
                eprintln!("toolgate: this call was not checked: {why}");
                host.allow()
            }
            HookUnavailable::Deny => host.deny(&format!(
                "toolgate: denied, because no gateway could decide: {why}"
            )),
        },
    };
    send(&answer)
}

/// Returns the error for a host without hooks.
pub(super) fn unknown_host(id: &str) -> CommandError {
    let known: Vec<&str> = HookHost::ALL.into_iter().map(HookHost::id).collect();
    CommandError::Usage(format!(
        "toolgate does not support hooks of the host {id:?}; it supports those of {}",
        known.join(", ")
    ))
}

fn read_call(host: HookHost) -> std::result::Result<HookCall, String> {
    let mut input = Vec::new();
    let read = stdin()
        .lock()
        .take(MAX_INPUT_BYTES + 1)
        .read_to_end(&mut input);
    read.map_err(|error| format!("the input of the hook cannot be read: {error}"))?;
    if input.len() as u64 > MAX_INPUT_BYTES {
        return Err(format!(
            "the input of the hook is longer than {MAX_INPUT_BYTES} bytes"
        ));
    }
    host.read(&input)
}

/// Calls the tool through a gateway. When the time is up, the end of this process closes the connection, which cancels
/// the call.
fn decide(data: &Path, host: HookHost, call: HookCall, wait: Duration) -> HookDecision {
    let gateways = match GatewaySockets::find(data) {
        Ok(gateways) => gateways,
        Err(why) => return HookDecision::Undecided(why),
    };
    let (sender, decision) = mpsc::sync_channel(1);
    let tool = format!("host.{}", call.tool);
    let hidden = format!("the rules deny {tool}, or the config has no server \"host\"");
    thread::spawn(move || {
        let with = json!({"tool": tool, "text": call.arguments.to_string(), "hook": host.id()});
        sender.send(gateways.request_any("call", &with))
    });
    match decision.recv_timeout(wait) {
        Ok(Ok(result)) if result["isError"] != true => HookDecision::Allowed,
        Ok(Ok(result)) => HookDecision::Denied(match reason(&result) {
            // A tool that a rule always denies is not offered.
            why if why.starts_with("unknown tool") => hidden,
            why => why,
        }),
        Ok(Err(why)) => HookDecision::Undecided(why),
        Err(_) => HookDecision::Denied(format!(
            "denied, because there was no decision within {} s",
            wait.as_secs()
        )),
    }
}

/// Returns the texts of a result.
fn reason(result: &Value) -> String {
    let blocks = result["content"].as_array().into_iter().flatten();
    let texts: Vec<&str> = blocks.filter_map(|block| block["text"].as_str()).collect();
    texts.join("\n")
}

fn send(answer: &HookAnswer) -> Result<ExitCode> {
    print(&answer.output)?;
    eprint!("{}", answer.message);
    Ok(ExitCode::from(answer.code))
}
