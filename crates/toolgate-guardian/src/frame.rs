//! Message framing on the socket: four bytes of length, then JSON. File descriptors accompany the first byte.

use std::io::{self, IoSlice, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Maximum size of a message in bytes. The JSON of a command can be about four times as long as the command.
pub(crate) const MAX_MESSAGE_BYTES: usize = 4 << 20;

/// Maximum number of file descriptors in a message: stdin, stdout and stderr of a child.
const MAX_FDS: usize = 3;

/// Encodes a message with its length. Fails above [`MAX_MESSAGE_BYTES`] bytes.
pub(crate) fn encode(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message)?;
    let len = bytes.len() - 4;
    match u32::try_from(len) {
        Ok(head) if len <= MAX_MESSAGE_BYTES => bytes[..4].copy_from_slice(&head.to_be_bytes()),
        _ => {
            return Err(invalid(format!(
                "the message is {len} bytes long, and the limit is {MAX_MESSAGE_BYTES}"
            )));
        }
    }
    Ok(bytes)
}

/// Sends an encoded message; blocks until the socket has accepted all of it.
pub(crate) fn send(socket: &UnixStream, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut sent = 0;
    if !fds.is_empty() {
        sent = send_with(socket, bytes, fds)?;
    }
    (&mut &*socket).write_all(&bytes[sent..])
}

fn send_with(socket: &UnixStream, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(invalid(format!(
            "a message has more than {MAX_FDS} file descriptors"
        )));
    }
    let flags = SendFlags::empty();
    let part = [IoSlice::new(bytes)];
    Ok(rustix::io::retry_on_intr(|| {
        sendmsg(socket, &part, &mut control, flags)
    })?)
}

/// Receives the next message and its file descriptors; `None` at the end of the stream.
///
/// Blocks. Never reads beyond the message, so that descriptors stay with their message.
pub(crate) fn receive<T: DeserializeOwned>(
    socket: &UnixStream,
) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let mut fds = Vec::new();
    let mut head = [0; 4];
    if !fill(socket, &mut head, &mut fds)? {
        return Ok(None);
    }
    let len = u32::from_be_bytes(head) as usize;
    if len > MAX_MESSAGE_BYTES {
        return Err(invalid(format!(
            "the message is {len} bytes long, and the limit is {MAX_MESSAGE_BYTES}"
        )));
    }
    let mut body = vec![0; len];
    if !fill(socket, &mut body, &mut fds)? {
        return Ok(None);
    }
    Ok(Some((serde_json::from_slice(&body)?, fds)))
}

/// Fills the buffer. Returns false if the stream ended first, even within a message.
fn fill(socket: &UnixStream, mut buffer: &mut [u8], fds: &mut Vec<OwnedFd>) -> io::Result<bool> {
    while !buffer.is_empty() {
        let n = receive_some(socket, buffer, fds)?;
        if n == 0 {
            return Ok(false);
        }
        buffer = &mut buffer[n..];
    }
    Ok(true)
}

fn receive_some(socket: &UnixStream, to: &mut [u8], fds: &mut Vec<OwnedFd>) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut part = [IoSliceMut::new(to)];
    let n = match rustix::io::retry_on_intr(|| recvmsg(socket, &mut part, &mut control, FLAGS)) {
        Ok(message) => message.bytes,
        // The peer closed the socket without reading everything; treated like a normal end.
        Err(Errno::CONNRESET) => 0,
        Err(error) => return Err(error.into()),
    };
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            fds.extend(received);
        }
    }
    close_on_exec(fds)?;
    Ok(n)
}

#[cfg(target_os = "linux")]
const FLAGS: RecvFlags = RecvFlags::CMSG_CLOEXEC;
#[cfg(not(target_os = "linux"))]
const FLAGS: RecvFlags = RecvFlags::empty();

/// Sets close-on-exec right after receiving, on systems that cannot set it while receiving.
#[cfg(not(target_os = "linux"))]
fn close_on_exec(fds: &[OwnedFd]) -> io::Result<()> {
    for fd in fds {
        rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::CLOEXEC)?;
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn close_on_exec(_: &[OwnedFd]) -> io::Result<()> {
    Ok(())
}

fn invalid(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn descriptors_stay_with_their_message() {
        let (a, b) = UnixStream::pair().unwrap();
        let (read, write) = std::io::pipe().unwrap();
        send(&a, &encode(&"plain").unwrap(), &[]).unwrap();
        send(
            &a,
            &encode(&"with").unwrap(),
            &[read.as_fd(), write.as_fd()],
        )
        .unwrap();
        send(&a, &encode(&"after").unwrap(), &[]).unwrap();
        drop(a);

        let mut seen = Vec::new();
        while let Some((text, fds)) = receive::<String>(&b).unwrap() {
            for fd in &fds {
                let flags = rustix::io::fcntl_getfd(fd).unwrap();
                assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
            }
            seen.push((text, fds.len()));
        }
        assert_eq!(
            seen,
            [("plain".into(), 0), ("with".into(), 2), ("after".into(), 0)]
        );
    }

    #[test]
    fn a_message_over_the_limit_is_refused_on_both_sides() {
        assert!(encode(&"x".repeat(MAX_MESSAGE_BYTES - 2)).is_ok());
        assert!(encode(&"x".repeat(MAX_MESSAGE_BYTES - 1)).is_err());

        let (a, b) = UnixStream::pair().unwrap();
        (&a).write_all(&(MAX_MESSAGE_BYTES as u32 + 1).to_be_bytes())
            .unwrap();
        assert_eq!(
            receive::<String>(&b).unwrap_err().kind(),
            io::ErrorKind::InvalidData
        );
    }

    #[test]
    fn an_end_within_a_message_is_a_normal_end() {
        let (a, b) = UnixStream::pair().unwrap();
        (&a).write_all(&[0, 0, 0, 9, b'"']).unwrap();
        drop(a);
        assert!(receive::<String>(&b).unwrap().is_none());
    }

    #[test]
    fn an_end_with_unread_data_is_a_normal_end() {
        let (a, b) = UnixStream::pair().unwrap();
        (&b).write_all(b"unread").unwrap();
        drop(a);
        assert!(receive::<String>(&b).unwrap().is_none());
    }
}
