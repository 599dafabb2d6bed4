//! Entry points for fuzz targets. Not public API: it changes without notice.

use crate::verify::record_line::RecordLine;

/// Returns whether the verifier accepts a line as the canonical JSON of one object.
pub fn is_canonical_line(line: &[u8]) -> bool {
    RecordLine::parse(line).is_ok()
}
