//! Access rules of the operator: allow, ask or deny calls.

mod hear;
mod reads;

pub use reads::ArgumentReads;

use crate::{Pattern, When, names::Names};
use hear::Heard;
use reads::RuleReads;
use std::{sync::Arc, time::SystemTime};
use toolgate_core::{Call, Caller, Decision, Error, Item, Kind, Op, Refusal, Rule, Verdict};

/// Action of an access rule, ordered by strictness.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Then {
    /// Allow the call.
    Allow,
    /// Require an approval.
    Ask,
    /// Deny the call and hide the item from the denied callers.
    Deny,
}

/// An access rule of the operator.
#[derive(Clone, Debug)]
pub struct AccessRule {
    /// Patterns of matching items by full name: `server.tool`, `server.resource:URI`, `server.prompt:NAME`.
    pub tools: Vec<Pattern>,
    /// Patterns of matching callers; empty for all.
    pub callers: Vec<Pattern>,
    /// Patterns of items to exclude.
    pub except: Vec<Pattern>,
    /// CEL condition; `None` for always. A condition that reads arguments or the clock never hides an item, it only
    /// rejects calls.
    pub when: Option<When>,
    /// Action if the rule matches.
    pub then: Then,
    /// Name in audit records, for example `rule 2 (toolgate.toml:14)`.
    pub label: String,
}

impl AccessRule {
    /// Reports whether the condition needs a call: it reads arguments or the clock.
    fn is_late(&self) -> bool {
        let late = |when: &When| when.reads_args() || when.reads_time();
        self.when.as_ref().is_some_and(late)
    }

    fn speaks_of(&self, caller: &Caller, names: &Names) -> bool {
        // The cheaper check comes first.
        (self.callers.is_empty() || self.callers.iter().any(|p| p.matches(caller.name())))
            && match self.then {
                Then::Allow => names.fit(&self.tools, &self.except),
                Then::Ask | Then::Deny => names.hold(&self.tools, &self.except),
            }
    }
}

/// Access rules of the operator: the strictest matching action wins.
///
/// Without a matching rule, tools that a trusted server annotates as read-only are allowed. All others need an
/// approval.
#[derive(Clone, Debug, Default)]
pub struct Access {
    rules: Arc<[AccessRule]>,
    otherwise: Option<Then>,
    at: Option<SystemTime>,
}

impl Access {
    /// Creates rules in the order of the configuration.
    pub fn new(rules: Vec<AccessRule>) -> Access {
        Access {
            rules: rules.into(),
            otherwise: None,
            at: None,
        }
    }

    /// Sets the action for calls that no rule matches.
    pub fn otherwise(mut self, then: Then) -> Access {
        self.otherwise = Some(then);
        self
    }

    /// Evaluates the rules at this time instead of now.
    pub fn at(mut self, time: SystemTime) -> Access {
        self.at = Some(time);
        self
    }

    /// Returns the rules whose conditions read arguments, for the audit log.
    pub fn argument_reads(&self) -> ArgumentReads {
        let reads = |rule: &AccessRule| {
            Some(RuleReads {
                tools: rule.tools.clone(),
                except: rule.except.clone(),
                names: rule.when.as_ref()?.argument_names(),
            })
        };
        let rules = self.rules.iter().filter_map(reads);
        ArgumentReads {
            rules: rules.filter(|rule| !rule.names.is_empty()).collect(),
        }
    }

    /// Returns the action for an item and a caller, and the rule or default that decides it.
    ///
    /// Rules that read arguments or the clock do not count, as there is no call yet.
    pub fn verdict(&self, caller: &Caller, item: &Item) -> (Then, String) {
        let heard = self.hear(caller, item, None, None);
        (heard.then, heard.why)
    }

    /// Returns the action for a resource URI of a template. Rules that match either the URI or the template count.
    pub fn verdict_at(&self, caller: &Caller, template: &Item, uri: &str) -> (Then, String) {
        let heard = self.hear(caller, template, Some(uri), None);
        (heard.then, heard.why)
    }

    /// Returns the action for a call, and the rule or default that decides it.
    pub fn judged(&self, call: &Call, item: &Item) -> (Then, String) {
        let heard = self.hear_call(call, item);
        (heard.then, heard.why)
    }

    /// Evaluates all rules for a call, for the audit record.
    fn hear_call(&self, call: &Call, item: &Item) -> Heard {
        self.hear(&call.caller, item, Some(call.name()), Some(call))
    }

    /// Returns the reason if every call of the item would be denied, so that it is hidden.
    fn hides(&self, caller: &Caller, item: &Item, uri: Option<&str>) -> Option<String> {
        if !self.hides_some() {
            return None;
        }
        let heard = self.hear(caller, item, uri, None);
        (heard.then == Then::Deny && !heard.open).then_some(heard.why)
    }
}

impl Rule for Access {
    fn name(&self) -> &'static str {
        "access"
    }

    fn sees(&self, caller: &Caller, item: &Item) -> bool {
        self.hides(caller, item, None).is_none()
    }

    fn hides_some(&self) -> bool {
        let denies = |then| then == Then::Deny;
        let hides = |rule: &AccessRule| denies(rule.then) && !rule.is_late();
        self.rules.iter().any(hides) || self.otherwise.is_some_and(denies)
    }

    fn why_hidden(&self, caller: &Caller, item: &Item) -> String {
        self.verdict(caller, item).1
    }

    fn hides_at(&self, caller: &Caller, template: &Item, uri: &str) -> Option<String> {
        self.hides(caller, template, Some(uri))
    }

    fn decide<'a>(&'a self, call: &'a Call, item: &'a Item) -> Decision<'a> {
        let Heard {
            then, why, others, ..
        } = self.hear_call(call, item);
        for (verdict, why) in others {
            call.trail.add("access", verdict, why);
        }
        Decision::Now(match then {
            Then::Allow => {
                call.trail.add("access", "allow", why);
                Verdict::Allow
            }
            // A completion runs on every keystroke, too often for an approval.
            Then::Ask if matches!(call.op, Op::Complete(_)) => Verdict::Allow,
            Then::Ask => Verdict::Ask(why),
            Then::Deny => Verdict::Refuse(Error::new(
                Kind::Refused(Refusal::Rule),
                format!("refused: {why}"),
            )),
        })
    }
}
