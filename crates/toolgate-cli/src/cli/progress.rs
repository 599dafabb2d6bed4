//! Progress of a command that takes longer than a second, as one line on the terminal.

use crate::terminal;
use std::{
    io::{self, Write},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{self, RecvTimeoutError, SyncSender},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};
use toolgate_core::visible_line;
use unicode_width::UnicodeWidthChar;

/// Time after which the line appears.
const PROGRESS_DELAY: Duration = Duration::from_secs(1);
/// Interval at which the line is written again.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);
/// Moves to the beginning of the line, and clears it.
const CLEAR_LINE: &str = "\r\u{1b}[K";

/// Line on stderr while a command works. Dropping it clears the line. Without a terminal, nothing is written.
///
/// It has a thread, so it must not begin before the guardian has started.
pub(crate) struct ProgressLine {
    text: Arc<Mutex<String>>,
    writer: Option<(SyncSender<()>, JoinHandle<()>)>,
}

impl ProgressLine {
    /// Begins the work that the text names, such as `Starting 3 servers`.
    pub(crate) fn start(text: impl Into<String>) -> ProgressLine {
        let text = Arc::new(Mutex::new(text.into()));
        let shown = text.clone();
        let writer = terminal::width(&io::stderr()).map(|_| {
            let (end, ended) = mpsc::sync_channel(0);
            (end, thread::spawn(move || write_until(&ended, &shown)))
        });
        ProgressLine { text, writer }
    }

    /// Replaces the text.
    pub(crate) fn set(&self, text: impl Into<String>) {
        *lock(&self.text) = text.into();
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if let Some((end, writer)) = self.writer.take() {
            drop(end);
            let _ = writer.join();
        }
    }
}

fn lock(text: &Mutex<String>) -> MutexGuard<'_, String> {
    text.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes the line until the other end of the channel is dropped.
fn write_until(ended: &mpsc::Receiver<()>, text: &Mutex<String>) {
    let begun = Instant::now();
    let mut wait = PROGRESS_DELAY;
    let mut shown = false;
    // The terminal may be gone; then nobody reads the line.
    while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
        wait = PROGRESS_INTERVAL;
        let stderr = io::stderr();
        let width = terminal::width(&stderr).unwrap_or(80);
        let line = progress_line(&lock(text), begun.elapsed(), width);
        let _ = write!(stderr.lock(), "{CLEAR_LINE}{line}");
        shown = true;
    }
    if shown {
        let _ = write!(io::stderr(), "{CLEAR_LINE}");
    }
}

/// Formats the text and the time, shorter than the terminal is wide: a line that wraps cannot be cleared.
fn progress_line(text: &str, elapsed: Duration, width: usize) -> String {
    let end = format!("… ({} s)", elapsed.as_secs());
    let most = width.saturating_sub(end.chars().count() + 1);
    let mut used = 0;
    let fitting = visible_line(text);
    let fitting = fitting.chars().take_while(|c| {
        used += c.width().unwrap_or(0);
        used <= most
    });
    fitting.chain(end.chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_shorter_than_the_terminal() {
        let line = |text, width| progress_line(text, Duration::from_secs(12), width);
        assert_eq!(line("Starting 2 servers", 80), "Starting 2 servers… (12 s)");
        assert_eq!(line("Starting 2 servers", 20), "Starting 2 … (12 s)");
        assert_eq!(line("a\u{1b}[2J", 80), "a\\u001b[2J… (12 s)");
        assert_eq!(line("x", 3), "… (12 s)");
    }
}
