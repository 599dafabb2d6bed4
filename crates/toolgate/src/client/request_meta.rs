//! Client `_meta` of stateless requests.

use super::negotiate::capabilities_json;
use std::sync::{Mutex, PoisonError};
use toolgate_core::ClientCapabilities;
use toolgate_protocol::{
    dialect::Dialect,
    json::{Json, ObjectWriter},
    method::{initialize::Implementation, meta},
};

/// Client `_meta` of stateless requests. Most requests declare the same capabilities, so the last ones are cached as
/// JSON.
pub(super) struct ClientRequestMeta {
    client: Json,
    last: Mutex<Option<(ClientCapabilities, Json)>>,
}

impl ClientRequestMeta {
    /// Returns the stamp of this client.
    pub(super) fn of(client: &Implementation) -> ClientRequestMeta {
        ClientRequestMeta {
            client: client.json(),
            last: Mutex::default(),
        }
    }

    /// Writes the `_meta`, with the capabilities of the caller that the request is for.
    pub(super) fn write(
        &self,
        m: &mut ObjectWriter,
        dialect: &Dialect,
        abilities: &ClientCapabilities,
    ) {
        m.str(meta::VERSION, dialect.revision);
        m.raw(meta::CLIENT, &self.client);
        m.raw(meta::CAPABILITIES, &self.declared(abilities));
    }

    fn declared(&self, abilities: &ClientCapabilities) -> Json {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, words)) = last.as_ref().filter(|(of, _)| of == abilities) {
            return words.clone();
        }
        let words = capabilities_json(abilities);
        *last = Some((abilities.clone(), words.clone()));
        words
    }
}
