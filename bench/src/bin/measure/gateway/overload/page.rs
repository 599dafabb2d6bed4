//! Tables of the overload on the page.

use super::{OverloadFigures, Refusal, Reply, StepFigures, WorkloadFigures};
use crate::{
    gateway::process,
    page::{occasion, write_measured},
};
use std::{io, time::Duration};

/// Columns of the steps.
const STEPS: &str = "| calls | offered against capacity | offered/s | sent/s | goodput/s | within 1 s | rejected/s | p50, ms | p99, ms | CPU of the gateway | CPU of load and server | peak memory, MiB |\n| --- | --: | --: | --: | --: | --: | --- | --: | --: | --: | --: | --: |";

/// Columns of the goals.
const GOALS: &str = "| calls | figure | measured | goal | |\n| --- | --- | --: | --: | --- |";

/// Goodput at the highest load, against the peak.
const GOODPUT: f64 = 0.9;

/// CPU time of a refusal, in microseconds.
const REFUSAL: f64 = 1e3;

/// Time until goodput and latency are normal.
const RECOVERY: Duration = Duration::from_secs(5);

/// Puts the tables into the page.
pub fn write(path: &str, figures: &OverloadFigures) -> io::Result<()> {
    let lines = |pick: fn(&WorkloadFigures) -> Vec<String>| {
        let lines = figures.workloads.iter().flat_map(pick);
        lines.collect::<Vec<_>>().join("\n")
    };
    let refusals: Vec<String> = figures.refusals.iter().map(Refusal::line).collect();
    let text = format!(
        "{}\n{STEPS}\n{}\n\n{GOALS}\n{}\n{}\n\n",
        occasion(&process::program()),
        lines(WorkloadFigures::steps),
        lines(WorkloadFigures::goals),
        refusals.join("\n"),
    );
    write_measured(path, "measured overload", &text)
}

impl WorkloadFigures {
    /// Lines of the steps.
    pub fn steps(&self) -> Vec<String> {
        let closed = format!(
            "| {}: `{}` | closed loop | – | {2:.0} | {2:.0} | {2:.0} | 0 | – | – | – | – | – |",
            self.workload.title, self.workload.name, self.capacity
        );
        let steps = self.steps.iter().map(StepFigures::line);
        std::iter::once(closed).chain(steps).collect()
    }

    /// Lines of the goals.
    pub fn goals(&self) -> Vec<String> {
        let rates = self.steps.iter().map(|step| step.goodput);
        let peak = rates.fold(self.capacity, f64::max);
        let by_load = |a: &&StepFigures, b: &&StepFigures| a.wanted.total_cmp(&b.wanted);
        let highest = self.steps.iter().max_by(by_load).expect("steps");
        let goodput = highest.goodput / peak;
        vec![
            goal(
                self.workload.title,
                &format!(
                    "goodput at {} times the capacity, against the peak",
                    highest.share
                ),
                format!("{:.0} %", goodput * 100.0),
                format!("{:.0} %", GOODPUT * 100.0),
                goodput >= GOODPUT,
            ),
            goal(
                self.workload.title,
                "time from the end of the overload until goodput and p99 are normal",
                self.recovery.map_or("more".to_owned(), |time| {
                    format!("{:.2} s", time.as_secs_f64())
                }),
                format!("{} s", RECOVERY.as_secs()),
                self.recovery.is_some_and(|time| time <= RECOVERY),
            ),
        ]
    }
}

impl Refusal {
    /// The line of the goal.
    pub fn line(&self) -> String {
        let figure = format!(
            "CPU time of a rejection by {} ({}, {:.0} rejections/s)",
            self.title, self.form, self.rate
        );
        let micros = self.usage.micros();
        goal(
            "all",
            &figure,
            format!("{micros:.0} µs"),
            format!("{REFUSAL:.0} µs"),
            micros <= REFUSAL,
        )
    }
}

fn goal(calls: &str, figure: &str, measured: String, goal: String, met: bool) -> String {
    let met = if met { "met" } else { "**missed**" };
    format!("| {calls} | {figure} | {measured} | {goal} | {met} |")
}

impl StepFigures {
    fn line(&self) -> String {
        let rejected = self.others.iter().map(|(reply, rate)| match reply {
            Reply::Other(form) => format!("{rate:.0} ({form})"),
            Reply::Closed => format!("{rate:.1} (connection closed)"),
            Reply::Missing => format!("{rate:.1} (no answer)"),
            Reply::Good => String::new(),
        });
        let rejected: Vec<String> = rejected.collect();
        let rejected = match rejected.is_empty() {
            true => "0".to_owned(),
            false => rejected.join(", "),
        };
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        format!(
            "|  | {} | {:.0} | {:.0} | {:.0} | {:.0} | {rejected} | {:.1} | {:.1} | {:.0} % | {:.0} % | {:.0} |",
            self.share,
            self.wanted,
            self.sent,
            self.goodput,
            self.in_time,
            ms(self.p50),
            ms(self.p99),
            self.gateway * 100.0,
            self.load * 100.0,
            self.memory / (1024.0 * 1024.0),
        )
    }
}
