//! Input responses that a call received in all its rounds.

use toolgate_core::{Call, Json};
use toolgate_protocol::json::{JsonLimits, ObjectWriter};

/// Slot that stores earlier responses for the next round. The edge seals it.
const RESPONSES_SLOT: &str = "handlers";

/// Responses so far, by the keys of their input requests.
#[derive(Clone, Debug, Default)]
pub(super) struct ReceivedResponses(Vec<(String, Json)>);

impl ReceivedResponses {
    /// Returns the responses of earlier rounds and of this one. A newer response replaces the one with the same key:
    /// the request was repeated because the earlier response was unusable.
    pub(super) fn collect(call: &Call) -> ReceivedResponses {
        let kept = call.round.slots.get(RESPONSES_SLOT);
        let kept =
            kept.and_then(|text| Json::read(text.as_bytes().to_vec(), &JsonLimits::default()).ok());
        let before = kept.iter().flat_map(Json::members);
        let mut all: Vec<(String, Json)> = before.map(|(k, v)| (k.into_owned(), v)).collect();
        for (key, answer) in &call.round.answers {
            all.retain(|(k, _)| k != key);
            all.push((key.clone(), answer.clone()));
        }
        ReceivedResponses(all)
    }

    pub(super) fn get(&self, key: &str) -> Option<&Json> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, v)| v)
    }

    /// Returns the slot for the next round, with the responses that were used.
    pub(super) fn to_slot(&self, used: &[String]) -> Option<(String, String)> {
        let mut o = ObjectWriter::new();
        let mut any = false;
        for (key, answer) in self.0.iter().filter(|(key, _)| used.contains(key)) {
            o.raw(key, answer);
            any = true;
        }
        any.then(|| (RESPONSES_SLOT.to_owned(), o.finish().as_str().to_owned()))
    }
}
