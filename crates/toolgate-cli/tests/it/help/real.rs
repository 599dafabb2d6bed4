//! The real clients, servers and the browser, and what happens where they are missing.

use super::process::lines;
use super::{LONG, command, kill_hard};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::Receiver;
use std::time::Instant;

/// Notes why a test did nothing. Where `CI` is set that is a failure.
pub(crate) fn skip(why: &str) {
    let ci = std::env::var("CI").is_ok_and(|value| !value.is_empty() && value != "false");
    assert!(!ci, "nothing may be skipped here: {why}");
    eprintln!("skipped: {why}");
    if let Some(file) = std::env::var_os("TOOLGATE_SKIPS") {
        let file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(file);
        let _ = file.and_then(|mut file| writeln!(file, "{why}"));
    }
}

/// The folder of the real clients and servers, if `cargo xtask` installed them.
pub(crate) fn real() -> Option<PathBuf> {
    let given = std::env::var_os("TOOLGATE_INTEROP").map(PathBuf::from);
    let folder =
        given.unwrap_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("interop"));
    let ready = [
        "node/toolgate-stamp",
        "venv/toolgate-stamp",
        "venv1/toolgate-stamp",
        "venv-fastmcp/toolgate-stamp",
    ]
    .iter()
    .all(|mark| folder.join(mark).is_file());
    if !ready {
        skip("the real clients and servers are not installed; `cargo xtask install` does it");
    }
    ready.then_some(folder)
}

/// A program of this system that a test needs, if it is there.
pub(crate) fn tool(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file());
    if found.is_none() {
        skip(&format!("the program {name} is not installed"));
    }
    found
}

/// The browser, if there is one.
pub(crate) fn browser() -> Option<PathBuf> {
    std::env::var_os("TOOLGATE_CHROMIUM")
        .map(PathBuf::from)
        .or_else(|| tool("chromium"))
}

/// Returns the path of a screenshot below the target folder.
pub(crate) fn shot(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("screenshots");
    std::fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}

/// The peers of the Rust SDK.
#[cfg(feature = "rmcp")]
pub(crate) fn rmcp() -> Command {
    let program = std::env::var_os("TOOLGATE_RMCP");
    command(program.expect("`cargo xtask interop` sets TOOLGATE_RMCP"))
}

/// One of the real clients.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Client {
    TypeScript1,
    /// An older release of it, by the name of its package here.
    Release(&'static str),
    TypeScript2,
    /// The SDK 1.x.
    Python1,
    Python,
    /// The program of `interop/rmcp`, at TOOLGATE_RMCP.
    #[cfg(feature = "rmcp")]
    Rust,
}

impl Client {
    /// Starts it on a job; `interop/job.mjs` says what a job is.
    pub(crate) fn start(self, real: &Path, job: &Value) -> Script {
        let file = match self {
            Client::TypeScript1 | Client::Release(_) => "ts1.mjs",
            Client::TypeScript2 => "ts2.mjs",
            Client::Python1 => "py1_client.py",
            Client::Python => "py_client.py",
            #[cfg(feature = "rmcp")]
            Client::Rust => return Script::rust(real, "client", job),
        };
        let mut job = job.clone();
        if let Client::Release(package) = self {
            job["package"] = json!(package);
        }
        Script::start(real, file, &job)
    }
}

/// Returns the interpreter of a script of `interop`.
pub(crate) fn runner(real: &Path, file: &str) -> PathBuf {
    match file {
        file if !file.ends_with(".py") => "node".into(),
        file if file.contains("py1_") => real.join("venv1/bin/python"),
        file if file.contains("fastmcp") => real.join("venv-fastmcp/bin/python"),
        _ => real.join("venv/bin/python"),
    }
}

/// A running client, browser or other script that prints a JSON line for everything that happens.
pub(crate) struct Script {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
    seen: Vec<Value>,
}

impl Script {
    pub(crate) fn start(real: &Path, file: &str, job: &Value) -> Script {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop");
        let runner = runner(real, file);
        let script = scripts.join(file).to_string_lossy().into_owned();
        Script::run(&mut command(runner), real, &[script, job.to_string()])
    }

    /// A peer of the Rust SDK.
    #[cfg(feature = "rmcp")]
    pub(crate) fn rust(real: &Path, role: &str, job: &Value) -> Script {
        Script::run(&mut rmcp(), real, &[role.to_owned(), job.to_string()])
    }

    fn run(start: &mut Command, real: &Path, args: &[String]) -> Script {
        start.args(args).env("TOOLGATE_INTEROP", real);
        start.env("PYTHONDONTWRITEBYTECODE", "1");
        let mut child = start
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Script {
            child,
            stdin,
            lines: lines(stdout),
            seen: Vec::new(),
        }
    }

    /// Starts the browser at a link of the console.
    pub(crate) fn browser(real: &Path, link: &str, steps: Value) -> Script {
        let on_error = shot("error.png");
        Script::start(
            real,
            "browser.mjs",
            &json!({"link": link, "steps": steps, "on_error": on_error}),
        )
    }

    /// Waits for the next event of this name; an error in between fails the test.
    #[track_caller]
    pub(crate) fn event(&mut self, name: &str) -> Value {
        self.event_where(name, |_| true)
    }

    #[track_caller]
    pub(crate) fn event_where(&mut self, name: &str, pick: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + LONG;
        loop {
            let event = self.next_until(end, &[name]);
            if event["event"] == name && pick(&event) {
                return event;
            }
            assert!(event["event"] != "error", "waiting for {name:?}: {event}");
        }
    }

    /// Waits for the next event of this name or an error: both end a call.
    #[track_caller]
    pub(crate) fn event_or_error(&mut self, name: &str) -> Value {
        self.next_of(&[name, "error"])
    }

    /// Waits for the event that ends a step of the job: a list, a result, an answer or an error.
    #[track_caller]
    pub(crate) fn end_of_step(&mut self) -> Value {
        self.next_of(&["tools", "result", "answer", "error"])
    }

    #[track_caller]
    fn next_of(&mut self, names: &[&str]) -> Value {
        let end = Instant::now() + LONG;
        loop {
            let event = self.next_until(end, names);
            if names.iter().any(|name| event["event"] == *name) {
                return event;
            }
        }
    }

    /// Waits for the next event. Its absence fails the test, and says that the test waits for one of these.
    #[track_caller]
    fn next_until(&mut self, end: Instant, names: &[&str]) -> Value {
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let line = match self.lines.recv_timeout(left) {
                Ok(line) => line,
                Err(why) => panic!("none of {names:?} came ({why}); there was {:#?}", self.seen),
            };
            if let Ok(event) = serde_json::from_str::<Value>(&line) {
                self.seen.push(event.clone());
                return event;
            }
        }
    }

    /// Lets a script that says "waiting" go on.
    pub(crate) fn go_on(&mut self) {
        self.stdin.write_all(b"go\n").unwrap();
    }

    /// Sends it a line.
    pub(crate) fn send_line(&mut self, text: &str) {
        self.stdin
            .write_all(format!("{text}\n").as_bytes())
            .unwrap();
    }

    /// Fails the test if a page of the browser had an error.
    #[track_caller]
    pub(crate) fn assert_no_page_error(&self) {
        let errors = self.seen("page_error");
        assert!(errors.is_empty(), "{errors:?}");
    }

    /// Everything it said so far.
    pub(crate) fn seen(&self, name: &str) -> Vec<&Value> {
        self.seen
            .iter()
            .filter(|event| event["event"] == name)
            .collect()
    }

    /// Ends it without letting it say goodbye.
    pub(crate) fn kill(mut self) {
        kill_hard(&mut self.child);
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        kill_hard(&mut self.child);
    }
}
