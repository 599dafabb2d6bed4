//! Listeners in messages between processes: file descriptors that accompany a line.

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream as StdUnixStream,
    },
};
use tokio::{
    io::{AsyncWriteExt, Interest},
    net::UnixStream,
};

/// Maximum number of listeners in a message.
const MAX_LISTENERS: usize = 4;
/// Maximum length of a line, in bytes.
const MAX_LINE_BYTES: usize = 4096;

#[cfg(target_os = "linux")]
const RECEIVE_FLAGS: RecvFlags = RecvFlags::CMSG_CLOEXEC;
#[cfg(not(target_os = "linux"))]
const RECEIVE_FLAGS: RecvFlags = RecvFlags::empty();

/// Sends a line; the listeners accompany its first byte.
///
/// # Errors
/// The peer closed the connection.
pub(super) async fn send_line_with(
    stream: &mut UnixStream,
    line: &str,
    listeners: &[OwnedFd],
) -> io::Result<()> {
    let bytes = format!("{line}\n").into_bytes();
    let sent = loop {
        stream.writable().await?;
        let sent = stream.try_io(Interest::WRITABLE, || {
            send_with(&*stream, &bytes, listeners)
        });
        match sent {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            sent => break sent?,
        }
    };
    stream.write_all(&bytes[sent..]).await
}

fn send_with(socket: impl AsFd, bytes: &[u8], listeners: &[OwnedFd]) -> io::Result<usize> {
    let descriptors: Vec<BorrowedFd<'_>> = listeners.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_LISTENERS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::Error::other("too many listeners in one message"));
    }
    let part = [IoSlice::new(bytes)];
    Ok(sendmsg(socket, &part, &mut control, SendFlags::empty())?)
}

/// Receives a line and the listeners that accompany it. Blocks; never reads beyond the line.
///
/// # Errors
/// The peer closed the connection, or the line is too long.
pub(super) fn receive_line(stream: &StdUnixStream) -> io::Result<(String, Vec<OwnedFd>)> {
    let (mut line, mut descriptors) = (Vec::new(), Vec::new());
    loop {
        let mut byte = [0];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_LISTENERS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut part = [IoSliceMut::new(&mut byte)];
        let received =
            rustix::io::retry_on_intr(|| recvmsg(stream, &mut part, &mut control, RECEIVE_FLAGS))?;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = message {
                descriptors.extend(received);
            }
        }
        #[cfg(not(target_os = "linux"))]
        for descriptor in &descriptors {
            rustix::io::fcntl_setfd(descriptor, rustix::io::FdFlags::CLOEXEC)?;
        }
        match (received.bytes, byte[0]) {
            (0, _) => {
                let text = "it closed the connection";
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
            }
            (_, b'\n') => {
                let line = String::from_utf8(line).map_err(io::Error::other)?;
                return Ok((line, descriptors));
            }
            (_, byte) if line.len() < MAX_LINE_BYTES => line.push(byte),
            _ => return Err(io::Error::other("it sent a line that is too long")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[tokio::test]
    async fn listeners_arrive_with_their_line() {
        let (ours, theirs) = StdUnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let mut ours = UnixStream::from_std(ours).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        send_line_with(&mut ours, "first", &[OwnedFd::from(listener)])
            .await
            .unwrap();
        send_line_with(&mut ours, "second", &[]).await.unwrap();
        drop(ours);
        let (line, mut descriptors) = receive_line(&theirs).unwrap();
        assert_eq!((line.as_str(), descriptors.len()), ("first", 1));
        let listener = TcpListener::from(descriptors.remove(0));
        assert_eq!(listener.local_addr().unwrap(), address);
        let (line, descriptors) = receive_line(&theirs).unwrap();
        assert_eq!((line.as_str(), descriptors.len()), ("second", 0));
        assert!(receive_line(&theirs).is_err());
    }
}
