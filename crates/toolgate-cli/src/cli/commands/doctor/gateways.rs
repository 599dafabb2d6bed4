//! The running gateways of the data directory and their state.

use super::{CheckResult, DoctorContext};
use crate::{cli::commands::unavailable, operator::control::GatewaySockets};
use serde_json::Value;

/// Returns the status of each running gateway; `None` if none runs.
pub(super) fn statuses(context: &DoctorContext) -> Option<Vec<Value>> {
    let data = context.data.as_ref().ok()?;
    // The lookup of gateways would create the directory.
    if !data.exists() {
        return None;
    }
    let gateways = GatewaySockets::find_optional(data).ok().flatten()?;
    Some(unavailable::statuses(&gateways))
}

pub(super) fn check(context: &DoctorContext) -> Vec<CheckResult> {
    let Some(statuses) = statuses(context) else {
        return vec![CheckResult::ok(
            "",
            "no gateway is running on the data directory; `toolgate` starts one",
        )];
    };
    if statuses.is_empty() {
        return vec![CheckResult::problem(
            "",
            "a gateway is running on the data directory, but does not respond; restart it",
        )];
    }
    statuses.iter().flat_map(of_gateway).collect()
}

fn of_gateway(status: &Value) -> Vec<CheckResult> {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let endpoint = word(&status["endpoint"]);
    let mut results = Vec::new();
    if status["record"]["state"] != "written" {
        results.push(CheckResult::problem(&endpoint, format!("the audit log is not written, so all calls are rejected: {}; free space or correct the permissions of the data directory", word(&status["record"]["why"]))));
    }
    if status["record"]["damage"]
        .as_array()
        .is_some_and(|all| !all.is_empty())
    {
        results.push(CheckResult::problem(&endpoint, "the audit log is damaged; run `toolgate audit verify`, then `toolgate audit acknowledge`"));
    }
    if let Some(why) = status["policy"]["refused"].as_str() {
        results.push(CheckResult::problem(
            &endpoint,
            format!("a newer config was rejected, and the previous one stays active: {why}"),
        ));
    }
    let version = word(&status["version"]);
    if version != env!("CARGO_PKG_VERSION") {
        results.push(CheckResult::warning(
            &endpoint,
            format!(
                "the running gateway is toolgate {version}, and this is {}; restart the gateway",
                env!("CARGO_PKG_VERSION")
            ),
        ));
    }
    for server in status["servers"].as_array().into_iter().flatten() {
        if let (Some(id), Some(why), false) = (
            server["id"].as_str(),
            server["error"].as_str(),
            server["state"] == "running",
        ) {
            results.push(CheckResult::problem(
                &endpoint,
                format!("its server {id} is not running: {why}"),
            ));
        }
    }
    if results.is_empty() {
        results.push(CheckResult::ok(
            &endpoint,
            format!(
                "the gateway is running; {} calls wait for approval",
                status["waiting"]
            ),
        ));
    }
    results
}
