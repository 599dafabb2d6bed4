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
    pub system_calls: Option<f64>,
}

/// What came out for one peer, apart from calls.
pub struct Size {
    /// Whose.
    pub peer: &'static str,
    /// Milliseconds to the first list, and to the first call.
    pub cold: Option<(f64, f64)>,
    /// Bytes of an idle session, and of an idle stream.
    pub idle: Option<(f64, f64)>,
}

impl Size {
    /// The row of the table.
    pub fn line(&self) -> String {
        let cold = self.cold.map_or("– | –".to_owned(), |(list, call)| {
            format!("{list:.2} ms | {call:.2} ms")
        });
        let idle = self.idle.map_or("– | –".to_owned(), |(session, stream)| {
            format!("{:.1} KiB | {:.1} KiB", session / 1024.0, stream / 1024.0)
        });
        format!("| {} | {cold} | {idle} |", self.peer)
    }
}

impl Row {
    /// The row of the table.
    pub fn line(&self) -> String {
        let clock = match self.rates.is_empty() {
            true => "– | –".to_owned(),
            false => {
                let (low, mid, high) = spread(&self.ratios);
                let rate = spread(&self.rates).1;
                format!("{mid:.2} ({low:.2} to {high:.2}) | {rate:.0}")
            }
        };
        let calls = self.system_calls;
        format!(
            "| {} | {} | {} | {clock} | {} |",
            self.load.title,
            self.peer,
            self.instructions.map_or("–".to_owned(), thousands),
            calls.map_or("–".to_owned(), |calls| format!("{calls:.2}")),
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
pub fn write(path: &str, rows: &[Row], sizes: &[Size]) -> io::Result<()> {
    let page = fs::read_to_string(path)?;
    let (head, rest) = page.split_once(BEGIN).ok_or(io::ErrorKind::InvalidData)?;
    let (_, tail) = rest.split_once(END).ok_or(io::ErrorKind::InvalidData)?;
    fs::write(
        path,
        format!("{head}{BEGIN}{}{END}{tail}", table(rows, sizes)),
    )
}

fn table(rows: &[Row], sizes: &[Size]) -> String {
    let mut text = format!(
        "\nMeasured {} on {}; profile `{}`.\n\n| workload | server | instructions a call | calls/s against bare: median (spread) | calls/s | system calls a call |\n| --- | --- | --: | --: | --: | --: |\n",
        said("date", &["-u", "+%F"]),
        machine(),
        profile(),
    );
    for row in rows {
        text.push_str(&row.line());
        text.push('\n');
    }
    text.push_str("\n| workload | wanted | command of its figures, in `bench/` after `cargo build --profile PROFILE` |\n| --- | --- | --- |\n");
    let mut told = Vec::new();
    for Row { load, .. } in rows {
        if !told.contains(&load.name) {
            told.push(load.name);
            let _ = writeln!(
                text,
                "| {} | {} | `target/PROFILE/measure count {name} toolgate`, `target/PROFILE/measure time {name} toolgate` |",
                load.title,
                load.target,
                name = load.name,
            );
        }
    }
    if !sizes.is_empty() {
        text.push_str("\nThe start of a server over stdio, and what waits over HTTP: `measure cold PEER`, `measure idle PEER`.\n\n| server | to the first list | to the first call | an idle session | an idle stream |\n| --- | --: | --: | --: | --: |\n");
        for size in sizes {
            text.push_str(&size.line());
            text.push('\n');
        }
    }
    text.push('\n');
    text
}

/// How this program was built, and so all of them.
fn profile() -> String {
    let here = std::env::current_exe().unwrap_or_default();
    let folder = here.parent().and_then(|folder| folder.file_name());
    folder.unwrap_or_default().to_string_lossy().into_owned()
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
