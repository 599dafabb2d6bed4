//! What the record holds of arguments and results.

mod hidden;
mod output;
#[cfg(test)]
mod tests;

use crate::{ArgumentNames, ArgumentReads, PerServer, Recorder, Secrets};
use hidden::Hidden;
use toolgate_core::{Item, Json, Output};
use toolgate_journal::Entry;
use toolgate_wire::json::{Kind, ObjectWriter};

/// What stands in the place of an argument that no rule reads.
const UNREAD: &str = "[redacted:unread]";

/// What the record holds of a value.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Held {
    /// Its length and a keyed digest.
    #[default]
    Digest,
    /// These, and the value itself without what looks like a secret.
    Redacted,
    /// These, and of the arguments those that a rule reads in its condition, without what looks like a secret. Of each
    /// other argument, only its name is there. Of results, as [`Held::Digest`].
    RuleInputs,
}

/// What the record holds of arguments (`args_len`, `args_mac`, `args`) and of results (`res_len`, `res_mac`, `res`).
///
/// `args` and `res` are JSON as text, whole or `[omitted: N bytes]`. Secrets are taken out here, before an entry is
/// queued, and so are arguments that the tool's schema marks `writeOnly` or `format: password`; where a schema does not
/// tell which they are, `args` is left out. The digest is that of the value as it was, secrets and all.
#[derive(Clone, Debug)]
pub struct Contents {
    /// Of arguments, by server.
    pub arguments: PerServer<Held>,
    /// Of results, by server.
    pub results: PerServer<Held>,
    /// A longer text is omitted, in bytes.
    pub bytes: usize,
    /// Which arguments the rules read, for [`Held::RuleInputs`].
    pub reads: ArgumentReads,
}

impl Default for Contents {
    /// Digests; at most 16 KiB where they are to be held.
    fn default() -> Contents {
        Contents {
            arguments: PerServer::default(),
            results: PerServer::default(),
            bytes: 16 * 1024,
            reads: ArgumentReads::default(),
        }
    }
}

impl Contents {
    /// Adds arguments to an entry. Of a call whose item is not known, the digest only: nobody can tell what it hides.
    pub(crate) fn arguments(
        &self,
        recorder: &Recorder,
        entry: Entry,
        item: Option<&Item>,
        json: &Json,
    ) -> Entry {
        let bytes = json.as_str().as_bytes();
        let entry = entry.with("args_len", bytes.len());
        let entry = match recorder.mac(bytes) {
            Some(mac) => entry.with("args_mac", mac),
            None => entry,
        };
        let held = item.filter(|_| recorder.journal().is_some());
        match held.and_then(|item| self.held_arguments(item, json)) {
            Some(text) => entry.with("args", text),
            None => entry,
        }
    }

    fn held_arguments(&self, item: &Item, json: &Json) -> Option<String> {
        let names = match self.arguments.of(&item.origin.server) {
            Held::Digest => return None,
            Held::Redacted => ArgumentNames::All,
            Held::RuleInputs => self.reads.of(item),
        };
        if names.is_empty() {
            return None;
        }
        self.redacted(&only(json, &names), &Hidden::of(item))
    }

    /// Adds a result to an entry, as the caller gets it.
    pub(crate) fn result(
        &self,
        recorder: &Recorder,
        entry: Entry,
        item: Option<&Item>,
        output: &Output,
    ) -> Entry {
        let Some(journal) = recorder.journal() else {
            return entry.with("res_len", output.size());
        };
        let mut length = 0;
        let mac = journal.mac_of(|put| {
            output::pieces(output, &mut |piece| {
                length += piece.len();
                put(piece.as_bytes());
            });
        });
        let entry = entry.with("res_len", length).with("res_mac", mac);
        if item.is_none_or(|item| self.results.of(&item.origin.server) != Held::Redacted) {
            return entry;
        }
        let held = match length > self.bytes {
            true => Some(omitted(length)),
            false => output::json(output).and_then(|json| self.redacted(&json, &Hidden::default())),
        };
        match held {
            Some(text) => entry.with("res", text),
            None => entry,
        }
    }

    /// The text without secrets; `None` where nobody can tell what has to go.
    fn redacted(&self, json: &Json, hidden: &Hidden) -> Option<String> {
        let long = |json: &Json| json.as_str().len() > self.bytes;
        if long(json) {
            return Some(omitted(json.as_str().len()));
        }
        let clean = Secrets::redact_json(&hidden.redact(json)?);
        Some(match long(&clean) {
            true => omitted(json.as_str().len()),
            false => clean.as_str().to_owned(),
        })
    }
}

/// The arguments with the values of those alone that are named.
fn only(json: &Json, names: &ArgumentNames) -> Json {
    if *names == ArgumentNames::All || json.kind() != Kind::Object {
        return json.clone();
    }
    let mut object = ObjectWriter::new();
    for (name, value) in json.members() {
        match names.contains(&name) {
            true => object.raw(&name, &value),
            false => object.str(&name, UNREAD),
        }
    }
    object.finish()
}

/// As the journal says it of what does not fit in a record.
fn omitted(length: usize) -> String {
    toolgate_wire::placeholder::omitted(length)
}
