//! Differences between two JSON values, and the known ones.

use serde_json::Value;
use std::fmt;

/// Longest text of a value in a failure, in characters.
const SHOWN_CHARS: usize = 300;

/// A place where both sides differ.
pub(super) struct Difference {
    /// Path of the difference, with `/` between members.
    pub(super) at: String,
    direct: Value,
    through: Value,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = |value: &Value| {
            value
                .to_string()
                .chars()
                .take(SHOWN_CHARS)
                .collect::<String>()
        };
        write!(
            f,
            "  {}\n    directly: {}\n    through:  {}",
            self.at,
            short(&self.direct),
            short(&self.through)
        )
    }
}

/// All places where two values differ. A member that is absent on one side is `null` there.
pub(super) fn differences(direct: &Value, through: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    collect("", direct, through, &mut found);
    found
}

fn collect(at: &str, direct: &Value, through: &Value, found: &mut Vec<Difference>) {
    let below = |key: &str| {
        if at.is_empty() {
            key.to_owned()
        } else {
            format!("{at}/{key}")
        }
    };
    match (direct, through) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                match (a.get(key), b.get(key)) {
                    (Some(a), Some(b)) => collect(&below(key), a, b, found),
                    (a, b) => found.push(Difference {
                        at: below(key),
                        direct: a.cloned().unwrap_or_default(),
                        through: b.cloned().unwrap_or_default(),
                    }),
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (n, (a, b)) in a.iter().zip(b).enumerate() {
                collect(&below(&n.to_string()), a, b, found);
            }
        }
        (a, b) if a == b => {}
        (a, b) => found.push(Difference {
            at: at.to_owned(),
            direct: a.clone(),
            through: b.clone(),
        }),
    }
}

/// A known difference: where it is, what each side has there, and what explains it in `docs/interop.md`.
pub(super) struct Known {
    at: String,
    /// Expected value of each side; absent for any.
    direct: Option<Value>,
    through: Option<Value>,
    pub(super) id: String,
}

impl Known {
    /// Reads `[{"at": PATTERN, "direct": VALUE, "through": VALUE, "id": ID, "reason": TEXT}]`.
    pub(super) fn read(list: &Value) -> Vec<Known> {
        let text = |entry: &Value, key: &str| entry[key].as_str().unwrap().to_owned();
        let read = |entry: &Value| Known {
            at: text(entry, "at"),
            direct: entry.get("direct").cloned(),
            through: entry.get("through").cloned(),
            id: text(entry, "id"),
        };
        list.as_array().into_iter().flatten().map(read).collect()
    }

    /// Returns whether it explains a difference. `{direct}` in `through` is the text of the other side.
    pub(super) fn covers(&self, found: &Difference) -> bool {
        let filled = |known: &Value| match (known.as_str(), found.direct.as_str()) {
            (Some(known), Some(direct)) => Value::from(known.replace("{direct}", direct)),
            _ => known.clone(),
        };
        let direct = self
            .direct
            .as_ref()
            .is_none_or(|known| *known == found.direct);
        let through = self.through.as_ref().map(filled);
        self.is_at(&found.at) && direct && through.is_none_or(|known| known == found.through)
    }

    /// Returns whether its pattern matches a path. `*` is any run of characters.
    fn is_at(&self, at: &str) -> bool {
        let mut rest = at;
        let mut parts = self.at.split('*').peekable();
        let first = parts.next().unwrap_or_default();
        let Some(after) = rest.strip_prefix(first) else {
            return false;
        };
        rest = after;
        if parts.peek().is_none() {
            return rest.is_empty();
        }
        while let Some(part) = parts.next() {
            if parts.peek().is_none() {
                return rest.ends_with(part);
            }
            let Some(found) = rest.find(part) else {
                return false;
            };
            rest = &rest[found + part.len()..];
        }
        true
    }
}

#[test]
fn patterns_match_whole_places() {
    let known = |at: &str| Known {
        at: at.to_owned(),
        direct: None,
        through: None,
        id: String::new(),
    };
    for (pattern, at, covers) in [
        ("tools/*/execution", "tools/a/execution", true),
        ("tools/*/execution", "tools/a/execution/taskSupport", false),
        ("tools/*/execution*", "tools/a/execution/taskSupport", true),
        ("call 1/a/text", "call 1/a/text", true),
        ("call 1/a/text", "call 1/a/text/b", false),
        ("*", "anything", true),
    ] {
        assert_eq!(known(pattern).is_at(at), covers, "{pattern} {at}");
    }
}
