//! A program that runs beside a chore, such as a gateway.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::run::output;

/// Longest time for each thing that is waited for.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// A child process that ends with this value.
pub(crate) struct RunningProgram {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl RunningProgram {
    /// Starts a program of which one output is a pipe.
    pub(crate) fn start(command: &mut Command) -> Result<Self, String> {
        let mut child = command
            .spawn()
            .map_err(|error| format!("{command:?} did not start: {error}"))?;
        let (send, lines) = mpsc::sync_channel(1000);
        let out = child
            .stdout
            .take()
            .map(|pipe| Box::new(pipe) as Box<dyn std::io::Read + Send>);
        let pipe = out.or_else(|| Some(Box::new(child.stderr.take()?)));
        thread::spawn(move || {
            let pipe = pipe
                .into_iter()
                .flat_map(|pipe| BufReader::new(pipe).lines().map_while(Result::ok));
            pipe.for_each(|line| {
                let _ = send.send(line);
            });
        });
        Ok(Self { child, lines })
    }

    /// Waits for a line that begins with a text.
    pub(crate) fn wait_for_line(&self, start: &str) -> Result<(), String> {
        while let Ok(line) = self.lines.recv_timeout(MAX_WAIT) {
            println!("   {line}");
            if line.starts_with(start) {
                return Ok(());
            }
        }
        Err(format!("no line began with `{start}`"))
    }

    /// Sends SIGTERM.
    pub(crate) fn terminate(&self) -> Result<(), String> {
        let pid = rustix::process::Pid::from_child(&self.child);
        let sent = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        sent.map_err(|error| format!("SIGTERM: {error}"))
    }

    /// Waits until the program has ended with exit code 0.
    pub(crate) fn wait_for_success(&mut self) -> Result<(), String> {
        let began = Instant::now();
        while began.elapsed() < MAX_WAIT {
            match self.child.try_wait().map_err(|error| error.to_string())? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(format!("the program ended with {status}")),
                None => thread::sleep(Duration::from_millis(50)),
            }
        }
        Err("the program did not end".to_owned())
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until the inbox has a call, and returns its id.
pub(crate) fn wait_for_approval(run: &impl Fn(&[&str]) -> Command) -> Result<String, String> {
    let began = Instant::now();
    while began.elapsed() < MAX_WAIT {
        let inbox = output(&mut run(&["inbox"]))?;
        if let Some(id) = inbox.split(' ').find(|word| word.starts_with("a-")) {
            return Ok(id.to_owned());
        }
        thread::sleep(Duration::from_millis(100));
    }
    Err("no call waited for approval".to_owned())
}
