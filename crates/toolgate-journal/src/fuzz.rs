//! Entry points for fuzz targets. Not public API: it changes without notice.

use crate::{state::line::StateChange, verify::record_line::RecordLine};

/// Returns whether the verifier accepts a line as the canonical JSON of one object.
pub fn is_canonical_line(line: &[u8]) -> bool {
    RecordLine::parse(line).is_ok()
}

/// Parses the line of a state file after giving it the right hash, so that input reaches the reader behind the check.
/// Returns the line that the parsed change is written as.
pub fn state_line(body: &[u8]) -> Option<String> {
    let change = StateChange::parse_line(&StateChange::with_hash(body))?;
    let mut out = String::new();
    change.append_line(&mut out);
    Some(out)
}
