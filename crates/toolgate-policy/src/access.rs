//! Who may use what: the rules of the operator.

mod hear;
mod reads;

pub use reads::ArgumentReads;

use crate::{Pattern, When, names::Names};
use hear::Heard;
use reads::RuleReads;
use std::{sync::Arc, time::SystemTime};
use toolgate_core::{Call, Caller, Decision, Error, Item, Kind, Op, Refusal, Rule, Verdict};

/// What a rule says; the order is the strictness.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Then {
    /// It may pass.
    Allow,
    /// A person has to look.
    Ask,
    /// It may not pass, and those it is denied to do not see it.
    Deny,
}

/// One rule of the operator.
#[derive(Clone, Debug)]
pub struct AccessRule {
    /// Which things, by their full names: `server.tool`, `server.resource:URI`, `server.prompt:NAME`.
    pub tools: Vec<Pattern>,
    /// Which callers; empty for all.
    pub callers: Vec<Pattern>,
    /// Which of them not.
    pub except: Vec<Pattern>,
    /// Under which condition; `None` for always. One that looks at arguments or the clock hides nothing, it refuses.
    pub when: Option<When>,
    /// What then.
    pub then: Then,
    /// How the record names it, for example `rule 2 (toolgate.toml:14)`.
    pub label: String,
}

impl AccessRule {
    /// Whether its condition needs a call to look at.
    fn is_late(&self) -> bool {
        let late = |when: &When| when.reads_args() || when.reads_time();
        self.when.as_ref().is_some_and(late)
    }

    fn speaks_of(&self, caller: &Caller, names: &Names) -> bool {
        // The cheaper question first.
        (self.callers.is_empty() || self.callers.iter().any(|p| p.matches(caller.name())))
            && match self.then {
                Then::Allow => names.fit(&self.tools, &self.except),
                Then::Ask | Then::Deny => names.hold(&self.tools, &self.except),
            }
    }
}

/// The rules of the operator: the strictest verdict wins.
///
/// Where no rule speaks, a tool that a trusted server calls read-only may be used, and all others need a person.
#[derive(Clone, Debug, Default)]
pub struct Access {
    rules: Arc<[AccessRule]>,
    otherwise: Option<Then>,
    at: Option<SystemTime>,
}

impl Access {
    /// These rules, in the order of the config.
    pub fn new(rules: Vec<AccessRule>) -> Access {
        Access {
            rules: rules.into(),
            otherwise: None,
            at: None,
        }
    }

    /// The same rules, with this verdict where none speaks.
    pub fn otherwise(mut self, then: Then) -> Access {
        self.otherwise = Some(then);
        self
    }

    /// The same rules, for a call of that moment instead of now.
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

    /// The verdict on a use of a thing by a caller, and which rule or default speaks. Before a call, rules that look at
    /// arguments or the clock do not speak yet.
    pub fn verdict(&self, caller: &Caller, item: &Item) -> (Then, String) {
        let heard = self.hear(caller, item, None, None);
        (heard.then, heard.why)
    }

    /// The verdict on the resource at a URI that fits a template: rules that speak of either speak of it.
    pub fn verdict_at(&self, caller: &Caller, template: &Item, uri: &str) -> (Then, String) {
        let heard = self.hear(caller, template, Some(uri), None);
        (heard.then, heard.why)
    }

    /// The verdict on a call, and which rule or default speaks.
    pub fn judged(&self, call: &Call, item: &Item) -> (Then, String) {
        let heard = self.hear_call(call, item);
        (heard.then, heard.why)
    }

    /// The verdict on a call, with every rule that was asked: what the record shows.
    fn hear_call(&self, call: &Call, item: &Item) -> Heard {
        self.hear(&call.caller, item, Some(call.name()), Some(call))
    }

    /// Whether it is certain before any call that none will pass.
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
            // What a person types is completed with each key; nobody could be asked that often.
            Then::Ask if matches!(call.op, Op::Complete(_)) => Verdict::Allow,
            Then::Ask => Verdict::Ask(why),
            Then::Deny => Verdict::Refuse(Error::new(
                Kind::Refused(Refusal::Rule),
                format!("refused: {why}"),
            )),
        })
    }
}
