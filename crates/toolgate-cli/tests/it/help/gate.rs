//! A running gateway and its command line.

use super::process::lines;
use super::{LONG, Modern, SOON, TempDir, command, end_politely, kill_hard, output, send, until};
use serde_json::{Value, json};
use std::io::Write;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

/// Reads of an audit log that keeps growing.
const MAX_AUDIT_READS: u32 = 20;

/// The built program, not started yet.
pub(crate) fn toolgate() -> Command {
    command(env!("CARGO_BIN_EXE_toolgate"))
}

/// Settings to start a gateway.
#[derive(Default)]
pub(crate) struct Setup {
    config: Option<String>,
    env: Vec<(&'static str, &'static str)>,
    wrap: Vec<String>,
    run: Vec<PathBuf>,
    options: Vec<String>,
    host: Option<&'static str>,
    port: u16,
}

impl Setup {
    /// The built-in demo server, without a config.
    pub(crate) fn demo() -> Setup {
        Setup::default()
    }

    /// The demo server of the same program by a config, and a rate limit that a test never meets.
    pub(crate) fn fast_demo(more: &str) -> Setup {
        Setup::config(demo_config("", more))
    }

    /// The demo server, whose slow tool writes a line to this file for every step.
    pub(crate) fn traced_demo(trace: &Path) -> Setup {
        Setup::config(traced_config(trace))
    }

    /// One server without a file: `toolgate run -- COMMAND`.
    pub(crate) fn run(command: &[PathBuf]) -> Setup {
        Setup {
            run: command.to_vec(),
            ..Setup::default()
        }
    }

    /// A config file with this text.
    pub(crate) fn config(text: impl Into<String>) -> Setup {
        Setup {
            config: Some(text.into()),
            ..Setup::default()
        }
    }

    /// With a line at the top of its config.
    pub(crate) fn top(mut self, line: &str) -> Setup {
        self.config = self.config.map(|config| format!("{line}\n{config}"));
        self
    }

    /// With a variable in its environment.
    pub(crate) fn env(mut self, name: &'static str, value: &'static str) -> Setup {
        self.env.push((name, value));
        self
    }

    /// With more options of the command line.
    pub(crate) fn options(mut self, options: &[&str]) -> Setup {
        self.options
            .extend(options.iter().map(|&word| word.to_owned()));
        self
    }

    /// On this port, for a gateway that comes back where it was.
    pub(crate) fn at(mut self, port: u16) -> Setup {
        self.port = port;
        self
    }

    /// Listens on this address instead of 127.0.0.1.
    pub(crate) fn on(mut self, host: &'static str) -> Setup {
        self.host = Some(host);
        self
    }

    /// Started by another program, whose command line this is.
    pub(crate) fn wrapped(mut self, by: &[&str]) -> Setup {
        self.wrap = by.iter().map(|&word| word.to_owned()).collect();
        self
    }

    /// Starts it with a data folder of its own and waits until it can be reached.
    pub(crate) fn start(self) -> Gate {
        let data = Arc::new(TempDir::new("data"));
        self.start_in(data)
    }

    /// Starts it on a data folder that may have been used before.
    pub(crate) fn start_in(self, data: Arc<TempDir>) -> Gate {
        let mut start = match self.wrap.split_first() {
            None => toolgate(),
            Some((program, args)) => {
                let mut start = command(program);
                start.args(args).arg(env!("CARGO_BIN_EXE_toolgate"));
                start
            }
        };
        start
            .args([
                if self.run.is_empty() { "serve" } else { "run" },
                "--listen",
                &format!("{}:{}", self.host.unwrap_or("127.0.0.1"), self.port),
                "--data",
            ])
            .arg(data.path().join("state"))
            .args(&self.options);
        if let Some(config) = &self.config {
            start
                .arg("--config")
                .arg(data.write("toolgate.toml", config));
        }
        if !self.run.is_empty() {
            start.arg("--").args(self.run);
        }
        start.envs(self.env);
        Gate::open(start, data)
    }
}

/// The config of [`Setup::traced_demo`].
pub(crate) fn traced_config(trace: &Path) -> String {
    demo_config(
        &format!("env = {{ TOOLGATE_DEMO_TRACE = {trace:?} }}\n"),
        "",
    )
}

fn demo_config(server: &str, more: &str) -> String {
    let program = env!("CARGO_BIN_EXE_toolgate");
    format!(
        "[limits]\nrate = \"1000000/s\"\n\n[server.demo]\ncommand = [{program:?}, \"demo-server\"]\n\
         trust_annotations = true\n{server}\n{more}"
    )
}

/// A gateway on a free port of the loopback, ended with the value.
pub(crate) struct Gate {
    child: Child,
    pub(crate) data: Arc<TempDir>,
    said: Arc<Mutex<Vec<String>>>,
    /// Its port.
    pub(crate) port: u16,
    /// The address of its MCP endpoint.
    pub(crate) endpoint: String,
}

impl Gate {
    fn open(mut start: Command, data: Arc<TempDir>) -> Gate {
        let mut child = start
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (said, lines) = (
            Arc::new(Mutex::new(Vec::new())),
            lines(child.stderr.take().unwrap()),
        );
        let keep = said.clone();
        thread::spawn(move || {
            lines
                .into_iter()
                .for_each(|line| keep.lock().unwrap().push(line))
        });
        let mut gate = Gate {
            child,
            data,
            said,
            port: 0,
            endpoint: String::new(),
        };
        gate.endpoint = gate.announced("MCP endpoint");
        let port = gate
            .endpoint
            .split(':')
            .nth(2)
            .and_then(|rest| rest.split('/').next());
        gate.port = port.unwrap().parse().unwrap();
        gate
    }

    /// Returns the value of a label in the announcement, once it is printed.
    pub(crate) fn announced(&mut self, label: &str) -> String {
        let said = self.said.clone();
        let (child, lines) = (&mut self.child, move || said.lock().unwrap().clone());
        until(&format!("the gateway announces {label:?}"), SOON, || {
            let over = child.try_wait().unwrap();
            let lines = lines();
            let found = lines
                .iter()
                .find_map(|line| Some(line.strip_prefix(label)?.trim().to_owned()));
            assert!(
                found.is_some() || over.is_none(),
                "the gateway ended with {over:?}: {lines:#?}"
            );
            found
        })
    }

    /// A fresh link to the console.
    pub(crate) fn console(&self) -> String {
        let out = self.cli(&["console"]);
        let link = out.split_whitespace().find(|word| word.starts_with("http"));
        link.unwrap_or_else(|| panic!("no link in {out:?}"))
            .to_owned()
    }

    /// Everything that the console shows.
    pub(crate) fn state(&self) -> Value {
        self.log_in("").state()
    }

    /// Logs in at the console, as the person of that name, or as the owner.
    pub(crate) fn log_in(&self, name: &str) -> Login {
        self.open_link(&self.cli(&["console", "--as", name]))
    }

    /// Logs in with a link.
    pub(crate) fn open_link(&self, link: &str) -> Login {
        let token = link.trim().split_once("#token=").unwrap().1;
        let port = self.port;
        let lines = ["Content-Type: application/json", "X-Toolgate-Console: 1"].map(str::to_owned);
        let body = json!({"token": token}).to_string();
        let login = send(port, "POST", "/console/login", &lines, body.as_bytes());
        let cookie = login.header("set-cookie").expect("a login");
        let key: Value = serde_json::from_str(&login.body).unwrap();
        let lines = vec![
            "Content-Type: application/json".to_owned(),
            format!("Cookie: {}", cookie.split(';').next().unwrap()),
            format!("X-Toolgate-Console: {}", key["key"].as_str().unwrap()),
        ];
        Login { port, lines }
    }

    /// Puts another config in the place of its own, in one step.
    pub(crate) fn configure(&self, text: &str) {
        let new = self.data.write("new.toml", text);
        std::fs::rename(new, self.data.file("toolgate.toml")).unwrap();
    }

    /// Sends it a signal, such as `HUP`.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.pid().to_string();
        let sent = command("kill")
            .args([&format!("-{name}"), &pid])
            .status()
            .unwrap();
        assert!(sent.success());
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn said(&self) -> Vec<String> {
        self.said.lock().unwrap().clone()
    }

    /// Runs the command line on the same data folder, whatever comes of it.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        let mut run = toolgate();
        run.args(args)
            .arg("--data")
            .arg(self.data.path().join("state"));
        output(&mut run)
    }

    /// Runs the command line, which must succeed, and gives what it printed.
    #[track_caller]
    pub(crate) fn cli(&self, args: &[&str]) -> String {
        let out = self.run(args);
        let (stdout, stderr) = (
            String::from_utf8_lossy(&out.stdout),
            String::from_utf8_lossy(&out.stderr),
        );
        assert!(
            out.status.success(),
            "toolgate {args:?}: {} {stdout} {stderr}",
            out.status
        );
        stdout.into_owned()
    }

    /// The ids of the calls that wait for a person, as `toolgate inbox` tells them.
    pub(crate) fn inbox(&self) -> Vec<String> {
        let out = self.cli(&["inbox"]);
        let first = out
            .lines()
            .filter_map(|line| line.split_whitespace().next());
        first
            .filter(|word| word.starts_with("a-"))
            .map(str::to_owned)
            .collect()
    }

    /// Waits until a call waits for a person; its approval's id.
    pub(crate) fn pending(&self) -> String {
        until("a call waits for a person", SOON, || {
            self.inbox().into_iter().next()
        })
    }

    /// Asks for an approval of `demo.note` and leaves. Returns the id of the approval, once the gateway knows that its
    /// caller has gone.
    pub(crate) fn abandoned(&self, text: &str) -> String {
        let arguments = json!({"name": "n", "text": text});
        let call = Modern::request(self.port, &json!(1), "demo_note", arguments);
        let mut leaves = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        leaves.write_all(&call).unwrap();
        let id = self.pending();
        drop(leaves);
        until("the caller has gone", SOON, || {
            (self.state()["pending"][0]["connected"] == false).then_some(())
        });
        id
    }

    /// All records, oldest first.
    pub(crate) fn audit(&self) -> Vec<Value> {
        // Some records are written a few milliseconds after the answer to which they belong.
        let mut records = self.audit_now();
        for _ in 0..MAX_AUDIT_READS {
            let known = records.len();
            records = self.audit_now();
            if records.len() == known {
                break;
            }
        }
        records
    }

    fn audit_now(&self) -> Vec<Value> {
        let out = self.cli(&["audit", "tail", "--json", "-n", "1000000"]);
        out.lines()
            .map(|line| serde_json::from_str(line).expect(line))
            .collect()
    }

    /// The same, read from the files: for more records than the command line prints in time.
    pub(crate) fn audit_files(&self) -> Vec<Value> {
        super::audit::records(&self.data.path().join("state"))
    }

    /// Ends it politely; it must end well.
    pub(crate) fn stop(mut self) -> Arc<TempDir> {
        let status = end_politely(&mut self.child);
        assert!(status.success(), "{status} {:#?}", self.said());
        self.data.clone()
    }

    /// Waits until it has ended by itself, which must be well.
    #[track_caller]
    pub(crate) fn ended(mut self) -> Arc<TempDir> {
        let child = &mut self.child;
        let status = until("the gateway ends", LONG, || child.try_wait().unwrap());
        assert!(status.success(), "{status} {:#?}", self.said());
        self.data.clone()
    }

    /// Ends it by SIGKILL, as the kernel would for want of memory.
    pub(crate) fn kill(mut self) -> Arc<TempDir> {
        kill_hard(&mut self.child);
        self.data.clone()
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("the gateway said: {:#?}", self.said());
        }
        kill_hard(&mut self.child);
    }
}

/// Somebody who is logged in at the console.
pub(crate) struct Login {
    port: u16,
    lines: Vec<String>,
}

impl Login {
    /// Returns the header lines of its requests.
    pub(crate) fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Everything that the console shows.
    pub(crate) fn state(&self) -> Value {
        let state = send(self.port, "GET", "/console/api/state", &self.lines, b"");
        serde_json::from_str(&state.body).unwrap()
    }

    /// Does one thing, as the page does it.
    pub(crate) fn post(&self, action: &str, with: &Value) -> Value {
        let path = format!("/console/api/{action}");
        let body = with.to_string();
        let answer = send(self.port, "POST", &path, &self.lines, body.as_bytes());
        serde_json::from_str(&answer.body).unwrap()
    }
}
