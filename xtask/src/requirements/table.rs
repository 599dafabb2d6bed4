//! The tables of `docs/requirements.md`.

use super::holds::{self, Found};
use std::collections::BTreeMap;

/// The file: rows, and all other lines as they are.
pub(crate) struct Table(Vec<Line>);

enum Line {
    Other(String),
    Row(Row),
}

/// One row.
pub(crate) struct Row {
    pub(crate) id: String,
    /// Who, revisions, fact.
    about: Vec<String>,
    pub(crate) state: State,
    pub(crate) tests: Vec<String>,
}

/// How far it is.
#[derive(Debug, PartialEq)]
pub(crate) enum State {
    Done,
    /// Which work will do it.
    Open(String),
    /// Why not.
    NotApplicable(String),
}

impl State {
    fn read(text: &str) -> Option<State> {
        if text == "done" {
            return Some(State::Done);
        }
        let (word, more) = text.split_once(": ")?;
        match word {
            "open" => Some(State::Open(more.to_owned())),
            "n/a" => Some(State::NotApplicable(more.to_owned())),
            _ => None,
        }
    }

    fn text(&self) -> String {
        match self {
            State::Done => "done".to_owned(),
            State::Open(work) => format!("open: {work}"),
            State::NotApplicable(why) => format!("n/a: {why}"),
        }
    }
}

impl Table {
    /// Reads the file.
    ///
    /// # Errors
    /// The first row that cannot be read.
    pub(crate) fn read(text: &str) -> Result<Table, String> {
        text.lines().enumerate().map(|(at, line)| {
            line_of(line).ok_or_else(|| format!("line {}: a row has six columns, and its state is done, \"open: WORK\" or \"n/a: REASON\"", at + 1))
        }).collect::<Result<_, _>>().map(Table)
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.0.iter().filter_map(|line| match line {
            Line::Row(row) => Some(row),
            Line::Other(_) => None,
        })
    }

    /// Puts the tests that were found into the last column; scenarios of the suite stay.
    pub(crate) fn fill(&mut self, found: &Found) {
        for line in &mut self.0 {
            if let Line::Row(row) = line {
                row.tests.retain(|test| test.starts_with("suite: "));
                row.tests.extend(found.of(&row.id).iter().cloned());
                row.tests.dedup();
            }
        }
    }

    pub(crate) fn text(&self) -> String {
        let line = |line: &Line| match line {
            Line::Other(text) => format!("{text}\n"),
            Line::Row(row) => format!(
                "| {} | {} | {} | {} |\n",
                row.id,
                row.about.join(" | "),
                row.state.text(),
                row.tests.join(", ")
            )
            .replace("|  |", "|  |"),
        };
        self.0.iter().map(line).collect()
    }

    /// How many rows are how far.
    pub(crate) fn count(&self) -> String {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for row in self.rows() {
            let word = match &row.state {
                State::Done => "done",
                State::Open(_) => "open",
                State::NotApplicable(_) => "not applicable",
            };
            *counts.entry(word).or_default() += 1;
        }
        let words: Vec<String> = counts
            .iter()
            .map(|(word, n)| format!("{n} {word}"))
            .collect();
        words.join(", ")
    }
}

fn line_of(line: &str) -> Option<Line> {
    let inner = line.strip_prefix("| ").and_then(|l| l.strip_suffix('|'));
    let cells: Vec<&str> = inner
        .map(|l| l.split('|').map(str::trim).collect())
        .unwrap_or_default();
    if !cells.first().is_some_and(|id| holds::is_id(id)) {
        return Some(Line::Other(line.to_owned()));
    }
    let [id, who, revisions, fact, state, tests] = cells.as_slice() else {
        return None;
    };
    let tests = tests.split(", ").filter(|t| !t.is_empty());
    Some(Line::Row(Row {
        id: (*id).to_owned(),
        about: [who, revisions, fact].map(|c| (*c).to_owned()).to_vec(),
        state: State::read(state)?,
        tests: tests.map(str::to_owned).collect(),
    }))
}
