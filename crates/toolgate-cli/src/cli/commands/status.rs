//! `toolgate status`: status of the running gateways.

mod output;

use super::{CommandError, Result, keys::expires_soon, print};
use crate::{
    cli::output::{OutputTable, TableColumn, print_json, read_answer},
    oauth::SignInInstructions,
    operator::control::{ControlResponse, GatewaySockets},
    runtime::offline::format_age,
};
pub(crate) use output::{ServerOutput, StatusOutput};
use serde_json::json;
use std::process::ExitCode;
use toolgate_core::{visible, visible_line};
use toolgate_protocol::plural::count_of;

/// Maximum number of notes per server.
const MAX_NOTES_SHOWN: usize = 20;
/// Minimum seconds by which the data directory's clock is ahead of the system clock before the status mentions it.
const MIN_CLOCK_LEAD_SECONDS: u64 = 60;

/// Prints the status of each gateway. Fails if one cannot write its audit log, if damage to it is not acknowledged, or
/// if a server is down.
///
/// With `ready`, it prints only the reasons for which a gateway cannot serve calls, and fails if there are any.
pub(super) fn run(gateways: &GatewaySockets, ready: bool, json: bool) -> Result<ExitCode> {
    let mut all = Vec::new();
    for answer in gateways.request_all("status", &json!({}))? {
        match answer {
            ControlResponse::Ok(status) => all.push(read_answer::<StatusOutput>(status)?),
            ControlResponse::Unknown(why) | ControlResponse::Refused(why) => {
                return Err(CommandError::Failure(why));
            }
        }
    }
    if ready {
        let reasons = all.iter().flat_map(|status| &status.not_ready);
        let reasons: Vec<String> = reasons
            .map(|why| format!("{}\n", visible_line(why)))
            .collect();
        print(&reasons.concat())?;
        return Ok(match reasons.is_empty() {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        });
    }
    match json {
        true => print_json(&all)?,
        false => print(
            &all.iter()
                .map(|status| table(status).text())
                .collect::<String>(),
        )?,
    };
    Ok(match all.iter().any(StatusOutput::is_failure) {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

fn table(status: &StatusOutput) -> OutputTable {
    let mut table = OutputTable::new(&[TableColumn::Whole, TableColumn::Wrap]);
    let (endpoint, version) = (visible(&status.endpoint), visible(&status.version));
    table.add_line(format!("{endpoint} of toolgate {version}"));
    let mut line = |name: &str, value: &str| table.add([format!("  {name}"), value.to_owned()]);
    line("data", &visible(&status.data));
    if let Some(certificate) = &status.certificate {
        let names = visible(&certificate.names.join(", "));
        match &certificate.warning {
            Some(warning) => line("certificate", &format!("{names}: {}", visible(warning))),
            None => line("certificate", &names),
        }
    }
    line(
        "policy",
        &visible(status.config.hash.as_deref().unwrap_or_default()),
    );
    if let Some(why) = &status.config.rejection {
        line(
            "",
            &format!("a newer config was rejected: {}", visible(why)),
        );
    }
    let log = &status.audit_log;
    match log.state.as_str() {
        "written" => line("audit log", "written"),
        "failed" => {
            let why = visible(log.error.as_deref().unwrap_or_default());
            let then = "all calls are rejected until records can be written again";
            line("audit log", &format!("NOT WRITTEN: {why}; {then}"));
        }
        _ => line("audit log", "closed: the gateway is stopping"),
    }
    match &log.mirror_error {
        None => line("checkpoints", "mirrored"),
        Some(why) => line("checkpoints", &format!("NOT MIRRORED: {}", visible(why))),
    }
    if status.clock_ahead_seconds >= MIN_CLOCK_LEAD_SECONDS {
        let ahead = status.clock_ahead_seconds.div_ceil(60);
        line(
            "clock",
            &format!(
                "the system clock was set back: approvals, grants and keys expire by a stored clock that is {ahead} min ahead of it; if the stored clock is wrong, stop all gateways on this data directory, and run: toolgate store clear clock"
            ),
        );
    }
    let flags = visible(&status.flags);
    for damage in &log.damage {
        line(
            "damaged",
            &format!("{}: {}", visible(&damage.about), visible(&damage.reason)),
        );
        line(
            "",
            &format!("run: toolgate audit verify, then: toolgate audit acknowledge{flags}"),
        );
    }
    for server in &status.servers {
        line(
            "server",
            &format!("{} {}", visible(&server.id), state_text(server)),
        );
        let stderr = server.failure_stderr.iter().filter(|_| server.down);
        stderr.for_each(|text| line("", &format!("| {}", visible_line(text))));
        notes(server).iter().for_each(|note| line("", note));
        for (caller, how) in pending_sign_ins(server, &status.flags) {
            line("", &format!("{caller} is waiting for a sign-in; {how}"));
        }
    }
    for name in &status.disabled {
        line("server", &format!("{} disabled", visible(name)));
    }
    for key in &status.keys_ending {
        let name = visible_line(&key.name);
        let left = key.expires_at.unwrap_or_default().time_left();
        if let Some(soon) = expires_soon(left) {
            let extend = format!("toolgate keys extend {name} --expires 90d{flags}");
            let rotate = format!("toolgate keys rotate {name}{flags}");
            line(
                "key",
                &format!("key:{name} {soon}; run: {extend}, or: {rotate}"),
            );
        }
    }
    for issuer in &status.issuers {
        let state = match (&issuer.error, issuer.failing_since) {
            (Some(why), since) => {
                let since = since.map(|at| format_age(at.as_millis()));
                let since = since.map(|age| format!(" (first failure: {age})"));
                format!(
                    "cannot be used: {}{}",
                    visible(why),
                    since.unwrap_or_default()
                )
            }
            (None, _) => "no known problems".to_owned(),
        };
        line("issuer", &format!("{} {state}", visible(&issuer.id)));
    }
    line(
        "approvals",
        &format!("{} pending", status.pending_approvals),
    );
    table
}

fn state_text(server: &ServerOutput) -> String {
    let state = visible(&server.state);
    match (&server.error, &server.revision) {
        (Some(why), _) => format!("{state}: {}", visible(why)),
        (None, _) if !server.reached && server.state == "running" => "not used yet".to_owned(),
        (None, Some(revision)) => format!("{state}, revision {}", visible(revision)),
        (None, None) => state,
    }
}

/// Formats the notes on one server's definitions, in the order of the gateway.
fn notes(server: &ServerOutput) -> Vec<String> {
    let shown = server.notes.iter().take(MAX_NOTES_SHOWN);
    let mut lines: Vec<String> = shown.map(|note| visible_line(&note.text)).collect();
    let more = server.notes.len().saturating_sub(MAX_NOTES_SHOWN);
    if more > 0 {
        lines.push(format!(
            "{} on definitions; the console shows all notes",
            count_of(more as u64, "more note")
        ));
    }
    lines
}

/// Returns the callers of a server with a pending sign-in, and the command for it.
fn pending_sign_ins(server: &ServerOutput, flags: &str) -> impl Iterator<Item = (String, String)> {
    let how = SignInInstructions::from_flags(flags);
    let waiting = server.own_sign_ins.iter().flatten();
    let waiting = waiting.filter(|one| !one.granted);
    waiting.map(move |one| {
        let how = visible_line(&how.text(&server.id, Some(&one.caller)));
        (visible_line(&one.caller), how)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timestamp::millis;
    use serde_json::Value;
    use std::time::SystemTime;

    fn text(status: &Value) -> String {
        table(&read_answer(status.clone()).ok().unwrap()).text()
    }

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
            "servers": [{"id": "far", "state": "running", "error": null, "reached": true, "own_sign_ins": own}],
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
