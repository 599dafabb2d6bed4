//! Wraps untrusted text into rows of a fixed width.

use ratatui_core::{buffer::CellWidth, style::Style, text::Span};
use toolgate_core::visible_line;

/// Marks the first row of a line.
const FIRST_GUTTER: &str = "  ";
/// Marks the other rows of a line. Without a mark that the text cannot write itself, a long value padded with spaces
/// could pass for another argument.
const CONTINUED_GUTTER: &str = "+ ";

/// Part of a line that fits into a row, behind a gutter of two columns.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct WrappedRow {
    pub(super) text: String,
    /// Emphasis of the line.
    pub(super) is_bold: bool,
}

/// Wraps one line into rows of at most `width` columns, with the gutter. Characters that a terminal interprets or does
/// not show are escaped. Nothing is dropped.
pub(super) fn wrap_line(line: &str, width: u16, is_bold: bool, rows: &mut Vec<WrappedRow>) {
    let room = usize::from(width).saturating_sub(FIRST_GUTTER.len()).max(2);
    let mut text = FIRST_GUTTER.to_owned();
    let mut used = 0;
    for_each_symbol(&visible_line(line), |symbol, columns| {
        if used + columns > room {
            let text = std::mem::replace(&mut text, CONTINUED_GUTTER.to_owned());
            rows.push(WrappedRow { text, is_bold });
            used = 0;
        }
        text.push_str(symbol);
        used += columns;
    });
    rows.push(WrappedRow { text, is_bold });
}

/// Cuts escaped text to a number of columns, with an ellipsis if it is longer.
pub(super) fn cut(text: &str, width: usize) -> String {
    let mut out = String::new();
    let (mut used, mut end) = (0, 0);
    for_each_symbol(text, |symbol, columns| {
        if used + columns < width {
            end = out.len() + symbol.len();
        }
        used += columns;
        out.push_str(symbol);
    });
    if used > width {
        out.truncate(end);
        out.push('…');
    }
    out
}

/// Returns the last columns of escaped text, for an input line whose end has the cursor.
pub(super) fn tail(text: &str, width: usize) -> String {
    let mut symbols = Vec::new();
    for_each_symbol(text, |symbol, columns| {
        symbols.push((symbol.to_owned(), columns));
    });
    let mut used = 0;
    let fits = |(_, columns): &&(String, usize)| {
        used += columns;
        used <= width
    };
    let kept = symbols.iter().rev().take_while(fits).count();
    let kept = symbols.split_off(symbols.len() - kept);
    kept.into_iter().map(|(symbol, _)| symbol).collect()
}

/// Returns the columns that escaped text takes.
pub(super) fn columns(text: &str) -> usize {
    let mut sum = 0;
    for_each_symbol(text, |_, columns| sum += columns);
    sum
}

/// Calls `each` with every character as a person sees it, and its columns. A character without columns of its own is
/// escaped, because the terminal would show nothing.
fn for_each_symbol(text: &str, mut each: impl FnMut(&str, usize)) {
    if text.is_ascii() {
        let bytes = 0..text.len();
        return bytes.for_each(|at| each(&text[at..=at], 1));
    }
    let span = Span::raw(text);
    for grapheme in span.styled_graphemes(Style::new()) {
        match usize::from(grapheme.symbol.cell_width()) {
            0 => {
                let escaped: String = grapheme.symbol.escape_unicode().to_string();
                (0..escaped.len()).for_each(|at| each(&escaped[at..=at], 1));
            }
            columns => each(grapheme.symbol, columns),
        }
    }
}
