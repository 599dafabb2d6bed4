//! Standard input and output of this process, without a thread in between if they are pipes.

use bytes::{Buf, Bytes};
use std::{
    io::{self, Read},
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::mpsc,
};

/// Boxed input stream of an MCP server over stdio: standard input.
pub type StandardInput = Box<dyn AsyncRead + Send + Unpin>;
/// Boxed output stream of an MCP server over stdio: standard output.
pub type StandardOutput = Box<dyn AsyncWrite + Send + Unpin>;

/// Returns standard input and output as asynchronous streams, for an MCP server over stdio. A pipe is reopened in
/// non-blocking mode, which leaves the pipe unchanged for processes that share it. Any other input, such as a socket or
/// a terminal, is read by a thread, and does not keep the runtime from shutting down. The caller must be the only
/// reader and writer.
///
/// # Panics
/// Panics outside a tokio runtime with IO enabled.
pub fn streams() -> (StandardInput, StandardOutput) {
    (input(), output())
}

#[cfg(target_os = "linux")]
fn input() -> StandardInput {
    use tokio::net::unix::pipe::OpenOptions;
    match OpenOptions::new().open_receiver("/proc/self/fd/0") {
        Ok(pipe) => Box::new(pipe),
        Err(_) => threaded_input(),
    }
}

#[cfg(target_os = "linux")]
fn output() -> StandardOutput {
    use tokio::net::unix::pipe::OpenOptions;
    match OpenOptions::new().open_sender("/proc/self/fd/1") {
        Ok(pipe) => Box::new(pipe),
        Err(_) => Box::new(tokio::io::stdout()),
    }
}

#[cfg(not(target_os = "linux"))]
fn input() -> StandardInput {
    threaded_input()
}

#[cfg(not(target_os = "linux"))]
fn output() -> StandardOutput {
    Box::new(tokio::io::stdout())
}

/// Size of one read from standard input, in bytes.
const READ_BYTES: usize = 64 << 10;

/// Returns standard input, read by a thread of its own. A runtime waits at its end for a read of `tokio::io::stdin`,
/// which a terminal or a socket may never complete.
fn threaded_input() -> StandardInput {
    let (sender, chunks) = mpsc::channel(1);
    let read = std::thread::Builder::new().name("stdin".to_owned());
    match read.spawn(move || read_chunks(&sender)) {
        Ok(_) => Box::new(ThreadedInput {
            chunks,
            rest: Bytes::new(),
        }),
        Err(_) => Box::new(tokio::io::stdin()),
    }
}

/// Reads standard input to its end, or until the reader of the chunks is gone.
fn read_chunks(chunks: &mpsc::Sender<io::Result<Bytes>>) {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let read = match io::stdin().lock().read(&mut buffer) {
            Ok(0) => return,
            Ok(length) => Ok(buffer.get(..length).map(Bytes::copy_from_slice)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        let failed = read.is_err();
        let chunk = read.map(Option::unwrap_or_default);
        if chunks.blocking_send(chunk).is_err() || failed {
            return;
        }
    }
}

/// Receiving half of the thread that reads standard input.
struct ThreadedInput {
    chunks: mpsc::Receiver<io::Result<Bytes>>,
    rest: Bytes,
}

impl AsyncRead for ThreadedInput {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.rest.is_empty() {
            match ready!(self.chunks.poll_recv(cx)) {
                Some(chunk) => self.rest = chunk?,
                None => return Poll::Ready(Ok(())),
            }
        }
        let length = self.rest.len().min(buffer.remaining());
        buffer.put_slice(self.rest.get(..length).unwrap_or_default());
        self.rest.advance(length);
        Poll::Ready(Ok(()))
    }
}
