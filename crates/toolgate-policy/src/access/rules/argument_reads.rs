//! Arguments of an item that access rules read.

use crate::{ArgumentNames, GlobPattern, access::matching::MatchingRules};
use std::sync::Arc;
use toolgate_core::Item;

/// Names of the arguments that the conditions of access rules read, by item. Computed once per list of rules.
#[doc(hidden)]
#[derive(Clone, Debug, Default)]
pub struct ArgumentReads {
    pub(super) rules: Arc<[RuleArgumentReads]>,
}

/// The arguments that the condition of one rule reads.
#[derive(Clone, Debug)]
pub(super) struct RuleArgumentReads {
    pub(super) tools: Vec<GlobPattern>,
    pub(super) except: Vec<GlobPattern>,
    pub(super) names: ArgumentNames,
}

impl ArgumentReads {
    /// Returns the arguments of an item that rules read. The callers of a rule do not count: a dry run may ask about
    /// all.
    pub(crate) fn of(&self, item: &Item) -> ArgumentNames {
        let mut all = ArgumentNames::default();
        if self.rules.is_empty() {
            return all;
        }
        let matching = MatchingRules::of(&self.rules, item, None, |rule, names| {
            names.restricted_by(&rule.tools, &rule.except)
        });
        matching.iter().for_each(|rule| all.extend(&rule.names));
        all
    }
}
