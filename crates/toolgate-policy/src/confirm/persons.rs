//! How many persons have to say yes.

use crate::{Pattern, names};
use std::sync::Arc;
use toolgate_core::{Caller, Item};

/// For these things and callers so many persons.
#[derive(Clone, Debug)]
pub struct PersonsRule {
    /// Which things, by their full names.
    pub tools: Vec<Pattern>,
    /// Which callers; empty for all.
    pub callers: Vec<Pattern>,
    /// Which of the things not.
    pub except: Vec<Pattern>,
    /// How many.
    pub approvals: u32,
}

/// How many persons have to say yes where a person is asked: the most that any rule wants, one where none speaks.
#[derive(Clone, Debug, Default)]
pub struct Persons(Arc<[PersonsRule]>);

impl Persons {
    /// These rules.
    pub fn new(rules: Vec<PersonsRule>) -> Persons {
        Persons(rules.into())
    }

    /// How many for a use of a thing by a caller; of a template, at a URI.
    pub fn needed(&self, caller: &Caller, item: &Item, uri: &str) -> u32 {
        let names = names::of(item, Some(uri));
        let speaks = |rule: &&PersonsRule| {
            (rule.callers.is_empty() || rule.callers.iter().any(|p| p.matches(caller.name())))
                && names.hold(&rule.tools, &rule.except)
        };
        let wanted = self.0.iter().filter(speaks).map(|rule| rule.approvals);
        wanted.max().unwrap_or(1).max(1)
    }
}
