//! Notes on stderr about servers whose items are unavailable.

use crate::operator::control::{ControlResponse, GatewaySockets};
use serde_json::{Value, json};
use toolgate_core::{visible, visible_line};

/// Returns the status of each gateway that responds. Failures were reported by the request before.
pub(super) fn statuses(gateways: &GatewaySockets) -> Vec<Value> {
    let answers = gateways
        .request_all("status", &json!({}))
        .unwrap_or_default();
    let status = |answer| match answer {
        ControlResponse::Ok(status) => Some(status),
        _ => None,
    };
    answers.into_iter().filter_map(status).collect()
}

/// Prints a line for each selected server that is unavailable.
pub(super) fn print_unavailable(statuses: &[Value], meant: impl Fn(&str) -> bool) {
    let mut said = Vec::new();
    for status in statuses {
        for server in status["servers"].as_array().into_iter().flatten() {
            let id = server["id"].as_str().unwrap_or_default();
            match unavailable_reason(server).filter(|_| meant(id)) {
                Some(why) => {
                    let stderr = stderr_lines(server).concat();
                    said.push(format!(
                        "toolgate: the server {} {why}\n{stderr}",
                        visible_line(id)
                    ));
                }
                None => continue,
            }
        }
    }
    for name in statuses
        .iter()
        .flat_map(|status| status["disabled"].as_array())
        .flatten()
    {
        if let Some(id) = name.as_str().filter(|id| meant(id)) {
            let id = visible_line(id);
            said.push(format!(
                "toolgate: the server {id} is disabled; enable it with `toolgate enable {id}`"
            ));
        }
    }
    said.dedup();
    said.iter().for_each(|text| eprint!("{text}"));
}

/// Returns the last lines of the stderr of a server that is down, indented, for the message about it.
pub(super) fn stderr_lines(server: &Value) -> Vec<String> {
    if server["down"] != true {
        return Vec::new();
    }
    let lines = server["failure_stderr"].as_array().into_iter().flatten();
    let lines = lines.filter_map(Value::as_str);
    lines
        .map(|line| format!("  | {}\n", visible_line(line)))
        .collect()
}

/// Returns why a server is unavailable.
fn unavailable_reason(server: &Value) -> Option<String> {
    let error = server["error"].as_str().map(visible_line);
    let state = server["state"].as_str().unwrap_or_default();
    match (state, error) {
        ("running", _) if server["reached"] == false => {
            Some("is not in use yet; its items are known once a caller has used it".to_owned())
        }
        ("running", _) => None,
        ("sign-in", Some(why)) => Some(format!("is unavailable: {why}")),
        ("failed", Some(why)) => Some(format!("cannot be started: {why}")),
        (_, Some(why)) => Some(format!("is not running: {why}")),
        ("starting", None) => Some("is still starting".to_owned()),
        (state, None) => Some(format!("is not running (state: {})", visible(state))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_why_a_server_is_unavailable() {
        let of = |state: &str, error: Option<&str>, reached: bool| {
            unavailable_reason(&json!({"state": state, "error": error, "reached": reached}))
        };
        assert_eq!(of("running", Some("it ended before"), true), None);
        assert!(of("running", None, false).is_some_and(|why| why.starts_with("is not in use yet")));
        let told = |state, why| of(state, Some(why), true).unwrap();
        assert_eq!(
            told("sign-in", "somebody has to sign in"),
            "is unavailable: somebody has to sign in"
        );
        assert_eq!(
            told("failed", "no\n program"),
            "cannot be started: no\\u000a program"
        );
        assert_eq!(told("backoff", "gone"), "is not running: gone");
        assert_eq!(of("starting", None, true).unwrap(), "is still starting");
    }
}
