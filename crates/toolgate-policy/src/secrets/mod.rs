//! Secrets do not come back to a caller, and do not leave unasked.
//!
//! What a secret looks like is written in `rules.toml`, in the format of gitleaks, and in files of the operator. A text is first searched for the keywords of all rules at once; only
//! the rules whose keywords it holds are tried, each in time linear to the text. Their patterns are compiled then, and not at
//! the start: most programs never see a text that has a keyword of a given rule.

mod allowlist;
mod check;
mod computed;
mod edit;
mod field;
mod find;
#[cfg(test)]
mod formats;
mod keywords;
mod leaks;
mod rule_file;
mod rules;
#[cfg(test)]
mod tests;

pub use leaks::{Leaks, OnLeak};
pub use rule_file::{SecretRules, SecretRulesError};

use self::edit::Redaction;
use crate::{PerServer, clean};
use serde_json::{Map, Value};
use std::{borrow::Cow, sync::Arc};
use toolgate_core::{Asked, Error, Item, Json, Origin, Returned, Scrub, Trail};

/// How the place of a secret begins; the name of the rule and a `]` follow.
const MARK: &str = toolgate_wire::placeholder::REDACTED;

/// What the counts of a trail begin with that are of secrets.
const COUNT: &str = "secret:";

/// What becomes of a secret that a server sends.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum OnSecret {
    /// `[redacted:RULE]` stands in its place.
    #[default]
    Redact,
    /// It passes, and the record counts it.
    Warn,
    /// Nobody looks.
    Pass,
}

/// Takes secrets out of all that comes back: results, errors, progress, log messages, questions and definitions.
#[derive(Clone, Debug, Default)]
pub struct Secrets {
    /// What becomes of them, by server.
    pub found: PerServer<OnSecret>,
}

impl Secrets {
    /// Puts rules of the operator in force beside those of Toolgate, in the whole process: what looks like a secret must not
    /// stand in an audit log either, whichever server it came from. Rules that were installed before are replaced.
    pub fn install(rules: &[SecretRules]) {
        rules::install(rules);
    }

    /// The value with each secret in its strings replaced by `[redacted:RULE]`; all other bytes stay.
    pub fn redact_json(json: &Json) -> Json {
        Redaction::default()
            .other(json)
            .map_or_else(|| json.clone(), |(clean, _)| clean)
    }

    /// The text with each secret replaced by `[redacted:RULE]`.
    pub fn redact_text(text: &str) -> Cow<'_, str> {
        match find::redact(text, &mut |_| {}) {
            Some(clean) => Cow::Owned(clean),
            None => Cow::Borrowed(text),
        }
    }

    /// The text as it may stand in a record or on a screen: as it is, unless what looks like a secret is in it, be it with
    /// something invisible between its letters. Then it is cleaned, and `[redacted:RULE]` stands in the place of each.
    pub fn without(text: &str) -> Cow<'_, str> {
        match clean(text) {
            Cow::Borrowed(text) => Secrets::redact_text(text),
            Cow::Owned(clean) => match find::redact(&clean, &mut |_| {}) {
                Some(redacted) => Cow::Owned(redacted),
                None => Cow::Borrowed(text),
            },
        }
    }

    /// The rule by which a text looks like a secret, or by which it is one under that name.
    pub fn rule_of(name: &str, text: &str) -> Option<Arc<str>> {
        let field = &field::FIELD;
        let by_name = || field.holds(name, text).then(|| field.id.into());
        find::find(text)
            .into_iter()
            .next()
            .map(|found| found.rule)
            .or_else(by_name)
    }

    fn work(
        &self,
        trail: Option<&Trail>,
        from: Option<&Origin>,
        value: Returned<'_>,
    ) -> Result<(), Error> {
        let found = from.map_or_else(OnSecret::default, |from| self.found.of(&from.server));
        if found == OnSecret::Pass {
            return Ok(());
        }
        let mut redaction = Redaction {
            dry: found == OnSecret::Warn,
            ..Redaction::default()
        };
        let edited = crate::edit::edit(value, &mut redaction);
        for (rule, times) in redaction.seen {
            if let Some(trail) = trail {
                trail.count(&[COUNT, &rule].concat(), times);
            }
        }
        edited
    }
}

impl Scrub for Secrets {
    fn name(&self) -> &'static str {
        "secrets"
    }

    fn scrub(
        &self,
        from: Option<&Origin>,
        _: Option<&Arc<Item>>,
        value: Returned<'_>,
    ) -> Result<(), Error> {
        self.work(None, from, value)
    }

    fn scrub_for(
        &self,
        asked: &Asked,
        from: Option<&Origin>,
        _: Option<&Arc<Item>>,
        value: Returned<'_>,
    ) -> Result<(), Error> {
        self.work(Some(&asked.trail), from, value)
    }
}

/// How many secrets came back for a call, by rule: redacted ones, and with [`OnSecret::Warn`] those that passed.
pub(crate) fn counts(trail: &Trail) -> Map<String, Value> {
    let counts = trail.counts().into_iter();
    let ours =
        counts.filter_map(|(name, n)| Some((name.strip_prefix(COUNT)?.to_owned(), n.into())));
    ours.collect()
}

/// Whether a text has the mark of a redaction in it.
pub(crate) fn is_marked(text: &str) -> bool {
    text.contains(MARK)
}
