//! Texts that a rule adds to the decision log, written once per config.

use super::{AccessRule, RuleAction};
use std::borrow::Cow;

/// Access rule with its texts for the decision log.
#[derive(Clone, Debug)]
pub(super) struct RuleWithTexts {
    pub(super) rule: AccessRule,
    /// Action of the rule, and the reason for which it applies.
    text: String,
    /// Start of the reason in `text`.
    reason: usize,
}

impl RuleWithTexts {
    pub(super) fn new(rule: AccessRule) -> RuleWithTexts {
        let start = format!("{}: ", action_name(rule.action));
        let reason = match &rule.when {
            None => rule.label.clone(),
            Some(when) => format!("{}: when {}", rule.label, when.line()),
        };
        RuleWithTexts {
            text: format!("{start}{reason}"),
            reason: start.len(),
            rule,
        }
    }

    /// Returns the reason for which the rule applies: its label, and its condition, which is true.
    pub(super) fn applies(&self) -> Cow<'_, str> {
        Cow::Borrowed(self.text.get(self.reason..).unwrap_or_default())
    }

    /// Returns a reason for which the rule applies, after the action of the rule.
    pub(super) fn with_action(&self, reason: &Cow<'_, str>) -> String {
        match reason {
            Cow::Borrowed(_) => self.text.clone(),
            Cow::Owned(reason) => format!("{}: {reason}", action_name(self.rule.action)),
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
