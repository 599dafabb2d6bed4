//! Lines under a cap: one that is too long is skipped while it comes, never kept.

use std::io;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use toolgate_wire::room::{Account, Claim};

/// What came up to a line end.
#[derive(Debug)]
pub(super) enum Line {
    /// A line without its end, and the room that it takes up.
    Text(Vec<u8>, Claim),
    /// There was no room for a line; its bytes are gone. What it answers, where that could be seen.
    NoRoom(Option<u64>),
    /// A line over the cap; its bytes are gone.
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
    /// Its beginning and its end, once there was no room for all of it.
    ends: Option<(Vec<u8>, Vec<u8>)>,
}

impl Growing {
    fn new(limit: usize, claim: Claim) -> Growing {
        Growing {
            limit,
            claim,
            seen: 0,
            bytes: Vec::new(),
            ends: None,
        }
    }

    fn add(&mut self, part: &[u8]) {
        self.seen = self.seen.saturating_add(part.len());
        let full = self.ends.is_none() && self.claim.message(self.seen as u64).is_err();
        if self.seen > self.limit {
            self.bytes = Vec::new();
        } else if full {
            let head = self.bytes.iter().chain(part).take(HEAD).copied().collect();
            self.ends = Some((head, Vec::new()));
            self.bytes = Vec::new();
        } else if self.ends.is_none() {
            self.bytes.extend_from_slice(part);
        }
        if let Some((_, tail)) = &mut self.ends {
            tail.extend_from_slice(last(part));
            tail.drain(..tail.len().saturating_sub(TAIL));
        }
    }

    fn finish(self) -> Line {
        match self.ends {
            _ if self.seen > self.limit => Line::TooLong,
            Some((head, tail)) => Line::NoRoom(answered(&head, &tail)),
            None => Line::Text(self.bytes, self.claim),
        }
    }
}

/// Bytes at the beginning of a line in which its id is looked for.
const HEAD: usize = 256;
/// Bytes at the end.
const TAIL: usize = 64;

fn last(part: &[u8]) -> &[u8] {
    &part[part.len().saturating_sub(TAIL)..]
}

/// The number of the request that a text answers, looked for where most servers write it: before the result, or after it.
/// For a text that there is no room for, or that may be a list.
pub(super) fn answers(text: &[u8]) -> Option<u64> {
    answered(&text[..text.len().min(HEAD)], last(text))
}

fn answered(head: &[u8], tail: &[u8]) -> Option<u64> {
    let top = head.trim_ascii_start().strip_prefix(b"{")?;
    let top = top.split(|byte| matches!(byte, b'{' | b'[')).next()?;
    if top.windows(METHOD.len()).any(|part| part == METHOD) {
        return None;
    }
    let before = top.split(|byte| *byte == b',').find_map(id);
    // Within something else there would be a second brace.
    let after = || {
        let all = tail.trim_ascii_end().strip_suffix(b"}")?;
        id(all.rsplit(|byte| *byte == b',').next()?)
    };
    before.or_else(after)
}

/// What a request and a notification have, and a reply does not.
const METHOD: &[u8] = b"\"method\"";

/// The number of a member that is an id.
fn id(member: &[u8]) -> Option<u64> {
    let value = member.trim_ascii().strip_prefix(b"\"id\"")?;
    let number = value.trim_ascii_start().strip_prefix(b":")?.trim_ascii();
    std::str::from_utf8(number).ok()?.parse().ok()
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
                Line::TooLong => LONG.to_owned(),
                Line::NoRoom(id) => format!("no room: {id:?}"),
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
        let id = |n: &str| format!("no room: Some({n})");
        let none = "no room: None".to_owned();
        assert_eq!(seen, [id("7"), id("8"), none.clone(), none, text("fits")]);
        assert_eq!(room.used(), 0);
        assert_eq!(answers(br#"{"id":7,"result":{}}"#), Some(7));
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
