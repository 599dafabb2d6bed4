//! Toolgate checks every tool call: the gateway, its console and its command line.

#[cfg(test)]
#[macro_use]
mod unprinted;

mod active;
mod authentication;
mod banner;
mod call_feed;
mod cli;
mod commands;
mod compose;
mod config;
mod console;
mod control;
mod demo;
mod dry_run;
mod edge_audit;
mod history;
mod http_server;
mod instructions;
mod item_view;
mod keyring;
mod last_lists;
mod memory;
mod nesting;
mod oauth;
mod offline;
mod operator;
mod override_lint;
mod paths;
mod persistent_tasks;
mod pins;
mod pretty_json;
mod reload;
mod routes;
mod seal_keys;
mod search;
mod serve;
mod servers;
mod snapshot;
mod timestamp;
mod unmatched_lint;
mod unreachable_lint;

use std::process::ExitCode;

fn main() -> ExitCode {
    // The guardian is this same program, so nothing else may run before this check.
    if let Some(code) = toolgate_guardian::run_if_asked() {
        return code;
    }
    // A panic message could contain calls, secrets or results, so it is withheld.
    toolgate_policy::withhold_panic_messages();
    commands::run(cli::parse())
}
