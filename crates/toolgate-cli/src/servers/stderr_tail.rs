//! Last lines of a server's stderr.

use super::StderrFiles;
use crate::event_log::last_stderr_lines;
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::io::{AsyncRead, AsyncReadExt};
use toolgate::client::sanitize_line;

/// Number of stored lines.
const MAX_TAIL_LINES: usize = 50;
/// Maximum number of stored characters of a line.
const MAX_TAIL_LINE_CHARS: usize = 2 << 10;
/// Bytes of a line that are searched for secrets: a secret at the cut is found as a whole.
const MAX_SCANNED_LINE_BYTES: usize = 2 * MAX_TAIL_LINE_CHARS;

/// Last lines of stderr, each cut, without control characters and secrets.
#[derive(Default)]
pub(super) struct StderrTail {
    lines: Mutex<VecDeque<String>>,
    /// Number of stored lines that the current run wrote.
    lines_of_run: AtomicUsize,
    /// Last lines of the run that failed last.
    failure: Mutex<Vec<String>>,
    /// Files that get each line too, and the id of the server.
    files: Option<(Arc<StderrFiles>, Arc<str>)>,
}

impl StderrTail {
    /// Creates a tail whose lines are stored in the files too.
    pub(super) fn new(files: Option<Arc<StderrFiles>>, server: &Arc<str>) -> StderrTail {
        StderrTail {
            files: files.map(|files| (files, server.clone())),
            ..StderrTail::default()
        }
    }

    /// Returns the lines, the oldest first.
    pub(super) fn lines(&self) -> Vec<String> {
        self.lock_lines().iter().cloned().collect()
    }

    /// Begins a run: the lines before it do not explain how it ends.
    pub(super) fn begin_run(&self) {
        self.lines_of_run.store(0, Ordering::Relaxed);
    }

    /// Returns the last lines of the run that has just failed, and keeps them.
    pub(super) fn end_run(&self) -> Vec<String> {
        let written = self.lines_of_run.load(Ordering::Relaxed);
        let lines = self.lines();
        let of_run = lines.len().saturating_sub(written);
        let failure = last_stderr_lines(lines[of_run..].to_vec());
        *self.lock_failure() = failure.clone();
        failure
    }

    /// Returns the last lines of the run that failed last.
    pub(super) fn failure_lines(&self) -> Vec<String> {
        self.lock_failure().clone()
    }

    /// Reads to the end, and reports added lines after each block. It never stops reading a long line, because the
    /// server would block on a full pipe.
    pub(super) async fn read(&self, mut from: impl AsyncRead + Unpin, added: impl Fn()) {
        let (mut buffer, mut line) = (vec![0; 8 << 10], Vec::new());
        while let Ok(n @ 1..) = from.read(&mut buffer).await {
            for piece in buffer[..n].split_inclusive(|byte| *byte == b'\n') {
                let ends = piece.ends_with(b"\n");
                let room = MAX_SCANNED_LINE_BYTES.saturating_sub(line.len());
                line.extend_from_slice(&piece[..piece.len().min(room)]);
                if ends {
                    self.add(&std::mem::take(&mut line));
                }
            }
            added();
        }
        if !line.is_empty() {
            self.add(&line);
            added();
        }
    }

    fn add(&self, line: &[u8]) {
        let text = sanitize_line(
            String::from_utf8_lossy(line).trim_end(),
            MAX_TAIL_LINE_CHARS,
        );
        if let Some((files, server)) = &self.files {
            files.add(server, &text);
        }
        let mut kept = self.lock_lines();
        if kept.len() == MAX_TAIL_LINES {
            kept.pop_front();
        }
        kept.push_back(text);
        self.lines_of_run.fetch_add(1, Ordering::Relaxed);
    }

    fn lock_failure(&self) -> MutexGuard<'_, Vec<String>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_lines(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn tail(bytes: &[u8]) -> Vec<String> {
        let tail = StderrTail::default();
        tail.read(bytes, || {}).await;
        tail.lines()
    }

    /// Holds: STDIO-06
    #[tokio::test]
    async fn the_last_fifty_lines_are_kept() {
        let text: String = (0..70).map(|n| format!("line {n}\n")).collect();
        let lines = tail(text.as_bytes()).await;
        assert_eq!(
            (lines.len(), lines[0].as_str(), lines[49].as_str()),
            (50, "line 20", "line 69")
        );
    }

    #[tokio::test]
    async fn a_failure_has_the_lines_of_its_own_run() {
        let tail = StderrTail::default();
        for (text, wanted) in [
            ("one\ntwo\n", &["one", "two"][..]),
            ("three\n", &["three"]),
            ("", &[]),
        ] {
            tail.begin_run();
            tail.read(text.as_bytes(), || {}).await;
            assert_eq!(tail.end_run(), wanted);
            tail.begin_run();
            assert_eq!(tail.failure_lines(), wanted, "until the next failure");
        }
        assert_eq!(tail.lines().len(), 3);
    }

    #[tokio::test]
    async fn lines_are_cut_and_made_harmless() {
        let lines = tail(
            &[
                b"\x1b[31mred\x07\r\n".as_slice(),
                &[b'x'; 5000],
                b"\nlast \xff",
            ]
            .concat(),
        )
        .await;
        assert_eq!(lines[0], "red");
        assert_eq!(lines[1].len(), MAX_TAIL_LINE_CHARS + "…".len());
        assert_eq!(lines[2], "last \u{fffd}");
    }
}
