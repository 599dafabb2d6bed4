//! Counts of recorded calls and their output.

use super::{
    recorded::{RecordedCall, RecordedDecision},
    replay::{ReplayResult, ReplayedCall},
};
use crate::runtime::offline::format_age;
use std::{cmp::Reverse, collections::BTreeMap};
use toolgate_core::{PredictedOutcome, visible};

/// Maximum number of distinct changes; further ones are only counted in the totals.
const MAX_DECISION_CHANGES: usize = 10_000;
/// Maximum number of changes in the output.
const MAX_CHANGES_SHOWN: usize = 50;
/// Maximum number of example calls in the output.
const MAX_EXAMPLES_SHOWN: usize = 10;

/// Counts of evaluated calls.
#[derive(Debug, Default)]
pub(crate) struct HistoryTally {
    same: u64,
    allowed: u64,
    asked: u64,
    denied: u64,
    unknown: u64,
    /// Calls rejected for a reason other than a rule.
    other: u64,
    changes: BTreeMap<DecisionChange, u64>,
    examples: Vec<String>,
}

/// Group of calls with the same tool, old decision, new decision and reason.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct DecisionChange {
    tool: String,
    then: &'static str,
    now: &'static str,
    why: String,
}

impl HistoryTally {
    /// Adds a call.
    pub(super) fn add(&mut self, call: &RecordedCall, judged: ReplayedCall) {
        let Some(then) = &call.decision else {
            self.other += 1;
            return;
        };
        let (now, why) = match &judged.result {
            ReplayResult::Unknown(why) => {
                self.unknown += 1;
                ("?", why.clone())
            }
            ReplayResult::Decided(now) if decision_word(now) == decision_word(then) => {
                self.same += 1;
                return;
            }
            ReplayResult::Decided(now) => {
                *match decision_word(now) {
                    "allow" => &mut self.allowed,
                    "ask" => &mut self.asked,
                    _ => &mut self.denied,
                } += 1;
                self.example(call, &judged.tool, then, now);
                (decision_word(now), reason(now))
            }
        };
        let then = decision_word(then);
        let change = DecisionChange {
            tool: judged.tool,
            then,
            now,
            why,
        };
        if self.changes.len() < MAX_DECISION_CHANGES || self.changes.contains_key(&change) {
            *self.changes.entry(change).or_default() += 1;
        }
    }

    fn example(
        &mut self,
        call: &RecordedCall,
        tool: &str,
        then: &RecordedDecision,
        now: &RecordedDecision,
    ) {
        if self.examples.len() < MAX_EXAMPLES_SHOWN {
            let told = |one: &RecordedDecision| format!("{} ({})", decision_word(one), reason(one));
            let line = format!(
                "{} {tool} for {} {}: {} -> {}",
                call.id,
                call.caller,
                format_age(call.at / 1000),
                told(then),
                told(now)
            );
            self.examples.push(visible(&line));
        }
    }

    /// Returns the text for the terminal.
    pub(crate) fn text(&self) -> String {
        let all = self.same + self.allowed + self.asked + self.denied + self.unknown + self.other;
        let mut text = format!(
            "{all:>7} recorded call{}\n",
            if all == 1 { "" } else { "s" }
        );
        for (count, what) in [
            (self.same, "same decision"),
            (self.allowed, "would be allowed"),
            (self.asked, "would need an approval"),
            (self.denied, "would be denied"),
            (self.unknown, "unknown"),
            (
                self.other,
                "not decided by a rule (for example, because of invalid arguments), so not evaluated",
            ),
        ] {
            text.push_str(&format!("{count:>7} {what}\n"));
        }
        let mut changes: Vec<(&DecisionChange, &u64)> = self.changes.iter().collect();
        changes.sort_by_key(|(_, count)| Reverse(**count));
        for (change, count) in changes.iter().take(MAX_CHANGES_SHOWN) {
            let (tool, why) = (visible(&change.tool), visible(&change.why));
            let (then, now) = (change.then, change.now);
            text.push_str(&format!("\n{count:>7} {tool}: {then} -> {now}, {why}"));
        }
        match changes.len() {
            0 => {}
            n if n > MAX_CHANGES_SHOWN => {
                text.push_str(&format!("\n        and {} more\n", n - MAX_CHANGES_SHOWN))
            }
            _ => text.push('\n'),
        }
        if !self.examples.is_empty() {
            text.push_str(&format!(
                "\nfor example\n  {}\n",
                self.examples.join("\n  ")
            ));
        }
        text
    }
}

/// Returns the decision word; hiding counts as a denial.
fn decision_word(one: &RecordedDecision) -> &'static str {
    match one.outcome {
        PredictedOutcome::Allow => "allow",
        PredictedOutcome::Ask => "ask",
        _ => "deny",
    }
}

/// Returns the rule, or only the name of another policy layer: its message could reveal arguments.
fn reason(one: &RecordedDecision) -> String {
    match one.by.as_str() {
        "access" | "resolve" => one
            .why
            .strip_prefix("refused: ")
            .unwrap_or(&one.why)
            .to_owned(),
        by => by.to_owned(),
    }
}
