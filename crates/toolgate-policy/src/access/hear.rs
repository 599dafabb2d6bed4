//! Evaluation of all access rules for one call or list entry.

use super::{AccessRule, AccessRules, RuleAction};
use crate::{CelCondition, ConditionFacts, names};
use serde_json::{Value, json};
use toolgate_core::{Call, Caller, Item, Op};

/// Result of evaluating all rules.
pub(super) struct RuleEvaluation {
    /// The strictest action.
    pub(super) then: RuleAction,
    /// Rule or default that decides, and the reason.
    pub(super) why: String,
    /// Rules that were evaluated and did not decide: the outcome for the decision log, and the reason.
    pub(super) others: Vec<(&'static str, String)>,
    /// True if a call could get a milder action, so that the item is not hidden.
    pub(super) open: bool,
}

/// Outcome of a rule that matched, when a stricter or earlier one decided.
const ALSO_MATCHED: &str = "also";
/// Outcome of a rule whose condition did not hold.
const NOT_MATCHED: &str = "passed";

/// Result of one rule.
enum RuleOutcome {
    Yes(String),
    No(String),
}

impl AccessRules {
    /// Evaluates all rules; `call` is absent for lists.
    pub(super) fn hear(
        &self,
        caller: &Caller,
        item: &Item,
        uri: Option<&str>,
        call: Option<&Call>,
    ) -> RuleEvaluation {
        if self.rules.is_empty() {
            let (then, why) = self.default_for(item);
            return RuleEvaluation {
                then,
                why,
                others: Vec::new(),
                open: false,
            };
        }
        let names = names::of(item, uri);
        let speaks = |rule: &&AccessRule| rule.speaks_of(caller, &names);
        let mut strictest: Option<(RuleAction, String)> = None;
        let (mut others, mut late) = (Vec::new(), false);
        for rule in self.rules.iter().filter(speaks) {
            if rule.is_late() && call.is_none() {
                late |= rule.then != RuleAction::Deny;
                continue;
            }
            match self.ask(rule, caller, item, call) {
                RuleOutcome::No(why) => others.push((NOT_MATCHED, why)),
                RuleOutcome::Yes(why) => match &mut strictest {
                    Some((then, _)) if *then >= rule.then => {
                        others.push((ALSO_MATCHED, said(rule, &why)))
                    }
                    Some((then, decided)) => {
                        others.push((ALSO_MATCHED, format!("{}: {decided}", word(*then))));
                        (*then, *decided) = (rule.then, why);
                    }
                    none => *none = Some((rule.then, why)),
                },
            }
        }
        let decided = strictest.is_some();
        let (then, why) = strictest.unwrap_or_else(|| self.default_for(item));
        RuleEvaluation {
            then,
            why,
            others,
            open: !decided && late,
        }
    }

    /// Returns the default action without a matching rule.
    fn default_for(&self, item: &Item) -> (RuleAction, String) {
        match self.otherwise {
            Some(then) => (then, "no rule".to_owned()),
            None if item.hints().read_only => {
                let kind = item.kind().word();
                let why = format!("no rule: read-only {kind} of a trusted server");
                (RuleAction::Allow, why)
            }
            None => (
                RuleAction::Ask,
                "no rule: not known to be read-only".to_owned(),
            ),
        }
    }

    fn ask(
        &self,
        rule: &AccessRule,
        caller: &Caller,
        item: &Item,
        call: Option<&Call>,
    ) -> RuleOutcome {
        let label = &rule.label;
        let Some(when) = &rule.when else {
            return RuleOutcome::Yes(label.clone());
        };
        // A condition that fails to evaluate disables an allow rule, and enables an ask or deny rule.
        match self.holds(rule.then, when, caller, item, call) {
            Ok(true) => RuleOutcome::Yes(format!("{label}: when {}", shown(when))),
            Ok(false) => RuleOutcome::No(format!("{label}: its condition does not hold")),
            Err(why) => {
                let why = format!("{label}: its condition cannot be evaluated: {why}");
                match rule.then {
                    RuleAction::Allow => RuleOutcome::No(why),
                    RuleAction::Ask | RuleAction::Deny => RuleOutcome::Yes(why),
                }
            }
        }
    }

    fn holds(
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
        let as_it_came = when.judge(&facts)?;
        let resource = call.filter(|call| call.op == Op::Resource && when.reads_args());
        let Some(call) = resource else {
            return Ok(as_it_came);
        };
        // A URI has several spellings. An alternative spelling must not bypass a rule or widen an allow.
        let mut holds = as_it_came;
        for uri in names::spellings(call.name()) {
            let instead: Value = json!({ "uri": uri });
            let facts = ConditionFacts {
                instead: Some(&instead),
                ..facts.clone()
            };
            let other = when.judge(&facts)?;
            holds = match then {
                RuleAction::Allow => holds && other,
                RuleAction::Ask | RuleAction::Deny => holds || other,
            };
        }
        Ok(holds)
    }
}

fn word(then: RuleAction) -> &'static str {
    match then {
        RuleAction::Allow => "allow",
        RuleAction::Ask => "ask",
        RuleAction::Deny => "deny",
    }
}

fn said(rule: &AccessRule, why: &str) -> String {
    format!("{}: {why}", word(rule.then))
}

/// Returns the condition in one line of at most 200 characters.
fn shown(when: &CelCondition) -> String {
    const MAX_CONDITION_CHARS: usize = 200;
    let words: Vec<&str> = when.as_str().split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(MAX_CONDITION_CHARS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}
