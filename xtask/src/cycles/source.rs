//! Source text without comments, literals and test code.

/// Returns the text with its comments and literals blanked out, and without the items that only tests have.
pub(crate) fn without_tests(text: &str) -> String {
    let code = blank_out(text);
    let mut kept = String::new();
    let mut rest = code.as_str();
    while let Some(at) = rest.find("#[cfg(") {
        let condition = rest[at..].split(']').next().unwrap_or_default();
        let is_test = condition == "#[cfg(test)" || condition.starts_with("#[cfg(all(test");
        kept.push_str(&rest[..at]);
        rest = match is_test {
            true => after_item(&rest[at..]),
            false => {
                kept.push_str(&rest[at..at + 6]);
                &rest[at + 6..]
            }
        };
    }
    kept + rest
}

/// Returns the text after an item: after its block, or after its semicolon if that comes first.
fn after_item(text: &str) -> &str {
    let mut rest = text;
    while rest.starts_with("#[") {
        rest = after_block(rest, '[', ']').trim_start();
    }
    let semicolon = rest.find(';').map_or(rest.len(), |at| at + 1);
    let brace = rest.find('{');
    let is_import = rest[..brace.unwrap_or(semicolon).min(semicolon)].contains("use ");
    match brace {
        Some(brace) if brace < semicolon && !is_import => after_block(&rest[brace..], '{', '}'),
        _ => &rest[semicolon..],
    }
}

/// Returns the text after the first balanced pair of brackets.
fn after_block(text: &str, open: char, close: char) -> &str {
    let mut depth = 0usize;
    for (at, c) in text.char_indices() {
        if c == open {
            depth += 1;
        } else if c == close {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                return &text[at + c.len_utf8()..];
            }
        }
    }
    ""
}

/// Replaces comments and the contents of literals with nothing. Lifetimes stay.
fn blank_out(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = literal_length(
            rest,
            code.ends_with(|c: char| c.is_alphanumeric() || c == '_'),
        );
        if length > 0 {
            code.push(' ');
            rest = &rest[length..];
        } else {
            code.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    code
}

/// Returns the length of the comment or literal that a text begins with; 0 if it begins with neither.
fn literal_length(text: &str, in_word: bool) -> usize {
    let until = |end: &str, from: usize| {
        text[from..]
            .find(end)
            .map_or(text.len(), |at| from + at + end.len())
    };
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if text.starts_with("/*") {
        return until("*/", 2);
    }
    if text.starts_with('"') {
        return quoted_length(text, '"');
    }
    let is_raw = !in_word && (text.starts_with("r\"") || text.starts_with("r#"));
    if is_raw {
        let hashes = text[1..].chars().take_while(|c| *c == '#').count();
        if text[1 + hashes..].starts_with('"') {
            return until(&format!("\"{}", "#".repeat(hashes)), 2 + hashes);
        }
    }
    let mut chars = text.chars();
    match (chars.next(), chars.next(), chars.next()) {
        (Some('\''), Some('\\'), _) => quoted_length(text, '\''),
        (Some('\''), Some(c), Some('\'')) => 2 + c.len_utf8(),
        _ => 0,
    }
}

/// Returns the length of a literal with escapes, its quotes included.
fn quoted_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_out_items_of_tests() {
        let text = "#[cfg(test)]\nuse crate::{a};\nuse crate::b;\n#[cfg(test)]\n#[path = \"x/tests.rs\"]\nmod tests;\n\
                    #[cfg(test)]\nmod more {\n  fn f() { crate::c::g() }\n}\n#[cfg(unix)]\nuse crate::d;\n";
        let code = without_tests(text);
        let found = ["crate::{a", "crate::b", "mod tests", "crate::c", "crate::d"];
        assert_eq!(
            found.map(|part| code.contains(part)),
            [false, true, false, false, true],
            "{code}"
        );
    }

    #[test]
    fn leaves_out_comments_and_literals() {
        let text = "// crate::a\n/* crate::b */ \"crate::c \\\" crate::d\" r#\"crate::e \" crate::f\"# '\"' crate::g<'a> \"\"";
        let code = without_tests(text);
        assert!(code.contains("crate::g<'a>"), "{code}");
        assert_eq!(code.matches("crate::").count(), 1, "{code}");
    }
}
