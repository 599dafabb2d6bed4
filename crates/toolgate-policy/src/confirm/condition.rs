//! What must be true of a call for a grant to speak of it.

use crate::{Facts, When};
use toolgate_core::{Call, Item, ItemKind};

/// A condition in CEL, compiled.
#[derive(Clone, Debug)]
pub(super) struct Condition(When);

impl Condition {
    /// Reads a condition.
    pub(super) fn compile(text: &str) -> Result<Condition, String> {
        let when = When::compile(text)?;
        if when.reads_pinned() {
            return Err("the pinned state is for rules, not for grants".to_owned());
        }
        Ok(Condition(when))
    }

    /// Whether it can narrow what a grant says yes to, where it must.
    pub(super) fn narrows(&self, item: &Item) -> Result<(), String> {
        // One resource has many spellings of its URI; rules know them, a condition does not.
        if !matches!(item.kind(), ItemKind::Tool | ItemKind::Prompt) {
            return Err("conditions are for tools and prompts, not for resources".to_owned());
        }
        if !super::harmless(item) && !self.0.reads_args() {
            return Err("it has to look at args: without that it is the same as none".to_owned());
        }
        Ok(())
    }

    /// Whether a call fits it.
    pub(super) fn judge(&self, call: &Call, item: &Item) -> Result<bool, String> {
        self.0
            .judge(&Facts::new(&call.caller, item).with(call.arguments()))
    }
}
