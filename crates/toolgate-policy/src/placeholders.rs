//! Placeholders of this program do not overwrite what they stand for.

use crate::PerServer;
use toolgate_core::{
    Call, Decision, Error, Item, Json, Kind as Failure, Op, Refusal, Rule, Verdict,
};
use toolgate_wire::{json::Kind, placeholder};

/// What becomes of a call whose arguments contain a placeholder.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum OnPlaceholder {
    /// A person decides.
    #[default]
    Ask,
    /// It is refused.
    Deny,
    /// It passes.
    Allow,
}

/// Finds placeholders such as `[redacted:password]` in arguments: an agent that reads a file, edits it and writes it back
/// would replace the secret by them. Looks at all strings and keys, at any depth, and at URIs of resources.
#[derive(Clone, Debug, Default)]
pub struct Placeholders {
    /// What becomes of such calls, by server.
    pub found: PerServer<OnPlaceholder>,
}

impl Rule for Placeholders {
    fn name(&self) -> &'static str {
        "placeholders"
    }

    fn hides_some(&self) -> bool {
        false
    }

    fn decide<'a>(&'a self, call: &'a Call, item: &'a Item) -> Decision<'a> {
        Decision::Now(self.judge(call, item))
    }
}

impl Placeholders {
    fn judge(&self, call: &Call, item: &Item) -> Verdict {
        let action = self.found.of(&item.origin.server);
        if action == OnPlaceholder::Allow {
            return Verdict::Allow;
        }
        let found = found(call);
        if found.is_empty() {
            return Verdict::Allow;
        }
        let reason = format!(
            "the arguments contain placeholders of this gateway, which would replace the original: {}",
            listed(&found)
        );
        match action {
            // A completion comes with each key; nobody could be asked that often.
            OnPlaceholder::Ask if !matches!(call.op, Op::Complete(_)) => Verdict::Ask(reason),
            _ => Verdict::Refuse(Error::new(
                Failure::Refused(Refusal::Rule),
                format!(
                    "refused: {reason}; change only what has no placeholder in it, or ask the operator (setting `placeholders`)"
                ),
            )),
        }
    }
}

/// A placeholder in arguments.
struct Found {
    /// Where, as a JSON pointer; `URI` for the URI of a resource.
    at: String,
    placeholder: &'static str,
}

/// Placeholders that a reason names.
const MAX_NAMED: usize = 8;

fn found(call: &Call) -> Vec<Found> {
    let mut all = Vec::new();
    if call.op == Op::Resource {
        search("URI", call.name(), &mut all);
    }
    let raw = call.arguments().raw();
    // Every placeholder begins with a bracket, which may be escaped.
    if memchr::memchr2(b'[', b'\\', raw.as_str().as_bytes()).is_some() {
        search_value(raw, &mut all);
    }
    all
}

fn search(at: &str, text: &str, all: &mut Vec<Found>) {
    all.extend(placeholder::find(text).map(|placeholder| Found {
        at: at.to_owned(),
        placeholder,
    }));
}

/// Searches all strings and keys of a value, with a list instead of a stack.
fn search_value(value: &Json, all: &mut Vec<Found>) {
    let mut open = vec![(String::new(), value.clone())];
    while let Some((at, value)) = open.pop() {
        if all.len() > MAX_NAMED {
            return;
        }
        match value.kind() {
            Kind::Object => {
                for (key, member) in value.members() {
                    search(&format!("{at} (a name)"), &key, all);
                    open.push((crate::schema::step(&at, &key), member));
                }
            }
            Kind::Array => {
                let items = value.items().enumerate();
                open.extend(items.map(|(n, item)| (format!("{at}/{n}"), item)));
            }
            Kind::String => search(&at, &value.string().unwrap_or_default(), all),
            _ => {}
        }
    }
}

fn listed(found: &[Found]) -> String {
    let named = found.iter().take(MAX_NAMED).map(|found| {
        let at = crate::Secrets::redact_text(&found.at);
        let at = crate::schema::short(&crate::clean(&at));
        format!("{at} ({}…)", found.placeholder)
    });
    let mut named: Vec<String> = named.collect();
    if found.len() > MAX_NAMED {
        named.push("and more".to_owned());
    }
    named.join(", ")
}
