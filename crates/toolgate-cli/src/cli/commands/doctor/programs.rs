//! The programs of the servers: found in `PATH`, executable, with their working directory.

use super::{CheckResult, DoctorContext};
use crate::cli::server_requirements::UnmetRequirements;

pub(super) fn check(context: &DoctorContext) -> Vec<CheckResult> {
    let Ok(config) = &context.config else {
        return Vec::new();
    };
    let local = config
        .servers
        .iter()
        .filter(|server| !server.command.is_empty());
    let result =
        |server: &crate::config::ServerSettings| match UnmetRequirements::of(server).program {
            Some(why) => CheckResult::problem(&server.id, why),
            None => CheckResult::ok(&server.id, format!("{} can be started", server.command[0])),
        };
    local.map(result).collect()
}
