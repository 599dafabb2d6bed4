//! Width and colors of the terminal.

use std::{io::IsTerminal, os::fd::AsFd};

/// Width of a terminal that does not report one.
const DEFAULT_WIDTH: usize = 80;

/// Returns the columns of a terminal; `None` if the stream is not a terminal.
///
/// A terminal that does not report its width has that of `COLUMNS`.
pub(crate) fn width(stream: &(impl AsFd + IsTerminal)) -> Option<usize> {
    if !stream.is_terminal() {
        return None;
    }
    let reported = rustix::termios::tcgetwinsize(stream).map_or(0, |size| size.ws_col);
    let stated = || std::env::var("COLUMNS").ok()?.parse::<usize>().ok();
    match usize::from(reported) {
        0 => stated().filter(|width| *width > 0).or(Some(DEFAULT_WIDTH)),
        width => Some(width),
    }
}

/// Returns whether a stream is a terminal on which the user allows colors.
pub(crate) fn wants_color(stream: &impl IsTerminal) -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    stream.is_terminal() && !is_set("NO_COLOR") && !is_dumb
}
