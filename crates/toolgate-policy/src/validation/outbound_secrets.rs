//! Check of outbound arguments and URIs for secrets, before they leave for a server.

use super::arguments::search::{ArgumentSearch, search_arguments};
use crate::{
    PerServer,
    sanitize::secrets::{field::FIELD_RULE, find},
};
use std::borrow::Cow;
use toolgate_core::{
    Call, Error, ErrorKind as Failure, Item, MaybeReady, Op, RefusalReason, Rule, RuleDecision,
};

/// Policy for a call with a likely secret (token, key) in its arguments or URI (`outbound_secrets`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum OnOutboundSecret {
    /// Requires a person's approval of the call with the secret.
    #[default]
    Ask,
    /// Denies the call with the secret.
    Deny,
    /// Allows the call with the secret, with a line in its decision log.
    Warn,
    /// Allows all calls without a search for secrets.
    Pass,
}

/// Rule that detects secrets (tokens, keys) in the arguments and URIs of calls to servers. It reports the secret rule
/// and the place, never the secret.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct OutboundSecrets {
    /// Policy for calls with likely secrets in their arguments, by server. Default: ask.
    pub found: PerServer<OnOutboundSecret>,
}

impl Rule for OutboundSecrets {
    fn name(&self) -> &'static str {
        "leaks"
    }

    fn may_hide_items(&self) -> bool {
        false
    }

    fn decide<'a>(&'a self, call: &'a Call, item: &'a Item) -> MaybeReady<'a> {
        MaybeReady::Ready(self.judge(call, item))
    }
}

impl OutboundSecrets {
    fn judge(&self, call: &Call, item: &Item) -> RuleDecision {
        let then = self.found.of(&item.origin.server);
        if then == OnOutboundSecret::Pass {
            return RuleDecision::Allow;
        }
        let Some(found) = search_arguments(call, &SecretSearch) else {
            return RuleDecision::Allow;
        };
        let reason = format!("the arguments contain a possible secret: {found}");
        match then {
            // Clients request completions at every keystroke; nobody can approve that often.
            OnOutboundSecret::Ask if !matches!(call.op, Op::Complete(_)) => {
                RuleDecision::Ask(reason)
            }
            OnOutboundSecret::Ask | OnOutboundSecret::Deny => RuleDecision::Deny(Error::new(
                Failure::Refused(RefusalReason::Rule),
                format!(
                    "refused: {reason}; leave it out, or ask the operator (setting `outbound_secrets`)"
                ),
            )),
            OnOutboundSecret::Warn => {
                call.decision_log.add("leaks", "warn", reason);
                RuleDecision::Allow
            }
            OnOutboundSecret::Pass => RuleDecision::Allow,
        }
    }
}

/// Search for secrets in arguments.
struct SecretSearch;

impl ArgumentSearch for SecretSearch {
    fn may_match(&self, json: &str) -> bool {
        find::may_hold(json)
    }

    fn matches(&self, key: &str, text: &str) -> Vec<Cow<'static, str>> {
        let rules = find::find(text).into_iter();
        let mut names: Vec<Cow<'static, str>> = rules.map(|f| f.rule.to_string().into()).collect();
        if names.is_empty() && FIELD_RULE.holds(key, text) {
            names.push(FIELD_RULE.id.into());
        }
        names
    }
}
