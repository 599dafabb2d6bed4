//! Notes on definitions of servers: announced once in the event log and in the audit log, and shown on request.

use super::OperatorApi;
use crate::event_log::{self, GatewayEvent};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use toolgate_core::{DefinitionNote, ItemKind, ItemNote, NoteAction, visible_line};
use toolgate_journal::{AuditEntry, AuditEvent};
use toolgate_policy::sanitize_entry;

/// Maximum number of notes on one server that are announced while the gateway runs. Later ones are only shown on
/// request.
const MAX_ANNOUNCED_PER_SERVER: usize = 1000;
/// Maximum number of notes on one server that the console and the command line show.
const MAX_SHOWN_PER_SERVER: usize = 500;
/// Maximum number of names in one line of the event log.
const MAX_NAMES_PER_LINE: usize = 5;

/// Current notes, and those that were announced.
#[derive(Default)]
pub(crate) struct DefinitionNotes {
    current: Mutex<Vec<DefinitionNote>>,
    announced: Mutex<AnnouncedNotes>,
}

#[derive(Default)]
struct AnnouncedNotes {
    notes: HashSet<DefinitionNote>,
    /// Number of announced notes of each server.
    counts: HashMap<Arc<str>, usize>,
    /// Printed reasons: each is printed once per server.
    printed: HashSet<(Arc<str>, ItemNote)>,
}

impl DefinitionNotes {
    /// Replaces the current notes, and returns those that were not announced before.
    fn replace(&self, notes: Vec<DefinitionNote>) -> Vec<DefinitionNote> {
        let mut announced = lock(&self.announced);
        let mut fresh = Vec::new();
        for note in &notes {
            let count = announced.counts.get(&note.server).copied();
            let full = count.unwrap_or_default() >= MAX_ANNOUNCED_PER_SERVER;
            if !full && announced.notes.insert(note.clone()) {
                *announced.counts.entry(note.server.clone()).or_default() += 1;
                fresh.push(note.clone());
            }
        }
        *lock(&self.current) = notes;
        fresh
    }

    /// Formats new notes for stderr, without reasons that were printed before.
    fn lines(&self, fresh: &[DefinitionNote]) -> Vec<String> {
        let mut announced = lock(&self.announced);
        let reason = |note: &DefinitionNote| (note.server.clone(), note.note.clone());
        let new = fresh
            .iter()
            .filter(|note| !announced.printed.contains(&reason(note)));
        let lines = lines(new);
        announced.printed.extend(fresh.iter().map(reason));
        lines
    }

    /// Returns the notes on one server as JSON.
    pub(super) fn of_server(&self, server: &str) -> Value {
        let now = lock(&self.current);
        let of = now.iter().filter(|note| *note.server == *server);
        of.take(MAX_SHOWN_PER_SERVER).map(json_of).collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Formats notes: one line for each server, kind, action and reason, with the first names.
pub(crate) fn lines<'a>(notes: impl Iterator<Item = &'a DefinitionNote>) -> Vec<String> {
    let mut groups = BTreeMap::<(&str, NoteAction, ItemKind, &str), Vec<&str>>::new();
    for note in notes {
        let key = (
            &*note.server,
            note.note.action,
            note.kind,
            &*note.note.reason,
        );
        groups.entry(key).or_default().push(&note.name);
    }
    let line = |((server, action, kind, reason), names): (_, Vec<&str>)| {
        line(server, kind, &names, action, reason)
    };
    groups.into_iter().map(line).collect()
}

fn line(server: &str, kind: ItemKind, names: &[&str], action: NoteAction, reason: &str) -> String {
    let first: Vec<&str> = names.iter().take(MAX_NAMES_PER_LINE).copied().collect();
    let names = match names.len() - first.len() {
        _ if first == [""] => "list".to_owned(),
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    };
    let text = format!(
        "{server}: {} {names}: {}: {reason}",
        kind.as_str(),
        action.as_str()
    );
    visible_line(&text)
}

fn json_of(note: &DefinitionNote) -> Value {
    json!({
        "kind": note.kind.as_str(), "name": note.name, "action": note.note.action.as_str(),
        "reason": note.note.reason, "text": note.to_string(),
    })
}

impl OperatorApi {
    /// Collects the notes on all known lists, and announces the new ones.
    pub(crate) async fn collect_notes(&self) {
        let mut notes: Vec<DefinitionNote> = Vec::new();
        for server in self.supervisor.status() {
            let failed = server.failed_lists.into_iter();
            notes.extend(failed.map(|note| {
                let mut note = note;
                note.server = server.id.as_str().into();
                note
            }));
        }
        for kind in ItemKind::ALL {
            notes.extend(self.known_items(kind).await.all_notes());
        }
        let fresh = self.notes.replace(notes);
        for line in self.notes.lines(&fresh) {
            event_log::emit(GatewayEvent::DefinitionNote { text: line });
        }
        for note in &fresh {
            // If the audit log cannot be written, calls are rejected and the console shows it.
            let _ = self.journal.enqueue(sanitize_entry(note_record(note)));
        }
    }

    /// Returns the status of all servers, with the notes on their definitions.
    pub(crate) fn server_status(&self) -> Value {
        let servers = self.supervisor.status().into_iter().map(|server| {
            let notes = self.notes.of_server(&server.id);
            let mut server = serde_json::to_value(server).unwrap_or_default();
            server["notes"] = notes;
            server
        });
        servers.collect()
    }
}

/// Builds the audit record of a note.
fn note_record(note: &DefinitionNote) -> AuditEntry {
    let entry = AuditEntry::new(AuditEvent::from("definition"))
        .with("server", &*note.server)
        .with("kind", note.kind.as_str())
        .with("state", note.note.action.as_str())
        .with("why", &*note.note.reason);
    match &*note.name {
        "" => entry,
        name => entry.with("name", name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(server: &str, name: &str, reason: &str) -> DefinitionNote {
        let (kind, action) = (ItemKind::Tool, NoteAction::Dropped);
        DefinitionNote::new(server.into(), kind, name, action, reason)
    }

    #[test]
    fn a_reason_is_printed_once_and_each_note_is_announced_once() {
        let notes = DefinitionNotes::default();
        let first = vec![note("s", "a", "no name"), note("s", "b", "no name")];
        let fresh = notes.replace(first.clone());
        assert_eq!(fresh, first);
        assert_eq!(notes.lines(&fresh), ["s: tool a, b: dropped: no name"]);
        assert_eq!(notes.replace(first.clone()), []);
        let third = note("s", "c", "no name");
        let fresh = notes.replace(vec![first[0].clone(), third.clone()]);
        assert_eq!(fresh, [third]);
        assert_eq!(notes.lines(&fresh), [""; 0], "the reason was printed");
        let shown = notes.of_server("s");
        assert_eq!(shown.as_array().map(Vec::len), Some(2), "{shown}");
    }

    #[test]
    fn a_server_that_changes_its_names_forever_is_announced_so_often() {
        let notes = DefinitionNotes::default();
        let mut announced = 0;
        for round in 0..MAX_ANNOUNCED_PER_SERVER + 10 {
            let fresh = vec![note("s", &round.to_string(), "no name")];
            announced += notes.replace(fresh).len();
        }
        assert_eq!(announced, MAX_ANNOUNCED_PER_SERVER);
        assert_eq!(notes.replace(vec![note("other", "a", "no name")]).len(), 1);
    }
}
