//! Secret from a terminal, without echo, or one line of standard input.

use super::super::{CommandError, Result};
use crate::config::MAX_SECRET_FILE_BYTES;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};
use std::io::{self, BufRead, IsTerminal, Read, Write};
use toolgate_core::visible_line;

/// Keys of a terminal that the prompt handles itself.
const CTRL_C: u8 = 0x03;
const CTRL_D: u8 = 0x04;
const BACKSPACE: u8 = 0x08;
const DELETE: u8 = 0x7f;

/// Reads a secret. A terminal asks for it and does not show it.
///
/// # Errors
/// The input ends, is empty, is too long, or is not UTF-8. The message never contains it.
pub(super) fn read(name: &str) -> Result<String> {
    let wrong = |why: &str| {
        let name = visible_line(name);
        CommandError::Failure(format!(
            "the secret {name} cannot be read: {why}; type it, or pass it on standard input"
        ))
    };
    let line = match io::stdin().is_terminal() {
        true => ask(name),
        false => read_line(),
    };
    let line = line.map_err(|error| wrong(&error.to_string()))?;
    if line.len() >= MAX_SECRET_FILE_BYTES {
        let limit = MAX_SECRET_FILE_BYTES;
        return Err(wrong(&format!(
            "it is longer than {limit} bytes, which is the limit"
        )));
    }
    let text = String::from_utf8(line).map_err(|_| wrong("it is not UTF-8 text"))?;
    match text.trim_end_matches(['\r', '\n']) {
        "" => Err(wrong("it is empty")),
        text => Ok(text.to_owned()),
    }
}

fn read_line() -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    let mut input = io::stdin().lock().take(MAX_SECRET_FILE_BYTES as u64);
    input.read_until(b'\n', &mut line)?;
    Ok(line)
}

/// Asks a terminal.
fn ask(name: &str) -> io::Result<Vec<u8>> {
    let _hidden = HiddenInput::start()?;
    let mut out = io::stderr();
    write!(out, "value of {} (it is not shown): ", visible_line(name))?;
    out.flush()?;
    let mut line = Vec::new();
    for byte in io::stdin().lock().bytes() {
        match byte? {
            // The terminal does not send the signal itself, which would end the program without its echo.
            CTRL_C => {
                return Err(io::Error::new(
                    io::ErrorKind::Interrupted,
                    "you cancelled it",
                ));
            }
            b'\r' | b'\n' | CTRL_D => break,
            BACKSPACE | DELETE => remove_last_char(&mut line),
            byte if line.len() < MAX_SECRET_FILE_BYTES => line.push(byte),
            _ => {}
        }
    }
    Ok(line)
}

/// Removes the last character of UTF-8 text.
fn remove_last_char(line: &mut Vec<u8>) {
    let is_continuation = |byte: u8| byte & 0b1100_0000 == 0b1000_0000;
    while line.pop().is_some_and(is_continuation) {}
}

/// Terminal that neither shows nor edits what is typed. The end of the value restores it.
struct HiddenInput(Termios);

impl HiddenInput {
    fn start() -> io::Result<HiddenInput> {
        let before = tcgetattr(io::stdin())?;
        let mut hidden = before.clone();
        hidden
            .local_modes
            .remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        hidden.special_codes[SpecialCodeIndex::VMIN] = 1;
        hidden.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(io::stdin(), OptionalActions::Flush, &hidden)?;
        Ok(HiddenInput(before))
    }
}

impl Drop for HiddenInput {
    fn drop(&mut self) {
        // The terminal may have been closed.
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.0);
        eprintln!();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backspace_removes_one_character() {
        let mut line = "aé€".as_bytes().to_vec();
        for left in ["aé", "a", "", ""] {
            remove_last_char(&mut line);
            assert_eq!(line, left.as_bytes());
        }
    }
}
