//! Review of pins: views for operators, and their decisions.

use super::{
    DefinitionDifference, Pins, diff,
    observe::INSTRUCTIONS,
    row::{AcceptedDefinition, PinRow, now_unix_millis},
    table,
};
use crate::Approver;
use std::{fmt, sync::Arc};
use toolgate_core::{Error, ItemKind, Json, PinState};
use toolgate_journal::AuditEntry;

/// View of the pin of an item definition, for the operator's review.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PinView {
    /// Configured id of the server that the pinned definition is from.
    pub server: Arc<str>,
    /// Kind of the pinned definition: `tool`, `resource`, `resource template`, `prompt` or `instructions`.
    pub kind: String,
    /// Full name of the pinned item, for example `server.tool`; `server.instructions` for the instructions of a server.
    pub name: String,
    /// State of the pin: new, accepted or changed. `New` and `Changed` pins await a decision unless they are rejected.
    pub state: PinState,
    /// Operator who rejected the new definition; `None` if it was not rejected.
    pub rejected_by: Option<String>,
    /// Time at which the item was first listed, in Unix milliseconds.
    pub first_seen: u64,
    /// Digest of the accepted definition; `None` if none was accepted.
    pub accepted_digest: Option<Arc<str>>,
    /// Origin of the definition's acceptance: `first sight`, `setting`, `console` or `terminal`.
    pub accepted_by: Option<String>,
    /// Time of the definition's acceptance, in Unix milliseconds.
    pub accepted_at: Option<u64>,
    /// Digest of the new or changed definition that awaits a decision.
    pub pending_digest: Option<Arc<str>>,
    /// Differences of the new definition from the accepted one; empty if there are none, or if a definition is too long
    /// to store.
    pub differences: Vec<DefinitionDifference>,
    /// New definition as canonical JSON, if no definition was accepted before.
    pub pending_text: Option<String>,
    /// True if the item's new or changed definition is hidden from callers.
    pub hidden: bool,
}

/// Stored definitions of a pinned item, accepted and pending, for any identity (command or address) of its server.
///
/// ```
/// use toolgate_policy::pins::{PinnedText, Pins, StoredPin};
///
/// /// Prints the accepted definitions, for a backup.
/// fn export(pins: &Pins) {
///     for StoredPin { name, accepted, .. } in pins.stored() {
///         if let Some(PinnedText { text: Some(text), .. }) = accepted {
///             println!("{name} {text}");
///         }
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct StoredPin {
    /// Configured id of the server that the stored definitions are from.
    pub server: Arc<str>,
    /// Kind of the pinned item.
    pub kind: ItemKind,
    /// Full name of the pinned item, for example `server.tool`.
    pub name: String,
    /// True if the server's identity (command or address) is still that under which the pin was stored.
    pub same_identity: bool,
    /// Definition of the item that was accepted; `None` if none was.
    pub accepted: Option<PinnedText>,
    /// Different definition of the item that the server listed since, which awaits a decision.
    pub pending: Option<PinnedText>,
}

/// Stored item definition of a pin, with the time at which it was stored.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PinnedText {
    /// Item definition as canonical JSON; `None` if it is too long to store.
    pub text: Option<String>,
    /// Time at which the item definition was stored, in Unix milliseconds.
    pub stored_at: u64,
}

/// Error of accepting, rejecting or forgetting a pinned item definition.
#[derive(Debug)]
#[non_exhaustive]
pub enum PinError {
    /// No pin (accepted or pending item definition) has this name.
    Unknown,
    /// The item definition needs no decision: the current one is already accepted.
    NothingToDecide,
    /// The item definition changed again since it was reviewed.
    ChangedSinceReview,
    /// The decision on the item definition could not be stored.
    NotStored(Error),
}

impl fmt::Display for PinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PinError::Unknown => f.write_str("no pin has that name; `toolgate pins list` shows all pins"),
            PinError::NothingToDecide => {
                f.write_str("there is nothing to decide: the current definition is already accepted")
            }
            PinError::ChangedSinceReview => {
                f.write_str("the definition changed after you reviewed it; review it again with `toolgate pins diff`")
            }
            PinError::NotStored(error) => f.write_str(error.public_message()),
        }
    }
}

impl std::error::Error for PinError {}

impl Pins {
    /// Returns views of all pins of the servers with their current identities, or of one server.
    pub fn views(&self, server: Option<&str>) -> Vec<PinView> {
        let rows = self.rows(server, |_| true);
        rows.iter().map(|(_, row)| self.view(row)).collect()
    }

    /// Returns views of the pins that await a decision, then of rejected ones, at most `max_pins` in total.
    pub fn awaiting_decision(&self, max_pins: usize) -> Vec<PinView> {
        let mut rows = self.rows(None, |row| row.pending_definition().is_some());
        rows.sort_by_key(|(_, row)| {
            row.other
                .as_ref()
                .is_some_and(|one| one.rejected_by.is_some())
        });
        let first = rows.iter().take(max_pins);
        first.map(|(_, row)| self.view(row)).collect()
    }

    /// Returns the stored item definitions of the configured servers by name, without `instructions`.
    pub fn stored(&self) -> Vec<StoredPin> {
        self.table.refresh_now();
        let mut ids: Vec<&String> = self.identities.keys().collect();
        ids.sort();
        let of = |id: &&String| self.table.rows(&format!("{id}/"), |_| true);
        let rows = ids.iter().flat_map(of);
        rows.filter_map(|(_, row)| self.stored_pin(&row)).collect()
    }

    /// Returns the last stored `instructions` of a server with its current identity, or `None`.
    #[doc(hidden)]
    pub fn stored_instructions(&self, server: &str) -> Option<String> {
        let is = |row: &PinRow| row.kind == INSTRUCTIONS;
        let (_, row) = self.rows(Some(server), is).into_iter().next()?;
        let last = row.pending_definition().map(|one| one.text.clone());
        let text = last.or_else(|| row.accepted.map(|one| one.text))??;
        let json = Json::read(text.into_bytes(), &Default::default()).ok()?;
        json.string()
    }

    fn stored_pin(&self, row: &PinRow) -> Option<StoredPin> {
        let kind = ItemKind::ALL.into_iter().find(|k| k.as_str() == row.kind)?;
        let text = |text: &Option<String>, at| PinnedText {
            text: text.clone(),
            stored_at: at,
        };
        Some(StoredPin {
            server: row.server.clone(),
            kind,
            name: row.full_name(),
            same_identity: row.identity == self.identity_of(&row.server),
            accepted: row
                .accepted
                .as_ref()
                .map(|one| text(&one.text, one.accepted_at)),
            pending: row
                .pending_definition()
                .map(|one| text(&one.text, one.received_at)),
        })
    }

    /// Returns views of the pins of an item name; a resource and a resource template may share one.
    pub fn find(&self, name: &str) -> Vec<PinView> {
        let rows = self.named(name);
        rows.iter().map(|(_, row)| self.view(row)).collect()
    }

    /// Accepts the new or changed item definition of a name, if it still has the reviewed digest. `digest` is the
    /// beginning (at least 8 digits) of the reviewed digest.
    ///
    /// # Errors
    /// [`PinError`]; nothing is accepted then.
    pub async fn accept(
        &self,
        name: &str,
        digest: Option<&str>,
        who: &Approver,
    ) -> Result<usize, PinError> {
        self.decide(name, digest, |row| accept(row, who), "accept", who)
            .await
    }

    /// Rejects the new or changed item definition of a name: hides it until it changes again. The accepted definition
    /// may still come back.
    ///
    /// # Errors
    /// [`PinError`]; the pin stays pending then.
    pub async fn reject(
        &self,
        name: &str,
        digest: Option<&str>,
        who: &Approver,
    ) -> Result<usize, PinError> {
        self.decide(name, digest, |row| reject(row, who), "reject", who)
            .await
    }

    /// Accepts all new and changed item definitions of a server, except rejected ones. Returns their number.
    ///
    /// # Errors
    /// [`PinError`]; some pins may be accepted already.
    pub async fn accept_all(&self, server: &str, who: &Approver) -> Result<usize, PinError> {
        if !self.identities.contains_key(server) {
            return Err(PinError::Unknown);
        }
        let waits = |row: &PinRow| {
            row.pending_definition()
                .is_some_and(|other| other.rejected_by.is_none())
        };
        let mut count = 0;
        for (key, row) in self.rows(Some(server), waits) {
            self.write(&key, row, |row| accept(row, who), "accept", who)
                .await?;
            count += 1;
        }
        self.table.notify_decision();
        Ok(count)
    }

    /// Deletes the pins of an item name: the next definition under this name is new. Returns their number.
    ///
    /// # Errors
    /// [`PinError`]; earlier pins of the name may be deleted already.
    pub async fn forget(&self, name: &str, who: &Approver) -> Result<usize, PinError> {
        let mut rows = self.named(name);
        rows.extend(self.unreadable(name));
        if rows.is_empty() {
            return Err(PinError::Unknown);
        }
        for (key, row) in &rows {
            self.table.remove(key).await.map_err(PinError::NotStored)?;
            self.record(row, "forget", who);
        }
        self.table.notify_decision();
        Ok(rows.len())
    }

    async fn decide(
        &self,
        name: &str,
        digest: Option<&str>,
        change: impl Fn(&mut PinRow) -> bool + Copy,
        word: &'static str,
        who: &Approver,
    ) -> Result<usize, PinError> {
        let rows = self.named(name);
        if rows.is_empty() {
            return Err(PinError::Unknown);
        }
        let open: Vec<_> = rows
            .into_iter()
            .filter(|(_, row)| row.pending_definition().is_some())
            .collect();
        if open.is_empty() {
            return Err(PinError::NothingToDecide);
        }
        let meant = |row: &PinRow| match (digest, row.pending_definition()) {
            (Some(digest), Some(other)) => digest.len() >= 8 && other.digest.starts_with(digest),
            (None, _) => true,
            (Some(_), None) => false,
        };
        let open: Vec<_> = open.into_iter().filter(|(_, row)| meant(row)).collect();
        if open.is_empty() {
            return Err(PinError::ChangedSinceReview);
        }
        let count = open.len();
        for (key, row) in open {
            self.write(&key, row, change, word, who).await?;
        }
        self.table.notify_decision();
        Ok(count)
    }

    async fn write(
        &self,
        key: &str,
        mut row: PinRow,
        change: impl Fn(&mut PinRow) -> bool,
        word: &'static str,
        who: &Approver,
    ) -> Result<(), PinError> {
        if !change(&mut row) {
            return Err(PinError::NothingToDecide);
        }
        match self.table.put(key, row.clone()).await {
            Ok(true) => {
                self.record(&row, word, who);
                Ok(())
            }
            Ok(false) => Err(PinError::ChangedSinceReview),
            Err(error) => Err(PinError::NotStored(error)),
        }
    }

    fn record(&self, row: &PinRow, word: &'static str, who: &Approver) {
        let of = |one: Option<&Arc<str>>| one.map(|d| d.to_string()).unwrap_or_default();
        let def = match word {
            "reject" => of(row.other.as_ref().map(|one| &one.digest)),
            _ => of(row.accepted.as_ref().map(|one| &one.digest)),
        };
        let entry = AuditEntry::new("tool.settled")
            .with("server", &*row.server)
            .with("name", row.full_name())
            .with("kind", row.kind.as_str())
            .with("dec", word);
        self.recorder.note(who.add_to(entry).with("def", def));
    }

    fn rows(&self, server: Option<&str>, meant: impl Fn(&PinRow) -> bool) -> Vec<(String, PinRow)> {
        self.table.refresh_now();
        let mut ids: Vec<&String> = self.identities.keys().collect();
        ids.retain(|id| server.is_none_or(|server| server == id.as_str()));
        ids.sort();
        let prefix = |id: &str| table::key_prefix(id, &self.identity_of(id));
        let of = |id: &&String| self.table.rows(&prefix(id), &meant);
        ids.iter().flat_map(of).collect()
    }

    fn named(&self, name: &str) -> Vec<(String, PinRow)> {
        self.rows(name.split('.').next(), |row| row.full_name() == name)
    }

    /// The keys under which a row of that name cannot be read, each with an empty row that names it.
    fn unreadable(&self, name: &str) -> Vec<(String, PinRow)> {
        let Some((server, local)) = name.split_once('.') else {
            return Vec::new();
        };
        if !self.identities.contains_key(server) {
            return Vec::new();
        }
        let identity = self.identity_of(server);
        let kinds = ItemKind::ALL.into_iter().map(|kind| (kind.as_str(), local));
        let instructions = (local == INSTRUCTIONS).then_some((INSTRUCTIONS, ""));
        let keyed = kinds.chain(instructions).map(|(kind, local)| {
            let row = PinRow::new(server.into(), identity.clone(), kind, local);
            (table::row_key(server, &identity, kind, local), row)
        });
        let torn = |key: &str| matches!(self.table.row(key), Some(None));
        keyed.filter(|(key, _)| torn(key)).collect()
    }

    fn view(&self, row: &PinRow) -> PinView {
        let (old, new) = (row.accepted.as_ref(), row.pending_definition());
        let text = |text: Option<&String>| text.cloned();
        let both = old.as_ref().and_then(|one| text(one.text.as_ref()));
        let both = both.zip(new.as_ref().and_then(|one| text(one.text.as_ref())));
        PinView {
            server: row.server.clone(),
            kind: row.kind.clone(),
            name: row.full_name(),
            state: match (old, new) {
                (Some(_), None) => PinState::Accepted,
                (Some(_), Some(_)) => PinState::Changed,
                (None, _) => PinState::New,
            },
            rejected_by: new.as_ref().and_then(|one| one.rejected_by.clone()),
            first_seen: row.first_seen,
            accepted_digest: old.as_ref().map(|one| one.digest.clone()),
            accepted_by: old.as_ref().map(|one| one.accepted_by.clone()),
            accepted_at: old.as_ref().map(|one| one.accepted_at),
            pending_digest: new.as_ref().map(|one| one.digest.clone()),
            differences: both.map(|(old, new)| diff(&old, &new)).unwrap_or_default(),
            pending_text: match old {
                None => new.as_ref().and_then(|one| one.text.clone()),
                Some(_) => None,
            },
            hidden: new.as_ref().is_some_and(|one| {
                let known = Some(Some(row));
                self.judge_row(known, &one.digest, &row.server).1.is_some()
            }),
        }
    }
}

/// Returns the approver as a pin keeps it: the channel, with the name if it is known.
fn label(who: &Approver) -> String {
    match &who.name {
        Some(_) => who.to_string(),
        None => who.channel.as_str().to_owned(),
    }
}

fn accept(row: &mut PinRow, who: &Approver) -> bool {
    let Some(other) = row.other.take() else {
        return false;
    };
    row.accepted = Some(AcceptedDefinition {
        digest: other.digest,
        text: other.text,
        accepted_by: label(who),
        accepted_at: now_unix_millis(),
    });
    row.changes = 0;
    true
}

fn reject(row: &mut PinRow, who: &Approver) -> bool {
    let Some(other) = row.other.as_mut() else {
        return false;
    };
    other.rejected_by = Some(label(who));
    row.changes = 0;
    true
}
