//! Quorum rules: the number of approvers that a call needs.

use crate::{GlobPattern, access::names};
use std::sync::Arc;
use toolgate_core::{Caller, Item};

/// Number of approvers for the matching items and callers.
#[derive(Clone, Debug)]
pub struct QuorumRule {
    /// Patterns of the full names of matching items.
    pub tools: Vec<GlobPattern>,
    /// Patterns of matching callers; empty for all.
    pub callers: Vec<GlobPattern>,
    /// Patterns of items to exclude.
    pub except: Vec<GlobPattern>,
    /// Required number of approvers.
    pub required_approvers: u32,
}

/// Quorum rules. The largest number of all matching rules applies; without a match it is one.
#[derive(Clone, Debug, Default)]
pub struct QuorumRules(Arc<[QuorumRule]>);

impl QuorumRules {
    /// Creates quorum rules.
    pub fn new(rules: Vec<QuorumRule>) -> QuorumRules {
        QuorumRules(rules.into())
    }

    /// Returns the number of approvers that a call needs. `uri` selects the resource of a template.
    pub fn required_approvers(&self, caller: &Caller, item: &Item, uri: &str) -> u32 {
        let names = names::of(item, Some(uri));
        let speaks = |rule: &&QuorumRule| {
            (rule.callers.is_empty() || rule.callers.iter().any(|p| p.matches(caller.name())))
                && names.restricted_by(&rule.tools, &rule.except)
        };
        let wanted = self
            .0
            .iter()
            .filter(speaks)
            .map(|rule| rule.required_approvers);
        wanted.max().unwrap_or(1).max(1)
    }
}
