//! Steps of the offered load, and the recovery after the overload.

use super::{
    Overloaded,
    connection::Reply,
    generator::{Generator, Record, Step},
};
use crate::gateway::usage::Usage;
use std::{collections::BTreeMap, fs, time::Duration};

/// Offered load in each step, as a share of the capacity.
const SHARES: [f64; 5] = [0.5, 1.0, 2.0, 3.0, 0.5];

/// Duration of a step.
const STEP_TIME: Duration = Duration::from_secs(6);

/// Length of the windows in which recovery is judged, and their number in a row.
const WINDOW: Duration = Duration::from_millis(250);
const WINDOWS: usize = 4;

/// Answers that come later than this are too late for most clients.
const LATE: Duration = Duration::from_secs(1);

/// Figures of one step.
pub struct StepFigures {
    /// Offered load, as a share of the capacity.
    pub share: f64,
    /// Scheduled requests in a second.
    pub wanted: f64,
    /// Sent requests in a second.
    pub sent: f64,
    /// Correct answers in a second.
    pub goodput: f64,
    /// Those of them that came within a second.
    pub in_time: f64,
    /// Other answers in a second, by their form.
    pub others: BTreeMap<Reply, f64>,
    /// Median latency of correct answers.
    pub p50: Duration,
    /// 99th percentile of it.
    pub p99: Duration,
    /// CPU time of the gateway, as a share of a core.
    pub gateway: f64,
    /// The same of the load generator and the server.
    pub load: f64,
    /// Peak memory of the gateway so far (RSS), in bytes.
    pub memory: f64,
    /// Goodput and 99th percentile of the windows of this step.
    windows: Vec<(f64, Duration)>,
}

/// Usage of the programs at one moment.
struct Moment {
    gateway: Usage,
    load: f64,
    memory: f64,
}

/// Offers the load of each step.
pub fn measure(generator: &mut Generator, capacity: f64, running: &Overloaded) -> Vec<StepFigures> {
    let steps = SHARES.map(|share| Step {
        rate: share * capacity,
        time: STEP_TIME,
    });
    let mut moments = Vec::new();
    let records = generator.open(&steps, |_| moments.push(Moment::now(running)));
    let figures = steps.iter().enumerate().map(|(at, step)| {
        let start = STEP_TIME * at as u32;
        figures(SHARES[at], step, start, &records, &moments[at..])
    });
    figures.collect()
}

fn figures(
    share: f64,
    step: &Step,
    start: Duration,
    records: &[Record],
    moments: &[Moment],
) -> StepFigures {
    let end = start + step.time;
    let seconds = step.time.as_secs_f64();
    let within = |time: Option<Duration>| time.is_some_and(|time| time >= start && time < end);
    let rate = |pick: &dyn Fn(&Record) -> bool| {
        records.iter().filter(|record| pick(record)).count() as f64 / seconds
    };
    let answered: Vec<&Record> = records.iter().filter(|r| within(r.answered)).collect();
    let mut others = BTreeMap::new();
    for reply in answered.iter().filter_map(|record| record.reply.clone()) {
        if reply != Reply::Good {
            *others.entry(reply).or_insert(0.0) += 1.0 / seconds;
        }
    }
    let missing = rate(&|record| record.reply.is_none() && within(record.sent));
    if missing > 0.0 {
        others.insert(Reply::Missing, missing);
    }
    let due = |from: Duration, to: Duration| {
        let good = records.iter().filter(|record| record.is_good());
        let good = good.filter(|record| record.due >= from && record.due < to);
        let mut times: Vec<Duration> = good.filter_map(Record::latency).collect();
        times.sort_unstable();
        times
    };
    let times = due(start, end);
    let windows = (0..(step.time.as_millis() / WINDOW.as_millis()) as u32).map(|at| {
        let from = start + WINDOW * at;
        let times = due(from, from + WINDOW);
        let goodput = times.len() as f64 / WINDOW.as_secs_f64();
        (goodput, percentile(&times, 0.99))
    });
    let usage = moments[1].gateway - moments[0].gateway;
    StepFigures {
        share,
        wanted: step.rate,
        sent: rate(&|record| within(record.sent)),
        goodput: rate(&|record| record.is_good() && within(record.answered)),
        in_time: rate(&|record| {
            record.is_good()
                && within(record.answered)
                && record.latency().is_some_and(|time| time <= LATE)
        }),
        others,
        p50: percentile(&times, 0.5),
        p99: percentile(&times, 0.99),
        gateway: usage.micros() / 1e6 / seconds,
        load: (moments[1].load - moments[0].load) / 1e6 / seconds,
        memory: moments[1].memory,
        windows: windows.collect(),
    }
}

/// Returns the time until goodput and latency are normal in the last step: some windows in a row have 90 % of the offered
/// load as goodput, and a 99th percentile of at most twice that of the first step, or 20 ms.
pub fn recovery(steps: &[StepFigures]) -> Option<Duration> {
    let (first, last) = (steps.first()?, steps.last()?);
    let most = (first.p99 * 2).max(Duration::from_millis(20));
    let normal = |window: &(f64, Duration)| window.0 >= last.wanted * 0.9 && window.1 <= most;
    let at = last
        .windows
        .windows(WINDOWS)
        .position(|windows| windows.iter().all(normal))?;
    Some(WINDOW * at as u32)
}

/// Counts the forms of the answers.
pub fn forms(records: &[Record]) -> BTreeMap<Option<&Reply>, usize> {
    let mut forms = BTreeMap::new();
    for record in records {
        *forms.entry(record.reply.as_ref()).or_insert(0) += 1;
    }
    forms
}

impl Moment {
    fn now(running: &Overloaded) -> Moment {
        let gateway = running.gateway.pid();
        let own = Usage::of(std::process::id()).micros();
        Moment {
            gateway: Usage::of(gateway),
            load: own + Usage::of(running.upstream.pid()).micros(),
            memory: peak_memory(gateway),
        }
    }
}

/// Returns the peak memory (RSS) of a process in bytes.
fn peak_memory(pid: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the gateway runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.unwrap_or(0.0) * 1024.0
}

fn percentile(sorted: &[Duration], share: f64) -> Duration {
    let at = (sorted.len() as f64 * share) as usize;
    sorted.get(at).copied().unwrap_or_default()
}
