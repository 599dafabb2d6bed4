//! What a person should hear of pins.

use std::{fmt, sync::Arc};

/// Something about a definition that a person should hear of; told once.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PinEvent {
    /// The configured id of the server.
    pub server: Arc<str>,
    /// `tool`, `resource`, `resource template`, `prompt` or `instructions`.
    pub kind: String,
    /// `server.tool` and the like, as in rules; `server.instructions` for the words of a server.
    pub name: String,
    /// What it is.
    pub what: PinNews,
    /// Whether callers may not use it now.
    pub hidden: bool,
}

/// What there is to hear.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PinNews {
    /// It is new and waits to be accepted.
    New,
    /// It is another one than was accepted; the places that differ.
    Changed(Vec<String>),
    /// Something that is good to know: a name that looks like another one.
    Flag(String),
}

impl fmt::Display for PinEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PinEvent { kind, name, .. } = self;
        let end = match self.hidden {
            true => format!("it is hidden until you accept it: toolgate pins diff {name}"),
            false => format!("it may be used all the same; see toolgate pins diff {name}"),
        };
        match &self.what {
            PinNews::New => write!(f, "the {kind} {name} is new; {end}"),
            PinNews::Changed(places) if places.iter().all(String::is_empty) => {
                write!(f, "the {kind} {name} changed; {end}")
            }
            PinNews::Changed(places) => {
                write!(f, "the {kind} {name} changed ({}); {end}", few(places))
            }
            PinNews::Flag(text) => write!(f, "the {kind} {name}: {text}"),
        }
    }
}

fn few(places: &[String]) -> String {
    let first: Vec<&str> = places.iter().take(3).map(String::as_str).collect();
    match places.len() {
        0..=3 => first.join(", "),
        n => format!("{} and {} more", first.join(", "), n - 3),
    }
}
