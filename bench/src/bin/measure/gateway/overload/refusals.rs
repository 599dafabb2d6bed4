//! CPU time of a refusal: the gateway refuses every call of the closed loop.

use super::{FLIGHT, Overloaded, Workload, connection::Reply, steps};
use crate::gateway::usage::Usage;
use std::{io::Write, net::TcpStream, thread, time::Duration};

/// Duration of the measurement of one limit.
const TIME: Duration = Duration::from_secs(3);

/// Time for the call that uses up the limit to arrive.
const SETTLE: Duration = Duration::from_millis(500);

/// A limit that refuses all calls.
struct Limit {
    title: &'static str,
    /// Lines of `[limits]`.
    config: &'static str,
    /// Tool whose call uses up the limit.
    first: &'static str,
}

const LIMITS: [Limit; 2] = [
    Limit {
        title: "`calls_per_caller`",
        config: "rate = \"1000000/s\"\ncalls_per_caller = 1\nwaiting_per_caller = 0\nrejection_milliseconds = 0\n",
        // The server never answers it.
        first: "slow",
    },
    Limit {
        title: "`rate`",
        config: "rate = \"1/h\"\n",
        first: "echo",
    },
];

/// Cost of a refusal by one limit.
pub struct Refusal {
    /// The limit.
    pub title: &'static str,
    /// Form of the refusal.
    pub form: String,
    /// CPU time of the gateway.
    pub usage: Usage,
    /// Refusals in a second.
    pub rate: f64,
}

/// Measures all limits.
pub fn measure(workload: &Workload) -> Vec<Refusal> {
    let limits = LIMITS.iter().map(|limit| limit.measure(workload));
    limits.collect()
}

impl Limit {
    fn measure(&self, workload: &Workload) -> Refusal {
        let running = Overloaded::start(workload, self.config);
        let first = super::ECHO
            .load
            .call(1, self.first, &serde_json::json!({"text": ""}));
        let mut stream =
            TcpStream::connect(("127.0.0.1", running.gateway.port())).expect("it listens");
        let sent = stream.write_all(&running.request(&first));
        sent.expect("it reads");
        thread::sleep(SETTLE);
        let mut generator = running.connect(FLIGHT);
        generator.closed(FLIGHT, TIME / 4);
        let before = Usage::of(running.gateway.pid());
        let answers = generator.closed(FLIGHT, TIME);
        let usage = Usage::of(running.gateway.pid()) - before;
        let forms = steps::forms(&answers);
        let form = match forms.keys().next() {
            Some(Some(Reply::Other(form))) if forms.len() == 1 => form.clone(),
            _ => panic!("not only refusals: {forms:?}"),
        };
        let count = answers.len() as u64;
        running.end();
        Refusal {
            title: self.title,
            form,
            usage: usage.per_call(count),
            rate: count as f64 / TIME.as_secs_f64(),
        }
    }
}
