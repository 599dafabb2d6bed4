//! The page that tells of it.

use crate::load::{self, Load};
use std::{fmt::Write, fs, io, process::Command};

/// What came out for one peer.
pub struct Row {
    /// The workload.
    pub load: &'static Load,
    /// Whose.
    pub peer: &'static str,
    /// Calls/s of each round.
    pub rates: Vec<f64>,
    /// Against bare, in each round.
    pub ratios: Vec<f64>,
    /// Of one call.
    pub instructions: Option<f64>,
    /// Of one call.
    pub system_calls: f64,
}

impl Row {
    /// The row of the table.
    pub fn line(&self) -> String {
        let (low, mid, high) = spread(&self.ratios);
        format!(
            "| {} | {} | {} | {mid:.2} ({low:.2} to {high:.2}) | {:.0} | {:.2} |",
            self.load.title,
            self.peer,
            self.instructions.map_or("–".to_owned(), thousands),
            spread(&self.rates).1,
            self.system_calls,
        )
    }
}

/// The least, the median and the most.
fn spread(values: &[f64]) -> (f64, f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    (
        sorted[0],
        sorted[sorted.len() / 2],
        sorted[sorted.len() - 1],
    )
}

fn thousands(count: f64) -> String {
    match count {
        n if n >= 1e6 => format!("{:.2} M", n / 1e6),
        n => format!("{:.1} k", n / 1e3),
    }
}

/// What begins each section; `measure` writes all between the two.
const BEGIN: &str = "<!-- measured: written by `cargo xtask bench` -->\n";
const END: &str = "<!-- end of measured -->\n";

/// Puts the rows into the page; what stands around them stays.
pub fn write(path: &str, rows: &[Row]) -> io::Result<()> {
    let page = fs::read_to_string(path)?;
    let (head, rest) = page.split_once(BEGIN).ok_or(io::ErrorKind::InvalidData)?;
    let (_, tail) = rest.split_once(END).ok_or(io::ErrorKind::InvalidData)?;
    fs::write(path, format!("{head}{BEGIN}{}{END}{tail}", table(rows)))
}

fn table(rows: &[Row]) -> String {
    let mut text = format!(
        "\nMeasured {} on {}.\n\n| workload | server | instructions a call | calls/s against bare: median (spread) | calls/s | system calls a call |\n| --- | --- | --: | --: | --: | --: |\n",
        said("date", &["-u", "+%F"]),
        machine(),
    );
    for row in rows {
        text.push_str(&row.line());
        text.push('\n');
    }
    text.push_str("\n| workload | wanted | command of its figures, in `bench/` after `cargo build --release` |\n| --- | --- | --- |\n");
    let mut told = Vec::new();
    for Row { load, .. } in rows {
        if !told.contains(&load.name) {
            told.push(load.name);
            let _ = writeln!(
                text,
                "| {} | {} | `target/release/measure count {name} toolgate`, `target/release/measure time {name} toolgate` |",
                load.title,
                load.target,
                name = load.name,
            );
        }
    }
    text.push('\n');
    text
}

/// The kind of machine, no more.
fn machine() -> String {
    let cores = load::cores().len();
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find(|line| line.starts_with("model name"));
    let model = model
        .and_then(|line| line.split(": ").nth(1))
        .unwrap_or("processor unknown");
    format!(
        "{cores} virtual cores ({model}), {}, {}",
        said("uname", &["-sm"]),
        said("rustc", &["--version"])
    )
}

fn said(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output();
    output.map_or_else(
        |_| program.to_owned(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}
