//! Connection of the gateway to the guardian: sends requests, and receives events on a thread.

use std::collections::HashMap;
use std::io;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::net::unix::pipe;
use tokio::sync::{oneshot, watch};

use crate::frame;
use crate::lifecycle::{ChildExit, ChildProgress, ShutdownSteps};
use crate::message::{GuardianEvent, GuardianRequest, WireSteps};
use crate::{Error, message};

/// Response to a spawn request: a started child, or an error.
pub(crate) type SpawnResult = Result<(ChildGuard, Vec<OwnedFd>), Error>;

/// Guard of a child: ends the child when dropped.
#[derive(Debug)]
pub(crate) struct ChildGuard {
    pub(crate) link: Arc<GuardianLink>,
    pub(crate) id: u64,
    pub(crate) pid: i32,
    pub(crate) steps: ShutdownSteps,
    pub(crate) progress: watch::Receiver<ChildProgress>,
    pub(crate) end_requested: bool,
}

impl ChildGuard {
    pub(crate) fn end(&mut self, stdin: Option<pipe::Sender>) {
        if !self.end_requested && !self.progress.borrow().ended {
            self.end_requested = true;
            self.link.end(self.id, self.steps, stdin);
        }
    }
}

/// Ends a child whose start was canceled.
impl Drop for ChildGuard {
    fn drop(&mut self) {
        self.end(None);
    }
}

#[derive(Debug)]
pub(crate) struct GuardianLink {
    socket: UnixStream,
    writing: Mutex<()>,
    next: AtomicU64,
    children: Mutex<HashMap<u64, LinkedChild>>,
    died: watch::Sender<bool>,
}

#[derive(Debug)]
struct LinkedChild {
    pid: Option<i32>,
    progress: watch::Sender<ChildProgress>,
    waiting: Option<oneshot::Sender<SpawnResult>>,
    /// Standard input of the child, open until the guardian has the request to end it.
    stdin: Option<pipe::Sender>,
}

impl GuardianLink {
    pub(crate) fn new(socket: UnixStream) -> Self {
        Self {
            socket,
            writing: Mutex::new(()),
            next: AtomicU64::new(1),
            children: Mutex::default(),
            died: watch::Sender::new(false),
        }
    }

    pub(crate) fn died(&self) -> watch::Receiver<bool> {
        self.died.subscribe()
    }

    /// Closes the sending side, upon which the guardian ends everything.
    pub(crate) fn close(&self) {
        let _ = self.socket.shutdown(Shutdown::Write);
    }

    /// Requests a child; blocks while the request is sent. If the receiver is dropped, the [`ChildGuard`] in the
    /// response is dropped too, which ends the child.
    pub(crate) fn spawn(&self, command: message::WireCommand) -> oneshot::Receiver<SpawnResult> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (answer, taken) = oneshot::channel();
        let program = command.program.clone();
        let bytes = match frame::encode(&GuardianRequest::Spawn { id, command }) {
            Ok(bytes) => bytes,
            Err(error) => {
                let why = format!(
                    "{} was not started: its arguments and environment cannot be sent to the guardian: {error}; shorten them",
                    program.display()
                );
                let _ = answer.send(Err(Error::Refused(why)));
                return taken;
            }
        };
        // Inserted before the request is sent, because the exit may be reported before the start.
        let known = LinkedChild {
            pid: None,
            progress: watch::Sender::default(),
            waiting: Some(answer),
            stdin: None,
        };
        self.children().insert(id, known);
        if *self.died.borrow() || self.send(&bytes).is_err() {
            self.children().remove(&id);
        }
        taken
    }

    /// Requests the end of a child. Closes its standard input only after the guardian received the request: otherwise
    /// the child might exit before its descendants are recorded.
    pub(crate) fn end(&self, id: u64, steps: ShutdownSteps, stdin: Option<pipe::Sender>) {
        if let Some(known) = self.children().get_mut(&id) {
            known.stdin = stdin;
        }
        let steps = WireSteps::new(steps.stdin_grace, steps.term_grace);
        if let Ok(bytes) = frame::encode(&GuardianRequest::End { id, steps }) {
            let _ = self.send(&bytes);
        }
    }

    /// Sends a message. A failure closes the socket, because a partial message would corrupt the stream.
    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        let _order = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = frame::send(&self.socket, bytes, &[]);
        if sent.is_err() {
            let _ = self.socket.shutdown(Shutdown::Both);
        }
        sent
    }

    fn children(&self) -> MutexGuard<'_, HashMap<u64, LinkedChild>> {
        self.children.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Receives events until the guardian is gone.
    pub(crate) fn listen(self: &Arc<Self>) {
        while let Ok(Some((event, fds))) = frame::receive(&self.socket) {
            self.handle_event(event, fds);
        }
        let _ = self.socket.shutdown(Shutdown::Both);
        self.handle_guardian_death();
    }

    fn handle_event(self: &Arc<Self>, event: GuardianEvent, fds: Vec<OwnedFd>) {
        match event {
            GuardianEvent::Ready { .. } => {}
            GuardianEvent::Spawned { id, pid } => self.spawned(id, pid, fds),
            GuardianEvent::Refused { id, why } => {
                let known = self.children().remove(&id);
                if let Some(waiting) = known.and_then(|known| known.waiting) {
                    let _ = waiting.send(Err(Error::Refused(why)));
                }
            }
            GuardianEvent::Ending { id } => {
                let stdin = self
                    .children()
                    .get_mut(&id)
                    .and_then(|known| known.stdin.take());
                drop(stdin);
            }
            GuardianEvent::Exited { id, code, signal } => {
                let exit = code.map(ChildExit::Code).or(signal.map(ChildExit::Signal));
                self.progress(id, |progress| {
                    progress.exit = Some(exit.unwrap_or(ChildExit::Unknown))
                });
            }
            GuardianEvent::Ended { id } => {
                self.progress(id, finish);
                let mut children = self.children();
                // The end may be reported before the start: then the entry stays for the response.
                if children
                    .get(&id)
                    .is_some_and(|known| known.waiting.is_none())
                {
                    children.remove(&id);
                }
            }
        }
    }

    fn spawned(self: &Arc<Self>, id: u64, pid: i32, fds: Vec<OwnedFd>) {
        let mut children = self.children();
        let Some(known) = children.get_mut(&id) else {
            return;
        };
        let progress = known.progress.subscribe();
        let waiting = known.waiting.take();
        known.pid = Some(pid);
        if progress.borrow().ended {
            children.remove(&id);
        }
        drop(children);
        let link = Arc::clone(self);
        let tie = ChildGuard {
            link,
            id,
            pid,
            steps: ShutdownSteps::default(),
            progress,
            end_requested: false,
        };
        if let Some(waiting) = waiting {
            let _ = waiting.send(Ok((tie, fds)));
        }
    }

    fn progress(&self, id: u64, change: impl FnOnce(&mut ChildProgress)) {
        if let Some(known) = self.children().get(&id) {
            known.progress.send_modify(change);
        }
    }

    /// Handles the death of the guardian. Kills the process groups of all children at once, because nothing reports
    /// their exits any more.
    fn handle_guardian_death(&self) {
        self.died.send_replace(true);
        for known in std::mem::take(&mut *self.children()).into_values() {
            if let Some(pid) = known.pid.and_then(Pid::from_raw) {
                let _ = kill_process_group(pid, Signal::KILL);
            }
            known.progress.send_modify(finish);
        }
    }
}

fn finish(progress: &mut ChildProgress) {
    progress.exit.get_or_insert(ChildExit::Unknown);
    progress.ended = true;
}
