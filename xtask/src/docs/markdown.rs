//! Parts of a Markdown page that the checks need: prose, links, anchors, code spans and fenced code.

use std::collections::{BTreeMap, BTreeSet};

/// A fenced block of code.
pub(super) struct CodeFence {
    /// Line of the opening fence, from 1.
    pub(super) line: usize,
    /// Info string, such as `toml` or `sh agent`.
    pub(super) info: String,
    pub(super) body: String,
}

/// Returns the lines outside of fenced code, with their numbers from 1.
pub(super) fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut in_fence = false;
    let numbered = (1..).zip(text.lines());
    numbered
        .filter(|(_, line)| {
            let is_mark = line.trim_start().starts_with("```");
            in_fence ^= is_mark;
            !is_mark && !in_fence
        })
        .collect()
}

/// Returns the fenced blocks of code.
pub(super) fn code_fences(text: &str) -> Vec<CodeFence> {
    let mut fences = Vec::new();
    let mut open: Option<CodeFence> = None;
    for (number, line) in (1..).zip(text.lines()) {
        match (line.trim_start().strip_prefix("```"), open.take()) {
            (Some(info), None) => {
                open = Some(CodeFence {
                    line: number,
                    info: info.trim().to_owned(),
                    body: String::new(),
                });
            }
            (Some(_), Some(fence)) => fences.push(fence),
            (None, Some(mut fence)) => {
                fence.body.push_str(line);
                fence.body.push('\n');
                open = Some(fence);
            }
            (None, None) => {}
        }
    }
    fences
}

/// Returns the code spans of a line.
pub(super) fn code_spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Returns the targets of the inline links and images of a line.
pub(super) fn link_targets(line: &str) -> Vec<&str> {
    let mut targets = Vec::new();
    let mut offset = 0;
    while let Some(found) = line[offset..].find("](") {
        let begin = offset + found + 2;
        let end = line[begin..].find(')').map_or(line.len(), |at| begin + at);
        let in_code = line[..begin].matches('`').count() % 2 == 1;
        if !in_code {
            targets.push(&line[begin..end]);
        }
        offset = end;
    }
    targets
}

/// Returns the anchors of the headings, as repository pages and mdBook form them.
pub(super) fn heading_anchors(text: &str) -> BTreeSet<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let lines = prose(text).into_iter();
    let headings = lines.filter_map(|(_, line)| {
        let title = line.trim_start_matches('#');
        (title.len() < line.len()).then(|| title.strip_prefix(' '))?
    });
    headings
        .map(|title| {
            let anchor = anchor_of(title);
            let count = counts.entry(anchor.clone()).or_default();
            *count += 1;
            match *count {
                1 => anchor,
                count => format!("{anchor}-{}", count - 1),
            }
        })
        .collect()
}

fn anchor_of(title: &str) -> String {
    let mut visible = title.trim().to_owned();
    // Of a link, only the text counts.
    while let Some(begin) = visible.find("](") {
        let end = visible[begin..]
            .find(')')
            .map_or(visible.len(), |at| begin + at + 1);
        visible.replace_range(begin..end, "");
    }
    let kept = visible
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c })
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# One `two`\n\n```toml other\n# not a heading\n[a](b)\n```\n\n## Again, and again\n\n## Again, and again\n[c](d.md#e) `[f](g)` ![h](i.png)\n";

    #[test]
    fn finds_anchors_outside_of_code() {
        let anchors = heading_anchors(PAGE);
        let expected = ["again-and-again", "again-and-again-1", "one-two"];
        assert_eq!(Vec::from_iter(&anchors), expected);
    }

    #[test]
    fn finds_links_outside_of_code() {
        let lines = prose(PAGE).into_iter();
        let links: Vec<&str> = lines.flat_map(|(_, line)| link_targets(line)).collect();
        assert_eq!(links, ["d.md#e", "i.png"]);
    }

    #[test]
    fn finds_fenced_code_with_its_line() {
        let fences = code_fences(PAGE);
        let [fence] = fences.as_slice() else {
            panic!("one fence")
        };
        assert_eq!((fence.line, fence.info.as_str()), (3, "toml other"));
        assert_eq!(fence.body, "# not a heading\n[a](b)\n");
    }
}
