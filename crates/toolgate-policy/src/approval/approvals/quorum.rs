//! Quorum rules: the number of approvers that a call needs.

use crate::{CallerMatcher, GlobPattern, access::names};
use std::sync::Arc;
use toolgate_core::{Caller, Item};

/// Rule that requires a number of approvers for calls of the matching items by the matching callers.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct QuorumRule {
    /// Patterns of the full names of items that the rule matches.
    pub tools: Vec<GlobPattern>,
    /// Callers that the rule matches; by default all.
    pub callers: CallerMatcher,
    /// Patterns of the full names of items that the rule does not match, despite `tools`.
    pub except: Vec<GlobPattern>,
    /// Number of different approvers that a matching call needs.
    pub required_approvers: u32,
}

impl QuorumRule {
    /// Creates a rule for calls of all callers to the items that the patterns match.
    pub fn new(tools: Vec<GlobPattern>, required_approvers: u32) -> QuorumRule {
        QuorumRule {
            tools,
            callers: CallerMatcher::default(),
            except: Vec::new(),
            required_approvers,
        }
    }
}

/// Rules for the number of approvers that a call needs. The largest number of all matching rules applies; without a
/// match it is one.
#[derive(Clone, Debug, Default)]
pub struct QuorumRules(Arc<[QuorumRule]>);

impl QuorumRules {
    /// Creates rules for the number of approvers that a call needs.
    pub fn new(rules: Vec<QuorumRule>) -> QuorumRules {
        QuorumRules(rules.into())
    }

    /// Returns the number of different approvers that a call needs. `uri` selects the resource of a template.
    #[doc(hidden)]
    pub fn required_approvers(&self, caller: &Caller, item: &Item, uri: &str) -> u32 {
        let names = names::of(item, Some(uri));
        let speaks = |rule: &&QuorumRule| {
            rule.callers.matches(caller) && names.restricted_by(&rule.tools, &rule.except)
        };
        let wanted = self
            .0
            .iter()
            .filter(speaks)
            .map(|rule| rule.required_approvers);
        wanted.max().unwrap_or(1).max(1)
    }
}
