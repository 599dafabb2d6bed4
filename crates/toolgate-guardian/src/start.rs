//! Start of the guardian process. Only this module and `keeper::launch` start processes.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::message::{GuardianEvent, MESSAGE_VERSION};
use crate::{GUARDIAN_ARGUMENT, frame};

/// Timeout for the first message of the guardian.
const READY_TIMEOUT: Duration = Duration::from_secs(10);

/// Starts the guardian and waits for its first message.
pub(crate) fn start(program: &Path, args: &[&OsStr]) -> io::Result<(Child, UnixStream)> {
    if std::env::args_os()
        .nth(1)
        .is_some_and(|word| word == GUARDIAN_ARGUMENT)
    {
        // Otherwise a program that does not call `run_if_asked` would start itself again endlessly.
        return Err(io::Error::other(
            "this process was started as the guardian but did not become one; \
             call run_if_asked first in main",
        ));
    }
    let (ours, theirs) = UnixStream::pair()?;
    let mut child = spawn(program, args, theirs)?;
    match ready(&ours) {
        Ok(()) => Ok((child, ours)),
        Err(error) => {
            let _ = child.kill();
            let _ = child.wait();
            Err(error)
        }
    }
}

/// Spawns the guardian in its own process group, out of reach of a terminal's interrupt.
fn spawn(program: &Path, args: &[&OsStr], socket: UnixStream) -> io::Result<Child> {
    #[allow(
        clippy::disallowed_methods,
        reason = "the guardian itself is started here"
    )]
    let mut command = Command::new(program);
    command
        .args(args)
        .process_group(0)
        .stdin(Stdio::from(OwnedFd::from(socket)))
        .stdout(Stdio::null())
        .spawn()
}

fn ready(socket: &UnixStream) -> io::Result<()> {
    socket.set_read_timeout(Some(READY_TIMEOUT))?;
    let first = frame::receive(socket).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => not_ready("it sent nothing for 10 s"),
        _ => not_ready(&error.to_string()),
    })?;
    socket.set_read_timeout(None)?;
    match first {
        Some((
            GuardianEvent::Ready {
                version: MESSAGE_VERSION,
            },
            _,
        )) => Ok(()),
        Some(_) => Err(not_ready(
            "it has another version than this program; restart this program",
        )),
        None => Err(not_ready(
            "it exited at once; its standard error contains the reason",
        )),
    }
}

fn not_ready(why: &str) -> io::Error {
    io::Error::other(why)
}
