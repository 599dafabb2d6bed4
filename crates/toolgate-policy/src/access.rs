//! Who may use what: the rules of the operator.

use crate::{Pattern, names};
use std::sync::Arc;
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
    /// What then.
    pub then: Then,
    /// How the record names it, for example `rule 2 (toolgate.toml:14)`.
    pub label: String,
}

impl AccessRule {
    fn speaks_of(&self, caller: &Caller, names: &[String]) -> bool {
        // The cheaper question first.
        (self.callers.is_empty() || self.callers.iter().any(|p| p.matches(caller.name())))
            && names::fit(&self.tools, &self.except, names)
    }
}

/// The rules of the operator: the strictest verdict wins.
///
/// Where no rule speaks, a tool that a trusted server calls read-only may be used, and all others need a person.
#[derive(Clone, Debug, Default)]
pub struct Access {
    rules: Arc<[AccessRule]>,
    otherwise: Option<Then>,
}

impl Access {
    /// These rules, in the order of the config.
    pub fn new(rules: Vec<AccessRule>) -> Access {
        Access {
            rules: rules.into(),
            otherwise: None,
        }
    }

    /// The same rules, with this verdict where none speaks.
    pub fn otherwise(mut self, then: Then) -> Access {
        self.otherwise = Some(then);
        self
    }

    /// The verdict on a use of a thing by a caller, and which rule or default speaks.
    pub fn verdict(&self, caller: &Caller, item: &Item) -> (Then, String) {
        self.judge(caller, item, None)
    }

    /// The verdict on the resource at a URI that fits a template: rules that speak of either speak of it.
    pub fn verdict_at(&self, caller: &Caller, template: &Item, uri: &str) -> (Then, String) {
        self.judge(caller, template, Some(uri))
    }

    fn judge(&self, caller: &Caller, item: &Item, uri: Option<&str>) -> (Then, String) {
        let names = names::of(item, uri);
        let cut = names::cut(item, uri);
        let mut strictest: Option<&AccessRule> = None;
        let holds = |rule: &AccessRule| {
            let cut = cut.as_slice();
            rule.then != Then::Allow && !cut.is_empty() && rule.speaks_of(caller, cut)
        };
        let speaks = |rule: &&AccessRule| rule.speaks_of(caller, &names) || holds(rule);
        for rule in self.rules.iter().filter(speaks) {
            if strictest.is_none_or(|so_far| rule.then > so_far.then) {
                strictest = Some(rule);
            }
        }
        match strictest {
            Some(rule) => (rule.then, rule.label.clone()),
            None if self.otherwise.is_some() => {
                (self.otherwise.unwrap_or(Then::Ask), "no rule".to_owned())
            }
            None if item.hints().read_only => (
                Then::Allow,
                format!(
                    "no rule: read-only {} of a trusted server",
                    item.kind().word()
                ),
            ),
            None => (Then::Ask, "no rule: not known to be read-only".to_owned()),
        }
    }
}

impl Rule for Access {
    fn name(&self) -> &'static str {
        "access"
    }

    fn sees(&self, caller: &Caller, item: &Item) -> bool {
        self.verdict(caller, item).0 != Then::Deny
    }

    fn hides_some(&self) -> bool {
        let denies = |then| then == Then::Deny;
        self.rules.iter().any(|rule| denies(rule.then)) || self.otherwise.is_some_and(denies)
    }

    fn why_hidden(&self, caller: &Caller, item: &Item) -> String {
        self.verdict(caller, item).1
    }

    fn hides_at(&self, caller: &Caller, template: &Item, uri: &str) -> Option<String> {
        let (then, why) = self.verdict_at(caller, template, uri);
        (then == Then::Deny).then_some(why)
    }

    fn decide<'a>(&'a self, call: &'a Call, item: &'a Item) -> Decision<'a> {
        let (then, why) = self.verdict_at(&call.caller, item, call.name());
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
