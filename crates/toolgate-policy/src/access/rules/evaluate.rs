//! Evaluation of all access rules for one call or list entry.

use super::{AccessRule, AccessRules, RuleAction, rule_texts::RuleWithTexts};
use crate::{
    CelCondition, ConditionFacts,
    access::{matching::MatchingRules, names},
};
use serde_json::{Value, json};
use toolgate_core::{Call, Caller, Item, Op};

/// Result of evaluating all rules.
pub(super) struct RuleEvaluation {
    /// The strictest action.
    pub(super) action: RuleAction,
    /// Rule or default that decides, and the reason.
    pub(super) why: String,
    /// Rules that were evaluated and did not decide: the outcome for the decision log, and the reason.
    pub(super) other_rules: Vec<(&'static str, String)>,
    /// True if a call could get a milder action, so that the item is not hidden.
    pub(super) may_be_milder: bool,
}

/// Outcome of a rule that matched, when a stricter or earlier one decided.
const ALSO_MATCHED: &str = "also";
/// Outcome of a rule whose condition did not hold.
const NOT_MATCHED: &str = "passed";

/// Result of one rule.
enum RuleOutcome {
    /// The rule applies. If its condition could not be evaluated, says so.
    Applies(Option<String>),
    /// The rule does not apply, for this reason.
    Passes(String),
}

impl AccessRules {
    /// Evaluates all rules; `call` is absent for lists.
    pub(super) fn evaluate(
        &self,
        caller: &Caller,
        item: &Item,
        uri: Option<&str>,
        call: Option<&Call>,
    ) -> RuleEvaluation {
        let server = &item.origin.server;
        if let Some(why) = self.views.hidden_server_reason(caller, server) {
            return RuleEvaluation {
                action: RuleAction::Deny,
                why,
                other_rules: Vec::new(),
                may_be_milder: false,
            };
        }
        if self.rules.is_empty() {
            let (then, why) = self.default_for(item);
            return RuleEvaluation {
                action: then,
                why,
                other_rules: Vec::new(),
                may_be_milder: false,
            };
        }
        let matching = MatchingRules::of(&self.rules, item, uri, |known, names| {
            known.rule.matches_item(names)
        });
        let of_caller = |known: &&RuleWithTexts| known.rule.callers.matches(caller);
        let mut strictest: Option<(&RuleWithTexts, Option<String>)> = None;
        let (mut others, mut late) = (Vec::new(), false);
        for known in matching.iter().filter(of_caller) {
            let action = known.rule.action;
            if known.rule.needs_call() && call.is_none() {
                late |= action != RuleAction::Deny;
                continue;
            }
            let applies = match self.evaluate_rule(&known.rule, caller, item, call) {
                RuleOutcome::Passes(why) => {
                    others.push((NOT_MATCHED, why));
                    continue;
                }
                RuleOutcome::Applies(failure) => (known, failure),
            };
            let other = match strictest.take() {
                Some(first) if first.0.rule.action >= action => {
                    strictest = Some(first);
                    Some(applies)
                }
                milder_or_none => {
                    strictest = Some(applies);
                    milder_or_none
                }
            };
            if let Some((rule, failure)) = other {
                others.push((ALSO_MATCHED, rule.action_and_reason(failure)));
            }
        }
        let decided = strictest.is_some();
        let (then, why) = match strictest {
            Some((known, failure)) => (known.rule.action, known.reason(failure)),
            None => self.default_for(item),
        };
        RuleEvaluation {
            action: then,
            why,
            other_rules: others,
            may_be_milder: !decided && late,
        }
    }

    /// Returns the default action without a matching rule.
    fn default_for(&self, item: &Item) -> (RuleAction, String) {
        match self.default_action {
            Some(then) => (then, "no rule matches".to_owned()),
            None if item.annotations().read_only => {
                let kind = item.kind().as_str();
                let why =
                    format!("no rule matches, and a trusted server marks the {kind} as read-only");
                (RuleAction::Allow, why)
            }
            None => {
                let kind = item.kind().as_str();
                let why = format!("no rule matches, and the {kind} is not known to be read-only");
                (RuleAction::Ask, why)
            }
        }
    }

    fn evaluate_rule(
        &self,
        rule: &AccessRule,
        caller: &Caller,
        item: &Item,
        call: Option<&Call>,
    ) -> RuleOutcome {
        let Some(when) = &rule.when else {
            return RuleOutcome::Applies(None);
        };
        // A condition that fails to evaluate disables an allow rule, and enables an ask or deny rule.
        match self.condition_holds(rule.action, when, caller, item, call) {
            Ok(true) => RuleOutcome::Applies(None),
            Ok(false) => RuleOutcome::Passes(format!("{}: its condition is false", rule.label)),
            Err(why) => {
                let why = format!("{}: its condition cannot be evaluated: {why}", rule.label);
                match rule.action {
                    RuleAction::Allow => RuleOutcome::Passes(why),
                    RuleAction::Ask | RuleAction::Deny => RuleOutcome::Applies(Some(why)),
                }
            }
        }
    }

    fn condition_holds(
        &self,
        then: RuleAction,
        when: &CelCondition,
        caller: &Caller,
        item: &Item,
        call: Option<&Call>,
    ) -> Result<bool, String> {
        let mut facts = ConditionFacts::new(caller, item);
        // A completion has no arguments yet: the typed text is not what a call will send.
        facts.arguments = call
            .filter(|call| !matches!(call.op, Op::Complete(_)))
            .map(Call::arguments);
        facts.time = self.at.unwrap_or(facts.time);
        let as_it_came = when.evaluate(&facts)?;
        let resource = call.filter(|call| call.op == Op::Resource && when.reads_args());
        let Some(call) = resource else {
            return Ok(as_it_came);
        };
        // A URI has several spellings. An alternative spelling must not bypass a rule or widen an allow.
        let mut holds = as_it_came;
        for uri in names::uri_spellings(call.name()) {
            let instead: Value = json!({ "uri": uri });
            let facts = ConditionFacts {
                substitute: Some(&instead),
                ..facts.clone()
            };
            let other = when.evaluate(&facts)?;
            holds = match then {
                RuleAction::Allow => holds && other,
                RuleAction::Ask | RuleAction::Deny => holds || other,
            };
        }
        Ok(holds)
    }
}
