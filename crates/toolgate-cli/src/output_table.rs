//! Tables of the commands, as wide as the terminal.

use crate::terminal;
use std::{fmt::Write, io};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Spaces between columns.
const COLUMN_GAP: usize = 2;
/// Minimum width of a column that is cut.
const MIN_CUT_WIDTH: usize = 16;
/// Minimum width of a column that is wrapped.
const MIN_WRAPPED_WIDTH: usize = 28;
/// Maximum width to which a column is padded outside of a terminal; a longer cell shifts the rest of its line.
const MAX_PADDED_WIDTH: usize = 48;
/// Indentation of the cells below the first one, if a row does not fit on a line.
const STACKED_INDENT: usize = 4;

/// Behavior of a column whose row is wider than the terminal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum TableColumn {
    /// Stays whole: an ID or a name that one types.
    Whole,
    /// Stays whole, and has the color of its state.
    State,
    /// Ends with an ellipsis.
    Cut,
    /// Continues on the next line, below its beginning.
    Wrap,
}

impl TableColumn {
    /// Returns the minimum width; `None` if the column stays whole.
    fn min_width(self) -> Option<usize> {
        match self {
            TableColumn::Whole | TableColumn::State => None,
            TableColumn::Cut => Some(MIN_CUT_WIDTH),
            TableColumn::Wrap => Some(MIN_WRAPPED_WIDTH),
        }
    }

    fn is_flexible(self) -> bool {
        self.min_width().is_some()
    }
}

/// Rows of cells, which must have no control characters except line feeds.
pub(crate) struct OutputTable {
    columns: &'static [TableColumn],
    min_widths: &'static [usize],
    rows: Vec<TableRow>,
}

enum TableRow {
    Cells(Vec<String>),
    Line(String),
}

impl OutputTable {
    pub(crate) fn new(columns: &'static [TableColumn]) -> OutputTable {
        OutputTable {
            columns,
            min_widths: &[],
            rows: Vec::new(),
        }
    }

    /// Sets minimum widths, for tables that are printed below each other.
    pub(crate) fn with_min_widths(self, min_widths: &'static [usize]) -> OutputTable {
        OutputTable { min_widths, ..self }
    }

    /// Adds a row with a cell for each column. Missing cells at its end are empty.
    pub(crate) fn add<const N: usize>(&mut self, cells: [impl Into<String>; N]) {
        self.rows
            .push(TableRow::Cells(cells.map(Into::into).to_vec()));
    }

    /// Adds a line of its own, which is wrapped and has no part in the widths of the columns.
    pub(crate) fn add_line(&mut self, text: String) {
        self.rows.push(TableRow::Line(text));
    }

    /// Returns the text for stdout: fitted to a terminal, and complete everywhere else.
    pub(crate) fn text(&self) -> String {
        let stdout = io::stdout();
        self.render(terminal::width(&stdout), terminal::wants_color(&stdout))
    }

    /// Returns the complete text without colors, for a file.
    pub(crate) fn plain_text(&self) -> String {
        self.render(None, false)
    }

    fn render(&self, width: Option<usize>, color: bool) -> String {
        let widths = match width {
            None => Some(
                self.natural_widths()
                    .map(|width| width.min(MAX_PADDED_WIDTH))
                    .collect(),
            ),
            Some(width) => self.fitted_widths(width),
        };
        let mut text = String::new();
        for row in &self.rows {
            let row = match row {
                TableRow::Cells(cells) => cells,
                TableRow::Line(line) => {
                    let lines = width.map_or(vec![line.clone()], |width| wrap(line, width));
                    lines
                        .iter()
                        .for_each(|line| text.push_str(&format!("{line}\n")));
                    continue;
                }
            };
            match &widths {
                Some(widths) => self.write_row(&mut text, row, widths, width.is_some(), color),
                None => self.write_stacked(&mut text, row, width.unwrap_or_default(), color),
            }
        }
        text
    }

    fn natural_widths(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.columns.len()).map(|n| {
            let cells = self.rows.iter().filter_map(move |row| match row {
                TableRow::Cells(cells) => cells.get(n),
                TableRow::Line(_) => None,
            });
            let least = self.min_widths.get(n).copied().unwrap_or(0);
            cells
                .map(|cell| cell_width(cell))
                .max()
                .unwrap_or(0)
                .max(least)
        })
    }

    /// Returns widths whose sum fits, or `None` if the columns that stay whole leave too little.
    fn fitted_widths(&self, width: usize) -> Option<Vec<usize>> {
        let mut widths: Vec<usize> = self.natural_widths().collect();
        loop {
            let used = widths.iter().filter(|width| **width > 0);
            let gaps = COLUMN_GAP * used.count().saturating_sub(1);
            let excess = (widths.iter().sum::<usize>() + gaps).saturating_sub(width);
            if excess == 0 {
                return Some(widths);
            }
            let columns = self.columns.iter().zip(&mut widths);
            let spare = columns.map(|(column, width)| {
                (
                    width.saturating_sub(column.min_width().unwrap_or(*width)),
                    width,
                )
            });
            let (spare, widest) = spare.max_by_key(|(spare, _)| *spare)?;
            if spare == 0 {
                return None;
            }
            *widest -= spare.min(excess.div_ceil(2));
        }
    }

    fn write_row(
        &self,
        text: &mut String,
        row: &[String],
        widths: &[usize],
        fits: bool,
        color: bool,
    ) {
        let mut cells = Vec::new();
        for ((cell, column), width) in row.iter().zip(self.columns).zip(widths) {
            cells.push(match column {
                TableColumn::Cut if fits => vec![cut(cell, *width)],
                TableColumn::Wrap if fits => wrap(cell, *width),
                _ => cell.split('\n').map(str::to_owned).collect(),
            });
        }
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        for n in 0..height {
            let mut line = String::new();
            let mut fill = 0;
            for ((lines, column), width) in cells.iter().zip(self.columns).zip(widths) {
                let cell = lines.get(n).map(String::as_str).unwrap_or_default();
                let used = cell.width();
                if used > 0 {
                    line.push_str(&" ".repeat(fill));
                    fill = 0;
                    line.push_str(&painted(cell, *column, color));
                }
                if *width > 0 {
                    fill += width.saturating_sub(used) + COLUMN_GAP;
                }
            }
            let _ = writeln!(text, "{line}");
        }
    }

    /// Writes the cells one after the other, on as many lines as they need.
    fn write_stacked(&self, text: &mut String, row: &[String], width: usize, color: bool) {
        let indent = " ".repeat(STACKED_INDENT);
        let (mut line, mut used) = (String::new(), 0);
        for (cell, column) in row.iter().zip(self.columns) {
            let parts = match column.is_flexible() && used + COLUMN_GAP + cell_width(cell) > width {
                true => wrap(cell, width.saturating_sub(STACKED_INDENT).max(1)),
                false => cell.split('\n').map(str::to_owned).collect(),
            };
            for (n, part) in parts.iter().filter(|part| !part.is_empty()).enumerate() {
                if used > 0 && (n > 0 || used + COLUMN_GAP + part.width() > width) {
                    let _ = writeln!(text, "{line}");
                    (line, used) = (indent.clone(), STACKED_INDENT);
                } else if used > 0 {
                    line.push_str(&" ".repeat(COLUMN_GAP));
                    used += COLUMN_GAP;
                }
                line.push_str(&painted(part, *column, color));
                used += part.width();
            }
        }
        let _ = writeln!(text, "{line}");
    }
}

fn cell_width(cell: &str) -> usize {
    cell.split('\n').map(str::width).max().unwrap_or(0)
}

/// Cuts a text to one line of a width.
fn cut(text: &str, width: usize) -> String {
    let line = text.replace('\n', " ");
    if line.width() <= width {
        return line;
    }
    let mut cut = String::new();
    let mut used = 1;
    for c in line.chars() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        cut.push(c);
    }
    format!("{}…", cut.trim_end())
}

/// Breaks a text into lines of a width: between words, and inside a word that is longer than a line.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        let mut line = String::new();
        let mut used = 0;
        for word in paragraph.split_inclusive(' ') {
            let plain = word.trim_end_matches(' ').width();
            if used > 0 && used + plain > width {
                lines.push(std::mem::take(&mut line));
                used = 0;
            }
            for c in word.chars() {
                let wide = c.width().unwrap_or(0);
                if c == ' ' && used >= width {
                    continue;
                }
                if plain > width && used + wide > width {
                    lines.push(std::mem::take(&mut line));
                    used = 0;
                }
                line.push(c);
                used += wide;
            }
        }
        lines.push(line);
    }
    for line in &mut lines {
        line.truncate(line.trim_end().len());
    }
    lines
}

fn painted(cell: &str, column: TableColumn, color: bool) -> String {
    match state_color(cell).filter(|_| color && column == TableColumn::State) {
        Some(code) => format!("\u{1b}[{code}m{cell}\u{1b}[0m"),
        None => cell.to_owned(),
    }
}

/// Returns the color of a state: green is good, yellow waits or deserves attention, red is denied or failed.
fn state_color(state: &str) -> Option<u8> {
    Some(match state {
        "ok" | "allow" | "accepted" | "completed" | "connected" | "valid" | "running" => 32,
        "ask" | "waiting" | "warning" | "new" | "changed" | "working" | "input_required"
        | "starting" | "passed" | "cancelled" => 33,
        "deny" | "refuse" | "refused" | "hide" | "rejected" | "withheld" | "failed" | "problem"
        | "revoked" | "expired" | "unreadable" | "timeout" | "error" => 31,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
