//! An installed program in use, with an empty home directory.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::dist::empty;
use crate::run::{command, output};

/// Longest time for each thing that is waited for.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// A tool of the demo server that needs approval.
const CALL: [&str; 3] = ["call", "demo.delete_note", r#"{"name": "shopping"}"#];

/// Asks for the version, starts the demo, and approves a call.
pub(super) fn use_program(program: &Path, home: &Path, version: &str) -> Result<(), String> {
    empty(home)?;
    let run = |words: &[&str]| {
        let mut run = command(program);
        // The shim of npm needs to find node.
        run.env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
        run.env("HOME", home).current_dir(home).args(words);
        run
    };
    let shown = output(&mut run(&["--version"]))?;
    print!("   {shown}");
    if !shown.starts_with(&format!("toolgate {version} (")) {
        return Err(format!(
            "--version names no commit of version {version}: {shown}"
        ));
    }
    let mut serve = run(&["serve", "--listen", "127.0.0.1:0"]);
    let mut gateway = RunningProgram::start(serve.stderr(Stdio::piped()))?;
    gateway.wait_for_line("MCP endpoint")?;
    let mut calling = run(&CALL);
    let mut calling = RunningProgram::start(calling.stdout(Stdio::piped()))?;
    let id = wait_for_approval(&run)?;
    println!("   {id} waits for approval");
    output(&mut run(&["approve", &id]))?;
    calling.wait_for_line("{\"content\":[{\"text\":\"the note \\\"shopping\\\" is deleted\"")?;
    calling.wait_for_success()?;
    // Through the shim of npm, too, SIGTERM has to end the gateway itself.
    gateway.terminate()?;
    gateway.wait_for_success()?;
    match output(&mut run(&["audit", "verify"])) {
        Ok(text) => {
            print!("   {text}");
            Ok(())
        }
        Err(why) => Err(why),
    }
}

/// Waits until the inbox has a call, and returns its id.
fn wait_for_approval(run: &impl Fn(&[&str]) -> Command) -> Result<String, String> {
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

/// A child process that ends with this value.
struct RunningProgram {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl RunningProgram {
    /// Starts a program of which one output is a pipe.
    fn start(command: &mut Command) -> Result<Self, String> {
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

    fn wait_for_line(&self, start: &str) -> Result<(), String> {
        while let Ok(line) = self.lines.recv_timeout(MAX_WAIT) {
            println!("   {line}");
            if line.starts_with(start) {
                return Ok(());
            }
        }
        Err(format!("no line began with `{start}`"))
    }

    fn terminate(&self) -> Result<(), String> {
        let pid = rustix::process::Pid::from_child(&self.child);
        let sent = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        sent.map_err(|error| format!("SIGTERM: {error}"))
    }

    fn wait_for_success(&mut self) -> Result<(), String> {
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
