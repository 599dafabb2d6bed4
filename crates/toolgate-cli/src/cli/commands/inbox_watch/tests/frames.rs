//! Frames: hostile text, wrapped rows and sizes.

use super::{TestView, snapshot};
use crate::cli::commands::inbox_watch::{detail::text_rows, wrap};
use crossterm::event::KeyCode;
use std::time::Duration;

#[test]
fn foreign_text_is_escaped_and_marked_in_every_part() {
    let steering = "\u{1b}[31m\u{202e}\u{200b}\u{9b}1A\r\n\u{1161}";
    let mut all = snapshot(&["a-1"]);
    let target = &mut all.requests[0];
    for text in [
        &mut target.tool,
        &mut target.title,
        &mut target.caller,
        &mut target.call,
        &mut target.description,
        &mut target.reasons[0],
        &mut target.arguments_raw,
        &mut target.arguments_pretty,
    ] {
        *text = format!("x{steering}y");
    }
    target.client = Some(steering.to_owned());
    all.problem = Some(steering.to_owned());
    let mut view = TestView::new((100, 30), &[]);
    view.state.apply(all, view.now - Duration::from_secs(1));
    let mut screens = vec![view.screen()];
    for key in ['a', 'f', 'd', 'r'] {
        view.keys(&key.to_string());
        screens.push(view.screen());
        view.key(KeyCode::Esc);
    }
    for shown in screens {
        let is_steering =
            |c: char| c != '\n' && (c.is_control() || matches!(c, '\u{202e}' | '\u{200b}'));
        assert!(!shown.contains(is_steering), "{shown:?}");
        assert!(
            shown.contains("x\\u001b[31m\\u202e\\u200b\\u009b1A"),
            "{shown}"
        );
    }
}

#[test]
fn a_continued_row_cannot_pass_for_a_line() {
    let long = format!("{}Caller     root", " ".repeat(38));
    let rows = text_rows(&long, 40);
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[1].text, "+ Caller     root");
    // A character without columns would vanish.
    assert_eq!(text_rows("\"\u{1161}\"", 40)[0].text, "  \"\\u{1161}\"");
    let wide = text_rows(&"日".repeat(30), 41);
    assert!(wide.iter().all(|row| wrap::columns(&row.text) <= 41));
    let all: String = wide.iter().map(|row| &row.text[2..]).collect();
    assert_eq!(all, "日".repeat(30));
}

#[test]
fn every_size_from_the_smallest_one_shows_all_parts() {
    for size in [(40, 10), (60, 15), (100, 30), (200, 60)] {
        let ids: Vec<String> = (0..40).map(|n| format!("a-{n}")).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let mut view = TestView::new(size, &ids);
        for _ in 0..39 {
            view.key(KeyCode::Down);
        }
        view.keys("a");
        let shown = view.screen();
        for part in [
            "40 pending",
            " a-39 ",
            "-- line 1-",
            "Approve a-39",
            "yes, Esc: no",
        ] {
            assert!(shown.contains(part), "{size:?} {part}:\n{shown}");
        }
    }
    let view = TestView::new((39, 10), &["a-1"]);
    assert!(view.screen().contains("Needs 40x10"));
    TestView::new((1, 1), &["a-1"]).screen();
}
