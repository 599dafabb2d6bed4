//! Rule against calls that would overwrite a secret with its redaction placeholder.

use crate::{
    PerServer,
    validation::arguments::search::{ArgumentSearch, search_arguments},
};
use std::borrow::Cow;
use toolgate_core::{
    Call, Error, ErrorKind as Failure, Item, MaybeReady, Op, RefusalReason, Rule, RuleDecision,
};
use toolgate_protocol::placeholder;

/// Policy for a call with a redaction placeholder (`[redacted:RULE]`) in its arguments.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum OnPlaceholder {
    /// Requires a person's approval of the call with the placeholder.
    #[default]
    Ask,
    /// Denies the call with the placeholder.
    Deny,
    /// Allows the call with the placeholder.
    Allow,
}

/// Rule that finds redaction placeholders such as `[redacted:password]` in call arguments: an agent that reads a file,
/// edits it and writes it back would replace the secret by them. It searches all strings and keys, at any depth, and
/// resource URIs.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Placeholders {
    /// Policy for calls with redaction placeholders in their arguments, by server.
    pub found: PerServer<OnPlaceholder>,
}

impl Rule for Placeholders {
    fn name(&self) -> &'static str {
        "placeholders"
    }

    fn may_hide_items(&self) -> bool {
        false
    }

    fn decide<'a>(&'a self, call: &'a Call, item: &'a Item) -> MaybeReady<'a> {
        MaybeReady::Ready(self.judge(call, item))
    }
}

impl Placeholders {
    fn judge(&self, call: &Call, item: &Item) -> RuleDecision {
        let action = self.found.of(&item.origin.server);
        if action == OnPlaceholder::Allow {
            return RuleDecision::Allow;
        }
        let Some(found) = search_arguments(call, &PlaceholderSearch) else {
            return RuleDecision::Allow;
        };
        let reason = format!(
            "the arguments contain redaction placeholders of Toolgate, which would overwrite the original text: {found}"
        );
        match action {
            // A completion comes with each key; nobody could be asked that often.
            OnPlaceholder::Ask if !matches!(call.op, Op::Complete(_)) => RuleDecision::Ask(reason),
            _ => RuleDecision::Deny(Error::new(
                Failure::Refused(RefusalReason::Rule),
                format!(
                    "refused: {reason}; change only what has no placeholder in it, or ask the operator (setting `placeholders`)"
                ),
            )),
        }
    }
}

struct PlaceholderSearch;

impl ArgumentSearch for PlaceholderSearch {
    /// Every placeholder begins with a bracket, which may be escaped.
    fn may_match(&self, json: &str) -> bool {
        memchr::memchr2(b'[', b'\\', json.as_bytes()).is_some()
    }

    fn matches(&self, _key: &str, text: &str) -> Vec<Cow<'static, str>> {
        let found = placeholder::find(text).map(|placeholder| format!("{placeholder}…").into());
        found.into_iter().collect()
    }
}
