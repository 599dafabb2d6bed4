//! Texts that a rule adds to the decision log, written once per config.

use super::{AccessRule, RuleAction};

/// Access rule with its texts for the decision log.
#[derive(Clone, Debug)]
pub(super) struct RuleWithTexts {
    pub(super) rule: AccessRule,
    /// Reason for which the rule applies: its label, and its condition, which is true.
    reason: String,
    /// Action of the rule, and this reason.
    action_and_reason: String,
}

impl RuleWithTexts {
    pub(super) fn new(rule: AccessRule) -> RuleWithTexts {
        let reason = match &rule.when {
            None => rule.label.clone(),
            Some(when) => format!("{}: when {}", rule.label, when.line()),
        };
        RuleWithTexts {
            action_and_reason: format!("{}: {reason}", action_name(rule.action)),
            reason,
            rule,
        }
    }

    /// Returns the reason for which the rule applies. `failure` says that its condition could not be evaluated.
    pub(super) fn reason(&self, failure: Option<String>) -> String {
        failure.unwrap_or_else(|| self.reason.clone())
    }

    /// Returns the action of the rule, and the reason for which it applies.
    pub(super) fn action_and_reason(&self, failure: Option<String>) -> String {
        match failure {
            None => self.action_and_reason.clone(),
            Some(failure) => format!("{}: {failure}", action_name(self.rule.action)),
        }
    }
}

fn action_name(action: RuleAction) -> &'static str {
    match action {
        RuleAction::Allow => "allow",
        RuleAction::Ask => "ask",
        RuleAction::Deny => "deny",
    }
}
