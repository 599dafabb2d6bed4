//! Toolgate checks every tool call: the gateway, its console and its command line.

#[cfg(not(unix))]
compile_error!(
    "the gateway needs Unix: process groups, file locks and sockets; use the library `toolgate` on this system"
);

#[cfg(test)]
#[macro_use]
mod unprinted;

mod admin;
mod args;
mod atomic_write;
mod audit_index;
mod audit_output;
mod authentication;
mod banner;
mod cli;
mod config;
mod config_edit;
mod config_versions;
mod console;
mod console_roles;
mod disk_space;
mod event_log;
mod file_diff;
mod fleet;
mod history;
mod hosts;
mod import;
mod mcp_path;
mod notify;
mod oauth;
mod operator;
mod output_table;
mod pretty_json;
mod proxy;
mod responses;
mod runtime;
mod serve;
mod servers;
mod system_tool;
mod telemetry;
mod terminal;
mod timestamp;
mod tls;

use std::process::ExitCode;

/// Allocator of the static program: that of musl has one lock for all threads.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // The guardian is this same program, so nothing else may run before this check.
    if let Some(code) = toolgate_guardian::run_if_asked() {
        return code;
    }
    // A panic message could contain calls, secrets or results, so it is withheld.
    toolgate_policy::withhold_panic_messages();
    cli::commands::run(args::parse())
}
