//! Lines over an in-memory stream, with an observer.

use crate::HANG_TIMEOUT;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};

/// The sender of a line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StreamSide {
    /// The side under test.
    Tested,
    /// The test itself.
    Testing,
}

/// Observer of every line of a stream, for example to validate it against a schema.
pub type LineObserver = Box<dyn FnMut(StreamSide, &str) + Send>;

/// One end of a stream of lines.
pub(crate) struct LineStream {
    from: BufReader<ReadHalf<DuplexStream>>,
    to: WriteHalf<DuplexStream>,
    watch: Option<LineObserver>,
}

impl LineStream {
    pub(crate) fn new(stream: DuplexStream, watch: Option<LineObserver>) -> LineStream {
        let (from, to) = tokio::io::split(stream);
        LineStream {
            from: BufReader::new(from),
            to,
            watch,
        }
    }

    fn observe(&mut self, side: StreamSide, line: &str) {
        if let Some(watch) = &mut self.watch {
            watch(side, line);
        }
    }

    /// Sends a line unchanged.
    pub(crate) async fn send(&mut self, line: &str) {
        self.observe(StreamSide::Testing, line);
        let sent = self.to.write_all(format!("{line}\n").as_bytes()).await;
        sent.expect("the other side reads");
    }

    /// Sends text unchanged, without a line ending and without calling the observer.
    pub(crate) async fn raw(&mut self, text: &str) {
        let sent = self.to.write_all(text.as_bytes()).await;
        sent.expect("the other side reads");
    }

    /// Receives the next line; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = tokio::time::timeout(HANG_TIMEOUT, self.from.read_line(&mut line)).await;
        let read = read
            .expect("no line arrived in time")
            .expect("the stream can be read");
        if read == 0 {
            return None;
        }
        let line = line.trim_end_matches('\n').to_owned();
        self.observe(StreamSide::Tested, &line);
        Some(line)
    }

    /// Receives the next message.
    pub(crate) async fn message(&mut self) -> Value {
        let line = self.next().await.expect("the stream ended");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// Returns whether nothing arrives for this long.
    pub(crate) async fn is_silent(&mut self, time: std::time::Duration) -> bool {
        let filled = tokio::time::timeout(time, self.from.fill_buf()).await;
        filled.is_err()
    }
}
