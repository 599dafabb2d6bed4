//! A question on the terminal.

use super::{CommandError, Result};
use std::io::{self, BufRead, IsTerminal, Write};

/// Asks a question, and returns true for "yes". `refusal` is the error if there is no terminal to ask on.
pub(super) fn confirm(question: &str, refusal: &str) -> Result<bool> {
    let (mut stderr, stdin) = (io::stderr(), io::stdin());
    if !stdin.is_terminal() || !stderr.is_terminal() {
        return Err(CommandError::Usage(refusal.to_owned()));
    }
    let asked = stderr
        .write_all(format!("\n{question} [y/N] ").as_bytes())
        .and_then(|()| stderr.flush());
    let mut answer = String::new();
    asked
        .and_then(|()| stdin.lock().read_line(&mut answer))
        .map_err(|error| format!("cannot ask on the terminal: {error}"))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
