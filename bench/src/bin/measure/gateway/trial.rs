//! One gateway with a config of its own: instructions of a call, memory, and time of the start.

use super::{ECHO, process, proxy::MOST, usage::Usage};
use crate::{
    count::{self, callgrind},
    http::Http,
    load::{self, Load, cores, stay},
    peer::Peer,
    wire::Wire,
};
use std::{
    fs,
    path::PathBuf,
    process::Command,
    thread,
    time::{Duration, Instant},
};

/// Stands for the address of the server in a config.
pub const SERVER_URL: &str = "SERVER_URL";

/// A gateway, its server and its calls; the default is the workload `http`.
pub struct Trial {
    /// The requests of the client.
    pub load: Load,
    /// Calls that precede the measured ones.
    pub warm: u64,
    /// Tools of the server.
    pub tools: usize,
    /// True if the called tool has an output schema.
    pub structured: bool,
    /// Bearer token of the client, if the gateway needs one.
    pub token: Option<&'static str>,
    /// Lines at the top of the config.
    pub top: String,
    /// More lines of `[limits]`.
    pub limits: String,
    /// The other sections of the config, with [`SERVER_URL`].
    pub sections: String,
    /// Folder of the config and the data directory; removed in the end.
    pub folder: PathBuf,
}

impl Default for Trial {
    fn default() -> Trial {
        Trial {
            load: Load {
                counted: 500,
                ..ECHO.load
            },
            warm: 50,
            tools: 10,
            structured: false,
            token: None,
            top: String::new(),
            limits: String::new(),
            sections: format!("{AUDIT}{SERVER}{RULE}"),
            folder: process::new_folder(false),
        }
    }
}

/// The section of the audit log in the workload `http`.
pub const AUDIT: &str = "[audit]\nmode = \"end\"\n\n";
/// The section of the server.
pub const SERVER: &str = "[server.bare]\nprefix = \"\"\nurl = \"SERVER_URL\"\n\n";
/// The rule.
pub const RULE: &str = "[[rule]]\ntools = [\"bare.*\"]\naction = \"allow\"\n\n";

/// Time limits under callgrind, which is about 50 times slower.
const PATIENT: &str = "start_seconds = 600\ncall_seconds = 600\n";

/// What a gateway takes up.
pub struct Size {
    /// Bytes of resident memory, after the calls of the warm-up.
    pub resident: f64,
    /// Time from the start of the process until the gateway names its endpoint.
    pub start: Duration,
}

impl Trial {
    /// Instructions of the gateway in user space, a call. The gateway has one core, so that its threads do not wake each
    /// other at random: that makes a difference of 5 %.
    pub fn instructions(&self) -> f64 {
        stay(cores()[0]);
        let file = count::file("callgrind");
        let calls = self.load.counted;
        let counted = self.run(Some(callgrind(&file)), |wire, pid, _| {
            count::between(&file, pid, || self.call(wire, self.warm + 2, calls))
        });
        let _ = fs::remove_file(&file);
        counted / calls as f64
    }

    /// Memory and time of the start.
    pub fn size(&self) -> Size {
        self.run(None, |_, pid, start| Size {
            resident: resident(pid),
            start,
        })
    }

    /// Makes calls through a gateway, and ends it with SIGTERM.
    pub fn train(&self, calls: u64) {
        let (server, http, _) = self.start(None);
        let mut wire = Wire::Http(http);
        self.call(&mut wire, 1, calls);
        wire.terminate();
        server.end();
        let _ = fs::remove_dir_all(&self.folder);
    }

    /// Runs the gateway before the trial; its folder stays.
    pub fn prepare(&self, then: impl FnOnce(&mut Http)) {
        let server = self.server();
        let mut http = process::start(&self.config(&server), &self.folder, None);
        then(&mut http);
        http.terminate();
        server.end();
    }

    /// Starts the server and the gateway, makes the calls of the warm-up, and measures.
    fn run<T>(
        &self,
        wrap: Option<Command>,
        measure: impl FnOnce(&mut Wire, u32, Duration) -> T,
    ) -> T {
        let (server, http, start) = self.start(wrap);
        let pid = http.pid();
        let mut wire = Wire::Http(http);
        self.call(&mut wire, 1, self.warm);
        settle(pid);
        if let Wire::Http(http) = &mut wire {
            // The gateway may have closed the idle connection.
            http.reconnect();
        }
        self.call(&mut wire, self.warm + 1, 1);
        let measured = measure(&mut wire, pid, start);
        wire.end();
        server.end();
        let _ = fs::remove_dir_all(&self.folder);
        measured
    }

    /// Starts the server and the gateway, and opens the sessions. Returns both, and the time of the gateway's start.
    fn start(&self, wrap: Option<Command>) -> (Http, Http, Duration) {
        let server = self.server();
        let begin = Instant::now();
        let mut http = process::start(&self.config(&server), &self.folder, wrap);
        let start = begin.elapsed();
        http.authorize(self.token);
        for _ in 0..self.load.sessions {
            http.open();
        }
        (server, http, start)
    }

    fn server(&self) -> Http {
        let mut server = Peer::beside("bare_http");
        server.args(["--breaking", "--tools", &self.tools.to_string()]);
        server.args(self.structured.then_some("--structured"));
        Http::start(server)
    }

    fn config(&self, server: &Http) -> String {
        let config = format!(
            "{}{MOST}{PATIENT}{}\n{}",
            self.top, self.limits, self.sections
        );
        config.replace(SERVER_URL, &server.url())
    }

    fn call(&self, wire: &mut Wire, first: u64, calls: u64) {
        load::answered_with(&self.load, first..=first + calls - 1, wire, &mut |_, _| {});
    }
}

/// Waits until a gateway does nothing by itself. After the start, it lists its servers for the operator and reads the
/// config a second time; neither is part of a call.
fn settle(pid: u32) {
    let mut quiet = 0;
    let mut before = Usage::of(pid);
    for _ in 0..MOST_LOOKS {
        thread::sleep(LOOK);
        let now = Usage::of(pid);
        let busy = (now - before).micros() > LOOK.as_micros() as f64 / 10.0;
        quiet = if busy { 0 } else { quiet + 1 };
        before = now;
        if quiet == QUIET_LOOKS {
            return;
        }
    }
}

/// Pause between two looks at the processor time of a gateway.
const LOOK: Duration = Duration::from_millis(250);
/// Looks at a gateway that is quiet: longer than the two seconds after which it reads its config again.
const QUIET_LOOKS: u32 = 10;
/// The most looks.
const MOST_LOOKS: u32 = 400;

/// Bytes of resident memory of a process.
fn resident(pid: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.expect("resident memory") * 1024.0
}
