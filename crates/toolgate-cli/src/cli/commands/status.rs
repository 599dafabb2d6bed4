//! `toolgate status`: status of the running gateways.

use super::{CommandError, Result, keys::expires_soon, print, unavailable::stderr_lines};
use crate::{
    oauth::SignInInstructions,
    operator::control::{ControlResponse, GatewaySockets},
    runtime::offline::format_age,
    timestamp::millis,
};
use serde_json::{Value, json};
use std::{
    process::ExitCode,
    time::{Duration, SystemTime},
};
use toolgate_core::{visible, visible_line};
use toolgate_protocol::plural::count_of;

/// Maximum number of notes per server.
const MAX_NOTES_SHOWN: usize = 20;
/// Minimum seconds by which the data directory's clock is ahead of the system clock before the status mentions it.
const MIN_CLOCK_LEAD_SECONDS: u64 = 60;

/// Prints the status of each gateway. Fails if one cannot write its audit log, if damage to it is not acknowledged, or
/// if a server is down.
pub(super) fn run(gateways: &GatewaySockets) -> Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    for answer in gateways.request_all("status", &json!({}))? {
        match answer {
            ControlResponse::Ok(status) => {
                print(&text(&status))?;
                let damaged = status["record"]["damage"].as_array();
                let damaged = damaged.is_some_and(|all| !all.is_empty());
                let servers = status["servers"].as_array();
                let down = servers.is_some_and(|all| all.iter().any(|one| one["down"] == true));
                if damaged || down || status["record"]["state"] != "written" {
                    code = ExitCode::FAILURE;
                }
            }
            ControlResponse::Unknown(why) | ControlResponse::Refused(why) => {
                return Err(CommandError::Failure(why));
            }
        }
    }
    Ok(code)
}

fn text(status: &Value) -> String {
    let word = |value: &Value| visible(value.as_str().unwrap_or_default());
    let record = &status["record"];
    let mut text = format!(
        "{} of toolgate {}\n",
        word(&status["endpoint"]),
        word(&status["version"])
    );
    let mut line = |name: &str, value: &str| text.push_str(&format!("  {name:<12} {value}\n"));
    line("data", &word(&status["data"]));
    line("policy", &word(&status["policy"]["hash"]));
    if let Some(why) = status["policy"]["refused"].as_str() {
        line(
            "",
            &format!("a newer config was rejected: {}", visible(why)),
        );
    }
    match record["state"].as_str() {
        Some("written") => line("audit log", "written"),
        Some("failed") => {
            let why = word(&record["why"]);
            let then = "all calls are rejected until records can be written again";
            line("audit log", &format!("NOT WRITTEN: {why}; {then}"));
        }
        _ => line("audit log", "closed: the gateway is stopping"),
    }
    match record["checkpoints"].as_str() {
        None => line("checkpoints", "mirrored"),
        Some(why) => line("checkpoints", &format!("NOT MIRRORED: {}", visible(why))),
    }
    let ahead = status["clock_ahead_seconds"].as_u64().unwrap_or_default();
    if ahead >= MIN_CLOCK_LEAD_SECONDS {
        let ahead = ahead.div_ceil(60);
        line(
            "clock",
            &format!(
                "the system clock was set back: approvals, grants and keys expire by a stored clock that is {ahead} min ahead of it; if the stored clock is wrong, stop all gateways on this data directory and remove the lines with \"t\":\"clock\" from state/state.jsonl"
            ),
        );
    }
    let flags = status["flags"].as_str().unwrap_or_default();
    for damage in record["damage"].as_array().into_iter().flatten() {
        let (about, why) = (word(&damage["about"]), word(&damage["why"]));
        line("damaged", &format!("{about}: {why}"));
        let then = "run: toolgate audit verify, then: toolgate audit acknowledge";
        line("", &format!("{then}{}", visible(flags)));
    }
    for server in status["servers"].as_array().into_iter().flatten() {
        let state = match server["error"].as_str() {
            Some(why) => format!("{}: {}", word(&server["state"]), visible(why)),
            None if server["reached"] == false && server["state"] == "running" => {
                "not used yet".to_owned()
            }
            None => match server["revision"].as_str() {
                Some(revision) => {
                    format!("{}, revision {}", word(&server["state"]), visible(revision))
                }
                None => word(&server["state"]),
            },
        };
        line("server", &format!("{} {state}", word(&server["id"])));
        for stderr in stderr_lines(server) {
            line("", stderr.trim());
        }
        for note in notes(server) {
            line("", &note);
        }
        for (caller, how) in pending_sign_ins(server, flags) {
            line("", &format!("{caller} is waiting for a sign-in; {how}"));
        }
    }
    for name in status["disabled"].as_array().into_iter().flatten() {
        line("server", &format!("{} disabled", word(name)));
    }
    for key in status["keys_ending"].as_array().into_iter().flatten() {
        let left = key["expires"].as_u64().unwrap_or_default();
        let left = left.saturating_sub(millis(SystemTime::now()));
        let name = word(&key["name"]);
        if let Some(soon) = expires_soon(Duration::from_millis(left)) {
            let extend = format!(
                "toolgate keys extend {name} --expires 90d{}",
                visible(flags)
            );
            let rotate = format!("toolgate keys rotate {name}{}", visible(flags));
            line(
                "key",
                &format!("key:{name} {soon}; run: {extend}, or: {rotate}"),
            );
        }
    }
    for issuer in status["issuers"].as_array().into_iter().flatten() {
        let state = match (issuer["error"].as_str(), issuer["since"].as_u64()) {
            (Some(why), since) => {
                let since = since.map_or(String::new(), |at| {
                    format!(" (first failure: {})", format_age(at))
                });
                format!("cannot be used: {}{since}", visible(why))
            }
            (None, _) => "no known problems".to_owned(),
        };
        line("issuer", &format!("{} {state}", word(&issuer["id"])));
    }
    line("approvals", &format!("{} pending", status["waiting"]));
    text
}

/// Formats the notes on one server's definitions, in the order of the gateway.
fn notes(server: &Value) -> Vec<String> {
    let all = server["notes"].as_array().map(Vec::as_slice);
    let all = all.unwrap_or_default();
    let text = |note: &Value| visible_line(note["text"].as_str().unwrap_or_default());
    let mut lines: Vec<String> = all.iter().take(MAX_NOTES_SHOWN).map(text).collect();
    if let Some(more) = all
        .len()
        .checked_sub(MAX_NOTES_SHOWN)
        .filter(|more| *more > 0)
    {
        lines.push(format!(
            "{} on definitions; the console shows all notes",
            count_of(more as u64, "more note")
        ));
    }
    lines
}

/// Returns the callers of a server with a pending sign-in, and the command for it.
fn pending_sign_ins(server: &Value, flags: &str) -> impl Iterator<Item = (String, String)> {
    let (id, how) = (
        server["id"].as_str().unwrap_or_default(),
        SignInInstructions::from_flags(flags),
    );
    let own = server["own_sign_ins"].as_array().into_iter().flatten();
    let waiting = own.filter(|one| one["granted"] == false);
    waiting.filter_map(move |one| {
        let caller = one["caller"].as_str()?;
        let how = visible_line(&how.text(id, Some(caller)));
        Some((visible_line(caller), how))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_failures_in_capitals() {
        let mut status = json!({
            "version": "1", "endpoint": "http://127.0.0.1:1/mcp", "data": "/d", "waiting": 2,
            "record": {"state": "written", "why": null, "checkpoints": null},
            "servers": [{"id": "s", "state": "failed", "error": "no\u{1b}[31m program"}],
            "policy": {"hash": "abc", "refused": null},
            "issuers": [{"id": "corp", "error": null, "since": null}],
        });
        let fine = text(&status);
        assert!(fine.contains("audit log    written\n"), "{fine}");
        assert!(
            !fine.contains(['\u{1b}']) && !fine.contains("NOT"),
            "{fine}"
        );
        assert!(fine.contains("2 pending"), "{fine}");
        assert!(fine.contains("issuer       corp no known"), "{fine}");
        status["issuers"][0] = json!({"id": "corp", "error": "its keys cannot be loaded: no\u{1b} answer", "since": 1});
        let damage = json!([{"about": "c-1", "why": "cut\u{1b} off"}]);
        status["record"] =
            json!({"state": "failed", "why": "no space", "checkpoints": "gone", "damage": damage});
        let bad = text(&status);
        assert!(
            bad.contains("NOT WRITTEN: no space; all calls are rejected"),
            "{bad}"
        );
        assert!(bad.contains("NOT MIRRORED: gone"), "{bad}");
        assert!(bad.contains("damaged      c-1: cut\\u001b off\n"), "{bad}");
        let issuer =
            "corp cannot be used: its keys cannot be loaded: no\\u001b answer (first failure: ";
        assert!(bad.contains(issuer), "{bad}");
    }

    #[test]
    fn lists_pending_sign_ins_and_expiring_keys() {
        let end = millis(SystemTime::now()) + 150 * 3_600_000;
        let own = json!([
            {"caller": "corp:an n", "granted": false},
            {"caller": "key:ci", "granted": true},
        ]);
        let status = json!({
            "servers": [{"id": "far", "state": "running", "error": null, "own_sign_ins": own}],
            "keys_ending": [{"name": "ci", "expires": end}], "flags": " --data /d",
        });
        let told = text(&status);
        let line = "corp:an n is waiting for a sign-in; run: toolgate login far --caller 'corp:an n' --data /d\n";
        assert!(told.contains(line), "{told}");
        assert!(!told.contains("key:ci is waiting"), "{told}");
        let mut unused = status.clone();
        unused["servers"][0]["reached"] = json!(false);
        assert!(text(&unused).contains("server       far not used yet\n"));
        assert!(told.contains("server       far running\n"), "{told}");
        let line = "key:ci expires in 6 days; run: toolgate keys extend ci --expires 90d --data /d, or: toolgate keys rotate ci --data /d\n";
        assert!(told.contains(line), "{told}");
    }
}
