//! Quorum rules: the approvers that a call needs.

use super::ApprovalRequirement;
use crate::{CallerMatcher, GlobPattern, access::names};
use std::sync::Arc;
use toolgate_core::{Caller, Item};

/// Rule that requires several approvers or groups of approvers for calls of the matching items by the matching callers.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct QuorumRule {
    /// Patterns of the full names of items that the rule matches.
    pub tools: Vec<GlobPattern>,
    /// Callers that the rule matches; by default all.
    pub callers: CallerMatcher,
    /// Patterns of the full names of items that the rule does not match, despite `tools`.
    pub except: Vec<GlobPattern>,
    /// Approvers that a matching call needs.
    pub requirement: ApprovalRequirement,
}

impl QuorumRule {
    /// Creates a rule for calls of all callers to the items that the patterns match.
    pub fn new(tools: Vec<GlobPattern>, requirement: impl Into<ApprovalRequirement>) -> QuorumRule {
        QuorumRule {
            tools,
            callers: CallerMatcher::default(),
            except: Vec::new(),
            requirement: requirement.into(),
        }
    }
}

/// Rules for the approvers that a call needs. An approval has to meet all matching rules; without a match it needs one
/// approver.
#[derive(Clone, Debug, Default)]
pub struct QuorumRules(Arc<[QuorumRule]>);

impl QuorumRules {
    /// Creates rules for the approvers that a call needs.
    pub fn new(rules: Vec<QuorumRule>) -> QuorumRules {
        QuorumRules(rules.into())
    }

    /// Returns the approvers that a call needs. `uri` selects the resource of a template.
    #[doc(hidden)]
    pub fn requirement(&self, caller: &Caller, item: &Item, uri: &str) -> ApprovalRequirement {
        let names = names::of(item, Some(uri));
        let speaks = |rule: &&QuorumRule| {
            rule.callers.matches(caller) && names.restricted_by(&rule.tools, &rule.except)
        };
        let rules = self.0.iter().filter(speaks);
        rules.fold(ApprovalRequirement::default(), |all, rule| {
            all.and(&rule.requirement)
        })
    }
}
