//! Last lines of a server's stderr.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
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
#[derive(Debug, Default)]
pub(super) struct StderrTail(Mutex<VecDeque<String>>);

impl StderrTail {
    /// Returns the lines, the oldest first.
    pub(super) fn lines(&self) -> Vec<String> {
        self.lock_lines().iter().cloned().collect()
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
        let mut kept = self.lock_lines();
        if kept.len() == MAX_TAIL_LINES {
            kept.pop_front();
        }
        kept.push_back(text);
    }

    fn lock_lines(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
