//! Load: the requests to a server, and their number.

use crate::{bad, client, peer::Peer, wanted::Wanted, wire::Wire, workloads::WORKLOADS};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::Value;
use std::{ops::RangeInclusive, sync::OnceLock, time::Instant};

/// One workload.
pub struct Load {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its words on the page.
    pub title: &'static str,
    /// True if clients are measured with the bare server; otherwise servers are.
    pub client: bool,
    /// True for HTTP.
    pub http: bool,
    /// Calls in flight.
    pub flight: u64,
    /// Bytes of the text that is echoed.
    pub bytes: usize,
    /// Tools of the server, where they are many.
    pub tools: usize,
    /// The tool that is called.
    pub tool: &'static str,
    /// True if the tools are listed instead.
    pub lists: bool,
    /// Sessions of 2025-11-25, used in turn; without any the peer speaks 2026-07-28.
    pub sessions: usize,
    /// True if our server searches answers for secrets.
    pub secrets: bool,
    /// Layers that the author of our server adds.
    pub layers: usize,
    /// Calls of which time is taken.
    pub timed: u64,
    /// Calls of which instructions and system calls are counted.
    pub counted: u64,
    /// True if it is also measured with an audit log on disk.
    pub audited: bool,
    /// Performance goals.
    pub wanted: &'static [Wanted],
}

impl Load {
    /// A request of this workload.
    pub fn request(&self, id: u64) -> String {
        match self.lists {
            false => self.call(id, self.tool, &serde_json::json!({"text": self.text(id)})),
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

/// Makes so many calls, each answer checked, while `measure` looks; then what must be refused.
pub fn run<T>(
    load: &Load,
    peer: &Peer,
    calls: u64,
    pipes: &mut Wire,
    measure: impl FnOnce(&mut dyn FnMut()) -> T,
) -> T {
    // A server may still be starting, and what its first calls bring along is no part of the others.
    answered(load, 1..=load.flight, pipes);
    let last = load.flight + calls;
    let measured = measure(&mut || answered(load, load.flight + 1..=last, pipes));
    if peer.ours {
        bad::all_refused(load, last, pipes);
    }
    measured
}

/// Makes these calls, as many in flight as may be, and checks each answer.
fn answered(load: &Load, calls: RangeInclusive<u64>, pipes: &mut Wire) {
    answered_with(load, calls, pipes, &mut |_, _| {});
}

/// A call is sent, or its answer has arrived.
#[derive(Clone, Copy)]
pub enum Moment {
    /// It is sent.
    Sent,
    /// It is answered.
    Answered,
}

/// The same, and `watch` is told of each call by its number, counted from 0.
pub fn answered_with(
    load: &Load,
    calls: RangeInclusive<u64>,
    pipes: &mut Wire,
    watch: &mut impl FnMut(usize, Moment),
) {
    let (first, last) = calls.into_inner();
    let (mut next, mut left) = (first, last + 1 - first);
    let mut answered = vec![false; left as usize];
    let mut line = String::new();
    while left > 0 {
        while next <= last && next - first < load.flight + answered.len() as u64 - left {
            let request = load.request(next);
            watch((next - first) as usize, Moment::Sent);
            pipes.say(&request);
            next += 1;
        }
        pipes.flush();
        pipes.hear(&mut line);
        let index = (load.check(&line) - first) as usize;
        watch(index, Moment::Answered);
        assert!(
            !std::mem::replace(&mut answered[index], true),
            "one answer for each call"
        );
        left -= 1;
    }
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
    let took = run(load, peer, calls, &mut pipes, |calls| {
        let begin = Instant::now();
        calls();
        begin.elapsed()
    });
    pipes.end();
    calls as f64 / took.as_secs_f64()
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
pub fn stay(core: usize) {
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).expect("a core of its own");
}

/// The workload of that name.
pub fn workload(name: &str) -> &'static Load {
    let known = WORKLOADS.iter().find(|load| load.name == name);
    known.unwrap_or_else(|| panic!("a workload: {:?}", WORKLOADS.map(|load| load.name)))
}
