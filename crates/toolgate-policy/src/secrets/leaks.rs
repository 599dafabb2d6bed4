//! Secrets in arguments are seen before they leave.

use super::{field::FIELD_RULE, find};
use crate::{
    PerServer,
    arguments::search::{ArgumentSearch, search_arguments},
};
use std::borrow::Cow;
use toolgate_core::{
    Call, Error, ErrorKind as Failure, Item, MaybeReady, Op, RefusalReason, Rule, RuleDecision,
};

/// What becomes of a call whose arguments hold what looks like a secret.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum OnOutboundSecret {
    /// A person has to look.
    #[default]
    Ask,
    /// It is refused.
    Deny,
    /// It passes, and the record says so.
    Warn,
    /// Nobody looks.
    Pass,
}

/// Sees secrets in arguments and URIs. Says which rule found one and where, never what it is.
#[derive(Clone, Debug, Default)]
pub struct OutboundSecrets {
    /// What becomes of such calls, by server.
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
        let reason = format!("the arguments hold what looks like a secret: {found}");
        match then {
            // What a person types is completed with each key; nobody could be asked that often.
            OnOutboundSecret::Ask if !matches!(call.op, Op::Complete(_)) => {
                RuleDecision::Ask(reason)
            }
            OnOutboundSecret::Ask | OnOutboundSecret::Deny => RuleDecision::Deny(Error::new(
                Failure::Refused(RefusalReason::Rule),
                format!("refused: {reason}; leave it out, or ask the operator (setting `leaks`)"),
            )),
            OnOutboundSecret::Warn => {
                call.decision_log.add("leaks", "warn", reason);
                RuleDecision::Allow
            }
            OnOutboundSecret::Pass => RuleDecision::Allow,
        }
    }
}

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
