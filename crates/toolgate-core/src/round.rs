//! Rounds of a call that is repeated with the answers to its input requests.

use std::collections::BTreeMap;
use toolgate_protocol::json::Json;

/// State that layers keep between the rounds of a call, one slot a layer. The edge seals the slots before they leave
/// the process.
pub type RoundSlots = BTreeMap<String, String>;

/// Round of a repeated call: its number, the answers of the client, and the slots of the layers.
///
/// Specification: [multi round-trip requests](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Round {
    /// Number of earlier rounds of the call; 0 at first.
    pub number: u32,
    /// Answers of the client, by the key of their input request.
    pub answers: Vec<(String, Json)>,
    /// State that the pipeline's layers stored in earlier rounds of the call.
    pub slots: RoundSlots,
}

impl Round {
    /// Returns the client's answer to the input request with this key.
    pub fn answer(&self, key: &str) -> Option<&Json> {
        self.answers.iter().find(|(k, _)| k == key).map(|(_, v)| v)
    }
}
