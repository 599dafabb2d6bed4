//! What would become of a call that nobody makes.

use crate::{Call, Decision, Item, Pipeline, Rule, Step, Verdict, gate::Gate};
use std::sync::Arc;

/// What would become of a call, step by step.
#[derive(Clone, Debug)]
pub struct Way {
    /// What was looked at, in the order of the pipeline.
    pub steps: Vec<Step>,
    /// What comes of it.
    pub end: Foreseen,
    /// Who decides that and why; of several who want a person asked, the first.
    pub decided: Option<Step>,
}

/// What would come of a call.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Foreseen {
    /// It may pass.
    Allow,
    /// A person is asked.
    Ask,
    /// It is refused.
    Refuse,
    /// The caller is told that there is no such thing.
    Hide,
}

impl Foreseen {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Foreseen::Allow => "allow",
            Foreseen::Ask => "ask",
            Foreseen::Refuse => "deny",
            Foreseen::Hide => "hide",
        }
    }
}

impl Pipeline {
    /// The way of a call of an item that its service has, whether or not the caller may see it. Every rule of the
    /// pipeline is asked by [`Rule::explain`]; nothing is called and no person is asked.
    pub async fn explain(&self, call: &Call, item: &Arc<Item>) -> Way {
        let mut way = Way::new();
        if let Some(why) = &item.withheld {
            return way.hides("resolve", why, format!("withheld: {why}"));
        }
        // A list passes the innermost first.
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
            if way.end >= Foreseen::Refuse {
                break;
            }
        }
        way
    }

    /// The rules, in the order in which they are asked.
    pub fn rules(&self) -> Vec<&'static str> {
        let rules = self.gates.iter().flat_map(|gate| &gate.rules);
        rules.map(|rule| rule.name()).collect()
    }
}

impl Way {
    fn new() -> Way {
        Way {
            steps: Vec::new(),
            end: Foreseen::Allow,
            decided: None,
        }
    }

    fn step(&mut self, by: &'static str, verdict: &'static str, why: impl Into<String>) {
        let why = why.into();
        self.steps.push(Step { by, verdict, why });
    }

    fn hides(mut self, by: &'static str, why: &str, text: String) -> Way {
        self.step("resolve", "hide", text);
        self.end = Foreseen::Hide;
        self.decided = Some(Step {
            by,
            verdict: "hide",
            why: why.to_owned(),
        });
        self
    }

    /// What a rule says, with what it left in the trail.
    async fn hear(&mut self, rule: &dyn Rule, call: &Call, item: &Item) {
        call.trail.clear();
        let verdict = match rule.explain(call, item) {
            Decision::Now(verdict) => verdict,
            Decision::Later(verdict) => verdict.await,
        };
        let steps = call.trail.steps();
        call.trail.clear();
        let (by, silent) = (rule.name(), steps.is_empty());
        let allows = |step: &&Step| step.verdict == "allow" && !step.why.is_empty();
        if self.decided.is_none() {
            self.decided = steps.iter().find(allows).cloned();
        }
        self.steps.extend(steps);
        let (end, verdict, why) = match verdict {
            Verdict::Allow if silent => return self.step(by, "allow", ""),
            Verdict::Allow => return,
            Verdict::Ask(why) => (Foreseen::Ask, "ask", why),
            Verdict::Refuse(error) => (Foreseen::Refuse, "refuse", error.public().to_owned()),
        };
        self.step(by, verdict, why);
        if end > self.end {
            self.end = end;
            self.decided = self.steps.last().cloned();
        }
    }
}

impl Gate {
    /// Who keeps the caller from knowing of what it names, and why.
    fn hides_from(&self, call: &Call, item: &Item) -> Option<(&'static str, String)> {
        let hides = self.hides(&call.caller, item);
        hides.or_else(|| self.hides_at(&call.caller, item, call.name()))
    }

    async fn explain(&self, call: &Call, item: &Arc<Item>, way: &mut Way) {
        for rule in &self.rules {
            way.hear(rule.as_ref(), call, item).await;
            if way.end >= Foreseen::Refuse {
                return;
            }
        }
        match (&self.confirm, way.end) {
            (Some(_), Foreseen::Allow) => way.step("confirm", "allow", "nobody is asked"),
            (Some(confirm), _) => way.step("confirm", "ask", confirm.explain(call, item)),
            (None, Foreseen::Ask) => {
                way.step("confirm", "refuse", "nobody can be asked here");
                way.end = Foreseen::Refuse;
            }
            (None, _) => {}
        }
    }
}
