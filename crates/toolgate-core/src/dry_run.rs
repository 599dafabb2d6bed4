//! Dry run of a call: evaluates the rules without executing it.

use crate::{
    Call, DecisionStep, Item, MaybeReady, Pipeline, Rule, RuleDecision, rule_layer::RuleLayer,
};
use std::sync::Arc;

/// Result of a dry run: how the rules would decide a call, step by step.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DryRun {
    /// Decisions of the evaluated rules, in pipeline order.
    pub steps: Vec<DecisionStep>,
    /// Predicted outcome of the call.
    pub outcome: PredictedOutcome,
    /// Decision that determines the outcome; of several rules that require approval, that of the first.
    pub deciding_step: Option<DecisionStep>,
}

/// Predicted outcome of a call.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum PredictedOutcome {
    /// The call is allowed.
    Allow,
    /// The call requires approval.
    Ask,
    /// The call is denied.
    Deny,
    /// The item is hidden: the caller gets the error for an unknown item.
    Hide,
}

impl PredictedOutcome {
    /// Returns the name of the predicted outcome, for example `allow`.
    pub fn as_str(self) -> &'static str {
        match self {
            PredictedOutcome::Allow => "allow",
            PredictedOutcome::Ask => "ask",
            PredictedOutcome::Deny => "deny",
            PredictedOutcome::Hide => "hide",
        }
    }
}

impl Pipeline {
    /// Explains how the rules decide a call of an existing item, whether or not the caller may see it. Every rule is
    /// evaluated with [`Rule::explain`]; nothing is executed and no approval is requested.
    pub async fn explain(&self, call: &Call, item: &Arc<Item>) -> DryRun {
        let mut way = DryRun::new();
        if let Some(why) = &item.withheld {
            return way.into_hidden("resolve", why, format!("withheld: {why}"));
        }
        // A list passes the innermost layer first.
        for gate in self.rule_layers.iter().rev() {
            if let Some((by, why)) = gate.hiding_rule_of(call, item) {
                let text = format!("{} does not see it: {why}", call.caller);
                return way.into_hidden(by, &why, text);
            }
        }
        let found = format!("{} for {}", item.full_name(), call.caller);
        way.add_step("resolve", "found", found);
        for gate in &self.rule_layers {
            gate.dry_run(call, item, &mut way).await;
            if way.outcome >= PredictedOutcome::Deny {
                break;
            }
        }
        way
    }

    /// Returns the names of the pipeline's rules, in the order of evaluation.
    pub fn rules(&self) -> Vec<&'static str> {
        let rules = self.rule_layers.iter().flat_map(|gate| &gate.rules);
        rules.map(|rule| rule.name()).collect()
    }
}

impl DryRun {
    fn new() -> DryRun {
        DryRun {
            steps: Vec::new(),
            outcome: PredictedOutcome::Allow,
            deciding_step: None,
        }
    }

    fn add_step(&mut self, by: &'static str, verdict: &'static str, why: impl Into<String>) {
        let why = why.into();
        self.steps.push(DecisionStep {
            policy: by,
            decision: verdict,
            reason: why,
        });
    }

    fn into_hidden(mut self, by: &'static str, why: &str, text: String) -> DryRun {
        self.add_step("resolve", "hide", text);
        self.outcome = PredictedOutcome::Hide;
        self.deciding_step = Some(DecisionStep {
            policy: by,
            decision: "hide",
            reason: why.to_owned(),
        });
        self
    }

    /// Evaluates a rule and adds its decision, with the entries that it added to the decision log.
    async fn evaluate(&mut self, rule: &dyn Rule, call: &Call, item: &Item) {
        call.decision_log.clear();
        let verdict = match rule.explain(call, item) {
            MaybeReady::Ready(verdict) => verdict,
            MaybeReady::Pending(verdict) => verdict.await,
        };
        let steps = call.decision_log.steps();
        call.decision_log.clear();
        let (by, silent) = (rule.name(), steps.is_empty());
        let allows = |step: &&DecisionStep| step.decision == "allow" && !step.reason.is_empty();
        if self.deciding_step.is_none() {
            self.deciding_step = steps.iter().find(allows).cloned();
        }
        self.steps.extend(steps);
        let (end, verdict, why) = match verdict {
            RuleDecision::Allow if silent => return self.add_step(by, "allow", ""),
            RuleDecision::Allow => return,
            RuleDecision::Ask(why) => (PredictedOutcome::Ask, "ask", why),
            RuleDecision::Deny(error) => (
                PredictedOutcome::Deny,
                "refuse",
                error.public_message().to_owned(),
            ),
        };
        self.add_step(by, verdict, why);
        if end > self.outcome {
            self.outcome = end;
            self.deciding_step = self.steps.last().cloned();
        }
    }
}

impl RuleLayer {
    /// Returns the rule that hides the called item from the caller, and its reason.
    fn hiding_rule_of(&self, call: &Call, item: &Item) -> Option<(&'static str, String)> {
        let hides = self.hiding_rule(&call.caller, item);
        hides.or_else(|| self.hiding_rule_at(&call.caller, item, call.name()))
    }

    async fn dry_run(&self, call: &Call, item: &Arc<Item>, way: &mut DryRun) {
        for rule in &self.rules {
            way.evaluate(rule.as_ref(), call, item).await;
            if way.outcome >= PredictedOutcome::Deny {
                return;
            }
        }
        match (&self.approval_step, way.outcome) {
            (Some(_), PredictedOutcome::Allow) => {
                way.add_step("confirm", "allow", "no approval is required")
            }
            (Some(confirm), _) => way.add_step("confirm", "ask", confirm.explain(call, item)),
            (None, PredictedOutcome::Ask) => {
                way.add_step("confirm", "refuse", "no approver is available here");
                way.outcome = PredictedOutcome::Deny;
            }
            (None, _) => {}
        }
    }
}
