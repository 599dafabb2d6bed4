//! Pin events for the operator.

use std::{fmt, sync::Arc};

/// Event about a new, changed or suspicious item definition, reported to the operator once.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct PinEvent {
    /// Configured id of the server whose definition the event is about.
    pub server: Arc<str>,
    /// Kind of the definition: `tool`, `resource`, `resource template`, `prompt` or `instructions`.
    pub kind: String,
    /// Full name of the item as in rules, for example `server.tool`; `server.instructions` for the instructions of a
    /// server.
    pub name: String,
    /// Kind of the event: new, changed or flagged definition.
    pub what: PinEventKind,
    /// True if the item is hidden from callers now.
    pub hidden: bool,
}

/// Kind of an event about an item definition: new, changed or flagged.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum PinEventKind {
    /// A new item definition must be accepted by the operator.
    New,
    /// The item definition differs from the accepted one, at these paths.
    Changed(Vec<String>),
    /// A warning about the item, for example that its name is confusable with another one.
    Flag(String),
}

impl fmt::Display for PinEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PinEvent { kind, name, .. } = self;
        let end = match self.hidden {
            true => format!(
                "it is hidden until you accept it; review it with `toolgate pins diff {name}`"
            ),
            false => format!("it remains usable; review it with `toolgate pins diff {name}`"),
        };
        match &self.what {
            PinEventKind::New => write!(f, "the {kind} {name} is new; {end}"),
            PinEventKind::Changed(places) if places.iter().all(String::is_empty) => {
                write!(f, "the {kind} {name} changed; {end}")
            }
            PinEventKind::Changed(places) => {
                write!(
                    f,
                    "the {kind} {name} changed ({}); {end}",
                    first_paths(places)
                )
            }
            PinEventKind::Flag(text) => write!(f, "the {kind} {name}: {text}"),
        }
    }
}

fn first_paths(places: &[String]) -> String {
    let first: Vec<&str> = places.iter().take(3).map(String::as_str).collect();
    match places.len() {
        0..=3 => first.join(", "),
        n => format!("{} and {} more", first.join(", "), n - 3),
    }
}
