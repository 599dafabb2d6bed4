//! Dry run of a call: evaluates the rules without executing it.

use crate::{Call, DecisionStep, Item, MaybeReady, Pipeline, Rule, RuleDecision, gate::RuleLayer};
use std::sync::Arc;

/// Dry run of a call, step by step.
#[derive(Clone, Debug)]
pub struct DryRun {
    /// Evaluated steps, in pipeline order.
    pub steps: Vec<DecisionStep>,
    /// Predicted outcome.
    pub end: PredictedOutcome,
    /// Step that determines the outcome; of several rules that require approval, the first.
    pub decided: Option<DecisionStep>,
}

/// Predicted outcome of a call.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum PredictedOutcome {
    /// The call is allowed.
    Allow,
    /// The call requires approval.
    Ask,
    /// The call is denied.
    Refuse,
    /// The item is hidden: the caller gets the error for an unknown item.
    Hide,
}

impl PredictedOutcome {
    /// Name of the outcome.
    pub fn as_str(self) -> &'static str {
        match self {
            PredictedOutcome::Allow => "allow",
            PredictedOutcome::Ask => "ask",
            PredictedOutcome::Refuse => "deny",
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
            return way.hides("resolve", why, format!("withheld: {why}"));
        }
        // A list passes the innermost layer first.
        for gate in self.gates.iter().rev() {
            if let Some((by, why)) = gate.hides_from(call, item) {
                let text = format!("{} does not see it: {why}", call.caller);
                return way.hides(by, &why, text);
            }
        }
        let found = format!("{} for {}", item.full_name(), call.caller);
        way.step("resolve", "found", found);
        for gate in &self.gates {
            gate.explain(call, item, &mut way).await;
            if way.end >= PredictedOutcome::Refuse {
                break;
            }
        }
        way
    }

    /// Names of the rules, in the order of evaluation.
    pub fn rules(&self) -> Vec<&'static str> {
        let rules = self.gates.iter().flat_map(|gate| &gate.rules);
        rules.map(|rule| rule.name()).collect()
    }
}

impl DryRun {
    fn new() -> DryRun {
        DryRun {
            steps: Vec::new(),
            end: PredictedOutcome::Allow,
            decided: None,
        }
    }

    fn step(&mut self, by: &'static str, verdict: &'static str, why: impl Into<String>) {
        let why = why.into();
        self.steps.push(DecisionStep { by, verdict, why });
    }

    fn hides(mut self, by: &'static str, why: &str, text: String) -> DryRun {
        self.step("resolve", "hide", text);
        self.end = PredictedOutcome::Hide;
        self.decided = Some(DecisionStep {
            by,
            verdict: "hide",
            why: why.to_owned(),
        });
        self
    }

    /// Evaluates a rule and adds its decision, with the entries that it added to the decision log.
    async fn hear(&mut self, rule: &dyn Rule, call: &Call, item: &Item) {
        call.trail.clear();
        let verdict = match rule.explain(call, item) {
            MaybeReady::Now(verdict) => verdict,
            MaybeReady::Later(verdict) => verdict.await,
        };
        let steps = call.trail.steps();
        call.trail.clear();
        let (by, silent) = (rule.name(), steps.is_empty());
        let allows = |step: &&DecisionStep| step.verdict == "allow" && !step.why.is_empty();
        if self.decided.is_none() {
            self.decided = steps.iter().find(allows).cloned();
        }
        self.steps.extend(steps);
        let (end, verdict, why) = match verdict {
            RuleDecision::Allow if silent => return self.step(by, "allow", ""),
            RuleDecision::Allow => return,
            RuleDecision::Ask(why) => (PredictedOutcome::Ask, "ask", why),
            RuleDecision::Refuse(error) => (
                PredictedOutcome::Refuse,
                "refuse",
                error.public().to_owned(),
            ),
        };
        self.step(by, verdict, why);
        if end > self.end {
            self.end = end;
            self.decided = self.steps.last().cloned();
        }
    }
}

impl RuleLayer {
    /// Returns the rule that hides the called item from the caller, and its reason.
    fn hides_from(&self, call: &Call, item: &Item) -> Option<(&'static str, String)> {
        let hides = self.hides(&call.caller, item);
        hides.or_else(|| self.hides_at(&call.caller, item, call.name()))
    }

    async fn explain(&self, call: &Call, item: &Arc<Item>, way: &mut DryRun) {
        for rule in &self.rules {
            way.hear(rule.as_ref(), call, item).await;
            if way.end >= PredictedOutcome::Refuse {
                return;
            }
        }
        match (&self.confirm, way.end) {
            (Some(_), PredictedOutcome::Allow) => {
                way.step("confirm", "allow", "no approval is required")
            }
            (Some(confirm), _) => way.step("confirm", "ask", confirm.explain(call, item)),
            (None, PredictedOutcome::Ask) => {
                way.step("confirm", "refuse", "approvals are not available here");
                way.end = PredictedOutcome::Refuse;
            }
            (None, _) => {}
        }
    }
}
