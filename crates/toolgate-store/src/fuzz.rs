//! Entry points of the fuzz targets.

use crate::change::StoreChange;

/// Parses a line of a legacy state file after giving it the right hash, so that input reaches the reader behind the
/// check. Returns the line as it is written again.
pub fn state_line(body: &[u8]) -> Option<String> {
    let change = StoreChange::parse_line(&StoreChange::with_hash(body))?;
    let mut line = String::new();
    change.append_line(&mut line);
    Some(line)
}
