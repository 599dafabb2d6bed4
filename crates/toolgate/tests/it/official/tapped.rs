//! The client's end of a stream, whose messages are checked as they pass.

use super::{Side, Talk};
use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};

/// Bytes that may be under way in each direction.
const BUFFER: usize = 1 << 20;

/// The end that a client has. What is read there, the server said, and what is written there, the client.
pub(crate) struct Tapped {
    end: DuplexStream,
    /// Check of our server's messages, if the server is ours.
    server: Option<Talk>,
    /// Check of our client's messages, if the client is ours.
    client: Option<Talk>,
    read: Vec<u8>,
    written: Vec<u8>,
}

/// Both ends of a stream in memory: the client's, which is checked, and the server's. `ours` are the sides that are.
pub(crate) fn tapped(ours: &[Side]) -> (Tapped, DuplexStream) {
    let (end, other) = tokio::io::duplex(BUFFER);
    let talk = |side| ours.contains(&side).then(|| Talk::of(side));
    let end = Tapped {
        end,
        server: talk(Side::Server),
        client: talk(Side::Client),
        read: Vec::new(),
        written: Vec::new(),
    };
    (end, other)
}

impl Tapped {
    fn server_said(&mut self) {
        while let Some(line) = line(&mut self.read) {
            if let Some(client) = &mut self.client {
                client.heard(&line);
            }
            if let Some(server) = &mut self.server {
                server.said(&line);
            }
        }
    }

    fn client_said(&mut self) {
        while let Some(line) = line(&mut self.written) {
            if let Some(client) = &mut self.client {
                client.said(&line);
            }
            if let Some(server) = &mut self.server {
                server.heard(&line);
            }
        }
    }
}

fn line(part: &mut Vec<u8>) -> Option<String> {
    let end = part.iter().position(|b| *b == b'\n')?;
    let line: Vec<u8> = part.drain(..=end).collect();
    Some(String::from_utf8_lossy(&line).into_owned())
}

impl AsyncRead for Tapped {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.end).poll_read(cx, buffer))?;
        let new = buffer.filled()[before..].to_vec();
        self.read.extend(new);
        self.server_said();
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Tapped {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let count = ready!(Pin::new(&mut self.end).poll_write(cx, bytes))?;
        self.written.extend_from_slice(&bytes[..count]);
        self.client_said();
        Poll::Ready(Ok(count))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.end).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.end).poll_shutdown(cx)
    }
}
