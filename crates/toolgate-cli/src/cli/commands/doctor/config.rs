//! The config: readable, valid, and not writable by others.

use super::{CheckResult, DoctorContext};
use toolgate_protocol::plural::count_of;

pub(super) fn check(context: &DoctorContext) -> Vec<CheckResult> {
    let config = match &context.config {
        Ok(config) => config,
        // The message begins with the position in the file.
        Err(why) => return vec![CheckResult::problem("", why)],
    };
    let counts = format!(
        "{}, {}",
        count_of(config.servers.len() as u64, "server"),
        count_of(config.rules.len() as u64, "rule")
    );
    let mut results = vec![match &context.file {
        Some(file) => CheckResult::ok("", format!("valid: {counts} in {}", file.display())),
        None => CheckResult::ok(
            "",
            "there is none, so the gateway serves the demo server; create one with `toolgate init`",
        ),
    }];
    let tokens = config.check_listen().and_then(|()| config.check_tokens());
    if let Err(why) = tokens.and_then(|()| config.overrides().map(drop)) {
        results.push(CheckResult::problem("", why.to_string()));
    }
    let disabled = config.disabled_servers.iter();
    let disabled = disabled.filter_map(|server| config.disabled_reason(&server.id));
    results.extend(disabled.map(|text| CheckResult::ok("", text)));
    let notes = config.notes.iter();
    results.extend(notes.map(|note| CheckResult::warning("", note)));
    results
}
