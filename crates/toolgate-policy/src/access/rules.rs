//! Access rules of the operator: allow, ask or deny calls.

mod argument_reads;
mod evaluate;
mod rule_texts;

pub use argument_reads::ArgumentReads;

use crate::{
    CallerMatcher, CelCondition, GlobPattern,
    access::{names::ItemNames, views::AccessViews},
};
use argument_reads::RuleArgumentReads;
use evaluate::RuleEvaluation;
use rule_texts::RuleWithTexts;
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
    /// Matching callers; by default all.
    pub callers: CallerMatcher,
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
            callers: CallerMatcher::default(),
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
    rules: Arc<[RuleWithTexts]>,
    /// True if a rule may deny all calls of an item.
    has_hiding_rule: bool,
    default_action: Option<RuleAction>,
    views: AccessViews,
    at: Option<SystemTime>,
}

impl AccessRules {
    /// Creates access rules in the order of the configuration.
    pub fn new(rules: Vec<AccessRule>) -> AccessRules {
        let hides = |rule: &AccessRule| rule.action == RuleAction::Deny && !rule.needs_call();
        AccessRules {
            has_hiding_rule: rules.iter().any(hides),
            rules: rules.into_iter().map(RuleWithTexts::new).collect(),
            default_action: None,
            views: AccessViews::default(),
            at: None,
        }
    }

    /// Sets the action (allow, ask or deny) for calls that no access rule matches.
    pub fn default_action(mut self, action: RuleAction) -> AccessRules {
        self.default_action = Some(action);
        self
    }

    /// Sets the views, which hide the other servers from callers at their endpoints.
    pub fn views(mut self, views: AccessViews) -> AccessRules {
        self.views = views;
        self
    }

    /// Returns the reason why the caller may not use the view at whose endpoint it is; `None` if it may, or is at none.
    #[doc(hidden)]
    pub fn view_refusal(&self, caller: &Caller) -> Option<String> {
        self.views.refusal(caller)
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
        let rules = self.rules.iter().map(|known| &known.rule);
        let rules = rules.filter_map(reads);
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

    /// Reports whether a rule or the default may deny all calls of an item.
    fn rules_may_hide(&self) -> bool {
        self.has_hiding_rule || self.default_action == Some(RuleAction::Deny)
    }

    /// Evaluates all rules for a call, for the audit record.
    fn evaluate_call(&self, call: &Call, item: &Item) -> RuleEvaluation {
        self.evaluate(&call.caller, item, Some(call.name()), Some(call))
    }

    /// Returns the reason if every call of the item would be denied, so that it is hidden.
    fn hidden_reason(&self, caller: &Caller, item: &Item, uri: Option<&str>) -> Option<String> {
        // Callers without a view, who are most callers, are judged by the rules only.
        if caller.view().is_none() && !self.rules_may_hide() {
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
        !self.views.is_empty() || self.rules_may_hide()
    }

    fn is_server_visible(&self, caller: &Caller, server: &str) -> bool {
        self.views.hidden_server_reason(caller, server).is_none()
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
