//! A page of the documents as steps that can be run.
//!
//! Blocks fenced with `sh NAME` are typed in the terminal NAME, and `text NAME` is what it printed since. Further words:
//! `stays` does not end, `waits` ends later, `fails` ends with another exit code than 0, `again` is typed again until it
//! prints what is expected, and `installs` is not run here, since the project installs what it names.

/// One fenced block.
#[derive(Debug)]
pub(super) struct Step {
    /// The line of the page, for messages.
    pub(super) line: usize,
    /// Words after the fence, the language first.
    words: Vec<String>,
    /// Contents of the block.
    pub(super) text: String,
}

impl Step {
    /// All fenced blocks of a page, in order.
    pub(super) fn all(page: &str) -> Vec<Step> {
        let (mut steps, mut open) = (Vec::new(), None::<Step>);
        for (number, line) in page.lines().enumerate() {
            match (&mut open, line.strip_prefix("```")) {
                (None, Some(info)) => {
                    let words = info.split_whitespace().map(str::to_owned).collect();
                    open = Some(Step {
                        line: number + 1,
                        words,
                        text: String::new(),
                    });
                }
                (Some(_), Some(_)) => steps.extend(open.take()),
                (Some(step), None) => {
                    step.text.push_str(line);
                    step.text.push('\n');
                }
                (None, None) => {}
            }
        }
        assert!(open.is_none(), "a block of the page has no end: {open:?}");
        steps
    }

    /// Its language.
    pub(super) fn language(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    /// In which terminal, or `installs`.
    pub(super) fn place(&self) -> &str {
        let place = self.words.get(1);
        place.unwrap_or_else(|| panic!("line {}: a block without a terminal", self.line))
    }

    pub(super) fn is(&self, word: &str) -> bool {
        self.words.iter().skip(2).any(|one| one == word)
    }
}

/// Returns whether the output contains the lines in order. `…` is any run of characters, and alone on a line any lines.
pub(super) fn fits(expected: &str, printed: &str) -> bool {
    let expected: Vec<&str> = expected.lines().collect();
    let printed: Vec<&str> = printed.lines().collect();
    lines_fit(&expected, &printed)
}

fn lines_fit(expected: &[&str], printed: &[&str]) -> bool {
    match (expected.split_first(), printed.split_first()) {
        (None, left) => left.is_none(),
        (Some((&"…", rest)), None) => lines_fit(rest, printed),
        (Some((&"…", rest)), Some((_, later))) => {
            lines_fit(rest, printed) || lines_fit(expected, later)
        }
        (Some((line, rest)), Some((first, later))) => {
            line_fits(line, first.trim_end()) && lines_fit(rest, later)
        }
        (Some(_), None) => false,
    }
}

fn line_fits(expected: &str, printed: &str) -> bool {
    let mut parts = expected.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = printed.strip_prefix(first) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in middle {
        match rest.split_once(part) {
            Some((_, behind)) => rest = behind,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[test]
fn what_fits() {
    assert!(fits("a\nb\n", "a\nb\n"));
    assert!(!fits("a\n", "a\nb\n"));
    assert!(fits("a\n…\n", "a\nb\nc\n"));
    assert!(fits("…\nc\n", "a\nb\nc\n"));
    assert!(!fits("…\nc\n", "a\nc\nb\n"));
    assert!(fits("a … c\n", "a  b c\n"));
    assert!(fits("…oil…\n", "Buy oil.\n"));
    assert!(!fits("…oil\n", "Buy oil.\n"));
}
