//! A brief start of each server, with the number of its tools or the reason of its failure.

use super::{CheckResult, DoctorContext};
use crate::{
    cli::{
        commands::{CommandError, explain::runtime},
        server_requirements::UnmetRequirements,
        server_start::{StartedServers, start_and_list, start_guardian},
    },
    config::Config,
    runtime::compose,
    servers::ServerStatus,
};
use std::path::Path;
use toolgate_core::ItemKind;
use toolgate_protocol::plural::count_of;

/// Number of lines of a failed server's stderr in the report.
const MAX_STDERR_LINES: usize = 10;

pub(super) fn check(context: &DoctorContext) -> Vec<CheckResult> {
    let (Ok(config), Ok(data)) = (&context.config, &context.data) else {
        return Vec::new();
    };
    if !context.starts_servers {
        return vec![CheckResult::ok(
            "",
            "the servers were not started, because of --no-start",
        )];
    }
    match start(config, data) {
        // Other checks report what a server needs and does not have.
        Ok(started) => started
            .status
            .iter()
            .filter(|server| !has_unmet_requirements(config, &server.id))
            .map(|server| result(config, &started, server))
            .collect(),
        Err(CommandError::Usage(why) | CommandError::Failure(why)) => {
            vec![CheckResult::problem("", why)]
        }
    }
}

fn has_unmet_requirements(config: &Config, server: &str) -> bool {
    let server = config.servers.iter().find(|one| one.id == server);
    server.is_some_and(|server| UnmetRequirements::of(server).reasons().next().is_some())
}

fn start(config: &Config, data: &Path) -> Result<StartedServers, CommandError> {
    let guardian = start_guardian()?;
    let runtime = runtime()?;
    let pipeline = |servers| compose::definition_pipeline(config, servers);
    let started = start_and_list(guardian, config, data, &[ItemKind::Tool], pipeline);
    let started = runtime.block_on(started);
    runtime.shutdown_background();
    Ok(started?)
}

fn result(config: &Config, started: &StartedServers, server: &ServerStatus) -> CheckResult {
    let id = &server.id;
    if config.has_caller_connections(id) {
        return CheckResult::ok(
            id,
            "each caller has a separate connection to it, so it was not contacted",
        );
    }
    let Some(why) = started.failure(server) else {
        let items = started.lists.iter().flat_map(|list| list.items());
        let tools = items.filter(|item| *item.origin.server == **id).count();
        return CheckResult::ok(
            id,
            format!("starts and offers {}", count_of(tools as u64, "tool")),
        );
    };
    // A server that is silent has not failed, but may have written what it waits for.
    let stderr = match server.failure_stderr.as_slice() {
        [] => server.stderr.as_slice(),
        lines => lines,
    };
    let first = stderr.len().saturating_sub(MAX_STDERR_LINES);
    CheckResult::problem(id, why).with_lines(stderr[first..].to_vec())
}
