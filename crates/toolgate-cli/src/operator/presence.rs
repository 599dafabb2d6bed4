//! Presence: the sessions of the console, and the request that each of them looks at.

use serde_json::{Value, json};
use std::sync::{Mutex, PoisonError};
use toolgate_policy::Approver;

/// Open pages of the console.
#[derive(Default)]
pub(crate) struct ConsolePresence {
    pages: Mutex<OpenPages>,
}

#[derive(Default)]
struct OpenPages {
    next: u64,
    pages: Vec<OpenPage>,
}

struct OpenPage {
    id: u64,
    who: Approver,
    /// Approval request that the page shows.
    request: Option<String>,
}

impl ConsolePresence {
    /// Adds a page, and returns its id.
    pub(crate) fn enter(&self, who: &Approver) -> u64 {
        let mut open = self.lock();
        open.next += 1;
        let id = open.next;
        open.pages.push(OpenPage {
            id,
            who: who.clone(),
            request: None,
        });
        id
    }

    /// Removes a page whose stream ended.
    pub(crate) fn leave(&self, id: u64) {
        self.lock().pages.retain(|page| page.id != id);
    }

    /// Notes the request that a page of this person shows now. Returns whether that is new.
    pub(crate) fn look(&self, id: u64, who: &Approver, request: Option<&str>) -> bool {
        let mut open = self.lock();
        let own = |page: &&mut OpenPage| page.id == id && page.who == *who;
        let Some(page) = open.pages.iter_mut().find(own) else {
            return false;
        };
        let request = request.map(str::to_owned);
        let changed = page.request != request;
        page.request = request;
        changed
    }

    /// Returns the pages that show a request.
    pub(crate) fn json(&self) -> Value {
        let open = self.lock();
        let looking = open.pages.iter().filter(|page| page.request.is_some());
        looking
            .map(|page| json!({"page": page.id, "who": page.who.to_string(), "request": page.request}))
            .collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, OpenPages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_policy::ApprovalChannel;

    #[test]
    fn a_page_shows_one_request_until_it_closes() {
        let presence = ConsolePresence::default();
        let named = |name: &str| Approver::named(ApprovalChannel::Console, name);
        let (ann, bob) = (named("ann"), named("bob"));
        let page = presence.enter(&ann);
        assert!(presence.look(page, &ann, Some("a-1")));
        assert!(!presence.look(page, &ann, Some("a-1")), "nothing new");
        assert!(
            !presence.look(page, &bob, Some("a-2")),
            "the page of another person"
        );
        assert_eq!(presence.json()[0]["request"], "a-1");
        presence.leave(page);
        assert_eq!(presence.json(), json!([]));
    }
}
