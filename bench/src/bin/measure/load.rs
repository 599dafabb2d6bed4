//! What is asked of a server, and how often.

use crate::{bad, client, peer::Peer, wanted::Wanted, wire::Wire, workloads::WORKLOADS};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::Value;
use std::{sync::OnceLock, time::Instant};

/// One workload.
pub struct Load {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its words on the page.
    pub title: &'static str,
    /// Whether clients are measured, with the bare server; else servers.
    pub client: bool,
    /// Whether it goes over HTTP.
    pub http: bool,
    /// Calls in flight.
    pub flight: u64,
    /// Bytes of the text that is echoed.
    pub bytes: usize,
    /// Tools of the server, where they are many.
    pub tools: usize,
    /// Whether they are listed; else the first one is called.
    pub lists: bool,
    /// Sessions of 2025-11-25, used in turn; without any the peer speaks 2026-07-28.
    pub sessions: usize,
    /// Whether our server looks for secrets in answers.
    pub secrets: bool,
    /// Calls of which time is taken.
    pub timed: u64,
    /// Calls of which instructions are counted, and half as many before.
    pub counted: u64,
    /// Whether it is measured with a log on the disk, too.
    pub audited: bool,
    /// What we want.
    pub wanted: &'static [Wanted],
}

impl Load {
    /// A request of this workload.
    pub fn request(&self, id: u64) -> String {
        match self.lists {
            false => self.call(id, "echo", &serde_json::json!({"text": self.text(id)})),
            true => self.message(id, "tools/list", ""),
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

    /// A message of any method.
    pub fn message(&self, id: u64, method: &str, params: &str) -> String {
        let meta = if self.sessions > 0 {
            ""
        } else {
            toolgate_bench::META
        };
        let params = format!("{params}{meta}");
        let params = params.trim_start_matches(',');
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}}}}}"#)
    }

    /// The text of a call.
    fn text(&self, id: u64) -> String {
        toolgate_bench::text(id, self.bytes)
    }

    /// Checks an answer to the last letter, and says to which request it belongs.
    pub fn check(&self, line: &str) -> u64 {
        let head = line.get(..400).unwrap_or(line);
        let answer: Result<Value, _> = serde_json::from_str(line);
        let answer = answer.unwrap_or_else(|_| panic!("its answer is not JSON: {head}"));
        let id = answer["id"].as_u64();
        let id = id.unwrap_or_else(|| panic!("its answer is of no request: {head}"));
        let result = &answer["result"];
        match self.lists {
            false => {
                assert_eq!(result["content"][0]["text"], self.text(id), "{head}");
                assert_ne!(result["isError"], true, "{head}");
            }
            true => assert_eq!(
                result["tools"].as_array().map(Vec::len),
                Some(self.tools),
                "{head}"
            ),
        }
        id
    }
}

/// Makes so many calls, each answer checked; then what must be refused. How long the calls took, in seconds.
pub fn run(load: &Load, peer: &Peer, calls: u64, pipes: &mut Wire) -> f64 {
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
    let calls = load.timed / peer.share;
    let other = cores()[cores().len().min(2) - 1];
    let other = if load.flight > 1 { other } else { cores()[0] };
    if load.client {
        stay(cores()[0]);
        return calls as f64 / client::run(load, peer, calls, None, Some(other));
    }
    stay(other);
    let mut pipes = Wire::start(load, peer.command(load, calls));
    stay(cores()[0]);
    let rate = calls as f64 / run(load, peer, calls, &mut pipes);
    pipes.end();
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

/// Stays on this core; what is started from here on does so as well.
fn stay(core: usize) {
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).expect("a core of its own");
}

/// The workload of that name.
pub fn workload(name: &str) -> &'static Load {
    let known = WORKLOADS.iter().find(|load| load.name == name);
    known.unwrap_or_else(|| panic!("a workload: {:?}", WORKLOADS.map(|load| load.name)))
}
