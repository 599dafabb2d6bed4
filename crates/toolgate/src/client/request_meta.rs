//! Client `_meta` of stateless requests.

use super::negotiate::capabilities_json;
use std::sync::{Mutex, PoisonError};
use toolgate_core::ClientCapabilities;
use toolgate_protocol::{
    dialect::Dialect,
    json::{Json, ObjectWriter},
    method::{initialize::Implementation, meta},
};

/// Client `_meta` of stateless requests. Most requests declare the same capabilities, so the members are cached as JSON.
pub(super) struct ClientRequestMeta {
    client: Json,
    last: Mutex<Option<WrittenMeta>>,
}

/// The last written members, and what they were written for.
struct WrittenMeta {
    capabilities: ClientCapabilities,
    revision: &'static str,
    members: Json,
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
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |last: &&WrittenMeta| {
            last.capabilities == *abilities && last.revision == dialect.revision
        };
        if let Some(last) = last.as_ref().filter(same) {
            return m.raw_members(&last.members);
        }
        let members = self.members(dialect, abilities);
        m.raw_members(&members);
        *last = Some(WrittenMeta {
            capabilities: abilities.clone(),
            revision: dialect.revision,
            members,
        });
    }

    fn members(&self, dialect: &Dialect, abilities: &ClientCapabilities) -> Json {
        let mut o = ObjectWriter::new();
        o.str(meta::VERSION, dialect.revision);
        o.raw(meta::CLIENT, &self.client);
        o.raw(meta::CAPABILITIES, &capabilities_json(abilities));
        o.finish()
    }
}
