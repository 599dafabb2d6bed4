//! CEL condition of a grant.

use crate::{CelCondition, ConditionFacts};
use toolgate_core::{Call, Item, ItemKind};

/// A compiled CEL condition.
#[derive(Clone, Debug)]
pub(super) struct GrantCondition(CelCondition);

impl GrantCondition {
    /// Compiles a condition.
    pub(super) fn compile(text: &str) -> Result<GrantCondition, String> {
        let when = CelCondition::compile(text)?;
        if when.reads_pinned() {
            return Err(
                "it reads tool.pinned, which only the conditions of rules can read".to_owned(),
            );
        }
        Ok(GrantCondition(when))
    }

    /// Checks that the condition narrows the grant, which is required for items that are not harmless.
    pub(super) fn check_narrows(&self, item: &Item) -> Result<(), String> {
        // One resource has many spellings of its URI. Rules normalize them, a condition does not.
        if !matches!(item.kind(), ItemKind::Tool | ItemKind::Prompt) {
            return Err("a grant for a resource cannot have a condition; only grants for tools and prompts can".to_owned());
        }
        if !super::is_harmless(item) && !self.0.reads_args() {
            return Err("it does not read args, so it does not narrow the grant; add a comparison with an argument".to_owned());
        }
        Ok(())
    }

    /// Evaluates the condition for a call.
    pub(super) fn evaluate(&self, call: &Call, item: &Item) -> Result<bool, String> {
        self.0
            .evaluate(&ConditionFacts::new(&call.caller, item).with(call.arguments()))
    }
}
