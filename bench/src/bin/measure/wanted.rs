//! Performance goals of our server, and whether it reaches them.

use crate::page::{Row, Size, kib, thousands};

/// One wish for a workload.
pub enum Wanted {
    /// Instructions a call, at most.
    Instructions(f64),
    /// Calls/s against bare, at least.
    Ratio(f64),
    /// System calls a call, at most.
    SystemCalls(f64),
    /// A tenth more instructions than in that workload, at most.
    Flat(&'static str),
    /// More instructions a call and layer than in that workload, at most.
    LayerInstructions(&'static str, f64),
}

/// The most that a start may take against bare, in time to the first list.
const COLD: f64 = 1.8;
/// Most memory of an idle session.
const IDLE_SESSION_BYTES: f64 = 1536.0;
/// Most memory that an idle stream takes in addition to one of bare.
const IDLE_STREAM_EXTRA_BYTES: f64 = 3072.0;

impl Wanted {
    fn words(&self) -> String {
        match self {
            Wanted::Instructions(most) => format!("{} instructions at most", thousands(*most)),
            Wanted::Ratio(least) => format!("{least:.2} of the calls/s of bare"),
            Wanted::SystemCalls(most) => format!("{most:.1} system calls at most"),
            Wanted::LayerInstructions(other, most) => {
                let most = thousands(*most);
                format!("{most} instructions a layer more than `{other}` at most")
            }
            Wanted::Flat(other) => format!("flat: 1.1 of the instructions of `{other}` at most"),
        }
    }

    /// Returns the measured value, and whether it reaches the goal.
    fn outcome(&self, row: &Row, rows: &[Row]) -> Option<(String, bool)> {
        match self {
            Wanted::Instructions(most) => {
                let count = row.instructions?;
                Some((thousands(count), count <= *most))
            }
            Wanted::Ratio(least) => {
                let ratio = row.ratio()?;
                Some((format!("{ratio:.2}"), ratio >= *least))
            }
            Wanted::SystemCalls(most) => {
                let calls = row.system_calls?;
                Some((format!("{calls:.2}"), calls <= *most))
            }
            Wanted::LayerInstructions(other, most) => {
                let more = row.instructions? - instructions(rows, other)?;
                let layer = more / row.load.layers as f64;
                Some((thousands(layer), layer <= *most))
            }
            Wanted::Flat(other) => {
                let other = instructions(rows, other)?;
                let growth = row.instructions? / other;
                Some((format!("{growth:.2}"), growth <= 1.1))
            }
        }
    }
}

/// The instructions a call of our server in a workload.
fn instructions(rows: &[Row], load: &str) -> Option<f64> {
    let named = |row: &&Row| row.load.name == load && row.peer.is_standard();
    rows.iter().find(named)?.instructions
}

/// The rows of the table, a row for each wish.
pub fn lines(rows: &[Row], sizes: &[Size]) -> Vec<String> {
    let ours = rows.iter().filter(|row| row.peer.is_standard());
    let wishes = ours.flat_map(|row| row.load.wanted.iter().map(move |wanted| (row, wanted)));
    let mut lines: Vec<String> = wishes
        .map(|(row, wanted)| {
            let role = if row.load.client { "client: " } else { "" };
            let title = format!("{role}{}", row.load.title);
            line(&title, &wanted.words(), wanted.outcome(row, rows))
        })
        .collect();
    let bare = sizes.iter().find(|size| size.peer.is_bare());
    for size in sizes.iter().filter(|size| size.peer.is_standard()) {
        let against = |bare: &Size| Some(size.cold?.0 / bare.cold?.0);
        let cold = bare.and_then(against);
        let outcome = cold.map(|cold| (format!("{cold:.2}"), cold <= COLD));
        let words = format!("{COLD} of the time of bare at most");
        lines.push(line("start to the first list", &words, outcome));
        let session = size
            .idle
            .map(|(session, _)| (kib(session), session <= IDLE_SESSION_BYTES));
        let words = format!("{} at most", kib(IDLE_SESSION_BYTES));
        lines.push(line("an idle session", &words, session));
        let stream = size.idle.zip(bare.and_then(|bare| bare.idle));
        let stream = stream
            .map(|((_, ours), (_, bare))| (kib(ours), ours - bare <= IDLE_STREAM_EXTRA_BYTES));
        let words = format!("{} more than bare at most", kib(IDLE_STREAM_EXTRA_BYTES));
        lines.push(line("an idle stream", &words, stream));
    }
    lines
}

fn line(title: &str, words: &str, outcome: Option<(String, bool)>) -> String {
    let (measured, met) = match outcome {
        None => ("–".to_owned(), "not measured"),
        Some((measured, true)) => (measured, "met"),
        Some((measured, false)) => (measured, "**missed**"),
    };
    format!("| {title} | {words} | {measured} | {met} |")
}
