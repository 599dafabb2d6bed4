//! Secret detection and redaction, for content from servers and for outbound arguments.
//!
//! The formats of secrets are in `rules.toml`, in the format of gitleaks (`rule_table.rs` for the program), and in rule
//! files of the operator. A text is first searched for the keywords of all rules at once. Only rules with a keyword in the
//! text are tried, each in time linear to the text. Patterns are compiled lazily, since most programs never see text with
//! a keyword of a given rule.

mod allowlist;
mod built_in;
mod check;
#[cfg(feature = "secret-rule-files")]
mod computed;
mod edit;
pub(crate) mod field;
pub(crate) mod find;
#[cfg(test)]
#[cfg(feature = "secret-rule-files")]
mod formats;
mod keywords;
#[cfg(feature = "secret-rule-files")]
mod rule_file;
mod rule_set;
mod rule_table;
mod rules;
#[cfg(test)]
#[cfg(feature = "secret-rule-files")]
mod tests;

pub(crate) use find::may_hold as may_hold_secret;
#[cfg(feature = "secret-rule-files")]
pub use rule_file::SecretRulesError;
pub use rule_set::SecretRules;

use self::edit::SecretRedaction;
use crate::{PerServer, sanitize_text};
use serde_json::{Map, Value};
use std::{borrow::Cow, sync::Arc};
use toolgate_core::{
    DecisionLog, Error, Item, Json, Origin, SanitizeContext, Sanitizer, UntrustedContent,
};

/// Start of a redaction mark; the id of the rule and a `]` follow.
const MARK_PREFIX: &str = toolgate_protocol::placeholder::REDACTED;

/// Prefix of the counters of secrets in a decision log.
const COUNTER_PREFIX: &str = "secret:";

/// Policy for a secret (token, key) in content from a server.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum OnSecret {
    /// Replaces the secret by `[redacted:RULE]`.
    #[default]
    Redact,
    /// Passes the secret on; the audit log counts it.
    Warn,
    /// Does not search for secrets in content.
    Pass,
}

/// Sanitizer for the redaction of secrets (tokens, keys) in content from servers: results, errors, progress, log
/// messages, input requests and definitions.
///
/// ```
/// use toolgate_policy::SecretRedactor;
///
/// let line = "login with ghp_0123456789abcdefABCDEF0123456789abcd";
/// let redacted = SecretRedactor::redact_text(line);
/// assert!(redacted.starts_with("login with [redacted:"), "{redacted}");
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SecretRedactor {
    /// Policy for secrets in content, by server.
    pub on_secret: PerServer<OnSecret>,
}

impl SecretRedactor {
    /// Installs the operator's rules for finding secrets beside the built-in ones, in the whole process. Secrets must
    /// not appear in an audit log either, whichever server sent them. Replaces rules that were installed before.
    pub fn install(rules: &[SecretRules]) {
        rules::install(rules);
    }

    /// Returns the JSON value with each secret in its strings replaced by `[redacted:RULE]`; all other bytes are
    /// unchanged.
    pub fn redact_json(json: &Json) -> Json {
        SecretRedaction::default()
            .other(json)
            .map_or_else(|| json.clone(), |(clean, _)| clean)
    }

    /// Returns the text with each secret (token, key) replaced by `[redacted:RULE]`.
    pub fn redact_text(text: &str) -> Cow<'_, str> {
        match find::redact(text, &mut |_| {}) {
            Some(clean) => Cow::Owned(clean),
            None => Cow::Borrowed(text),
        }
    }

    /// Returns the text without secrets, for an audit log or a screen. It is unchanged if it has none, even with
    /// invisible characters removed. Otherwise it is sanitized, and each secret is replaced by `[redacted:RULE]`.
    #[doc(hidden)]
    pub fn redact_for_display(text: &str) -> Cow<'_, str> {
        match sanitize_text(text) {
            Cow::Borrowed(text) => SecretRedactor::redact_text(text),
            Cow::Owned(clean) => match find::redact(&clean, &mut |_| {}) {
                Some(redacted) => Cow::Owned(redacted),
                None => Cow::Borrowed(text),
            },
        }
    }

    /// Returns the id of the rule that finds a secret in a text, or in the value of a member with this name.
    #[doc(hidden)]
    pub fn matching_rule(name: &str, text: &str) -> Option<Arc<str>> {
        let field = &field::FIELD_RULE;
        let by_name = || field.holds(name, text).then(|| field.id.into());
        find::find(text)
            .into_iter()
            .next()
            .map(|found| found.rule)
            .or_else(by_name)
    }

    fn redact(
        &self,
        trail: Option<&DecisionLog>,
        from: Option<&Origin>,
        value: UntrustedContent<'_>,
    ) -> Result<(), Error> {
        let found = from.map_or_else(OnSecret::default, |from| self.on_secret.of(&from.server));
        if found == OnSecret::Pass {
            return Ok(());
        }
        let mut redaction = SecretRedaction {
            dry: found == OnSecret::Warn,
            ..SecretRedaction::default()
        };
        let edited = crate::sanitize::edit::edit_strings(value, &mut redaction);
        for (rule, times) in redaction.seen {
            if let Some(trail) = trail {
                trail.count(&[COUNTER_PREFIX, &rule].concat(), times);
            }
        }
        edited
    }
}

impl Sanitizer for SecretRedactor {
    fn name(&self) -> &'static str {
        "secrets"
    }

    fn sanitize(
        &self,
        from: Option<&Origin>,
        _: Option<&Arc<Item>>,
        value: UntrustedContent<'_>,
    ) -> Result<(), Error> {
        self.redact(None, from, value)
    }

    fn sanitize_for_call(
        &self,
        asked: &SanitizeContext,
        from: Option<&Origin>,
        _: Option<&Arc<Item>>,
        value: UntrustedContent<'_>,
    ) -> Result<(), Error> {
        self.redact(Some(&asked.decision_log), from, value)
    }
}

/// Returns the number of secrets in the result of a call, by rule: redacted, or passed with [`OnSecret::Warn`].
pub(crate) fn counts(trail: &DecisionLog) -> Map<String, Value> {
    let counts = trail.counts().into_iter();
    let ours = counts
        .filter_map(|(name, n)| Some((name.strip_prefix(COUNTER_PREFIX)?.to_owned(), n.into())));
    ours.collect()
}

/// Returns whether a text contains a redaction mark.
pub(crate) fn is_marked(text: &str) -> bool {
    text.contains(MARK_PREFIX)
}
