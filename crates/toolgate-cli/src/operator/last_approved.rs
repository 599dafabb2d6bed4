//! Last approved call of each tool, to which the console compares the next one. In memory only.

use crate::operator::masked_arguments::MaskedArguments;
use crate::timestamp::millis;
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    time::SystemTime,
};
use toolgate_core::Item;
use toolgate_policy::{ApprovalView, Approver};

/// Maximum number of tools.
const MAX_TOOLS: usize = 200;
/// Maximum length of the kept arguments of one call, in bytes.
const MAX_ARGUMENT_BYTES: usize = 16 * 1024;

/// Last approved calls, most recent first.
#[derive(Default)]
pub(crate) struct LastApprovedCalls(Mutex<VecDeque<LastApprovedCall>>);

struct LastApprovedCall {
    /// Full name of the item.
    name: String,
    shown: Value,
}

impl LastApprovedCalls {
    /// Keeps an approved call, with its secrets masked. Arguments that are too long are left out.
    pub(crate) fn keep(&self, view: &ApprovalView, by: &Approver) {
        let arguments = view.edited_arguments.as_ref().unwrap_or(&view.arguments);
        if arguments.as_str().len() > MAX_ARGUMENT_BYTES {
            return;
        }
        let shown = json!({
            "arguments": MaskedArguments::new(&view.item, arguments).text, "at": millis(SystemTime::now()),
            "by": by.to_string(), "caller": view.binding.caller.name(), "call": view.calls.last(),
            "edited": view.edited_arguments.is_some(),
        });
        let name = view.item.full_name();
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        calls.retain(|call| call.name != name);
        calls.push_front(LastApprovedCall { name, shown });
        calls.truncate(MAX_TOOLS);
    }

    /// Returns the last approved call of an item.
    pub(crate) fn of(&self, item: &Item) -> Option<Value> {
        let name = item.full_name();
        let calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = calls.iter().find(|call| call.name == name)?;
        Some(found.shown.clone())
    }
}
