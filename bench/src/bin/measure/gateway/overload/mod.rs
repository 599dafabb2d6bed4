//! The gateway under more load than it can serve.
//!
//! The gateway has a core of its own. The load generator and the server share another one.

mod connection;
mod generator;
mod page;
mod refusals;
mod steps;

use super::{ECHO, process};
use crate::{
    http::{self, Http},
    load::{cores, stay},
    peer::Peer,
};
use connection::Reply;
use generator::Generator;
pub use page::write;
use refusals::Refusal;
use std::{fs, path::PathBuf, time::Duration};
use steps::StepFigures;

/// Connections of the open loop; by default, the gateway allows 1,024.
const CONNECTIONS: usize = 1000;

/// Requests in flight when the capacity is measured.
const FLIGHT: usize = 32;

/// Duration of the measurement of the capacity.
const CAPACITY_TIME: Duration = Duration::from_secs(4);

/// A kind of calls.
struct Workload {
    name: &'static str,
    title: &'static str,
    /// Bytes that the server adds to the text of a result.
    padding: usize,
    /// Lines of `[limits]`, besides `rate`.
    limits: &'static str,
}

const SMALL: Workload = Workload {
    name: "overload",
    title: "results of 16 bytes",
    padding: 0,
    limits: "",
};

const WORKLOADS: [Workload; 4] = [
    SMALL,
    Workload {
        name: "overload-short-queue",
        title: "results of 16 bytes, `waiting_per_caller = 64`",
        limits: "waiting_per_caller = 64\n",
        ..SMALL
    },
    Workload {
        name: "overload-64k",
        title: "results of 64 KiB",
        padding: 64 << 10,
        ..SMALL
    },
    Workload {
        name: "overload-256k",
        title: "results of 256 KiB",
        padding: 256 << 10,
        ..SMALL
    },
];

/// All figures.
pub struct OverloadFigures {
    workloads: Vec<WorkloadFigures>,
    refusals: Vec<Refusal>,
}

/// Figures of one workload.
struct WorkloadFigures {
    workload: &'static Workload,
    /// Correct answers in a second, closed loop.
    capacity: f64,
    steps: Vec<StepFigures>,
    /// Time after the overload until goodput and latency are normal; `None` if they did not become normal.
    recovery: Option<Duration>,
}

/// Measures the workloads whose name contains `only`, and the cost of a refusal.
pub fn figures(only: &str) -> OverloadFigures {
    let named = WORKLOADS.iter().filter(|load| load.name.contains(only));
    let workloads = named.map(|workload| {
        eprintln!("overload: {}", workload.title);
        let figures = workload.measure();
        figures.steps().iter().for_each(|line| println!("{line}"));
        figures.goals().iter().for_each(|line| println!("{line}"));
        figures
    });
    let figures = OverloadFigures {
        workloads: workloads.collect(),
        refusals: refusals::measure(&SMALL),
    };
    let refusals = figures.refusals.iter().map(Refusal::line);
    refusals.for_each(|line| println!("{line}"));
    figures
}

impl Workload {
    fn measure(&'static self) -> WorkloadFigures {
        let limits = format!("rate = \"1000000/s\"\n{}", self.limits);
        let running = Overloaded::start(self, &limits);
        let mut generator = running.connect(CONNECTIONS);
        // The connections and the first calls are no part of the figures.
        generator.closed(FLIGHT, CAPACITY_TIME / 4);
        let answers = generator.closed(FLIGHT, CAPACITY_TIME);
        let good = answers.iter().filter(|answer| answer.is_good()).count();
        assert_eq!(good, answers.len(), "{:?}", steps::forms(&answers));
        let capacity = good as f64 / CAPACITY_TIME.as_secs_f64();
        let steps = steps::measure(&mut generator, capacity, &running);
        running.end();
        WorkloadFigures {
            workload: self,
            capacity,
            recovery: steps::recovery(&steps),
            steps,
        }
    }
}

/// A gateway with a core of its own, and the server behind it.
struct Overloaded {
    gateway: Http,
    upstream: Http,
    data: PathBuf,
    padding: usize,
}

impl Overloaded {
    /// Starts both, with the default limits except for these lines of `[limits]`.
    fn start(workload: &Workload, limits: &str) -> Overloaded {
        stay(cores()[0]);
        let mut command = Peer::beside("bare_http");
        command.args(["--breaking", "--padding", &workload.padding.to_string()]);
        let upstream = Http::start(command);
        let data = process::new_folder(false);
        let config = format!(
            "[limits]\n{limits}\n[audit]\nmode = \"end\"\n\n[server.bare]\nprefix = \"\"\nurl = {:?}\n\n[[rule]]\ntools = [\"bare.*\"]\naction = \"allow\"\n",
            upstream.url()
        );
        stay(cores()[cores().len().min(2) - 1]);
        let gateway = process::start(&config, &data, None);
        stay(cores()[0]);
        Overloaded {
            gateway,
            upstream,
            data,
            padding: workload.padding,
        }
    }

    fn connect(&self, connections: usize) -> Generator {
        let end = toolgate_bench::text(0, ECHO.load.bytes)[8..].to_owned();
        let end = format!("{end}{}\"", toolgate_bench::padding(self.padding));
        let request = |id| self.request(&ECHO.load.request(id));
        Generator::connect(self.gateway.port(), connections, request, end.as_bytes())
    }

    /// Returns the HTTP request with a body.
    fn request(&self, body: &str) -> Vec<u8> {
        let head = http::head(self.gateway.port(), &http::headers(body), body.len());
        format!("{head}{body}").into_bytes()
    }

    fn end(self) {
        self.gateway.end();
        self.upstream.end();
        let _ = fs::remove_dir_all(self.data);
    }
}
