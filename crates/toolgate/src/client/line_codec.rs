//! Line codec with a length limit: a line that is too long is skipped as it arrives and never stored.

use std::io;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use toolgate_protocol::{
    memory_budget::{BudgetScope, MemoryPermit},
    unreadable::{UnreadableScanner, UnreadableText},
};

/// Line of the stream, or the reason why it was dropped.
#[derive(Debug)]
pub(super) enum StreamLine {
    /// Line without its terminator, and the memory permit for it.
    Text(Vec<u8>, MemoryPermit),
    /// Dropped line: the reason, and the ids that it answers.
    Dropped(LineDropReason, UnreadableText),
}

/// Reason why a line was dropped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum LineDropReason {
    /// The memory budget is exhausted.
    BudgetExceeded,
    /// The line exceeds the limit.
    TooLong,
}

/// Stream split into lines.
pub(super) struct LineReader<R> {
    from: BufReader<R>,
    limit: usize,
    account: BudgetScope,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Returns the lines of a stream, at most `limit` bytes each, charged to this account.
    pub(super) fn new(from: R, limit: usize, account: BudgetScope) -> LineReader<R> {
        LineReader {
            from: BufReader::with_capacity(64 << 10, from),
            limit,
            account,
        }
    }

    /// Returns the next line; `None` at the end of the stream. A last line without a terminator counts.
    pub(super) async fn next(&mut self) -> io::Result<Option<StreamLine>> {
        let mut line = PartialLine::new(self.limit, self.account.permit());
        loop {
            let chunk = self.from.fill_buf().await?;
            if chunk.is_empty() {
                return Ok((line.received > 0).then(|| line.finish()));
            }
            let end = memchr::memchr(b'\n', chunk);
            let part = &chunk[..end.unwrap_or(chunk.len())];
            line.add(part);
            let used = part.len() + usize::from(end.is_some());
            self.from.consume(used);
            if end.is_some() {
                return Ok(Some(line.finish()));
            }
        }
    }
}

/// Line that is still being read.
struct PartialLine {
    limit: usize,
    claim: MemoryPermit,
    received: usize,
    bytes: Vec<u8>,
    /// Set once the line is dropped: the reason, and the scanner for the ids it answers.
    dropped: Option<(LineDropReason, UnreadableScanner)>,
}

impl PartialLine {
    fn new(limit: usize, claim: MemoryPermit) -> PartialLine {
        PartialLine {
            limit,
            claim,
            received: 0,
            bytes: Vec::new(),
            dropped: None,
        }
    }

    fn add(&mut self, part: &[u8]) {
        self.received = self.received.saturating_add(part.len());
        if let Some((_, scanner)) = &mut self.dropped {
            return scanner.feed(part);
        }
        let why = if self.received > self.limit {
            LineDropReason::TooLong
        } else if self.claim.cover_message(self.received as u64).is_err() {
            LineDropReason::BudgetExceeded
        } else {
            return self.bytes.extend_from_slice(part);
        };
        let mut scanner = UnreadableScanner::default();
        scanner.feed(&self.bytes);
        scanner.feed(part);
        (self.bytes, self.claim) = (Vec::new(), MemoryPermit::default());
        self.dropped = Some((why, scanner));
    }

    fn finish(self) -> StreamLine {
        match self.dropped {
            Some((why, scanner)) => StreamLine::Dropped(why, scanner.finish()),
            None => StreamLine::Text(self.bytes, self.claim),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_protocol::memory_budget::MemoryBudget;

    /// Reads all lines; a placeholder stands for each dropped one.
    async fn read(bytes: &[u8], limit: usize, account: BudgetScope) -> Vec<String> {
        let mut lines = LineReader::new(bytes, limit, account);
        let mut seen = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            seen.push(match line {
                StreamLine::Text(line, _) => text(std::str::from_utf8(&line).unwrap()),
                StreamLine::Dropped(LineDropReason::TooLong, _) => LONG.to_owned(),
                StreamLine::Dropped(LineDropReason::BudgetExceeded, unread) => {
                    let ids = unread.replies.iter().map(|id| id.json().as_str());
                    format!("no room: {:?}", ids.collect::<Vec<_>>())
                }
            });
        }
        seen
    }

    async fn all(bytes: &[u8], limit: usize) -> Vec<String> {
        read(bytes, limit, BudgetScope::default()).await
    }

    fn text(line: &str) -> String {
        line.to_owned()
    }

    const LONG: &str = "(too long)";

    #[tokio::test]
    async fn a_line_without_room_is_skipped_and_says_what_it_answers() {
        let room = MemoryBudget::new(2 << 20);
        let account = BudgetScope::of(&room, "s".into());
        let long = "y".repeat(300 << 10);
        let lines = [
            format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"x":"{long}"}}}}"#),
            format!(r#"{{"result":{{"x":"{long}","id":1}},"jsonrpc":"2.0","id": 8}}"#),
            format!(r#"{{"jsonrpc":"2.0","result":{{"x":"{long}","id":9}}}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":"{long}"}}"#),
            "fits".to_owned(),
        ];
        let seen = read(lines.join("\n").as_bytes(), 1 << 20, account).await;
        let id = |n: &str| format!("no room: [{n:?}]");
        let none = "no room: []".to_owned();
        assert_eq!(seen, [id("7"), id("8"), none.clone(), none, text("fits")]);
        assert_eq!(room.used(), 0);
    }

    #[tokio::test]
    async fn a_line_over_the_cap_is_skipped_and_the_next_one_is_read() {
        assert_eq!(
            all(b"abc\nabcd\nabcde\nx", 4).await,
            [text("abc"), text("abcd"), text(LONG), text("x")]
        );
    }

    #[tokio::test]
    async fn a_line_longer_than_the_buffer_is_whole_or_too_long() {
        let long = "y".repeat(200 << 10);
        let two = format!("{long}\n{long}");
        assert_eq!(
            all(two.as_bytes(), 200 << 10).await,
            [text(&long), text(&long)]
        );
        assert_eq!(all(two.as_bytes(), (200 << 10) - 1).await, [LONG, LONG]);
    }
}
