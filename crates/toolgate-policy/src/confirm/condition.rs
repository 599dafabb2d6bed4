//! CEL condition of a grant.

use crate::{Facts, When};
use toolgate_core::{Call, Item, ItemKind};

/// A compiled CEL condition.
#[derive(Clone, Debug)]
pub(super) struct Condition(When);

impl Condition {
    /// Compiles a condition.
    pub(super) fn compile(text: &str) -> Result<Condition, String> {
        let when = When::compile(text)?;
        if when.reads_pinned() {
            return Err("the pinned state is for rules, not for grants".to_owned());
        }
        Ok(Condition(when))
    }

    /// Checks that the condition narrows the grant, which is required for items that are not harmless.
    pub(super) fn narrows(&self, item: &Item) -> Result<(), String> {
        // One resource has many spellings of its URI. Rules normalize them, a condition does not.
        if !matches!(item.kind(), ItemKind::Tool | ItemKind::Prompt) {
            return Err("conditions are for tools and prompts, not for resources".to_owned());
        }
        if !super::harmless(item) && !self.0.reads_args() {
            return Err("it has to look at args: without that it is the same as none".to_owned());
        }
        Ok(())
    }

    /// Evaluates the condition for a call.
    pub(super) fn judge(&self, call: &Call, item: &Item) -> Result<bool, String> {
        self.0
            .judge(&Facts::new(&call.caller, item).with(call.arguments()))
    }
}
