//! The view without a terminal: keys against a state, and the frame that the state gives.

mod frames;

use super::{
    decision::OperatorDecision,
    gateway_poll::{ActiveFreeze, EndedRequest, GatewaySnapshot},
    keys::{ViewEffect, handle_key, handle_paste},
    pending_request::PendingRequest,
    plain_lines::RequestChanges,
    state::InboxState,
    view,
};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_core::{backend::TestBackend, terminal::Terminal};
use serde_json::json;
use std::time::{Duration, Instant};

fn request(id: &str) -> PendingRequest {
    PendingRequest::from_json(&json!({
        "id": id, "server": "demo", "tool": "note", "title": "Note", "caller": "key:ann", "call": "c-1",
        "kind": "tool", "reasons": ["rule 1 asks"], "arguments_raw": "{\"name\":\"n\"}",
        "arguments_pretty": "{\n  \"name\": \"n\"\n}", "expires": 4_102_444_800_000_u64, "connected": true, "own": true,
        "may_edit": true, "may_remember": true, "needs": 1, "trusted": true,
        "hints": {"readOnly": false, "destructive": false, "openWorld": false},
    }))
}

fn snapshot(ids: &[&str]) -> GatewaySnapshot {
    GatewaySnapshot {
        gateways: 1,
        requests: ids.iter().map(|id| request(id)).collect(),
        ..GatewaySnapshot::default()
    }
}

fn ended(id: &str) -> EndedRequest {
    EndedRequest {
        request: request(id),
        decision: "approved".to_owned(),
        by: Some("ann (console)".to_owned()),
        reason: None,
    }
}

/// A view with a clock that the test moves.
struct TestView {
    state: InboxState,
    now: Instant,
}

impl TestView {
    fn new(size: (u16, u16), requests: &[&str]) -> TestView {
        let (mut state, now) = (InboxState::default(), Instant::now());
        state.resize(size);
        state.apply(snapshot(requests), now);
        TestView {
            state,
            now: now + Duration::from_secs(1),
        }
    }

    fn key(&mut self, code: KeyCode) -> Option<ViewEffect> {
        handle_key(&mut self.state, KeyEvent::from(code), self.now)
    }

    fn keys(&mut self, keys: &str) -> Option<ViewEffect> {
        keys.chars().map(|c| self.key(KeyCode::Char(c))).last()?
    }

    fn screen(&self) -> String {
        let (width, height) = self.state.size;
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let state = &self.state;
        let drawn = terminal.draw(|frame| {
            let area = frame.area();
            view::draw(state, area, frame.buffer_mut());
        });
        drawn.unwrap();
        terminal.backend().to_string()
    }
}

fn sent_id(effect: Option<ViewEffect>) -> Option<String> {
    match effect {
        Some(ViewEffect::Send(decision)) => decision.request_id().map(str::to_owned),
        _ => None,
    }
}

#[test]
fn an_approval_needs_a_second_key() {
    let mut view = TestView::new((100, 20), &["a-1"]);
    assert!(view.keys("a").is_none());
    assert!(
        view.screen()
            .contains("Approve a-1: demo.note for key:ann?")
    );
    assert!(view.keys("axq").is_none());
    assert_eq!(sent_id(view.key(KeyCode::Enter)).as_deref(), Some("a-1"));
}

#[test]
fn a_destructive_call_is_not_approved_by_enter() {
    let mut view = TestView::new((100, 20), &[]);
    let mut all = snapshot(&["a-1"]);
    all.requests[0].destructive = true;
    view.state.apply(all, view.now - Duration::from_secs(1));
    view.keys("a");
    assert!(view.key(KeyCode::Enter).is_none());
    assert_eq!(sent_id(view.keys("y")).as_deref(), Some("a-1"));
}

#[test]
fn a_call_that_needs_a_passkey_is_not_approved_here() {
    let mut view = TestView::new((100, 20), &[]);
    let mut all = snapshot(&["a-1"]);
    all.requests[0].needs_passkey = true;
    view.state.apply(all, view.now - Duration::from_secs(1));
    for keys in ["a", "e", "r"] {
        assert!(view.keys(keys).is_none());
        assert!(view.screen().contains("a passkey has to sign this call"));
    }
    assert!(view.keys("y").is_none());
    let denied = view.keys("d");
    assert!(denied.is_none() && view.screen().contains("Deny"));
}

#[test]
fn the_selection_follows_the_id_when_the_list_changes() {
    let mut view = TestView::new((100, 20), &["a-1", "a-2"]);
    view.key(KeyCode::Down);
    view.state
        .apply(snapshot(&["a-0", "a-3", "a-2", "a-1"]), view.now);
    view.keys("a");
    assert_eq!(sent_id(view.keys("y")).as_deref(), Some("a-2"));
}

#[test]
fn a_selected_request_that_ends_gives_its_place_to_no_other() {
    let mut view = TestView::new((100, 20), &["a-1", "a-2"]);
    let mut next = snapshot(&["a-2"]);
    next.ended = vec![ended("a-1")];
    view.state.apply(next, view.now);
    assert!(
        view.screen()
            .contains("Ended      approved by ann (console)")
    );
    view.now += Duration::from_secs(5);
    assert!(view.keys("ay").is_none());
    assert!(view.keys("a").is_none());
    assert!(
        view.screen().contains("select another request"),
        "{}",
        view.screen()
    );
    view.key(KeyCode::Down);
    view.keys("a");
    assert_eq!(sent_id(view.keys("y")).as_deref(), Some("a-2"));
    assert_eq!(view.state.requests.len(), 1, "the ended one left the list");
}

#[test]
fn keys_wait_until_a_selection_that_moved_by_itself_settled() {
    let mut view = TestView::new((100, 20), &["a-1", "a-2"]);
    view.keys("a");
    let Some(ViewEffect::Send(decision)) = view.keys("y") else {
        panic!("nothing was sent")
    };
    view.state.finish(&decision, Ok(json!({"ok": true})));
    view.state.apply(snapshot(&["a-2"]), view.now);
    assert_eq!(view.state.selected.as_deref(), Some("a-2"));
    view.now += Duration::from_millis(300);
    assert!(view.keys("ay").is_none() && view.keys("a").is_none());
    assert!(view.screen().contains("selection just changed"));
    view.now += Duration::from_millis(700);
    view.keys("a");
    assert_eq!(sent_id(view.keys("y")).as_deref(), Some("a-2"));
}

#[test]
fn a_question_closes_when_its_request_ends() {
    let mut view = TestView::new((100, 20), &["a-1", "a-2"]);
    view.keys("dno");
    let mut next = snapshot(&["a-2"]);
    next.ended = vec![ended("a-1")];
    view.state.apply(next, view.now);
    assert!(
        view.screen()
            .contains("a-1 is approved by ann (console); nothing was sent")
    );
    assert!(view.key(KeyCode::Enter).is_none());
}

#[test]
fn pasted_text_presses_no_keys() {
    let mut view = TestView::new((100, 20), &["a-1"]);
    handle_paste(&mut view.state, "ay\n");
    assert!(view.state.prompt.is_none());
    view.keys("d");
    handle_paste(&mut view.state, "two\nlines");
    match view.key(KeyCode::Enter) {
        Some(ViewEffect::Send(OperatorDecision::Deny { reason, .. })) => {
            assert_eq!(reason, "two lines");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn rows_that_were_not_shown_ask_for_a_y() {
    let mut view = TestView::new((100, 20), &[]);
    let mut all = snapshot(&["a-1"]);
    all.requests[0].arguments_pretty = "line\n".repeat(300);
    view.state.apply(all, view.now - Duration::from_secs(1));
    assert!(view.screen().contains("MORE BELOW"));
    view.key(KeyCode::End);
    assert!(!view.screen().contains("MORE BELOW"));
    view.keys("a");
    assert!(view.screen().contains("LINES NOT SEEN"), "End skipped rows");
    view.key(KeyCode::Esc);
    view.key(KeyCode::Home);
    for _ in 0..60 {
        view.key(KeyCode::PageDown);
    }
    view.keys("a");
    assert!(!view.screen().contains("NOT SEEN"), "{}", view.screen());
    assert_eq!(sent_id(view.key(KeyCode::Enter)).as_deref(), Some("a-1"));
}

#[test]
fn a_lost_gateway_keeps_the_list_and_takes_no_decisions() {
    let mut view = TestView::new((60, 15), &["a-1"]);
    view.state.apply(GatewaySnapshot::default(), view.now);
    let shown = view.screen();
    assert!(
        shown.contains("waiting for one") && shown.contains("a-1"),
        "{shown}"
    );
    assert!(view.keys("ay").is_none() && view.keys("q").is_some());
}

#[test]
fn a_freeze_is_named_and_thawed_by_its_number() {
    let mut view = TestView::new((100, 20), &["a-1"]);
    let mut next = snapshot(&["a-1"]);
    let freeze = |what: &str| ActiveFreeze {
        what: what.to_owned(),
        by: "ann".to_owned(),
        reason: "leak".to_owned(),
    };
    next.freezes = vec![freeze("caller key:bob"), freeze("server demo")];
    view.state.apply(next, view.now);
    let shown = view.screen();
    assert!(
        shown.contains("FROZEN: caller key:bob, server demo"),
        "{shown}"
    );
    assert!(
        shown.contains("Frozen     server demo by ann: leak"),
        "{shown}"
    );
    assert!(!shown.contains("Frozen     caller"), "{shown}");
    match view.keys("t2") {
        Some(ViewEffect::Send(OperatorDecision::Thaw { what })) => assert_eq!(what, "server demo"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_form_passes_the_words_of_the_command_line() {
    let mut view = TestView::new((100, 20), &["a-1"]);
    view.keys("r2099-01-31");
    view.key(KeyCode::Tab);
    view.keys("3");
    view.key(KeyCode::Tab);
    view.keys("args.name == \"n\"");
    view.key(KeyCode::Tab);
    view.keys("y");
    view.key(KeyCode::Enter);
    let shown = view.screen();
    assert!(
        shown.contains("--until=2099-01-31 --uses=3 --when=args.name"),
        "{shown}"
    );
    assert!(view.key(KeyCode::Enter).is_none(), "only y confirms");
    let Some(ViewEffect::Send(OperatorDecision::Approve(options))) = view.keys("y") else {
        panic!("nothing was sent")
    };
    assert!(options.remember && options.all_callers && options.until.is_some());
    assert_eq!(options.uses, Some(3));
    assert_eq!(options.when.as_deref(), Some("args.name == \"n\""));
}

#[test]
fn lines_report_arrival_departure_and_end_once() {
    let mut changes = RequestChanges::default();
    let names = |changes: &mut RequestChanges, snapshot| -> Vec<String> {
        let events = changes.update(snapshot, " --data d");
        let mut clock = crate::event_log::LocalClock::default();
        let lines = events
            .iter()
            .map(|event| crate::event_log::plain_line(event, &mut clock));
        lines.map(|line| line[9..].trim_end().to_owned()).collect()
    };
    let first = names(&mut changes, snapshot(&["a-1"]));
    assert!(
        first[0].starts_with("approval a-1: key:ann calls demo.note and waits "),
        "{first:?}"
    );
    assert!(
        first[0].ends_with("or: toolgate deny a-1 -m REASON --data d"),
        "{first:?}"
    );
    assert!(names(&mut changes, snapshot(&["a-1"])).is_empty());
    assert!(names(&mut changes, GatewaySnapshot::default()).is_empty());
    let mut away = snapshot(&["a-1"]);
    away.requests[0].is_awaited = false;
    let left = names(&mut changes, away.clone());
    assert_eq!(
        left,
        ["approval a-1: the caller no longer waits: demo.note for key:ann"]
    );
    assert!(names(&mut changes, away).is_empty());
    let mut over = snapshot(&[]);
    over.ended = vec![ended("a-1")];
    let over = names(&mut changes, over);
    assert_eq!(
        over,
        ["approval a-1: approved by ann (console): demo.note for key:ann"]
    );
}

#[test]
fn nothing_is_decided_that_is_not_drawn_and_modifiers_are_no_letters() {
    let mut view = TestView::new((35, 40), &["a-1"]);
    assert!(view.key(KeyCode::Char('a')).is_none() && view.state.prompt.is_none());
    assert!(matches!(
        view.key(KeyCode::Char('q')),
        Some(ViewEffect::Quit)
    ));
    view.state.resize((100, 30));
    for modifiers in [KeyModifiers::CONTROL, KeyModifiers::ALT] {
        let held = KeyEvent::new(KeyCode::Char('a'), modifiers);
        assert!(handle_key(&mut view.state, held, view.now).is_none());
        assert!(view.state.prompt.is_none(), "{modifiers:?}");
    }
    view.key(KeyCode::Char('a'));
    assert!(view.state.prompt.is_some());
}
