//! What every request without a handshake says of us.

use super::open::capabilities;
use std::sync::{Mutex, PoisonError};
use toolgate_core::Abilities;
use toolgate_wire::{
    dialect::Dialect,
    json::{Json, ObjectWriter},
    method::{initialize::Implementation, meta},
};

/// What every request without a handshake says of us. Most requests say the same, so the last words are kept.
pub(super) struct Stamp {
    client: Json,
    last: Mutex<Option<(Abilities, Json)>>,
}

impl Stamp {
    /// Who we say we are.
    pub(super) fn of(client: &Implementation) -> Stamp {
        Stamp {
            client: client.json(),
            last: Mutex::default(),
        }
    }

    /// Writes it, with what may be asked of whom the request is for.
    pub(super) fn write(&self, m: &mut ObjectWriter, dialect: &Dialect, abilities: &Abilities) {
        m.str(meta::VERSION, dialect.revision);
        m.raw(meta::CLIENT, &self.client);
        m.raw(meta::CAPABILITIES, &self.declared(abilities));
    }

    fn declared(&self, abilities: &Abilities) -> Json {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, words)) = last.as_ref().filter(|(of, _)| of == abilities) {
            return words.clone();
        }
        let words = capabilities(abilities);
        *last = Some((abilities.clone(), words.clone()));
        words
    }
}
