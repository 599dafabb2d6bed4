//! Tables of the gateway on the page.

use super::{GatewayRow, Timing, process};
use crate::page::{occasion, thousands, write_measured};
use std::io;

/// Columns of the table.
const HEAD: &str = "| workload | gateway | user µs | kernel µs | CPU against bare proxy | added p50, µs | calls/s | against bare proxy | context switches | instructions |\n| --- | --- | --: | --: | --: | --: | --: | --: | --: | --: |";

/// Puts the table into the page.
pub fn write(path: &str, rows: &[GatewayRow]) -> io::Result<()> {
    let of_load = |row: &GatewayRow| {
        let same = |other: &&GatewayRow| other.load.load.name == row.load.load.name;
        rows.iter().filter(same).collect::<Vec<_>>()
    };
    let lines: Vec<String> = rows.iter().map(|row| row.in_table(&of_load(row))).collect();
    write_measured(path, "measured", &table(HEAD, &lines))
}

/// Returns a table of the gateway, below when and with which program it was measured.
pub fn table(head: &str, lines: &[String]) -> String {
    let occasion = occasion(&process::program());
    format!("{occasion}\n{head}\n{}\n\n", lines.join("\n"))
}

impl GatewayRow {
    /// The line of this row; the others of its workload contain what it is compared with.
    pub fn line(&self, others: &[GatewayRow]) -> String {
        self.in_table(&others.iter().collect::<Vec<_>>())
    }

    fn in_table(&self, others: &[&GatewayRow]) -> String {
        let named = |name: &str| others.iter().find(|row| row.proxy.name == name);
        let of = |pick: fn(&Timing) -> f64| median(self.rounds.iter().flatten().map(pick));
        // Ratios and differences are taken within a round.
        let against = |name: &str, join: fn(&Timing, &Timing) -> f64| {
            let other = named(name)?;
            let pairs = self.rounds.iter().zip(&other.rounds);
            median(pairs.filter_map(|(own, other)| Some(join(own.as_ref()?, other.as_ref()?))))
        };
        let (bare, direct) = ("bare proxy", "direct");
        let or = |value: Option<f64>, digits: usize| {
            value.map_or("–".to_owned(), |value| format!("{value:.digits$}"))
        };
        let workload = match others.first() {
            Some(first) if first.proxy.name == self.proxy.name => {
                format!("{}: `{}`", self.load.load.title, self.load.load.name)
            }
            _ => String::new(),
        };
        let name = match &self.failed {
            Some(why) => format!("{} (failed: {why})", self.proxy.name),
            None => self.proxy.name.to_owned(),
        };
        format!(
            "| {workload} | {name} | {} | {} | {} | {} | {} | {} | {} | {} |",
            or(of(|t| t.usage.user / 1e3), 1),
            or(of(|t| t.usage.system / 1e3), 1),
            or(
                against(bare, |own, bare| own.usage.micros() / bare.usage.micros()),
                2
            ),
            or(against(direct, |own, direct| own.p50 - direct.p50), 0),
            or(of(|t| t.rate), 0),
            or(against(bare, |own, bare| own.rate / bare.rate), 2),
            or(of(|t| t.usage.switches), 1),
            self.instructions.map_or("–".to_owned(), thousands),
        )
    }
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
