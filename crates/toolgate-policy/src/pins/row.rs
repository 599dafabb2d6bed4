//! Storage format of a pin.

use serde_json::{Map, Value, json};
use std::{sync::Arc, time::SystemTime};

/// The accepted definition.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AcceptedDefinition {
    pub(super) digest: Arc<str>,
    /// Canonical form; absent if it is too long to store.
    pub(super) text: Option<String>,
    /// `first sight`, `setting`, or the name of the operator.
    pub(super) accepted_by: String,
    /// Time of acceptance, in Unix milliseconds.
    pub(super) accepted_at: u64,
}

/// A different definition that the server sent under the same name.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ChangedDefinition {
    pub(super) digest: Arc<str>,
    pub(super) text: Option<String>,
    pub(super) received_at: u64,
    /// Operator who rejected it.
    pub(super) rejected_by: Option<String>,
    /// True if the server offers the accepted definition again. The other one stays stored: if it comes back, it is not
    /// reported again, and a rejection still applies.
    pub(super) withdrawn: bool,
}

/// A pin: an entry of the table `pins`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PinRow {
    pub(super) server: Arc<str>,
    /// Digest of the server's identity: its command or address.
    pub(super) identity: Arc<str>,
    /// `tool`, `resource`, `resource template`, `prompt` or `instructions`.
    pub(super) kind: String,
    /// The full name without the server.
    pub(super) name: String,
    /// Time of first sight, in Unix milliseconds.
    pub(super) first_seen: u64,
    pub(super) accepted: Option<AcceptedDefinition>,
    pub(super) other: Option<ChangedDefinition>,
    /// Number of changed definitions since the last decision.
    pub(super) changes: u64,
    /// Version of the stored entry, for conditional writes; 0 if it is not stored yet.
    pub(super) version: u64,
}

impl PinRow {
    /// A row with no definition yet, first seen now.
    pub(super) fn new(server: Arc<str>, identity: Arc<str>, kind: &str, name: &str) -> PinRow {
        PinRow {
            server,
            identity,
            kind: kind.to_owned(),
            name: name.to_owned(),
            first_seen: now_unix_millis(),
            accepted: None,
            other: None,
            changes: 0,
            version: 0,
        }
    }

    /// The other definition, unless the server went back to the accepted one.
    pub(super) fn pending_definition(&self) -> Option<&ChangedDefinition> {
        self.other.as_ref().filter(|other| !other.withdrawn)
    }

    pub(super) fn full_name(&self) -> String {
        match self.name.as_str() {
            "" => format!("{}.{}", self.server, self.kind),
            name => format!("{}.{name}", self.server),
        }
    }

    pub(super) fn to_value(&self) -> Value {
        let mut row = json!({
            "server": &*self.server, "identity": &*self.identity, "kind": self.kind, "name": self.name,
            "first": self.first_seen, "changes": self.changes,
        });
        if let Some(one) = &self.accepted {
            row["accepted"] = json!({"sha256": &*one.digest, "text": one.text, "by": one.accepted_by, "at": one.accepted_at});
        }
        if let Some(one) = &self.other {
            row["other"] = json!({"sha256": &*one.digest, "text": one.text, "at": one.received_at, "rejected": one.rejected_by});
            if one.withdrawn {
                row["other"]["withdrawn"] = true.into();
            }
        }
        row
    }

    /// Reads a row. Returns `None` if it is malformed; its definition stays hidden then.
    pub(super) fn read(value: &Value, version: u64) -> Option<PinRow> {
        let row = value.as_object()?;
        Some(PinRow {
            server: text(row, "server")?.into(),
            identity: text(row, "identity")?.into(),
            kind: text(row, "kind")?,
            name: text(row, "name")?,
            first_seen: row.get("first")?.as_u64()?,
            accepted: match row.get("accepted") {
                Some(one) => Some(accepted(one.as_object()?)?),
                None => None,
            },
            other: match row.get("other") {
                Some(one) => Some(other(one.as_object()?)?),
                None => None,
            },
            changes: row.get("changes")?.as_u64()?,
            version,
        })
    }
}

fn accepted(one: &Map<String, Value>) -> Option<AcceptedDefinition> {
    Some(AcceptedDefinition {
        digest: text(one, "sha256")?.into(),
        text: text(one, "text"),
        accepted_by: text(one, "by")?,
        accepted_at: one.get("at")?.as_u64()?,
    })
}

fn other(one: &Map<String, Value>) -> Option<ChangedDefinition> {
    Some(ChangedDefinition {
        digest: text(one, "sha256")?.into(),
        text: text(one, "text"),
        received_at: one.get("at")?.as_u64()?,
        rejected_by: text(one, "rejected"),
        withdrawn: one.get("withdrawn").and_then(Value::as_bool) == Some(true),
    })
}

fn text(of: &Map<String, Value>, key: &str) -> Option<String> {
    of.get(key)?.as_str().map(str::to_owned)
}

/// Returns the current time in Unix milliseconds.
pub(super) fn now_unix_millis() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_comes_back_as_it_was_and_what_is_none_is_none() {
        let row = PinRow {
            server: "s".into(),
            identity: "i".into(),
            kind: "tool".to_owned(),
            name: "t".to_owned(),
            first_seen: 7,
            accepted: Some(AcceptedDefinition {
                digest: "d".into(),
                text: None,
                accepted_by: "console".to_owned(),
                accepted_at: 8,
            }),
            other: Some(ChangedDefinition {
                digest: "e".into(),
                text: Some("{}".to_owned()),
                received_at: 9,
                rejected_by: Some("terminal".to_owned()),
                withdrawn: true,
            }),
            changes: 2,
            version: 3,
        };
        assert_eq!(PinRow::read(&row.to_value(), 3), Some(row.clone()));
        for key in ["server", "identity", "kind", "name", "first", "changes"] {
            let mut torn = row.to_value();
            torn.as_object_mut().unwrap().remove(key);
            assert_eq!(PinRow::read(&torn, 3), None, "{key}");
        }
        let mut torn = row.to_value();
        torn["accepted"]["sha256"] = json!(7);
        assert_eq!(PinRow::read(&torn, 3), None);
    }
}
