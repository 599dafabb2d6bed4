//! Growth: the cost of a call with more servers, tools, rules, sessions, audit records or grants.

use super::{
    audit_log, grants,
    page::table,
    process,
    trial::{AUDIT, SERVER, Trial},
};
use crate::{
    apart,
    page::{thousands, write_measured},
};
use std::{fmt::Write as _, io, time::Duration};

/// The longest that one measurement may take; the start with a long audit log under callgrind takes most.
const MOST: Duration = Duration::from_secs(480);
/// Largest ratio of instructions that counts as flat.
const FLAT: f64 = 1.10;

/// Growth axis: a quantity that grows.
struct Axis {
    /// Name on the command line.
    name: &'static str,
    /// Name on the page.
    title: &'static str,
    sizes: &'static [usize],
    trial: fn(usize) -> Trial,
}

const AXES: [Axis; 6] = [
    Axis {
        name: "servers",
        title: "servers over HTTP; one of them is called",
        sizes: &[1, 10, 50],
        trial: servers,
    },
    Axis {
        name: "tools",
        title: "tools of the server",
        sizes: &[10, 1_000, 10_000],
        trial: |tools| Trial {
            tools,
            // A list of 10,000 tools has about 250,000 values.
            limits: "elements = 400000\nmemory_bytes = 1073741824\n".to_owned(),
            ..Trial::default()
        },
    },
    Axis {
        name: "rules",
        title: "rules with conditions; at most 5 match the call",
        sizes: &[1, 5, 100, 1_000],
        trial: rules,
    },
    Axis {
        name: "sessions",
        title: "sessions of 2025-11-25, used in turn",
        sizes: &[1, 100, 1_000],
        trial: |sessions| {
            let mut trial = Trial::default();
            trial.load.sessions = sessions;
            trial.load.counted = trial.load.counted.max(sessions as u64);
            trial.warm += sessions as u64;
            trial
        },
    },
    Axis {
        name: "records",
        title: "records in the audit log before the start (on a disk)",
        sizes: &[0, 100_000, 1_000_000],
        trial: |records| {
            let folder = process::new_folder(true);
            audit_log::prepare(records, &process::data(&folder));
            Trial {
                folder,
                ..Trial::default()
            }
        },
    },
    Axis {
        name: "grants",
        title: "grants; one of them approves the call",
        sizes: &[1, 100, 10_000],
        trial: grants::trial,
    },
];

/// One server is called; the others have lists, pins and rules like it.
fn servers(servers: usize) -> Trial {
    let mut sections = AUDIT.to_owned();
    for n in 1..servers {
        let _ = write!(sections, "[server.other-{n}]\nurl = \"SERVER_URL\"\n\n");
    }
    sections +=
        "[server.target]\nurl = \"SERVER_URL\"\n\n[[rule]]\ntools = [\"*\"]\naction = \"allow\"\n";
    let mut trial = Trial {
        sections,
        ..Trial::default()
    };
    trial.load.tool = "target_echo";
    trial
}

/// Rules that match the call.
const MATCHING: usize = 5;

/// Most rules are for other tools; at most five match the called tool and the caller.
fn rules(rules: usize) -> Trial {
    let mut sections = format!("{AUDIT}{SERVER}");
    let matching = rules.min(MATCHING);
    for n in 0..rules {
        let (tool, argument, action) = match n < rules - matching {
            true => (format!("tool_{n:05}"), "query", "deny"),
            false => ("echo".to_owned(), "text", "allow"),
        };
        let _ = write!(
            sections,
            "[[rule]]\ntools = [\"bare.{tool}\"]\ncallers = [\"anonymous@http\"]\nwhen = 'args.{argument} != \"{n}\"'\naction = \"{action}\"\n\n"
        );
    }
    Trial {
        sections,
        ..Trial::default()
    }
}

/// Results of one size of an axis.
pub struct GrowthRow {
    axis: &'static Axis,
    size: usize,
    instructions: Option<f64>,
    /// Bytes of resident memory.
    resident: Option<f64>,
    /// Milliseconds of the start.
    start: Option<f64>,
    failed: Option<String>,
}

/// Measures the axes whose name contains `only`.
pub fn rows(only: &str) -> Vec<GrowthRow> {
    let mut rows = Vec::new();
    for axis in AXES.iter().filter(|axis| axis.name.contains(only)) {
        eprintln!("growth: {}", axis.name);
        let of_axis: Vec<_> = axis
            .sizes
            .iter()
            .map(|size| GrowthRow::of(axis, *size))
            .collect();
        for row in &of_axis {
            println!("{}", row.line(&of_axis[0]));
        }
        rows.extend(of_axis);
    }
    rows
}

impl GrowthRow {
    fn of(axis: &'static Axis, size: usize) -> GrowthRow {
        let mut failed = None;
        let mut numbers = |what: &str| {
            let measured = apart::measure(&[what, axis.name, &size.to_string()], MOST);
            measured
                .inspect_err(|why| {
                    eprintln!("        {what} {} {size}: {why}", axis.name);
                    failed = Some(why.clone());
                })
                .unwrap_or_default()
        };
        let taken = numbers("gateway-growth-size");
        let counted = numbers("gateway-growth-count");
        GrowthRow {
            axis,
            size,
            instructions: counted.first().copied(),
            resident: taken.first().copied(),
            start: taken.get(1).copied(),
            failed,
        }
    }

    /// Instructions against the smallest size.
    fn ratio(&self, smallest: &GrowthRow) -> Option<f64> {
        Some(self.instructions? / smallest.instructions?)
    }

    fn line(&self, smallest: &GrowthRow) -> String {
        let first = self.size == smallest.size;
        let axis = match first {
            true => format!("{}: `{}`", self.axis.title, self.axis.name),
            false => String::new(),
        };
        let ratio = self.ratio(smallest);
        let verdict = match (&self.failed, ratio) {
            (Some(why), _) => format!("failed: {why}"),
            (None, Some(ratio)) if !first && ratio > FLAT => "**no**".to_owned(),
            (None, Some(_)) if !first => "yes".to_owned(),
            _ => String::new(),
        };
        let or = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
        format!(
            "| {axis} | {} | {} | {} | {verdict} | {} | {} |",
            grouped(self.size),
            or(self.instructions.map(thousands)),
            or(ratio.map(|ratio| format!("{ratio:.2}"))),
            or(self
                .resident
                .map(|bytes| format!("{:.1}", bytes / f64::from(1 << 20)))),
            or(self.start.map(|start| format!("{start:.0}"))),
        )
    }
}

/// A number with commas.
fn grouped(number: usize) -> String {
    match number {
        0..1_000 => number.to_string(),
        _ => format!("{},{:03}", grouped(number / 1_000), number % 1_000),
    }
}

/// Prints the instructions of a call.
pub fn count(axis: &str, size: &str) {
    let instructions = trial(axis, size).instructions();
    println!("{instructions:.0} instructions a call");
}

/// Prints the bytes of resident memory, and the milliseconds of the start.
pub fn size(axis: &str, size: &str) {
    let size = trial(axis, size).size();
    let start = size.start.as_secs_f64() * 1e3;
    println!("{:.0} bytes, started in {start:.1} ms", size.resident);
}

/// Returns a gateway of this size.
pub fn trial(axis: &str, size: &str) -> Trial {
    let found = AXES.iter().find(|known| known.name == axis);
    let axis = found.unwrap_or_else(|| panic!("an axis: {:?}", AXES.map(|axis| axis.name)));
    (axis.trial)(size.parse().expect("a size"))
}

/// Columns of the table.
const HEAD: &str = "| what grows | size | instructions | ratio | flat | memory, MiB | start, ms |\n| --- | --: | --: | --: | --- | --: | --: |";

/// Puts the table into the page.
pub fn write(path: &str, rows: &[GrowthRow]) -> io::Result<()> {
    let smallest = |row: &GrowthRow| rows.iter().find(|other| other.axis.name == row.axis.name);
    let lines = rows
        .iter()
        .map(|row| row.line(smallest(row).unwrap_or(row)));
    let lines: Vec<String> = lines.collect();
    write_measured(path, "measured growth", &table(HEAD, &lines))
}
