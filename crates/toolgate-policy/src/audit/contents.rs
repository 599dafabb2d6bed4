//! Arguments and results in audit records.

mod marked_arguments;
mod output;
#[cfg(test)]
mod tests;

use super::content_keys::{ContentKeys, NO_KEY_PLACEHOLDER, encrypted_field, is_omitted};
use crate::recorder::sanitized_text;
use crate::{ArgumentNames, ArgumentReads, AuditRecorder, PerServer, SecretRedactor};
use marked_arguments::MarkedArguments;
use std::sync::Arc;
use toolgate_core::{Caller, Item, Json, Output};
use toolgate_journal::AuditEntry;
use toolgate_protocol::json::{JsonKind, ObjectWriter};

/// Replacement for an argument that no rule reads.
const UNREAD_PLACEHOLDER: &str = "[redacted:unread]";

/// Form in which an audit record holds the arguments or the result of a call.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum AuditContentForm {
    /// Length and keyed digest (MAC) of the value only.
    #[default]
    Digest,
    /// Length, keyed digest (MAC) and the value itself, with secrets redacted.
    Redacted,
    /// Length, keyed digest (MAC), the arguments that rules read (with secrets redacted), and the names of the others.
    /// Results are held as [`AuditContentForm::Digest`].
    RuleInputs,
}

/// Form of call arguments (`args_len`, `args_mac`, `args`) and results (`res_len`, `res_mac`, `res`) in audit records.
///
/// `args` and `res` are JSON text, whole or `[omitted: N bytes]`. Secrets are redacted before a record is queued. So
/// are arguments that the tool's schema marks `writeOnly` or `format: password`; if the schema does not identify them,
/// `args` is left out. The digest covers the original value, including secrets.
///
/// ```
/// use toolgate_policy::{AuditContentForm, AuditContents, PerServer, Policy};
///
/// let mut contents = AuditContents::default();
/// contents.arguments = PerServer::all(AuditContentForm::Redacted);
/// contents.results = PerServer::all(AuditContentForm::Digest).with("bank", AuditContentForm::Redacted);
/// contents.max_bytes = 4 * 1024;
/// let mut policy = Policy::for_program();
/// policy.audit_contents = contents;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AuditContents {
    /// Form of call arguments in audit records, by server.
    pub arguments: PerServer<AuditContentForm>,
    /// Form of call results in audit records, by server.
    pub results: PerServer<AuditContentForm>,
    /// Maximum length of the arguments or result in an audit record, in bytes; longer text is omitted. Default: 16 KiB.
    pub max_bytes: usize,
    /// Names of the arguments that access rules read, for [`AuditContentForm::RuleInputs`].
    #[doc(hidden)]
    pub argument_reads: ArgumentReads,
    /// Keys that encrypt the contents; `None` records them as plain text.
    #[doc(hidden)]
    pub keys: Option<Arc<ContentKeys>>,
}

impl Default for AuditContents {
    /// Returns digests only, and a limit of 16 KiB for values.
    fn default() -> AuditContents {
        AuditContents {
            arguments: PerServer::default(),
            results: PerServer::default(),
            max_bytes: 16 * 1024,
            argument_reads: ArgumentReads::default(),
            keys: None,
        }
    }
}

impl AuditContents {
    /// Adds arguments to an audit record. Without a known item only the digest is added, as its schema is unknown.
    pub(crate) fn arguments(
        &self,
        recorder: &AuditRecorder,
        entry: AuditEntry,
        (caller, item): (&Caller, Option<&Item>),
        json: &Json,
    ) -> AuditEntry {
        let bytes = json.as_str().as_bytes();
        let entry = entry.with_number("args_len", bytes.len() as u64);
        let entry = match recorder.mac(bytes) {
            Some(mac) => entry.with_trusted_text("args_mac", &mac),
            None => entry,
        };
        let held = item.filter(|_| recorder.journal().is_some());
        match held.and_then(|item| self.recorded_arguments(item, json)) {
            Some(text) => self.with_content(entry, caller, "args", text),
            None => entry,
        }
    }

    /// Creates the keys for the arguments of a call, if its record has them and they are encrypted.
    pub(crate) async fn prepare_arguments(&self, caller: &Caller, item: Option<&Item>) {
        let Some((keys, item)) = self.keys.as_ref().zip(item) else {
            return;
        };
        if self.recorded_names(item).is_some() {
            keys.prepare(caller.name()).await;
        }
    }

    /// Creates the keys for the result of a call, if its record has it and it is encrypted.
    pub(crate) async fn prepare_result(&self, caller: &Caller, item: Option<&Item>) {
        if let Some((keys, item)) = self.keys.as_ref().zip(item)
            && self.results.of(&item.origin.server) == AuditContentForm::Redacted
        {
            keys.prepare(caller.name()).await;
        }
    }

    /// Adds a content to a record, encrypted if there are keys. Without the key of its caller, it is left out.
    fn with_content(
        &self,
        entry: AuditEntry,
        caller: &Caller,
        field: &'static str,
        text: String,
    ) -> AuditEntry {
        match &self.keys {
            Some(keys) if !is_omitted(&text) => {
                let text = sanitized_text(&text).unwrap_or(text);
                match keys.encrypt(caller.name(), field, &text) {
                    // Trusted, since random text may look like a secret.
                    Some(text) => entry.with_trusted_text(encrypted_field(field), &text),
                    None => entry.with(field, NO_KEY_PLACEHOLDER),
                }
            }
            _ => entry.with(field, text),
        }
    }

    /// Returns the names of the arguments that a record of this item has; `None` if it has no arguments.
    fn recorded_names(&self, item: &Item) -> Option<ArgumentNames> {
        let names = match self.arguments.of(&item.origin.server) {
            AuditContentForm::Digest => return None,
            AuditContentForm::Redacted => ArgumentNames::All,
            AuditContentForm::RuleInputs => self.argument_reads.of(item),
        };
        (!names.is_empty()).then_some(names)
    }

    fn recorded_arguments(&self, item: &Item, json: &Json) -> Option<String> {
        let names = self.recorded_names(item)?;
        self.redacted(&only_named(json, &names), &MarkedArguments::of(item))
    }

    /// Adds a result to an audit record, as the caller receives it.
    pub(crate) fn result(
        &self,
        recorder: &AuditRecorder,
        entry: AuditEntry,
        (caller, item): (&Caller, Option<&Item>),
        output: &Output,
    ) -> AuditEntry {
        let Some(journal) = recorder.journal() else {
            return entry.with_number("res_len", output.size() as u64);
        };
        let mut length = 0;
        let mac = journal.keyed_digest_of_parts(|put| {
            output::pieces(output, &mut |piece| {
                length += piece.len();
                put(piece.as_bytes());
            });
        });
        let entry = entry
            .with_number("res_len", length as u64)
            .with_trusted_text("res_mac", &mac);
        if item
            .is_none_or(|item| self.results.of(&item.origin.server) != AuditContentForm::Redacted)
        {
            return entry;
        }
        let held = match length > self.max_bytes {
            true => Some(omitted(length)),
            false => output::json(output)
                .and_then(|json| self.redacted(&json, &MarkedArguments::default())),
        };
        match held {
            Some(text) => self.with_content(entry, caller, "res", text),
            None => entry,
        }
    }

    /// Returns the text with secrets redacted; `None` if the schema does not identify them.
    fn redacted(&self, json: &Json, hidden: &MarkedArguments) -> Option<String> {
        let long = |json: &Json| json.as_str().len() > self.max_bytes;
        if long(json) {
            return Some(omitted(json.as_str().len()));
        }
        let clean = SecretRedactor::redact_json(&hidden.redact(json)?);
        Some(match long(&clean) {
            true => omitted(json.as_str().len()),
            false => clean.as_str().to_owned(),
        })
    }
}

/// Returns the arguments with secrets redacted, for an operator who did not ask to see them. `None` if the schema marks
/// something as secret that has no name.
#[doc(hidden)]
pub fn masked_arguments(item: &Item, json: &Json) -> Option<Json> {
    let marked = MarkedArguments::of(item).redact(json)?;
    Some(SecretRedactor::redact_json(&marked))
}

/// Returns the arguments, with the values of unnamed ones replaced.
fn only_named(json: &Json, names: &ArgumentNames) -> Json {
    if *names == ArgumentNames::All || json.kind() != JsonKind::Object {
        return json.clone();
    }
    let mut object = ObjectWriter::new();
    for (name, value) in json.members() {
        match names.contains(&name) {
            true => object.raw(&name, &value),
            false => object.str(&name, UNREAD_PLACEHOLDER),
        }
    }
    object.finish()
}

/// Returns the journal's placeholder for omitted text.
fn omitted(length: usize) -> String {
    toolgate_protocol::placeholder::omitted(length)
}
