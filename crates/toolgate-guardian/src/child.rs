use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::unix::pipe;
use tokio::sync::watch;

use crate::link::{Link, Progress};

/// How long each step of an end lasts before the next one is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steps {
    /// From the end of its standard input to SIGTERM. Default: 2 s.
    pub stdin: Duration,
    /// From SIGTERM to SIGKILL. Default: 2 s.
    pub term: Duration,
}

impl Default for Steps {
    fn default() -> Self {
        Self {
            stdin: Duration::from_secs(2),
            term: Duration::from_secs(2),
        }
    }
}

/// How a child exited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this status.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
    /// Not known: the guardian died, or the child could not be killed.
    Unknown,
}

/// A running child: its pipes and its end.
///
/// Dropping it ends the child in the same steps as [`Child::end`], in the background.
#[derive(Debug)]
pub struct Child {
    /// What the child reads as its standard input. Take it out to write in another task; the
    /// child sees the end of its input once this is dropped.
    pub stdin: Option<pipe::Sender>,
    /// The standard output of the child.
    pub stdout: Option<pipe::Receiver>,
    /// The standard error of the child. Read it to its end, or the child stops when it is full.
    pub stderr: Option<pipe::Receiver>,
    tie: Tie,
}

impl Child {
    pub(crate) fn new(
        stdin: pipe::Sender,
        stdout: pipe::Receiver,
        stderr: pipe::Receiver,
        tie: Tie,
    ) -> Self {
        Self {
            stdin: Some(stdin),
            stdout: Some(stdout),
            stderr: Some(stderr),
            tie,
        }
    }

    /// The number of the child's process and of its process group.
    pub fn pid(&self) -> i32 {
        self.tie.pid
    }

    /// Sets how long the steps of the end last. Default: [`Steps::default`].
    pub fn set_steps(&mut self, steps: Steps) {
        self.tie.steps = steps;
    }

    /// Resolves when the child itself has exited, by whatever cause; at once if it has already.
    /// The future stands for itself and may move to another task.
    pub fn exited(&self) -> impl Future<Output = Exit> + Send + 'static {
        let progress = self.tie.progress.clone();
        async move { until(progress, |progress| progress.exit).await }
    }

    /// Ends the child and everything below it, step by step, and resolves when nothing is left.
    ///
    /// Ends `stdin` if it is still here; a caller that took it out drops it first. A child that
    /// exits at the end of its input is not signalled. After [`Steps::stdin`] the whole group gets
    /// SIGTERM, after [`Steps::term`] SIGKILL. If the future is dropped, the end goes on.
    pub async fn end(&mut self) -> Exit {
        self.tie.end(self.stdin.take());
        until(self.tie.progress.clone(), |progress| {
            progress.exit.filter(|_| progress.ended)
        })
        .await
    }
}

/// Waits for an answer; if no more is ever said, the exit stays unknown.
async fn until(
    mut progress: watch::Receiver<Progress>,
    answer: impl Fn(&Progress) -> Option<Exit>,
) -> Exit {
    let seen = progress
        .wait_for(|progress| answer(progress).is_some())
        .await;
    seen.ok()
        .and_then(|progress| answer(&progress))
        .unwrap_or(Exit::Unknown)
}

/// What binds a child to us: when it goes, the child is ended.
#[derive(Debug)]
pub(crate) struct Tie {
    pub(crate) link: Arc<Link>,
    pub(crate) id: u64,
    pub(crate) pid: i32,
    pub(crate) steps: Steps,
    pub(crate) progress: watch::Receiver<Progress>,
    pub(crate) asked: bool,
}

impl Tie {
    fn end(&mut self, stdin: Option<pipe::Sender>) {
        if !self.asked && !self.progress.borrow().ended {
            self.asked = true;
            self.link.end(self.id, self.steps, stdin);
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.tie.end(self.stdin.take());
    }
}

/// For a child that was started but never taken.
impl Drop for Tie {
    fn drop(&mut self) {
        self.end(None);
    }
}
