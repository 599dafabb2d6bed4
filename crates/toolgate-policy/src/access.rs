//! Access rules of the operator: allow, ask or deny calls.

mod hear;
mod reads;

pub use reads::ArgumentReads;

use crate::{CelCondition, GlobPattern, names::ItemNames};
use hear::RuleEvaluation;
use reads::RuleArgumentReads;
use std::{sync::Arc, time::SystemTime};
use toolgate_core::{
    Call, Caller, Error, ErrorKind, Item, MaybeReady, Op, RefusalReason, Rule, RuleDecision,
};

/// Action of an access rule, ordered by strictness.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum RuleAction {
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
    pub tools: Vec<GlobPattern>,
    /// Patterns of matching callers; empty for all.
    pub callers: Vec<GlobPattern>,
    /// Patterns of items to exclude.
    pub except: Vec<GlobPattern>,
    /// CEL condition; `None` for always. A condition that reads arguments or the clock never hides an item, it only
    /// rejects calls.
    pub when: Option<CelCondition>,
    /// Action if the rule matches.
    pub then: RuleAction,
    /// Name in audit records, for example `rule 2 (toolgate.toml:14)`.
    pub label: String,
}

impl AccessRule {
    /// Reports whether the condition needs a call: it reads arguments or the clock.
    fn is_late(&self) -> bool {
        let late = |when: &CelCondition| when.reads_args() || when.reads_time();
        self.when.as_ref().is_some_and(late)
    }

    fn speaks_of(&self, caller: &Caller, names: &ItemNames) -> bool {
        // The cheaper check comes first.
        (self.callers.is_empty() || self.callers.iter().any(|p| p.matches(caller.name())))
            && match self.then {
                RuleAction::Allow => names.fit(&self.tools, &self.except),
                RuleAction::Ask | RuleAction::Deny => names.hold(&self.tools, &self.except),
            }
    }
}

/// Access rules of the operator: the strictest matching action wins.
///
/// Without a matching rule, tools that a trusted server annotates as read-only are allowed. All others need an
/// approval.
#[derive(Clone, Debug, Default)]
pub struct AccessRules {
    rules: Arc<[AccessRule]>,
    otherwise: Option<RuleAction>,
    at: Option<SystemTime>,
}

impl AccessRules {
    /// Creates rules in the order of the configuration.
    pub fn new(rules: Vec<AccessRule>) -> AccessRules {
        AccessRules {
            rules: rules.into(),
            otherwise: None,
            at: None,
        }
    }

    /// Sets the action for calls that no rule matches.
    pub fn otherwise(mut self, then: RuleAction) -> AccessRules {
        self.otherwise = Some(then);
        self
    }

    /// Evaluates the rules at this time instead of now.
    pub fn at(mut self, time: SystemTime) -> AccessRules {
        self.at = Some(time);
        self
    }

    /// Returns the rules whose conditions read arguments, for the audit log.
    pub fn argument_reads(&self) -> ArgumentReads {
        let reads = |rule: &AccessRule| {
            Some(RuleArgumentReads {
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
    pub fn verdict(&self, caller: &Caller, item: &Item) -> (RuleAction, String) {
        let heard = self.hear(caller, item, None, None);
        (heard.then, heard.why)
    }

    /// Returns the action for a resource URI of a template. Rules that match either the URI or the template count.
    pub fn verdict_at(&self, caller: &Caller, template: &Item, uri: &str) -> (RuleAction, String) {
        let heard = self.hear(caller, template, Some(uri), None);
        (heard.then, heard.why)
    }

    /// Returns the action for a call, and the rule or default that decides it.
    pub fn judged(&self, call: &Call, item: &Item) -> (RuleAction, String) {
        let heard = self.hear_call(call, item);
        (heard.then, heard.why)
    }

    /// Evaluates all rules for a call, for the audit record.
    fn hear_call(&self, call: &Call, item: &Item) -> RuleEvaluation {
        self.hear(&call.caller, item, Some(call.name()), Some(call))
    }

    /// Returns the reason if every call of the item would be denied, so that it is hidden.
    fn hides(&self, caller: &Caller, item: &Item, uri: Option<&str>) -> Option<String> {
        if !self.hides_some() {
            return None;
        }
        let heard = self.hear(caller, item, uri, None);
        (heard.then == RuleAction::Deny && !heard.open).then_some(heard.why)
    }
}

impl Rule for AccessRules {
    fn name(&self) -> &'static str {
        "access"
    }

    fn sees(&self, caller: &Caller, item: &Item) -> bool {
        self.hides(caller, item, None).is_none()
    }

    fn hides_some(&self) -> bool {
        let denies = |then| then == RuleAction::Deny;
        let hides = |rule: &AccessRule| denies(rule.then) && !rule.is_late();
        self.rules.iter().any(hides) || self.otherwise.is_some_and(denies)
    }

    fn why_hidden(&self, caller: &Caller, item: &Item) -> String {
        self.verdict(caller, item).1
    }

    fn hides_at(&self, caller: &Caller, template: &Item, uri: &str) -> Option<String> {
        self.hides(caller, template, Some(uri))
    }

    fn decide<'a>(&'a self, call: &'a Call, item: &'a Item) -> MaybeReady<'a> {
        let RuleEvaluation {
            then, why, others, ..
        } = self.hear_call(call, item);
        for (verdict, why) in others {
            call.trail.add("access", verdict, why);
        }
        MaybeReady::Now(match then {
            RuleAction::Allow => {
                call.trail.add("access", "allow", why);
                RuleDecision::Allow
            }
            // A completion runs on every keystroke, too often for an approval.
            RuleAction::Ask if matches!(call.op, Op::Complete(_)) => RuleDecision::Allow,
            RuleAction::Ask => RuleDecision::Ask(why),
            RuleAction::Deny => RuleDecision::Refuse(Error::new(
                ErrorKind::Refused(RefusalReason::Rule),
                format!("refused: {why}"),
            )),
        })
    }
}
