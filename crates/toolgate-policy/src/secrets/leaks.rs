//! Secrets in arguments are seen before they leave.

use super::{field::FIELD, find};
use crate::PerServer;
use std::sync::Arc;
use toolgate_core::{
    Call, Decision, Error, Item, Json, Kind as Failure, Op, Refusal, Rule, Verdict,
};
use toolgate_wire::json::Kind;

/// What becomes of a call whose arguments hold what looks like a secret.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum OnLeak {
    /// A person has to look.
    #[default]
    Ask,
    /// It is refused.
    Deny,
    /// It passes, and the record says so.
    Warn,
    /// Nobody looks.
    Pass,
}

/// Sees secrets in arguments and URIs. Says which rule found one and where, never what it is.
#[derive(Clone, Debug, Default)]
pub struct Leaks {
    /// What becomes of such calls, by server.
    pub found: PerServer<OnLeak>,
}

impl Rule for Leaks {
    fn name(&self) -> &'static str {
        "leaks"
    }

    fn hides_some(&self) -> bool {
        false
    }

    fn decide<'a>(&'a self, call: &'a Call, item: &'a Item) -> Decision<'a> {
        Decision::Now(self.judge(call, item))
    }
}

impl Leaks {
    fn judge(&self, call: &Call, item: &Item) -> Verdict {
        let then = self.found.of(&item.origin.server);
        if then == OnLeak::Pass {
            return Verdict::Allow;
        }
        let found = leaks(call);
        if found.is_empty() {
            return Verdict::Allow;
        }
        let reason = format!(
            "the arguments hold what looks like a secret: {}",
            words(&found)
        );
        match then {
            // What a person types is completed with each key; nobody could be asked that often.
            OnLeak::Ask if !matches!(call.op, Op::Complete(_)) => Verdict::Ask(reason),
            OnLeak::Ask | OnLeak::Deny => Verdict::Refuse(Error::new(
                Failure::Refused(Refusal::Rule),
                format!("refused: {reason}; leave it out, or ask the operator (setting `leaks`)"),
            )),
            OnLeak::Warn => {
                call.trail.add("leaks", "warn", reason);
                Verdict::Allow
            }
            OnLeak::Pass => Verdict::Allow,
        }
    }
}

/// A secret in arguments.
struct Leak {
    /// Where, as a JSON pointer; `URI` for the URI of a resource.
    at: String,
    rule: Arc<str>,
}

/// Leaks that a reason names.
const MOST: usize = 8;

fn leaks(call: &Call) -> Vec<Leak> {
    let mut found = Vec::new();
    if matches!(call.op, Op::Resource) {
        take("URI", call.name(), &mut found);
    }
    let raw = call.arguments().raw();
    if find::may_hold(raw.as_str()) {
        in_value(raw, &mut found);
    }
    found
}

fn take(at: &str, text: &str, found: &mut Vec<Leak>) {
    found.extend(find::find(text).into_iter().map(|f| Leak {
        at: at.to_owned(),
        rule: f.rule,
    }));
}

/// Looks at all strings and keys of a value, with a list instead of a stack.
fn in_value(value: &Json, found: &mut Vec<Leak>) {
    let mut open = vec![(String::new(), String::new(), value.clone())];
    while let Some((at, key, value)) = open.pop() {
        if found.len() > MOST {
            return;
        }
        match value.kind() {
            Kind::Object => {
                for (key, member) in value.members() {
                    take(&format!("{at} (a name)"), &key, found);
                    let at = crate::schema::step(&at, &redacted(&key));
                    open.push((at, key.into_owned(), member));
                }
            }
            Kind::Array => {
                let items = value.items().enumerate();
                open.extend(items.map(|(n, item)| (format!("{at}/{n}"), key.clone(), item)));
            }
            Kind::String => in_string(&at, &key, &value.string().unwrap_or_default(), found),
            _ => {}
        }
    }
}

fn in_string(at: &str, key: &str, text: &str, found: &mut Vec<Leak>) {
    let before = found.len();
    take(at, text, found);
    if found.len() == before && FIELD.holds(key, text) {
        found.push(Leak {
            at: at.to_owned(),
            rule: FIELD.id.into(),
        });
    }
}

fn redacted(key: &str) -> String {
    super::Secrets::redact_text(key).into_owned()
}

fn words(found: &[Leak]) -> String {
    let named = found.iter().take(MOST).map(|leak| {
        let at = crate::schema::short(&crate::clean(&leak.at));
        format!("{at} ({})", leak.rule)
    });
    let mut words: Vec<String> = named.collect();
    if found.len() > MOST {
        words.push("and more".to_owned());
    }
    words.join(", ")
}
