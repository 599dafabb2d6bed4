//! The gateway between a client and a bare server, beside a bare proxy and beside no proxy.

mod audit_log;
pub mod duties;
mod grants;
pub mod growth;
pub mod overload;
mod page;
mod process;
mod proxy;
mod registry;
pub mod train;
mod trial;
mod usage;

use crate::{
    apart,
    count::{self, callgrind},
    load::{self, Load, Moment, cores, stay},
    wire::Wire,
};
pub use page::write;
use proxy::{PROXIES, Proxy, Running};
use std::{
    process::Command,
    time::{Duration, Instant},
};
use usage::Usage;

/// The longest that one measurement may take.
const MOST: Duration = Duration::from_secs(240);

/// One workload of gateways.
pub struct GatewayLoad {
    /// The requests of the client.
    pub load: Load,
    /// True if the server is a child over stdio; otherwise it is reached over HTTP.
    pub stdio: bool,
    /// Tools of the server.
    pub tools: usize,
}

const ECHO: GatewayLoad = GatewayLoad {
    load: Load {
        name: "http",
        title: "HTTP to HTTP, 1 connection",
        client: false,
        http: true,
        flight: 1,
        bytes: 16,
        tools: 0,
        tool: "echo",
        lists: false,
        sessions: 0,
        secrets: true,
        layers: 0,
        timed: 4_000,
        counted: 1_000,
        audited: false,
        wanted: &[],
    },
    stdio: false,
    tools: 10,
};

/// All workloads of gateways.
const LOADS: [GatewayLoad; 10] = [
    ECHO,
    GatewayLoad {
        load: Load {
            name: "http-32",
            title: "HTTP to HTTP, 32 connections",
            flight: 32,
            timed: 20_000,
            ..ECHO.load
        },
        ..ECHO
    },
    GatewayLoad {
        load: Load {
            name: "http-128",
            title: "HTTP to HTTP, 128 connections",
            flight: 128,
            timed: 20_000,
            ..ECHO.load
        },
        ..ECHO
    },
    GatewayLoad {
        load: Load {
            name: "http-512",
            title: "HTTP to HTTP, 512 connections",
            flight: 512,
            timed: 20_000,
            ..ECHO.load
        },
        ..ECHO
    },
    GatewayLoad {
        load: Load {
            name: "session",
            title: "session of 2025-11-25, 1 connection",
            sessions: 1,
            ..ECHO.load
        },
        ..ECHO
    },
    GatewayLoad {
        load: Load {
            name: "session-32",
            title: "session of 2025-11-25, 32 connections",
            sessions: 1,
            flight: 32,
            timed: 20_000,
            ..ECHO.load
        },
        ..ECHO
    },
    GatewayLoad {
        load: Load {
            name: "http-64k",
            title: "results of 64 KiB, 1 connection",
            bytes: 64 << 10,
            timed: 500,
            counted: 40,
            ..ECHO.load
        },
        ..ECHO
    },
    GatewayLoad {
        load: Load {
            name: "http-1m",
            title: "results of 1 MiB, 1 connection",
            bytes: 1 << 20,
            timed: 60,
            counted: 6,
            ..ECHO.load
        },
        ..ECHO
    },
    GatewayLoad {
        load: Load {
            name: "list-1000",
            title: "list of 1,000 tools, 1 connection",
            tools: 1_000,
            lists: true,
            timed: 200,
            counted: 20,
            ..ECHO.load
        },
        tools: 1_000,
        ..ECHO
    },
    GatewayLoad {
        load: Load {
            name: "stdio",
            title: "HTTP to a child over stdio, 1 connection",
            ..ECHO.load
        },
        stdio: true,
        ..ECHO
    },
];

/// Figures of one run.
#[derive(Clone, Copy)]
pub struct Timing {
    /// Calls in a second.
    pub rate: f64,
    /// Median of the time of a call, in microseconds.
    pub p50: f64,
    /// CPU time and context switches of the gateway, a call.
    pub usage: Usage,
}

/// Results of one gateway in one workload.
pub struct GatewayRow {
    /// The workload.
    pub load: &'static GatewayLoad,
    /// The gateway.
    pub proxy: &'static Proxy,
    /// One timing of each round.
    pub rounds: Vec<Option<Timing>>,
    /// Instructions of the gateway in user space, a call.
    pub instructions: Option<f64>,
    /// Why a measurement was not completed.
    pub failed: Option<String>,
}

/// Measures the workloads whose name contains `only`, in interleaved rounds.
pub fn rows(only: &str, rounds: u32, clock: bool) -> Vec<GatewayRow> {
    let mut rows = Vec::new();
    for load in LOADS.iter().filter(|load| load.load.name.contains(only)) {
        eprintln!("gateway: {}", load.load.name);
        let taking = PROXIES.iter().filter(|proxy| proxy.takes(load));
        let mut of_load: Vec<GatewayRow> = taking
            .map(|proxy| GatewayRow {
                load,
                proxy,
                rounds: Vec::new(),
                instructions: None,
                failed: None,
            })
            .collect();
        for round in 0..if clock { rounds } else { 0 } {
            let mut order: Vec<usize> = (0..of_load.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for at in order {
                of_load[at].time();
            }
        }
        of_load.iter_mut().for_each(GatewayRow::count);
        for row in &of_load {
            println!("{}", row.line(&of_load));
        }
        rows.extend(of_load);
    }
    rows
}

impl GatewayRow {
    fn time(&mut self) {
        let timing = self
            .figures("gateway-time")
            .and_then(|numbers| match numbers[..] {
                [rate, p50, user, system, switches] => Some(Timing {
                    rate,
                    p50,
                    usage: Usage {
                        user,
                        system,
                        switches,
                    },
                }),
                _ => None,
            });
        self.rounds.push(timing);
    }

    fn count(&mut self) {
        if self.proxy.is_counted() {
            self.instructions = self
                .figures("gateway-count")
                .and_then(|numbers| numbers.first().copied());
        }
    }

    /// Measures in a process of its own, unless it has failed before.
    fn figures(&mut self, what: &str) -> Option<Vec<f64>> {
        if self.failed.is_some() {
            return None;
        }
        let measured = apart::measure(&[what, self.load.load.name, self.proxy.name], MOST);
        measured
            .inspect_err(|why| {
                eprintln!("       {what}: {}: {why}", self.proxy.name);
                self.failed = Some(why.clone());
            })
            .ok()
    }
}

/// Prints calls/s, the median in microseconds, nanoseconds in user space and in the kernel, and context switches a call.
pub fn time(load: &str, proxy: &str) {
    let (load, proxy) = named(load, proxy);
    // With one call in flight all share a core, for only one of them ever runs; else the gateway has one of its own.
    let shared = load.load.flight == 1;
    let own = cores()[if shared { 0 } else { cores().len().min(2) - 1 }];
    stay(cores()[0]);
    let mut running = proxy.start(load, None, || stay(own));
    stay(cores()[0]);
    let calls = load.load.timed / proxy.share;
    load.open(&mut running);
    let first = load.load.flight + calls / 10;
    load::answered_with(&load.load, 1..=first, &mut running.wire, &mut |_, _| {});
    let mut times = vec![Duration::ZERO; calls as usize];
    let mut sent = vec![Instant::now(); calls as usize];
    let before = Usage::of(running.pid);
    let begin = Instant::now();
    let mut watch = |call: usize, moment: Moment| match moment {
        Moment::Sent => sent[call] = Instant::now(),
        Moment::Answered => times[call] = sent[call].elapsed(),
    };
    load::answered_with(
        &load.load,
        first + 1..=first + calls,
        &mut running.wire,
        &mut watch,
    );
    let took = begin.elapsed();
    let usage = (Usage::of(running.pid) - before).per_call(calls);
    times.sort_unstable();
    let p50 = times[times.len() / 2].as_secs_f64() * 1e6;
    let rate = calls as f64 / took.as_secs_f64();
    println!(
        "{rate:.1} {p50:.1} {:.0} {:.0} {:.2} ",
        usage.user, usage.system, usage.switches
    );
    running.end();
}

/// Prints the instructions of the gateway in user space, a call.
pub fn instructions(load: &str, proxy: &str) {
    let (load, proxy) = named(load, proxy);
    let file = count::file("callgrind");
    let mut running = proxy.start(load, Some(callgrind(&file)), || ());
    load.open(&mut running);
    let (first, calls) = (load.load.flight * 2, load.load.counted);
    load::answered_with(&load.load, 1..=first, &mut running.wire, &mut |_, _| {});
    let each = count::between(&file, running.pid, || {
        load::answered_with(
            &load.load,
            first + 1..=first + calls,
            &mut running.wire,
            &mut |_, _| {},
        );
    }) / calls as f64;
    println!("{each:.0} instructions a call");
    running.end();
    let _ = std::fs::remove_file(&file);
}

/// Starts a gateway behind the words of `wrap`, and calls `measure` with the connections to it.
pub fn with_wire(
    load: &str,
    proxy: &str,
    wrap: Command,
    mut measure: impl FnMut(&Load, &mut Wire),
) {
    let (load, proxy) = named(load, proxy);
    let mut running = proxy.start(load, Some(wrap), || ());
    load.open(&mut running);
    measure(&load.load, &mut running.wire);
    running.end();
}

impl GatewayLoad {
    /// Opens the sessions of this workload.
    fn open(&self, running: &mut Running) {
        for _ in 0..self.load.sessions {
            if let Wire::Http(http) = &mut running.wire {
                http.open();
            }
        }
    }
}

fn named(load: &str, proxy: &str) -> (&'static GatewayLoad, &'static Proxy) {
    let found = LOADS.iter().find(|known| known.load.name == load);
    let load = found.unwrap_or_else(|| panic!("a workload: {:?}", LOADS.map(|l| l.load.name)));
    let found = PROXIES.iter().find(|known| known.name == proxy);
    let proxy = found.unwrap_or_else(|| panic!("a gateway: {:?}", PROXIES.map(|p| p.name)));
    (load, proxy)
}
