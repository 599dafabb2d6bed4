//! Files with environment variables that an entry names (`envFile`): `NAME=value` on each line.

use super::host_text::HostText;
use crate::config::check_env_name;
use std::{io::Read, path::Path};

/// Maximum size of a file with environment variables in bytes.
const MAX_ENV_FILE_BYTES: u64 = 1 << 20;

/// Reads the variables of a file.
///
/// # Errors
/// The file cannot be read.
pub(super) fn read_env_file(path: &Path) -> Result<Vec<(String, HostText)>, String> {
    let unreadable = |error| format!("{}: {error}", path.display());
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut text = String::new();
    file.take(MAX_ENV_FILE_BYTES)
        .read_to_string(&mut text)
        .map_err(unreadable)?;
    Ok(text.lines().filter_map(variable).collect())
}

/// Returns the variable of a line. Comments and lines in another form have none.
fn variable(line: &str) -> Option<(String, HostText)> {
    let line = line.trim();
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (name, value) = line.split_once('=')?;
    let name = name.trim_end();
    check_env_name(name).ok()?;
    Some((name.to_owned(), HostText::literal(unquoted(value.trim()))))
}

fn unquoted(value: &str) -> &str {
    for quote in ['"', '\''] {
        let rest = value.strip_prefix(quote);
        if let Some(inner) = rest.and_then(|rest| rest.strip_suffix(quote)) {
            return inner;
        }
    }
    // A comment may follow a value without quotes.
    value.split(" #").next().unwrap_or_default().trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_an_env_file() {
        for (line, expected) in [
            ("A=b", Some(("A", "b"))),
            (" export A = \"b # c\" ", Some(("A", "b # c"))),
            ("A='${B}'", Some(("A", "${B}"))),
            ("A=b # c", Some(("A", "b"))),
            ("A=", Some(("A", ""))),
            ("# A=b", None),
            ("A B=c", None),
            ("", None),
        ] {
            let expected =
                expected.map(|(name, value)| (name.to_owned(), HostText::literal(value)));
            assert_eq!(variable(line), expected, "{line:?}");
        }
    }
}
