//! Access rules of the operator: allow, ask or deny calls.

mod argument_reads;
mod evaluate;

pub use argument_reads::ArgumentReads;

use crate::{CelCondition, GlobPattern, access::names::ItemNames};
use argument_reads::RuleArgumentReads;
use evaluate::RuleEvaluation;
use std::{sync::Arc, time::SystemTime};
use toolgate_core::{
    Call, Caller, Error, ErrorKind, Item, MaybeReady, Op, RefusalReason, Rule, RuleDecision,
};

/// Action of an access rule for matching calls, ordered by strictness: allow, ask (require an approval), deny.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum RuleAction {
    /// Allows the matching calls.
    Allow,
    /// Requires an approval of each matching call.
    Ask,
    /// Denies the matching calls, and hides the item from the denied callers.
    Deny,
}

/// Access rule of the operator: patterns of items and callers, a condition, and an action for matching calls.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AccessRule {
    /// Patterns of the full names of matching items: `server.tool`, `server.resource:URI`, `server.prompt:NAME`.
    pub tools: Vec<GlobPattern>,
    /// Patterns of the names of matching callers; empty for all.
    pub callers: Vec<GlobPattern>,
    /// Patterns of the full names of items that the rule does not match, despite `tools`.
    pub except: Vec<GlobPattern>,
    /// CEL condition that matching calls satisfy; `None` for always. A condition that reads arguments or the clock
    /// never hides an item, it only rejects calls.
    pub when: Option<CelCondition>,
    /// Action for calls that the rule matches: allow, ask or deny.
    pub action: RuleAction,
    /// Name of the rule in audit records, for example `rule 2 (toolgate.toml:14)`.
    pub label: String,
}

impl AccessRule {
    /// Creates a rule without a condition, for all callers and all items that the patterns match.
    pub fn new(
        label: impl Into<String>,
        action: RuleAction,
        tools: Vec<GlobPattern>,
    ) -> AccessRule {
        AccessRule {
            tools,
            callers: Vec::new(),
            except: Vec::new(),
            when: None,
            action,
            label: label.into(),
        }
    }
}

impl AccessRule {
    /// Reports whether the condition needs a call: it reads arguments or the clock.
    fn needs_call(&self) -> bool {
        let late = |when: &CelCondition| when.reads_args() || when.reads_time();
        self.when.as_ref().is_some_and(late)
    }

    fn matches_caller(&self, caller: &Caller) -> bool {
        self.callers.is_empty() || self.callers.iter().any(|p| p.matches(caller.name()))
    }

    fn matches_item(&self, names: &ItemNames) -> bool {
        match self.action {
            RuleAction::Allow => names.allowed_by(&self.tools, &self.except),
            RuleAction::Ask | RuleAction::Deny => names.restricted_by(&self.tools, &self.except),
        }
    }
}

/// Access rules of the operator (a [`Rule`](toolgate_core::Rule)): the strictest action of all matching rules wins.
///
/// Without a matching rule, tools that a trusted server annotates as read-only are allowed. All others need an
/// approval.
#[derive(Clone, Debug, Default)]
pub struct AccessRules {
    rules: Arc<[AccessRule]>,
    default_action: Option<RuleAction>,
    at: Option<SystemTime>,
}

impl AccessRules {
    /// Creates access rules in the order of the configuration.
    pub fn new(rules: Vec<AccessRule>) -> AccessRules {
        AccessRules {
            rules: rules.into(),
            default_action: None,
            at: None,
        }
    }

    /// Sets the action (allow, ask or deny) for calls that no access rule matches.
    pub fn default_action(mut self, action: RuleAction) -> AccessRules {
        self.default_action = Some(action);
        self
    }

    /// Evaluates the access rules' conditions at this time instead of now.
    pub fn at(mut self, time: SystemTime) -> AccessRules {
        self.at = Some(time);
        self
    }

    /// Returns the arguments that the access rules' conditions read, by item, for the audit log.
    #[doc(hidden)]
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

    /// Returns the access rules' action for an item and a caller before any call, and the deciding rule or default.
    ///
    /// Rules that read arguments or the clock do not count, as there is no call yet.
    #[doc(hidden)]
    pub fn action_for_item(&self, caller: &Caller, item: &Item) -> (RuleAction, String) {
        let heard = self.evaluate(caller, item, None, None);
        (heard.action, heard.why)
    }

    /// Returns the access rules' action for a call, and the rule or default that decides it.
    #[doc(hidden)]
    pub fn action_for_call(&self, call: &Call, item: &Item) -> (RuleAction, String) {
        let heard = self.evaluate_call(call, item);
        (heard.action, heard.why)
    }

    /// Evaluates all rules for a call, for the audit record.
    fn evaluate_call(&self, call: &Call, item: &Item) -> RuleEvaluation {
        self.evaluate(&call.caller, item, Some(call.name()), Some(call))
    }

    /// Returns the reason if every call of the item would be denied, so that it is hidden.
    fn hidden_reason(&self, caller: &Caller, item: &Item, uri: Option<&str>) -> Option<String> {
        if !self.may_hide_items() {
            return None;
        }
        let heard = self.evaluate(caller, item, uri, None);
        (heard.action == RuleAction::Deny && !heard.may_be_milder).then_some(heard.why)
    }
}

impl Rule for AccessRules {
    fn name(&self) -> &'static str {
        "access"
    }

    fn is_visible(&self, caller: &Caller, item: &Item) -> bool {
        self.hidden_reason(caller, item, None).is_none()
    }

    fn may_hide_items(&self) -> bool {
        let denies = |then| then == RuleAction::Deny;
        let hides = |rule: &AccessRule| denies(rule.action) && !rule.needs_call();
        self.rules.iter().any(hides) || self.default_action.is_some_and(denies)
    }

    fn hidden_reason(&self, caller: &Caller, item: &Item) -> String {
        self.action_for_item(caller, item).1
    }

    fn hidden_uri_reason(&self, caller: &Caller, template: &Item, uri: &str) -> Option<String> {
        self.hidden_reason(caller, template, Some(uri))
    }

    fn decide<'a>(&'a self, call: &'a Call, item: &'a Item) -> MaybeReady<'a> {
        let RuleEvaluation {
            action: then,
            why,
            other_rules: others,
            ..
        } = self.evaluate_call(call, item);
        for (verdict, why) in others {
            call.decision_log.add("access", verdict, why);
        }
        MaybeReady::Ready(match then {
            RuleAction::Allow => {
                call.decision_log.add("access", "allow", why);
                RuleDecision::Allow
            }
            // A completion runs on every keystroke, too often for an approval.
            RuleAction::Ask if matches!(call.op, Op::Complete(_)) => RuleDecision::Allow,
            RuleAction::Ask => RuleDecision::Ask(why),
            RuleAction::Deny => RuleDecision::Deny(Error::new(
                ErrorKind::Refused(RefusalReason::Rule),
                format!("refused: {why}"),
            )),
        })
    }
}
