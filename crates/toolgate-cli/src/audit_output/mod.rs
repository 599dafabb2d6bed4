//! Audit records in the formats of other systems, and the result of a verification.

mod formats;
mod verify_output;

pub(crate) use formats::{number, text};
pub(crate) use verify_output::{
    DivergedCopyOutput, FleetVerifyOutput, LateCopyOutput, VerifyOutput,
};

use crate::args::ExportFormat;
use toolgate_journal::read::SegmentLine;

/// Formats a record, with the end of the line; empty if the format has no such records.
pub(crate) fn format_record(form: ExportFormat, line: &SegmentLine) -> String {
    let text = match form {
        ExportFormat::Jsonl => Some(line.raw.clone()),
        ExportFormat::Otlp => Some(formats::otlp(line)),
        ExportFormat::Ocsf => formats::ocsf(line),
        ExportFormat::Cef => formats::cef(line),
    };
    text.map(|text| format!("{text}\n")).unwrap_or_default()
}
