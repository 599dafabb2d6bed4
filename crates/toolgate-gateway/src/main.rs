//! Toolgate checks every tool call: the gateway, its console and its command line.

#[cfg(test)]
#[macro_use]
mod unprinted;

mod board;
mod cli;
mod commands;
mod config;
mod console;
mod control;
mod demo;
mod door;
mod explained;
mod history;
mod http_server;
mod instructions;
mod kept_tasks;
mod keyring;
mod last_lists;
mod live;
mod memory;
mod nesting;
mod offered;
mod operator;
mod overridden;
mod paths;
mod pins;
mod plan;
mod reload;
mod routes;
mod seal_keys;
mod search;
mod serve;
mod servers;
mod show;
mod signing_in;
mod stack;
mod stamp;
mod startup;
mod stored;
mod unmatched;
mod unreachable;
mod witness;

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
