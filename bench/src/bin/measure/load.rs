//! What is asked of a server, and how often.

use crate::{bad, peer::Peer, stdio::Pipes};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::Value;
use std::{sync::OnceLock, time::Instant};

/// One workload.
pub struct Load {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its words on the page.
    pub title: &'static str,
    /// Calls in flight.
    pub flight: u64,
    /// Bytes of the text that is echoed.
    pub bytes: usize,
    /// Tools that are listed; 0 where a tool is called.
    pub tools: usize,
    /// Whether the peer speaks 2025-11-25, after a handshake.
    pub legacy: bool,
    /// Calls of which time is taken.
    pub timed: u64,
    /// Calls of which instructions are counted, and half as many before.
    pub counted: u64,
    /// Whether it is measured with a log on the disk, too.
    pub audited: bool,
    /// What we want.
    pub target: &'static str,
}

/// All workloads over stdio.
pub const WORKLOADS: [Load; 3] = [
    Load {
        name: "echo",
        title: "echo over stdio, 1 in flight",
        flight: 1,
        bytes: 16,
        tools: 0,
        legacy: false,
        timed: 20_000,
        counted: 1000,
        audited: false,
        target: "35 k instructions at most; 0.50 of bare",
    },
    Load {
        name: "echo-64",
        title: "echo over stdio, 64 in flight",
        flight: 64,
        bytes: 16,
        tools: 0,
        legacy: false,
        timed: 50_000,
        counted: 2000,
        audited: true,
        target: "0.40 of bare; 0.3 system calls at most",
    },
    Load {
        name: "echo-2025",
        title: "echo over stdio, 2025-11-25, 1 in flight",
        flight: 1,
        bytes: 16,
        tools: 0,
        legacy: true,
        timed: 20_000,
        counted: 1000,
        audited: false,
        target: "none set",
    },
];

const META: &str = r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1.0.0"},"io.modelcontextprotocol/clientCapabilities":{}}"#;

impl Load {
    /// A request of this workload.
    pub fn request(&self, id: u64) -> String {
        match self.tools {
            0 => self.call(id, "echo", &serde_json::json!({"text": self.text(id)})),
            _ => self.message(id, "tools/list", ""),
        }
    }

    /// A call of any tool.
    pub fn call(&self, id: u64, tool: &str, arguments: &Value) -> String {
        self.message(
            id,
            "tools/call",
            &format!(r#""name":"{tool}","arguments":{arguments}"#),
        )
    }

    fn message(&self, id: u64, method: &str, params: &str) -> String {
        let meta = if self.legacy { "" } else { META };
        let params = format!("{params}{meta}");
        let params = params.trim_start_matches(',');
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}}}}}"#)
    }

    /// Quotes, newlines and other letters, as source code has them. No two are the same.
    fn text(&self, id: u64) -> String {
        let unit = "let naïve = \"x\";\n";
        let mut text = format!("{id:08} ");
        while text.len() + unit.len() < self.bytes {
            text.push_str(unit);
        }
        while text.len() < self.bytes {
            text.push('.');
        }
        text
    }

    /// Checks an answer to the last letter, and says to which request it belongs.
    pub fn check(&self, line: &str) -> u64 {
        let answer: Value = serde_json::from_str(line).expect("an answer is JSON");
        let id = answer["id"].as_u64().expect("the id of a request");
        let head = line.get(..400).unwrap_or(line);
        let result = &answer["result"];
        match self.tools {
            0 => {
                assert_eq!(result["content"][0]["text"], self.text(id), "{head}");
                assert_ne!(result["isError"], true, "{head}");
            }
            tools => assert_eq!(
                result["tools"].as_array().map(Vec::len),
                Some(tools),
                "{head}"
            ),
        }
        id
    }
}

/// Makes so many calls, each answer checked; then what must be refused. How long the calls took, in seconds.
pub fn run(load: &Load, peer: &Peer, calls: u64, pipes: &mut Pipes) -> f64 {
    if load.legacy {
        pipes.open();
    }
    let begin = Instant::now();
    let (mut sent, mut done) = (0, 0);
    let mut answered = vec![false; calls as usize];
    let mut line = String::new();
    while done < calls {
        while sent < calls && sent - done < load.flight {
            sent += 1;
            pipes.say(&load.request(sent));
        }
        pipes.flush();
        pipes.hear(&mut line);
        let id = load.check(&line) as usize - 1;
        assert!(
            !std::mem::replace(&mut answered[id], true),
            "one answer for each call"
        );
        done += 1;
    }
    let took = begin.elapsed().as_secs_f64();
    if peer.ours {
        bad::all_refused(load, calls, pipes);
    }
    took
}

/// Calls in a second. With one in flight both share a core, for only one of them ever runs; else each has its own.
pub fn rate(load: &Load, peer: &Peer) -> f64 {
    stay(if load.flight > 1 {
        &cores()[1..2]
    } else {
        &cores()[..1]
    });
    let mut pipes = Pipes::start(peer.command(load, load.timed));
    stay(&cores()[..1]);
    let rate = load.timed as f64 / run(load, peer, load.timed, &mut pipes);
    pipes.end();
    stay(cores());
    rate
}

/// The cores that this program may use, as it found them.
pub fn cores() -> &'static [usize] {
    static CORES: OnceLock<Vec<usize>> = OnceLock::new();
    CORES.get_or_init(|| {
        let all = sched_getaffinity(None).expect("the cores");
        (0..CpuSet::MAX_CPU)
            .filter(|core| all.is_set(*core))
            .collect()
    })
}

/// Stays on these cores; what is started from here on does so as well.
fn stay(these: &[usize]) {
    let mut set = CpuSet::new();
    these.iter().for_each(|core| set.set(*core));
    sched_setaffinity(None, &set).expect("cores of its own");
}
