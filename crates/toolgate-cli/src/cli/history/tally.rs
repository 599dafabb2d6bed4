//! Counts of recorded calls and their output.

use crate::{
    cli::output::{OutputTable, OutputTime},
    history::{RecordedCall, RecordedDecision, ReplayResult, ReplayedCall},
    runtime::offline::format_age,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::{cmp::Reverse, collections::BTreeMap};
use toolgate_core::{visible, visible_line};

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
    examples: Vec<ExampleOutput>,
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
            ReplayResult::Decided(now) if now.word() == then.word() => {
                self.same += 1;
                return;
            }
            ReplayResult::Decided(now) => {
                *match now.word() {
                    "allow" => &mut self.allowed,
                    "ask" => &mut self.asked,
                    _ => &mut self.denied,
                } += 1;
                self.example(call, &judged.tool, then, now);
                (now.word(), now.reason())
            }
        };
        let then = then.word();
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
            self.examples.push(ExampleOutput {
                call: call.id.clone(),
                tool: tool.to_owned(),
                caller: call.caller.name().to_owned(),
                recorded_at: OutputTime::from_millis(call.at / 1000),
                before: then.word(),
                before_reason: then.reason(),
                after: now.word(),
                after_reason: now.reason(),
            });
        }
    }

    /// Returns the number of calls so far.
    pub(super) fn calls(&self) -> u64 {
        self.same + self.allowed + self.asked + self.denied + self.unknown + self.other
    }

    /// Returns the output. `source` names the config.
    pub(crate) fn output(self, source: String) -> HistoryOutput {
        let calls = self.calls();
        let changes = self.changes.into_iter();
        let mut changes: Vec<ChangeOutput> = changes
            .map(|(change, calls)| ChangeOutput {
                tool: change.tool,
                before: change.then,
                after: change.now,
                reason: change.why,
                calls,
            })
            .collect();
        changes.sort_by_key(|change| Reverse(change.calls));
        HistoryOutput {
            source,
            calls,
            same: self.same,
            allowed: self.allowed,
            asked: self.asked,
            denied: self.denied,
            unknown: self.unknown,
            not_evaluated: self.other,
            changes,
            examples: self.examples,
        }
    }
}

/// Recorded calls under a config.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct HistoryOutput {
    /// Config.
    source: String,
    /// Number of recorded calls; the sum of the next six numbers.
    calls: u64,
    /// Calls with the same decision.
    same: u64,
    /// Calls that would now be allowed.
    allowed: u64,
    /// Calls that would now need an approval.
    asked: u64,
    /// Calls that would now be denied.
    denied: u64,
    /// Calls whose decision is unknown, for example because their arguments are not recorded.
    unknown: u64,
    /// Calls that no rule decided, for example because of invalid arguments.
    not_evaluated: u64,
    /// Changed decisions, the most frequent first.
    changes: Vec<ChangeOutput>,
    /// First calls with another decision.
    examples: Vec<ExampleOutput>,
}

/// Changed decision about calls of a tool.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct ChangeOutput {
    /// Full name.
    tool: String,
    /// Recorded decision: `allow`, `ask` or `deny`.
    before: &'static str,
    /// Decision of the config: `allow`, `ask`, `deny`, or `?` if it is unknown.
    after: &'static str,
    /// Rule, or layer of the policy.
    reason: String,
    /// Number of calls.
    calls: u64,
}

/// Call with another decision.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct ExampleOutput {
    /// ID of the call.
    call: String,
    /// Full name.
    tool: String,
    caller: String,
    recorded_at: OutputTime,
    /// Recorded decision.
    before: &'static str,
    before_reason: String,
    /// Decision of the config.
    after: &'static str,
    after_reason: String,
}

impl HistoryOutput {
    /// Returns the text for the terminal.
    pub(crate) fn text(&self) -> String {
        let mut table = OutputTable::new(&[]);
        let mut count = |count: u64, what: &str| table.add_line(format!("{count:>7} {what}"));
        count(
            self.calls,
            if self.calls == 1 {
                "recorded call"
            } else {
                "recorded calls"
            },
        );
        count(self.same, "same decision");
        count(self.allowed, "would be allowed");
        count(self.asked, "would need an approval");
        count(self.denied, "would be denied");
        count(self.unknown, "unknown");
        count(
            self.not_evaluated,
            "not decided by a rule (for example, because of invalid arguments), so not evaluated",
        );
        if !self.changes.is_empty() {
            table.add_line(String::new());
        }
        for change in self.changes.iter().take(MAX_CHANGES_SHOWN) {
            let (tool, why) = (visible(&change.tool), visible(&change.reason));
            let text = format!("{tool}: {} -> {}, {why}", change.before, change.after);
            table.add_line(format!("{:>7} {text}", change.calls));
        }
        let more = self.changes.len().saturating_sub(MAX_CHANGES_SHOWN);
        if more > 0 {
            table.add_line(format!("        and {more} more"));
        }
        if !self.examples.is_empty() {
            table.add_line("\nfor example".to_owned());
        }
        for one in &self.examples {
            let line = format!(
                "  {} {} for {} {}: {} ({}) -> {} ({})",
                one.call,
                one.tool,
                one.caller,
                format_age(one.recorded_at.as_millis()),
                one.before,
                one.before_reason,
                one.after,
                one.after_reason
            );
            table.add_line(visible_line(&line));
        }
        table.add_line(format!(
            "\nevaluated with {}; nothing was called",
            self.source
        ));
        table.text()
    }
}
