//! The page that tells of it.

use crate::{
    load::{self, Load},
    peer::Peer,
    wanted,
};
use std::{fs, io, path::Path, process::Command};

/// Results of one peer.
pub struct Row {
    /// The workload.
    pub load: &'static Load,
    /// The measured peer.
    pub peer: &'static Peer,
    /// Calls/s of each round.
    pub rates: Vec<f64>,
    /// Against bare, in each round.
    pub ratios: Vec<f64>,
    /// Of one call.
    pub instructions: Option<f64>,
    /// Of one call.
    pub system_calls: Option<f64>,
    /// Reason why the measurement was not completed.
    pub failed: Option<String>,
}

/// Size and start time of one peer.
pub struct Size {
    /// The measured peer.
    pub peer: &'static Peer,
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
            format!("{} | {}", kib(session), kib(stream))
        });
        format!("| {} | {cold} | {idle} |", self.peer.name)
    }
}

impl Row {
    /// With nothing measured yet.
    pub fn new(load: &'static Load, peer: &'static Peer) -> Row {
        Row {
            load,
            peer,
            rates: Vec::new(),
            ratios: Vec::new(),
            instructions: None,
            system_calls: None,
            failed: None,
        }
    }

    /// The median of calls/s against bare.
    pub fn ratio(&self) -> Option<f64> {
        spread(&self.ratios).map(|(_, mid, _)| mid)
    }

    /// The row of the table; the workload stands in the first of its rows.
    pub fn line(&self, first: bool) -> String {
        let workload = match first {
            true => format!("{}: `{}`", self.load.title, self.load.name),
            false => String::new(),
        };
        let ratio = match (&self.failed, spread(&self.ratios)) {
            (Some(why), None) => format!("failed: {why}"),
            (Some(why), Some((_, mid, _))) => format!("{mid:.2}, then failed: {why}"),
            (None, None) => "–".to_owned(),
            (None, Some((1.0, _, 1.0))) => "1".to_owned(),
            (None, Some((low, mid, high))) => format!("{mid:.2} ({low:.2} to {high:.2})"),
        };
        let or = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
        let mut line = format!(
            "| {workload} | {} | {} | {ratio} | {} |",
            self.peer.name,
            or(self.instructions.map(thousands)),
            or(spread(&self.rates).map(|(_, mid, _)| format!("{mid:.0}"))),
        );
        if !self.load.client {
            let calls = self.system_calls.map(|calls| format!("{calls:.2}"));
            line += &format!(" {} |", or(calls));
        }
        line
    }
}

/// The least, the median and the most.
fn spread(values: &[f64]) -> Option<(f64, f64, f64)> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let mid = *sorted.get(sorted.len() / 2)?;
    Some((sorted[0], mid, sorted[sorted.len() - 1]))
}

/// A large number, in short.
pub fn thousands(count: f64) -> String {
    match count {
        n if n >= 1e6 => format!("{:.2} M", n / 1e6),
        n => format!("{:.1} k", n / 1e3),
    }
}

/// A number of bytes in KiB.
pub fn kib(bytes: f64) -> String {
    format!("{:.1} KiB", bytes / 1024.0)
}

/// Markers of each section; `measure` writes the text between them.
const BEGIN: &str = ": written by `cargo xtask bench` -->\n";
const END: &str = "<!-- end of measured -->\n";

/// Puts the rows into the page.
pub fn write(path: &str, rows: &[Row], sizes: &[Size]) -> io::Result<()> {
    write_measured(path, "measured", &table(rows, sizes))
}

/// Replaces the text of a measured section of a page; `section` begins its first marker.
pub fn write_measured(path: &str, section: &str, text: &str) -> io::Result<()> {
    let page = fs::read_to_string(path)?;
    let begin = format!("<!-- {section}{BEGIN}");
    let (head, rest) = page.split_once(&begin).ok_or(io::ErrorKind::InvalidData)?;
    let (_, tail) = rest.split_once(END).ok_or(io::ErrorKind::InvalidData)?;
    fs::write(path, format!("{head}{begin}{text}{END}{tail}"))
}

/// The tables in turn, each under its words.
fn table(rows: &[Row], sizes: &[Size]) -> String {
    let mut text = occasion(&std::env::current_exe().unwrap_or_default());
    put(
        &mut text,
        "Goals for Toolgate. A measured share of the calls/s is the median of the rounds:",
        "| workload | goal | measured | |\n| --- | --- | --: | --- |",
        wanted::lines(rows, sizes),
    );
    put(
        &mut text,
        "Servers. To reproduce a figure, build in `bench/` with `cargo build --profile PROFILE`, and run `target/PROFILE/measure count NAME SERVER`. `NAME` is the code name after the colon in the first column. `count` measures instructions; write `system` for system calls, or `time` for calls/s.",
        "| workload | server | instructions a call | calls/s against bare: median (spread) | calls/s | system calls a call |\n| --- | --- | --: | --: | --: | --: |",
        lines(rows, false),
    );
    put(
        &mut text,
        "Clients. All of them use the bare server. To reproduce a figure, run `target/PROFILE/measure count NAME CLIENT`, or `time` in place of `count`.",
        "| workload | client | instructions a call | calls/s against bare: median (spread) | calls/s |\n| --- | --- | --: | --: | --: |",
        lines(rows, true),
    );
    put(
        &mut text,
        "Startup time of a server over stdio, and memory of an idle session and an idle stream over HTTP. To reproduce a figure, run `target/PROFILE/measure cold SERVER` or `target/PROFILE/measure idle SERVER`.",
        "| server | to the first list | to the first call | an idle session | an idle stream |\n| --- | --: | --: | --: | --: |",
        sizes.iter().map(Size::line).collect(),
    );
    text.push('\n');
    text
}

/// Says when, where and with which build of the measured program it was measured.
pub fn occasion(program: &Path) -> String {
    let folder = program.parent().and_then(|folder| folder.file_name());
    let profile = match folder.unwrap_or_default().to_string_lossy() {
        name if name == "pgo" => "`dist`, with profile-guided optimization".to_owned(),
        name => format!("`{name}`"),
    };
    format!(
        "\nMeasured {} on {}; profile {profile}.\n",
        said("date", &["-u", "+%F"]),
        machine(),
    )
}

/// The rows of servers, or of clients.
fn lines(rows: &[Row], client: bool) -> Vec<String> {
    let mut last = "";
    let those = rows.iter().filter(|row| row.load.client == client);
    let lines = those.map(|row| {
        let first = std::mem::replace(&mut last, row.load.name) != row.load.name;
        row.line(first)
    });
    lines.collect()
}

/// One table, where it has rows.
fn put(text: &mut String, words: &str, head: &str, rows: Vec<String>) {
    if !rows.is_empty() {
        *text += &format!("\n{words}\n\n{head}\n{}\n", rows.join("\n"));
    }
}

/// The kind of machine, no more.
fn machine() -> String {
    format!(
        "{} virtual cores ({}), {}, {}",
        load::cores().len(),
        processor(),
        said("uname", &["-sm"]),
        compiler()
    )
}

/// Returns the model of the processor.
fn processor() -> String {
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find(|line| line.starts_with("model name"));
    let model = model.and_then(|line| line.split(": ").nth(1));
    model.unwrap_or("processor unknown").to_owned()
}

/// Returns the version of the compiler.
pub fn compiler() -> String {
    said("rustc", &["--version"])
}

fn said(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output();
    output.map_or_else(
        |_| program.to_owned(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}
