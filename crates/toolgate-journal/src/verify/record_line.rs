//! Line of a segment, read as a record in canonical form, so that one record has one spelling.

use toolgate_protocol::json::{Json, rfc8785};

/// Reason for which a line is not a canonical record.
pub(crate) use toolgate_protocol::json::rfc8785::JsonFlaw;

/// Record that fills a line.
pub(crate) struct RecordLine(Json);

impl RecordLine {
    /// Parses a line without its newline.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, JsonFlaw> {
        rfc8785::read_object(bytes).map(Self)
    }

    /// Returns the text of a field, if it is one.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.0.get(name)?.string()
    }

    /// Returns the number of a field, if it is one and not negative.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.0.get(name)?.as_str().parse().ok()
    }

    /// Returns the name of the last field.
    pub(super) fn last_name(&self) -> Option<String> {
        let last = self.0.view().members().last();
        last.map(|(name, _)| name.into_owned())
    }

    /// Returns the line without a field.
    pub(super) fn without(&self, name: &str) -> Json {
        self.0.without(name)
    }
}
