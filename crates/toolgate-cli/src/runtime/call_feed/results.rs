//! Results of recent calls, as their callers got them, while a page of the console is open. In memory only.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};
use toolgate_core::Output;
use toolgate_protocol::{dialect, json::Json, method::initialize::Implementation};

/// Recent results, within a number of bytes.
pub(super) struct RecentResults {
    max_bytes: usize,
    kept: Mutex<KeptResults>,
}

#[derive(Default)]
struct KeptResults {
    bytes: usize,
    results: VecDeque<(Arc<str>, Json)>,
}

impl RecentResults {
    pub(super) fn new(max_bytes: usize) -> RecentResults {
        RecentResults {
            max_bytes,
            kept: Mutex::default(),
        }
    }

    /// Keeps the result of a call; the oldest ones make room. One that needs all of the room is not kept.
    pub(super) fn keep(&self, id: &str, output: &Output) {
        if output.size() > self.max_bytes / 4 {
            return;
        }
        let nobody = Implementation::default();
        // A text of its own: a part of a message would keep the whole message and its permit.
        let json = dialect::MODERN.output(output, &nobody);
        let bytes = json.as_str().len();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.bytes += bytes;
        kept.results.push_back((id.into(), json));
        while kept.bytes > self.max_bytes
            && let Some((_, oldest)) = kept.results.pop_front()
        {
            kept.bytes -= oldest.as_str().len();
        }
    }

    pub(super) fn find(&self, id: &str) -> Option<Json> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.results.iter().rev().find(|(call, _)| **call == *id);
        found.map(|(_, json)| json.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_results_make_room() {
        let results = RecentResults::new(400);
        for n in 0..20 {
            results.keep(&format!("c-{n}"), &Output::text(&format!("text {n}")));
        }
        assert!(results.find("c-0").is_none());
        assert!(results.find("c-19").unwrap().as_str().contains("text 19"));
        let kept = results.kept.lock().unwrap();
        assert!(kept.bytes <= 400);
    }

    #[test]
    fn a_result_that_needs_the_room_of_all_is_not_kept() {
        let results = RecentResults::new(400);
        results.keep("c", &Output::text(&"x".repeat(200)));
        assert!(results.find("c").is_none());
    }
}
