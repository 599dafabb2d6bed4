use std::ffi::{OsStr, OsString};
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use tokio::net::unix::pipe;

use crate::child::Child;
use crate::error::Error;
use crate::link::Link;
use crate::message::Command;
use crate::{WORD, start};

/// What to start.
#[derive(Debug, Clone)]
pub struct Spawn {
    /// A name looked up in the `PATH` of `env`, or a path (from `cwd` if relative). No shell.
    pub program: OsString,
    /// The arguments, the name of the program not among them.
    pub args: Vec<OsString>,
    /// The whole environment of the child; see [`environment`](crate::environment).
    pub env: Vec<(OsString, OsString)>,
    /// The working directory; the gateway's own if there is none.
    pub cwd: Option<PathBuf>,
}

/// The process that starts and ends children for us.
///
/// Cloning gives another handle. When the last one is dropped, the guardian ends every child with
/// everything below it, whether its [`Child`] is still held or not, and exits; so it does when
/// this process dies.
#[derive(Debug, Clone)]
pub struct Guardian {
    held: Arc<Held>,
}

#[derive(Debug)]
struct Held {
    link: Arc<Link>,
    pid: u32,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.link.close();
    }
}

impl Guardian {
    /// Starts the guardian from our own binary, whose `main` calls
    /// [`run_if_asked`](crate::run_if_asked) first. Blocks until it runs, 10 s at most.
    ///
    /// Call it once, before any listener opens.
    ///
    /// # Errors
    ///
    /// When the binary cannot be run, or does not answer as a guardian.
    pub fn start() -> io::Result<Self> {
        Self::start_with(&std::env::current_exe()?, &[OsStr::new(WORD)])
    }

    /// Starts the guardian from another program; its arguments must make it call
    /// [`run_if_asked`](crate::run_if_asked) with the hidden word in the first place. For tests.
    ///
    /// # Errors
    ///
    /// As [`Guardian::start`].
    pub fn start_with(program: &Path, args: &[&OsStr]) -> io::Result<Self> {
        let (mut process, socket) = start::start(program, args)?;
        let pid = process.id();
        let link = Arc::new(Link::new(socket));
        let listening = Arc::clone(&link);
        let listen = move || {
            listening.listen();
            // Reaped here, so that it does not stay a zombie.
            let _ = process.wait();
        };
        let held = Arc::new(Held { link, pid });
        thread::Builder::new()
            .name("guardian".into())
            .spawn(listen)?;
        Ok(Self { held })
    }

    /// The number of the guardian's process.
    pub fn pid(&self) -> u32 {
        self.held.pid
    }

    /// Starts a child. Needs a tokio runtime with I/O.
    ///
    /// If the future is dropped, a child that was started nevertheless is ended.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] with what was wrong with the program or its settings, [`Error::Died`]
    /// without a guardian.
    pub async fn spawn(&self, spawn: Spawn) -> Result<Child, Error> {
        let name = spawn.program.clone();
        let link = Arc::clone(&self.held.link);
        let command = Command {
            program: spawn.program,
            args: spawn.args,
            env: spawn.env,
            cwd: spawn.cwd.map(PathBuf::into_os_string),
        };
        // The socket may be full for a moment, so the request goes out where waiting is no harm.
        let answer = tokio::task::spawn_blocking(move || link.spawn(command));
        let (tie, pipes) = match answer.await {
            Ok(answer) => answer.await.map_err(|_| Error::Died)??,
            Err(_) => return Err(Error::Died),
        };
        let refused = |why: &dyn std::fmt::Display| {
            Error::Refused(format!(
                "{} was not started: its pipes {why}",
                name.display()
            ))
        };
        let [stdin, stdout, stderr] = <[_; 3]>::try_from(pipes)
            .map_err(|_| refused(&"did not arrive; raise the limit of open files (ulimit -n)"))?;
        let failed = |error: io::Error| refused(&error);
        Ok(Child::new(
            pipe::Sender::from_owned_fd(stdin).map_err(failed)?,
            pipe::Receiver::from_owned_fd(stdout).map_err(failed)?,
            pipe::Receiver::from_owned_fd(stderr).map_err(failed)?,
            tie,
        ))
    }

    /// Resolves when the guardian process is gone.
    ///
    /// After the last handle was dropped that means: every child has ended. If it comes before,
    /// the guardian was killed; the children were sent SIGKILL from here, and nothing can be
    /// started any more.
    pub fn died(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut died = self.held.link.died();
        async move {
            // An error means that the link itself is gone, and so is the guardian.
            let _ = died.wait_for(|died| *died).await;
        }
    }
}
