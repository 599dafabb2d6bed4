//! Lines under a cap: one that is too long is skipped while it comes, never kept.

use std::io;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// What came up to a line end.
#[derive(Debug, PartialEq)]
pub(super) enum Line {
    /// A line without its end.
    Text(Vec<u8>),
    /// A line over the cap; its bytes are gone.
    TooLong,
}

/// A stream cut into lines.
pub(super) struct Lines<R> {
    from: BufReader<R>,
    limit: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Lines of at most `limit` bytes.
    pub(super) fn new(from: R, limit: usize) -> Lines<R> {
        Lines {
            from: BufReader::with_capacity(64 << 10, from),
            limit,
        }
    }

    /// The next line; `None` at the end of the stream. A last line without its end is a line.
    pub(super) async fn next(&mut self) -> io::Result<Option<Line>> {
        let (mut line, mut seen) = (Vec::new(), 0_usize);
        loop {
            let chunk = self.from.fill_buf().await?;
            if chunk.is_empty() {
                return Ok((seen > 0).then(|| self.finish(line, seen)));
            }
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let part = &chunk[..end.unwrap_or(chunk.len())];
            seen = seen.saturating_add(part.len());
            if seen > self.limit {
                line = Vec::new();
            } else {
                line.extend_from_slice(part);
            }
            let used = part.len() + usize::from(end.is_some());
            self.from.consume(used);
            if end.is_some() {
                return Ok(Some(self.finish(line, seen)));
            }
        }
    }

    fn finish(&self, line: Vec<u8>, seen: usize) -> Line {
        if seen > self.limit {
            Line::TooLong
        } else {
            Line::Text(line)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(bytes: &[u8], limit: usize) -> Vec<Line> {
        let mut lines = Lines::new(bytes, limit);
        let mut seen = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            seen.push(line);
        }
        seen
    }

    fn text(line: &str) -> Line {
        Line::Text(line.as_bytes().to_vec())
    }

    #[tokio::test]
    async fn a_line_over_the_cap_is_skipped_and_the_next_one_is_read() {
        assert_eq!(
            all(b"abc\nabcd\nabcde\nx", 4).await,
            [text("abc"), text("abcd"), Line::TooLong, text("x")]
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
        assert_eq!(
            all(two.as_bytes(), (200 << 10) - 1).await,
            [Line::TooLong, Line::TooLong]
        );
    }
}
