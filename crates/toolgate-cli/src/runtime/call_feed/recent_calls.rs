//! Recent calls of the console, newest first, found by id.

use super::displayed_call::DisplayedCall;
use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

/// Number of recent calls in the console's list.
const MAX_LISTED_CALLS: usize = 500;

/// The most recent calls, newest first. A call is found by its id without a search through the others.
#[derive(Default)]
pub(super) struct RecentCalls {
    calls: VecDeque<DisplayedCall>,
    /// Number of each call in the list.
    numbers: HashMap<Arc<str>, u64>,
    /// Number of the next call.
    next: u64,
}

impl RecentCalls {
    /// Returns the calls, newest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &DisplayedCall> {
        self.calls.iter()
    }

    /// Returns whether an older call was dropped for each new one.
    pub(super) fn is_full(&self) -> bool {
        self.calls.len() >= MAX_LISTED_CALLS
    }

    /// Finds a call by its id.
    pub(super) fn get(&self, id: &str) -> Option<&DisplayedCall> {
        self.calls.get(self.position(id)?)
    }

    /// Finds a call by its id, to change it.
    pub(super) fn get_mut(&mut self, id: &str) -> Option<&mut DisplayedCall> {
        let position = self.position(id)?;
        self.calls.get_mut(position)
    }

    /// Returns whether a call is in the list.
    pub(super) fn contains(&self, id: &str) -> bool {
        self.numbers.contains_key(id)
    }

    /// Adds a call, whose id is not in the list yet. Returns the call that is dropped for it.
    #[must_use = "drop it after the list is unlocked"]
    pub(super) fn push(&mut self, call: DisplayedCall) -> Option<DisplayedCall> {
        let oldest = match self.is_full() {
            true => self.calls.pop_back(),
            false => None,
        };
        if let Some(oldest) = &oldest {
            self.numbers.remove(&oldest.id);
        }
        self.numbers.insert(call.id.clone(), self.next);
        self.next += 1;
        self.calls.push_front(call);
        oldest
    }

    fn position(&self, id: &str) -> Option<usize> {
        let number = self.numbers.get(id)?;
        usize::try_from(self.next - 1 - number).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::{super::displayed_call::CallTimes, *};
    use crate::runtime::call_feed::arguments::ShownArguments;
    use std::time::{Instant, SystemTime};
    use toolgate_core::{Caller, DecisionLog, Json, Op};

    fn call(id: usize) -> DisplayedCall {
        DisplayedCall {
            id: id.to_string().into(),
            version: 0,
            caller: Caller::new("ann"),
            request_info: Arc::default(),
            started_at: SystemTime::now(),
            server: Arc::default(),
            tool: String::new(),
            op: Op::Tool,
            name: String::new(),
            state: "judging",
            arguments: ShownArguments::new(&Json::from_value(&serde_json::json!({}))),
            decision_log: DecisionLog::default(),
            outcome: None,
            code: None,
            detail: None,
            progress: None,
            duration_ms: None,
            approval: None,
            times: CallTimes::begin(Instant::now()),
            result_bytes: 0,
        }
    }

    #[test]
    fn the_newest_calls_are_found_and_older_ones_are_dropped() {
        let mut calls = RecentCalls::default();
        let added = MAX_LISTED_CALLS + 100;
        for id in 0..added {
            let dropped = calls.push(call(id));
            let oldest = id.checked_sub(MAX_LISTED_CALLS);
            let oldest = oldest.map(|id| id.to_string());
            assert_eq!(dropped.map(|call| call.id.to_string()), oldest);
        }
        for id in 0..added {
            let id = id.to_string();
            let is_listed = calls.iter().any(|call| *call.id == *id);
            let found = calls.get_mut(&id).map(|call| call.id.clone());
            assert_eq!(found.is_some(), is_listed);
            assert!(found.is_none_or(|found| *found == *id));
            assert_eq!(calls.contains(&id), is_listed);
        }
        let newest = calls.iter().next().map(|call| call.id.to_string());
        assert_eq!(newest, Some((added - 1).to_string()));
        assert_eq!(calls.numbers.len(), MAX_LISTED_CALLS);
    }
}
