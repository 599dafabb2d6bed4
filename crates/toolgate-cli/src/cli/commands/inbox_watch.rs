//! `toolgate inbox --watch`: a full-screen view on a terminal, and plain lines elsewhere.
//!
//! - `gateway_poll`: reads the pending requests from the gateways, and sends decisions.
//! - `plain_lines`: the lines if the output is no terminal.
//! - `state`, `prompt`, `keys`: the full-screen view without a terminal.
//! - `view`: draws a state. `screen` and `terminal`: the loop and the real terminal.

mod decision;
mod descriptor;
mod detail;
mod editor;
mod gateway_poll;
mod keys;
mod pending_request;
mod plain_lines;
mod prompt;
mod screen;
mod state;
mod stop_signal;
mod terminal;
#[cfg(test)]
mod tests;
mod view;
mod wrap;

use super::{CommandError, Result, data_dir::DataLocation};
use gateway_poll::GatewayPoll;
use std::{
    io::{self, IsTerminal},
    process::ExitCode,
    time::Duration,
};

/// Time between two polls of the gateways.
const POLL_INTERVAL: Duration = Duration::from_millis(300);

/// Runs `toolgate inbox --watch` until the person quits, or the output closes.
pub(super) fn run(place: &DataLocation<'_>) -> Result<ExitCode> {
    let data = place.data()?;
    let poll = GatewayPoll::new(data.clone());
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    if io::stdin().is_terminal() && io::stdout().is_terminal() && !is_dumb {
        screen::run(poll, &data).map_err(CommandError::Failure)?;
        return Ok(ExitCode::SUCCESS);
    }
    let flags = place.absolute_options().into_iter();
    let flags: String = flags.map(|word| format!(" {word}")).collect();
    plain_lines::run(poll, &flags)
}
