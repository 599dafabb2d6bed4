//! Line codec with a length limit: a line that is too long is skipped as it arrives and never stored.

use std::io;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use toolgate_wire::{
    room::{Account, Claim},
    unread::{Unread, UnreadScanner},
};

/// Line of the stream, or the reason why it was dropped.
#[derive(Debug)]
pub(super) enum Line {
    /// Line without its terminator, and the memory permit for it.
    Text(Vec<u8>, Claim),
    /// Dropped line: the reason, and the ids that it answers.
    Dropped(Dropped, Unread),
}

/// Reason why a line was dropped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Dropped {
    /// The memory budget is exhausted.
    NoRoom,
    /// The line exceeds the limit.
    TooLong,
}

/// Stream split into lines.
pub(super) struct Lines<R> {
    from: BufReader<R>,
    limit: usize,
    account: Account,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Returns the lines of a stream, at most `limit` bytes each, charged to this account.
    pub(super) fn new(from: R, limit: usize, account: Account) -> Lines<R> {
        Lines {
            from: BufReader::with_capacity(64 << 10, from),
            limit,
            account,
        }
    }

    /// Returns the next line; `None` at the end of the stream. A last line without a terminator counts.
    pub(super) async fn next(&mut self) -> io::Result<Option<Line>> {
        let mut line = Growing::new(self.limit, self.account.claim());
        loop {
            let chunk = self.from.fill_buf().await?;
            if chunk.is_empty() {
                return Ok((line.seen > 0).then(|| line.finish()));
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
struct Growing {
    limit: usize,
    claim: Claim,
    seen: usize,
    bytes: Vec<u8>,
    /// Set once the line is dropped: the reason, and the scanner for the ids it answers.
    dropped: Option<(Dropped, UnreadScanner)>,
}

impl Growing {
    fn new(limit: usize, claim: Claim) -> Growing {
        Growing {
            limit,
            claim,
            seen: 0,
            bytes: Vec::new(),
            dropped: None,
        }
    }

    fn add(&mut self, part: &[u8]) {
        self.seen = self.seen.saturating_add(part.len());
        if let Some((_, scanner)) = &mut self.dropped {
            return scanner.feed(part);
        }
        let why = if self.seen > self.limit {
            Dropped::TooLong
        } else if self.claim.message(self.seen as u64).is_err() {
            Dropped::NoRoom
        } else {
            return self.bytes.extend_from_slice(part);
        };
        let mut scanner = UnreadScanner::default();
        scanner.feed(&self.bytes);
        scanner.feed(part);
        (self.bytes, self.claim) = (Vec::new(), Claim::default());
        self.dropped = Some((why, scanner));
    }

    fn finish(self) -> Line {
        match self.dropped {
            Some((why, scanner)) => Line::Dropped(why, scanner.finish()),
            None => Line::Text(self.bytes, self.claim),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_wire::room::Room;

    /// Reads all lines; a placeholder stands for each dropped one.
    async fn read(bytes: &[u8], limit: usize, account: Account) -> Vec<String> {
        let mut lines = Lines::new(bytes, limit, account);
        let mut seen = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            seen.push(match line {
                Line::Text(line, _) => text(std::str::from_utf8(&line).unwrap()),
                Line::Dropped(Dropped::TooLong, _) => LONG.to_owned(),
                Line::Dropped(Dropped::NoRoom, unread) => {
                    let ids = unread.replies.iter().map(|id| id.json().as_str());
                    format!("no room: {:?}", ids.collect::<Vec<_>>())
                }
            });
        }
        seen
    }

    async fn all(bytes: &[u8], limit: usize) -> Vec<String> {
        read(bytes, limit, Account::default()).await
    }

    fn text(line: &str) -> String {
        line.to_owned()
    }

    const LONG: &str = "(too long)";

    #[tokio::test]
    async fn a_line_without_room_is_skipped_and_says_what_it_answers() {
        let room = Room::new(2 << 20);
        let account = Account::of(&room, "s".into());
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
