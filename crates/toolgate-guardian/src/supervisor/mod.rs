//! Guardian process, the only process that starts and ends children.
//!
//! It has three kinds of threads, none of which polls. One reads requests, one reaps exited processes, and one per
//! child waits for its exit or for the request to end it.

mod child_shutdown;
mod isolation;
mod launch;
mod reaper;
mod shutdown;
mod table;
#[cfg(target_os = "linux")]
mod tree;
#[cfg(not(target_os = "linux"))]
#[path = "no_tree.rs"]
mod tree;

use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

pub use launch::{explain_start_error, find_program};

use crate::message::{GuardianEvent, GuardianRequest, MESSAGE_VERSION, WireCommand};
use crate::{GUARDIAN_ARGUMENT, frame};
use table::{ChildTable, SupervisedChild};

/// Maximum number of concurrent children.
const MAX_CHILDREN: usize = 256;

/// Runs this process as the guardian (the parent of child processes) if its first argument requests that; otherwise
/// returns `None`.
///
/// Call it first in `main`, before anything opens a file or starts a thread or a runtime: the guardian closes every
/// file descriptor that it inherited. Returns once the gateway is gone and no process of its children is left.
pub fn run_if_asked() -> Option<ExitCode> {
    if std::env::args_os().nth(1)? != GUARDIAN_ARGUMENT {
        return None;
    }
    Some(match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!(
                "the guardian stopped: {error}; the gateway starts it automatically, do not run it manually"
            ));
            ExitCode::FAILURE
        }
    })
}

fn run() -> io::Result<()> {
    isolation::close_inherited();
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    rustix::net::sockopt::socket_type(&socket)?;
    isolation::outlive_signals()?;
    tree::adopt_orphans();
    let keeper = Arc::new(ChildSupervisor::new(socket));
    let reaper = Arc::clone(&keeper);
    thread::Builder::new()
        .name("reaper".into())
        .spawn(move || reaper::run(&reaper.table))?;
    keeper.send_event(
        &GuardianEvent::Ready {
            version: MESSAGE_VERSION,
        },
        &[],
    );
    let ended = keeper.serve();
    shutdown::end_all(&keeper.table);
    ended
}

/// State that the threads of the guardian share.
struct ChildSupervisor {
    socket: UnixStream,
    writing: Mutex<()>,
    table: ChildTable,
}

impl ChildSupervisor {
    fn new(socket: UnixStream) -> Self {
        Self {
            socket,
            writing: Mutex::new(()),
            table: ChildTable::default(),
        }
    }

    /// Handles requests until the socket closes.
    fn serve(self: &Arc<Self>) -> io::Result<()> {
        while let Some((request, _)) = frame::receive(&self.socket)? {
            match request {
                GuardianRequest::Spawn { id, command } => self.spawn(id, &command),
                GuardianRequest::End { id, steps } => child_shutdown::request(self, id, steps),
            }
        }
        Ok(())
    }

    fn spawn(self: &Arc<Self>, id: u64, command: &WireCommand) {
        match self.start(id, command) {
            Ok((pid, pipes)) => self.send_event(&GuardianEvent::Spawned { id, pid }, &pipes),
            Err(why) => self.send_event(&GuardianEvent::Refused { id, why }, &[]),
        }
    }

    /// Starts a child and enters it in the table, both under the lock. The reaper also takes the lock, so it never
    /// finds a child that is not in the table.
    fn start(
        self: &Arc<Self>,
        id: u64,
        command: &WireCommand,
    ) -> Result<(i32, [OwnedFd; 3]), String> {
        let mut state = self.table.lock();
        if state.count() >= MAX_CHILDREN {
            return Err(format!(
                "{} was not started: {MAX_CHILDREN} programs are already running, which is the limit; remove servers that are not needed",
                command.program.display()
            ));
        }
        let changed = child_shutdown::watch(self, id).map_err(|error| {
            format!(
                "{} was not started: its supervision thread cannot be started: {error}; raise the limit on processes of this user",
                command.program.display()
            )
        })?;
        let (leader, pipes) = launch::launch(command)?;
        state
            .entries
            .insert(id, SupervisedChild::new(leader, changed));
        state.childless = false;
        self.table.changed.notify_all();
        Ok((leader.as_raw_nonzero().get(), pipes))
    }

    /// Sends an event. Ignores a failure, because `serve` detects the closed socket.
    fn send_event(&self, event: &GuardianEvent, pipes: &[OwnedFd]) {
        let Ok(bytes) = frame::encode(event) else {
            return;
        };
        let fds: Vec<_> = pipes.iter().map(AsFd::as_fd).collect();
        let _order = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = frame::send(&self.socket, &bytes, &fds);
    }
}

/// Writes a line to standard error, which may be closed.
fn complain(text: &str) {
    let _ = writeln!(io::stderr(), "toolgate: {text}");
}
