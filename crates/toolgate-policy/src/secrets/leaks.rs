//! Secrets in arguments are seen before they leave.

use super::{field::FIELD, find};
use crate::{
    PerServer,
    arguments::search::{ArgumentSearch, search_arguments},
};
use std::borrow::Cow;
use toolgate_core::{Call, Decision, Error, Item, Kind as Failure, Op, Refusal, Rule, Verdict};

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
        let Some(found) = search_arguments(call, &SecretSearch) else {
            return Verdict::Allow;
        };
        let reason = format!("the arguments hold what looks like a secret: {found}");
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

struct SecretSearch;

impl ArgumentSearch for SecretSearch {
    fn may_match(&self, json: &str) -> bool {
        find::may_hold(json)
    }

    fn matches(&self, key: &str, text: &str) -> Vec<Cow<'static, str>> {
        let rules = find::find(text).into_iter();
        let mut names: Vec<Cow<'static, str>> = rules.map(|f| f.rule.to_string().into()).collect();
        if names.is_empty() && FIELD.holds(key, text) {
            names.push(FIELD.id.into());
        }
        names
    }
}
