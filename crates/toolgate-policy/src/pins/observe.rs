//! Observation of definitions: pins new ones and detects changes.

use super::{
    ChangedDefinitionAction, NewDefinitionAction, PinEvent, PinEventKind, Pins, canonical, diff,
    row::{AcceptedDefinition, ChangedDefinition, PinRow, now_unix_millis},
    table,
};
use std::sync::Arc;
use toolgate_core::{
    DefinitionPin, Error, ErrorKind, Item, Json, PinState, RefusalReason, ServerInstructions,
};
use toolgate_journal::{AuditEntry, AuditEvent};

/// An observed definition.
pub(super) struct ObservedDefinition {
    pub(super) key: Arc<str>,
    server: Arc<str>,
    identity: Arc<str>,
    kind: &'static str,
    name: String,
    digest: Arc<str>,
    form: DefinitionSource,
}

/// Cached key of an item in the pin table, and the server identity that it belongs to.
struct CachedPinKey {
    identity: Arc<str>,
    key: Arc<str>,
}

/// Source of the canonical form, which is computed when needed.
enum DefinitionSource {
    Item(Arc<Item>),
    Text(String),
}

/// Result of an observation.
pub(super) enum ObserveOutcome {
    /// The definition was known.
    Known,
    /// The pin was stored or updated.
    Stored,
}

/// Maximum length of a stored definition, in bytes. For longer ones only the digest is stored, so differences cannot be
/// shown.
const MAX_STORED_DEFINITION_BYTES: usize = 256 * 1024;
/// Maximum number of changes between two decisions. Further changes are not stored or reported.
const MAX_UNDECIDED_CHANGES: u64 = 16;

impl Pins {
    /// Returns the observed definition of an item.
    pub(super) fn observed_item(&self, item: &Arc<Item>) -> ObservedDefinition {
        let server = &item.origin.server;
        let identity = self.identity_of(server);
        ObservedDefinition {
            key: key(item, &identity),
            server: server.clone(),
            identity,
            kind: item.kind().as_str(),
            name: item.upstream_key(),
            digest: canonical::digest(item),
            form: DefinitionSource::Item(item.clone()),
        }
    }

    /// Returns the observed instructions of a server.
    pub(super) fn observed_instructions(&self, about: &ServerInstructions) -> ObservedDefinition {
        let server = about.server.clone().unwrap_or_else(|| self.only_server());
        let identity = self.identity_of(&server);
        let text = Json::from_value(&about.text.as_str().into())
            .as_str()
            .to_owned();
        ObservedDefinition {
            key: table::row_key(&server, &identity, INSTRUCTIONS, "").into(),
            server,
            identity,
            kind: INSTRUCTIONS,
            name: String::new(),
            digest: canonical::digest_of(&text),
            form: DefinitionSource::Text(text),
        }
    }

    /// Returns the reason why an item that was observed before is hidden now.
    pub(super) fn hidden_reason(&self, item: &Item, pin: &DefinitionPin) -> Option<String> {
        // An item that no server listed has no row: a resource that the caller reads by a link, for example.
        if pin.is_unlisted() {
            return None;
        }
        let server = &item.origin.server;
        let key = key(item, &self.identity_of(server));
        self.table
            .with_row(&key, |row| self.judge_row(row, &pin.digest, server).1)
    }

    /// Returns the state of a definition, and the reason if it is hidden. Writes nothing.
    pub(super) fn judge(&self, thing: &ObservedDefinition) -> (PinState, Option<String>) {
        self.table.with_row(&thing.key, |row| {
            self.judge_row(row, &thing.digest, &thing.server)
        })
    }

    pub(super) fn judge_row(
        &self,
        row: Option<Option<&PinRow>>,
        digest: &Arc<str>,
        server: &str,
    ) -> (PinState, Option<String>) {
        let row = match row {
            None => {
                return (
                    PinState::New,
                    Some("it is new and not pinned yet".to_owned()),
                );
            }
            Some(None) => {
                let why = "its pin is damaged and cannot be read; check its definition, then delete the pin with `toolgate pins forget`, after which the definition counts as new";
                return (PinState::Changed, Some(why.to_owned()));
            }
            Some(Some(row)) => row,
        };
        if row
            .accepted
            .as_ref()
            .is_some_and(|one| one.digest == *digest)
        {
            return (PinState::Accepted, None);
        }
        let other = row.other.as_ref().filter(|one| one.digest == *digest);
        let rejected = other.and_then(|one| one.rejected_by.as_ref());
        if let Some(by) = rejected {
            let state = state(row);
            return (state, Some(format!("its definition was rejected by {by}")));
        }
        let settle = format!(
            "review it with `toolgate pins diff {0}`, then accept or reject it",
            row.full_name()
        );
        match (state(row), self.on_change.of(server)) {
            (PinState::Changed, ChangedDefinitionAction::Warn) => (PinState::Changed, None),
            (PinState::New, _) => (
                PinState::New,
                Some(format!("it is new and not accepted yet; {settle}")),
            ),
            (state, _) => (
                state,
                Some(format!(
                    "its definition differs from the accepted one; {settle}"
                )),
            ),
        }
    }

    /// Observes a definition: stores it if it is new or changed, and reports it.
    pub(super) async fn observe(
        &self,
        thing: &ObservedDefinition,
    ) -> Result<ObserveOutcome, Error> {
        loop {
            let Some((row, news)) = self.next_row(thing)? else {
                return Ok(ObserveOutcome::Known);
            };
            if self.table.put(&thing.key, row.clone()).await? {
                self.report(thing, &row, news);
                return Ok(ObserveOutcome::Stored);
            }
        }
    }

    /// Returns the row to write and the news to report, or `None` if nothing changed.
    fn next_row(
        &self,
        thing: &ObservedDefinition,
    ) -> Result<Option<(PinRow, ObservationNews)>, Error> {
        let Some(known) = self.table.row(&thing.key) else {
            self.check_limit(thing)?;
            return Ok(Some(self.first_row(thing)));
        };
        let Some(row) = known else { return Ok(None) };
        let is = |digest: Option<&Arc<str>>| digest == Some(&thing.digest);
        if is(row.accepted.as_ref().map(|one| &one.digest)) {
            return Ok(row_after_return(row));
        }
        if is(row.other.as_ref().map(|one| &one.digest)) {
            return Ok(row_after_reappearance(row));
        }
        Ok((row.changes < MAX_UNDECIDED_CHANGES).then(|| self.changed_row(thing, row)))
    }

    fn check_limit(&self, thing: &ObservedDefinition) -> Result<(), Error> {
        let most = self.max_per_server;
        if self
            .table
            .count(&table::key_prefix(&thing.server, &thing.identity))
            < most
        {
            return Ok(());
        }
        let text = format!(
            "the server {} has {most} pinned definitions, which is the limit; raise pins_per_server in [limits], or delete the pins of items that are gone with `toolgate pins forget`",
            thing.server
        );
        Err(Error::new(
            ErrorKind::Refused(RefusalReason::AuditUnavailable),
            text,
        ))
    }

    fn first_row(&self, thing: &ObservedDefinition) -> (PinRow, ObservationNews) {
        let (server, identity) = (thing.server.clone(), thing.identity.clone());
        let mut row = PinRow::new(server, identity, thing.kind, &thing.name);
        match self.on_new.of(&thing.server) {
            NewDefinitionAction::Accept => row.accepted = Some(thing.accepted("first sight")),
            NewDefinitionAction::Ask => row.other = Some(thing.other()),
        }
        let waits = row.accepted.is_none();
        (row, ObservationNews::First { waits })
    }

    fn changed_row(
        &self,
        thing: &ObservedDefinition,
        mut row: PinRow,
    ) -> (PinRow, ObservationNews) {
        let Some(old) = row.accepted.clone() else {
            row.other = Some(thing.other());
            row.changes += 1;
            return (row, ObservationNews::None);
        };
        let places = match (&old.text, thing.text()) {
            (Some(old), Some(new)) => diff(old, &new).into_iter().map(|d| d.path).collect(),
            _ => Vec::new(),
        };
        let hidden = match self.on_change.of(&thing.server) {
            ChangedDefinitionAction::Allow => {
                row.accepted = Some(thing.accepted("setting"));
                row.other = None;
                return (
                    row,
                    ObservationNews::Changed {
                        places,
                        hidden: false,
                        was: old.digest,
                    },
                );
            }
            ChangedDefinitionAction::Hide => true,
            ChangedDefinitionAction::Warn => false,
        };
        row.other = Some(thing.other());
        row.changes += 1;
        (
            row,
            ObservationNews::Changed {
                places,
                hidden,
                was: old.digest,
            },
        )
    }

    fn report(&self, thing: &ObservedDefinition, row: &PinRow, news: ObservationNews) {
        let entry = |event| {
            AuditEntry::new(event)
                .with("server", &*thing.server)
                .with("name", row.full_name())
                .with("kind", thing.kind)
                .with("def", &*thing.digest)
        };
        let (what, hidden) = match news {
            ObservationNews::None => return,
            ObservationNews::Returned => {
                return self.recorder.note(entry(AuditEvent::TOOL_RETURNED));
            }
            ObservationNews::Reappeared { was } => {
                let hidden = self.judge(thing).1.is_some();
                let entry = entry(AuditEvent::TOOL_CHANGED).with("hidden", hidden);
                return self.recorder.note(entry.with("was", &*was));
            }
            ObservationNews::First { waits } => {
                self.recorder
                    .note(entry(AuditEvent::TOOL_PINNED).with("hidden", waits));
                (PinEventKind::New, waits)
            }
            ObservationNews::Changed {
                places,
                hidden,
                was,
            } => {
                let few: Vec<String> = places.iter().take(32).cloned().collect();
                let entry = entry(AuditEvent::TOOL_CHANGED).with("hidden", hidden);
                self.recorder
                    .note(entry.with("was", &*was).with("places", few));
                (PinEventKind::Changed(places), hidden)
            }
        };
        if hidden || matches!(what, PinEventKind::Changed(_)) {
            self.emit(PinEvent {
                server: thing.server.clone(),
                kind: thing.kind.to_owned(),
                name: row.full_name(),
                what,
                hidden,
            });
        }
    }

    /// Reports flags, each once.
    pub(super) fn report_flags(&self, item: &Item, pin: &DefinitionPin) {
        for flag in &pin.review_flags {
            let name = item.full_name();
            if !self.table.report_once(format!("{name}\n{flag}")) {
                continue;
            }
            let entry = AuditEntry::new("tool.flagged")
                .with("server", &*item.origin.server)
                .with("name", name.as_str())
                .with("kind", item.kind().as_str())
                .with("text", flag.as_str());
            self.recorder.note(entry);
            self.emit(PinEvent {
                server: item.origin.server.clone(),
                kind: item.kind().as_str().to_owned(),
                name,
                what: PinEventKind::Flag(flag.clone()),
                hidden: pin.hidden_reason.is_some(),
            });
        }
    }
}

/// Kind of pins of server instructions.
pub(super) const INSTRUCTIONS: &str = "instructions";

/// News of an observation.
enum ObservationNews {
    None,
    First {
        waits: bool,
    },
    /// The server offers the accepted definition again.
    Returned,
    /// The server offers a changed definition again that was reported before.
    Reappeared {
        was: Arc<str>,
    },
    Changed {
        places: Vec<String>,
        hidden: bool,
        was: Arc<str>,
    },
}

/// Returns the updated row if the server offers the accepted definition again.
fn row_after_return(mut row: PinRow) -> Option<(PinRow, ObservationNews)> {
    if row.changes >= MAX_UNDECIDED_CHANGES {
        return None;
    }
    let other = row.other.as_mut().filter(|other| !other.withdrawn)?;
    other.withdrawn = true;
    Some((row, ObservationNews::Returned))
}

/// Returns the updated row if the server offers the changed definition again, after the accepted one.
fn row_after_reappearance(mut row: PinRow) -> Option<(PinRow, ObservationNews)> {
    let was = row.accepted.as_ref()?.digest.clone();
    let other = row.other.as_mut().filter(|other| other.withdrawn)?;
    other.withdrawn = false;
    row.changes += 1;
    Some((row, ObservationNews::Reappeared { was }))
}

/// Returns the key of an item of a server with this identity.
fn key(item: &Item, identity: &Arc<str>) -> Arc<str> {
    let make = |item: &Item| {
        let (kind, name) = (item.kind().as_str(), item.upstream_key());
        Arc::<str>::from(table::row_key(&item.origin.server, identity, kind, &name))
    };
    let known = item.cached(|item| CachedPinKey {
        identity: identity.clone(),
        key: make(item),
    });
    // Other `Pins` may have another identity for the server.
    match known.identity == *identity {
        true => known.key.clone(),
        false => make(item),
    }
}

/// Returns the state of a definition that is not the accepted one.
fn state(row: &PinRow) -> PinState {
    match row.accepted {
        Some(_) => PinState::Changed,
        None => PinState::New,
    }
}

impl ObservedDefinition {
    /// Returns the canonical form if it is at most [`MAX_STORED_DEFINITION_BYTES`] bytes.
    fn text(&self) -> Option<String> {
        let text = match &self.form {
            DefinitionSource::Item(item) => canonical::text(item),
            DefinitionSource::Text(text) => text.clone(),
        };
        (text.len() <= MAX_STORED_DEFINITION_BYTES).then_some(text)
    }

    fn accepted(&self, by: &str) -> AcceptedDefinition {
        AcceptedDefinition {
            digest: self.digest.clone(),
            text: self.text(),
            accepted_by: by.to_owned(),
            accepted_at: now_unix_millis(),
        }
    }

    fn other(&self) -> ChangedDefinition {
        ChangedDefinition {
            digest: self.digest.clone(),
            text: self.text(),
            received_at: now_unix_millis(),
            rejected_by: None,
            withdrawn: false,
        }
    }
}
