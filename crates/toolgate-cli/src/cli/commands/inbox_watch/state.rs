//! State of the full-screen view, without a terminal.

use super::{
    decision::OperatorDecision,
    detail::{detail_rows, text_rows},
    gateway_poll::{ActiveFreeze, EndedRequest, GatewaySnapshot},
    pending_request::PendingRequest,
    prompt::{EditReview, ViewPrompt},
    view::{HELP_TEXT, MIN_SIZE, screen_layout},
    wrap::WrappedRow,
};
use serde_json::Value;
use std::time::{Duration, Instant};
use toolgate_core::visible_line;

/// Time for which decision keys do nothing after the selection moved by itself. A key that was on its way to the
/// request before must not decide another one. The console waits as long.
const SETTLE_TIME: Duration = Duration::from_millis(700);

/// State of the view. The selection is an ID, never a row, so a change of the list cannot put another request under a
/// key. A selected request that ends stays in the list until the person moves on.
#[derive(Default)]
pub(super) struct InboxState {
    pub(super) requests: Vec<PendingRequest>,
    /// ID of the selected request.
    pub(super) selected: Option<String>,
    pub(super) freezes: Vec<ActiveFreeze>,
    pub(super) gateways: usize,
    /// A gateway responded at least once.
    pub(super) was_connected: bool,
    pub(super) problem: Option<String>,
    pub(super) prompt: Option<ViewPrompt>,
    /// Result of the last action.
    pub(super) message: String,
    /// Width and height of the terminal.
    pub(super) size: (u16, u16),
    /// Rows of the pane that scrolls: the detail, a diff or the help.
    pub(super) rows: Vec<WrappedRow>,
    /// First row that the pane shows.
    pub(super) offset: usize,
    /// Rows of the selected request that were shown, from its first one on.
    seen_rows: usize,
    /// Time at which the selection moved by itself.
    moved_at: Option<Instant>,
    /// Request that the person decided, while it is still listed.
    decided: Option<String>,
    /// Decisions without a response.
    pub(super) in_flight: usize,
    pub(super) is_quitting: bool,
}

impl InboxState {
    /// Applies a snapshot of the gateways.
    pub(super) fn apply(&mut self, snapshot: GatewaySnapshot, now: Instant) {
        self.gateways = snapshot.gateways;
        self.problem = snapshot.problem;
        if snapshot.gateways == 0 {
            return;
        }
        self.was_connected = true;
        self.freezes = snapshot.freezes;
        let before = std::mem::replace(&mut self.requests, snapshot.requests);
        self.keep_selection(before, &snapshot.ended, now);
        self.close_prompt_of_ended_request();
        self.refresh();
    }

    /// Keeps the selected request in the list if it ended, or moves on if the person decided it.
    fn keep_selection(
        &mut self,
        before: Vec<PendingRequest>,
        ended: &[EndedRequest],
        now: Instant,
    ) {
        let old = self.selected.as_ref();
        let old = old.and_then(|id| before.iter().position(|request| request.id == *id));
        let Some(at) = old else {
            if let Some(first) = self.requests.first() {
                self.select(first.id.clone());
                self.moved_at = Some(now);
            }
            return;
        };
        let id = &before[at].id;
        if self.requests.iter().any(|request| request.id == *id) {
            return;
        }
        if self.decided.take_if(|decided| decided == id).is_some() {
            let next = at.min(self.requests.len().saturating_sub(1));
            self.selected = None;
            if let Some(next) = self.requests.get(next) {
                self.select(next.id.clone());
                self.moved_at = Some(now);
            }
            return;
        }
        let mut request = before[at].clone();
        if request.end.is_none() {
            let end = ended.iter().find(|end| end.request.id == *id);
            request.end = Some(end.map_or("ended".to_owned(), end_text));
        }
        self.requests.insert(at.min(self.requests.len()), request);
    }

    fn close_prompt_of_ended_request(&mut self) {
        let id = self.prompt.as_ref().and_then(ViewPrompt::request_id);
        let Some(id) = id.map(str::to_owned) else {
            return;
        };
        if self.pending(&id).is_none() {
            self.prompt = None;
            let request = self.requests.iter().find(|request| request.id == id);
            let end = request.and_then(|request| request.end.as_deref());
            let end = end.unwrap_or("ended");
            self.message = visible_line(&format!("{id} is {end}; nothing was sent"));
        }
    }

    /// Returns the selected request.
    pub(super) fn selected_request(&self) -> Option<&PendingRequest> {
        let id = self.selected.as_ref()?;
        self.requests.iter().find(|request| request.id == *id)
    }

    /// Returns a request that is still pending.
    pub(super) fn pending(&self, id: &str) -> Option<&PendingRequest> {
        let mut requests = self.requests.iter();
        requests.find(|request| request.id == id && request.end.is_none())
    }

    /// Returns the selected request if a decision key may act on it.
    ///
    /// # Errors
    /// The reason for the person.
    pub(super) fn decidable(&self, now: Instant) -> Result<&PendingRequest, String> {
        if self.gateways == 0 {
            return Err("no gateway runs, so nothing can be decided".to_owned());
        }
        let Some(request) = self.selected_request() else {
            return Err("no call is waiting for approval".to_owned());
        };
        if let Some(end) = &request.end {
            let text = format!("{} is {end}; select another request", request.id);
            return Err(visible_line(&text));
        }
        let is_settling = |at: Instant| now.duration_since(at) < SETTLE_TIME;
        if self.moved_at.is_some_and(is_settling) {
            return Err(
                "the selection just changed; check the request, then press the key again"
                    .to_owned(),
            );
        }
        Ok(request)
    }

    /// Moves the selection by the person's key.
    pub(super) fn move_selection(&mut self, down: bool) {
        let Some(at) = self
            .requests
            .iter()
            .position(|request| self.selected.as_ref() == Some(&request.id))
        else {
            return;
        };
        let next = match down {
            true => self.requests.get(at + 1),
            false => at.checked_sub(1).and_then(|at| self.requests.get(at)),
        };
        let Some(next) = next.map(|request| request.id.clone()) else {
            return;
        };
        self.requests.retain(|request| request.end.is_none());
        self.select(next);
        self.moved_at = None;
        self.refresh();
    }

    fn select(&mut self, id: String) {
        self.selected = Some(id);
        self.offset = 0;
        self.seen_rows = 0;
    }

    /// Scrolls the pane by rows, or by pages.
    pub(super) fn scroll(&mut self, rows: isize) {
        self.offset = self.offset.saturating_add_signed(rows);
        self.refresh();
    }

    /// Returns the number of rows that the pane shows.
    pub(super) fn pane_height(&self) -> usize {
        usize::from(screen_layout(self).pane)
    }

    /// Returns the number of rows of the selected request that were never shown.
    pub(super) fn unseen_rows(&self) -> usize {
        self.rows.len().saturating_sub(self.seen_rows)
    }

    /// Opens a question, or closes it.
    pub(super) fn set_prompt(&mut self, prompt: Option<ViewPrompt>) {
        let has_text = |prompt: &Option<ViewPrompt>| {
            matches!(prompt, Some(ViewPrompt::Edited(_) | ViewPrompt::Help))
        };
        if has_text(&prompt) || has_text(&self.prompt) {
            self.offset = 0;
        }
        self.prompt = prompt;
        self.refresh();
    }

    /// Sets the size of the terminal.
    pub(super) fn resize(&mut self, size: (u16, u16)) {
        if self.size != size {
            self.size = size;
            self.refresh();
        }
    }

    /// Returns true if the terminal is too small to show a request.
    pub(super) fn is_too_small(&self) -> bool {
        self.size.0 < MIN_SIZE.0 || self.size.1 < MIN_SIZE.1
    }

    /// Builds the rows of the pane again, and notes which rows of the request are now shown.
    pub(super) fn refresh(&mut self) {
        let width = self.size.0;
        let is_detail = match &self.prompt {
            Some(ViewPrompt::Edited(review)) => {
                self.rows = text_rows(&review.diff, width);
                false
            }
            Some(ViewPrompt::Help) => {
                self.rows = text_rows(HELP_TEXT, width);
                false
            }
            _ => {
                let had = self.rows.len();
                let request = self.selected_request();
                let rows = request.map(|request| detail_rows(request, &self.freezes, width));
                self.rows = rows.unwrap_or_default();
                if self.rows.len() != had && self.seen_rows < had {
                    self.seen_rows = 0;
                }
                true
            }
        };
        let height = self.pane_height();
        let last = self.rows.len().saturating_sub(height);
        self.offset = self.offset.min(last);
        let is_hidden = matches!(self.prompt, Some(ViewPrompt::Remember(_)));
        if is_detail && !is_hidden && !self.is_too_small() && self.offset <= self.seen_rows {
            let shown = (self.offset + height).min(self.rows.len());
            self.seen_rows = self.seen_rows.max(shown);
        }
    }

    /// Applies the response to a decision.
    pub(super) fn finish(&mut self, decision: &OperatorDecision, result: Result<Value, String>) {
        self.in_flight = self.in_flight.saturating_sub(1);
        match result {
            Ok(done) => {
                self.message = decision.done_text(&done);
                self.decided = decision.request_id().map(str::to_owned);
            }
            Err(why) => {
                self.message = visible_line(&why);
                self.reopen_edit(decision, why);
            }
        }
        self.refresh();
    }

    /// Shows the edited arguments again that the gateway refused, so that the person can correct them.
    fn reopen_edit(&mut self, decision: &OperatorDecision, why: String) {
        if let OperatorDecision::Approve(options) = decision
            && let Some(text) = &options.edit
            && self.prompt.is_none()
            && let Some(request) = self.pending(&options.id)
        {
            let review = EditReview {
                id: options.id.clone(),
                text: text.clone(),
                diff: super::editor::arguments_diff(request, text),
                error: Some(why),
            };
            self.set_prompt(Some(ViewPrompt::Edited(review)));
        }
    }
}

fn end_text(end: &EndedRequest) -> String {
    let by = end
        .by
        .as_ref()
        .map_or(String::new(), |by| format!(" by {by}"));
    let reason = end.reason.as_ref().filter(|reason| !reason.is_empty());
    let reason = reason.map_or(String::new(), |reason| format!(": {reason}"));
    format!("{}{by}{reason}", end.decision)
}
