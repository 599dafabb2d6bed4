//! Lines under a cap: one that is too long is skipped while it comes, never kept.

use std::io;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use toolgate_wire::{
    room::{Account, Claim},
    unread::{Unread, UnreadScanner},
};

/// What came up to a line end.
#[derive(Debug)]
pub(super) enum Line {
    /// A line without its end, and the room that it takes up.
    Text(Vec<u8>, Claim),
    /// A line whose bytes are gone; why, and what it was meant to be.
    Dropped(Dropped, Unread),
}

/// Why a line is not kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Dropped {
    /// There was no room for it.
    NoRoom,
    /// It is over the cap.
    TooLong,
}

/// A stream cut into lines.
pub(super) struct Lines<R> {
    from: BufReader<R>,
    limit: usize,
    account: Account,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Lines of at most `limit` bytes, on this account.
    pub(super) fn new(from: R, limit: usize, account: Account) -> Lines<R> {
        Lines {
            from: BufReader::with_capacity(64 << 10, from),
            limit,
            account,
        }
    }

    /// The next line; `None` at the end of the stream. A last line without its end is a line.
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

/// A line that comes.
struct Growing {
    limit: usize,
    claim: Claim,
    seen: usize,
    bytes: Vec<u8>,
    /// Once it is not kept: why, and what reads on to find out what it answers.
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

    /// The lines; a word in the place of those that are not there.
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
