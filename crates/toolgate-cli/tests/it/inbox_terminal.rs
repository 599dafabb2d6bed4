//! The terminal and the pipe of `toolgate inbox --watch`: sizes, hostile text, and how the program ends.

use crate::{
    help::{Family, Gate, Modern, Reply, SOON, Screen, Setup, command, lines, sayer, until},
    inbox_screen::{READY, call, note, result, view_of},
};
use serde_json::json;
use std::process::{Child, Stdio};

/// A gateway over a tool that takes any text, and asks.
fn any_text_gate() -> Gate {
    let url = sayer(|message| {
        let written = json!({"content": [{"type": "text", "text": "is written"}]});
        Reply::result(message, written)
    });
    let gate = Setup::config(format!(
        "[server.far]\nurl = {url:?}\nunknown_arguments = \"allow\"\n\
         [[rule]]\ntools = [\"far.say\"]\naction = \"ask\"\n"
    ));
    let gate = gate.start();
    until("the server runs", SOON, || {
        gate.cli(&["tools"]).contains("far.say").then_some(())
    });
    gate
}

#[test]
fn a_long_request_is_read_to_its_end_in_any_size() {
    let gate = any_text_gate();
    let Some(view) = view_of(&gate, "") else {
        return;
    };
    let long = "word ".repeat(900) + "THE-END";
    let waits = call(&gate, "far_say", json!({"text": long}));
    let id = gate.pending();
    view.shows("MORE BELOW");
    for (width, height) in [(60, 15), (40, 10), (39, 9), (100, 30), (40, 10)] {
        view.resize(width, height);
        if width < 40 {
            view.shows("Needs 40x10 or more");
            continue;
        }
        let shown = view.comes("the view fits the size", |shown| {
            let rows: Vec<&str> = shown.lines().collect();
            rows.len() == usize::from(height)
                && rows[rows.len() - 1].contains("? help") == (width >= 78)
                && rows
                    .iter()
                    .any(|row| row.starts_with("-- line 1-") && row.trim_end().ends_with("--"))
        });
        assert!(shown.contains(&id) && shown.contains("far.say"), "{shown}");
        assert!(shown.contains("MORE BELOW"), "{shown}");
    }
    view.press_until("a", "LINES NOT SEEN");
    view.press(&["Enter", "Escape"]);
    assert_eq!(gate.inbox(), [id.as_str()]);
    view.comes("the question is closed", |shown| {
        !shown.contains("NOT SEEN")
    });
    view.resize(100, 30);
    view.shows(READY);
    until("the last row is shown", SOON, || {
        view.press(&["PageDown"]);
        let shown = view.text();
        (shown.contains("THE-END") && !shown.contains("MORE BELOW")).then_some(())
    });
    view.press_until("a", "Approve ");
    assert!(!view.text().contains("NOT SEEN"), "all of it was seen");
    view.press(&["Enter"]);
    assert!(result(waits).contains("is written"));
}

/// A value that moves the cursor, changes colors, turns the direction of text, hides, and is padded so that its next
/// row begins like a field of ours.
#[test]
fn hostile_text_is_shown_escaped_and_forges_no_line() {
    let gate = any_text_gate();
    let Some(view) = view_of(&gate, "") else {
        return;
    };
    let steering = "\u{1b}[2J\u{1b}[31mred\u{9b}5A\u{202e}evil\u{200b}\u{1161}x\r\nCaller     root";
    let padded = " ".repeat(200) + &"Caller     root ".repeat(12);
    let text = format!("{steering}{padded}");
    let waits = call(&gate, "far_say", json!({"text": text}));
    let shown = view.shows("\\u001b[2J\\u001b[31mred\\u009b5A\\u202eevil\\u200b");
    assert!(shown.contains("anonymous@http"), "{shown}");
    let is_forged =
        |row: &&str| row.trim_start().starts_with("Caller") && !row.contains("anonymous");
    assert_eq!(shown.lines().filter(is_forged).count(), 0, "{shown}");
    assert!(shown.lines().any(|row| row.starts_with("+ ")), "{shown}");
    assert!(shown.contains("\\u{1161}"), "{shown}");
    let unsafe_text = |c: char| matches!(c, '\u{202e}' | '\u{200b}' | '\u{1b}' | '\u{9b}');
    assert!(!shown.contains(unsafe_text), "{shown}");
    view.press_until("d", "reason: _");
    view.press(&["Enter"]);
    waits.join().unwrap();
}

#[test]
fn the_terminal_is_restored_after_quit_and_after_sigterm() {
    let gate = Setup::demo().start();
    let restored = |view: &Screen, code: &str| {
        view.shows(&format!("ended {code}"));
        let shown = view.shows(" icanon");
        assert!(!shown.contains("pending"), "{shown}");
        let flags = view.property("#{alternate_on} #{cursor_flag} #{wrap_flag}");
        assert_eq!(flags, "0 1 1");
    };
    for keys in ["q", "C-c"] {
        let Some(view) = view_of(&gate, "") else {
            return;
        };
        view.shows(READY);
        assert_eq!(view.property("#{alternate_on} #{cursor_flag}"), "1 0");
        view.press(&[keys]);
        restored(&view, "0");
    }
    let Some(view) = view_of(&gate, "") else {
        return;
    };
    view.shows(READY);
    let shell = view.property("#{pane_pid}");
    let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children"));
    let child = children.unwrap().trim().to_owned();
    let sent = command("kill").args(["-TERM", &child]).status().unwrap();
    assert!(sent.success());
    restored(&view, "0");
}

#[test]
fn the_view_ends_with_its_terminal() {
    let gate = Setup::demo().start();
    let Some(view) = view_of(&gate, "") else {
        return;
    };
    view.shows(READY);
    let shell = view.property("#{pane_pid}").parse().unwrap();
    let family = Family::of(shell);
    assert_eq!(family.names(), ["toolgate"]);
    drop(view);
    family.is_gone();
}

/// The program in a pipe, ended with the value.
struct PipedInbox(Child);

impl Drop for PipedInbox {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_pipe_gets_a_line_for_each_request_and_its_end() {
    let gate = Setup::demo().start();
    let mut start = crate::help::toolgate();
    start
        .args(["inbox", "--watch", "--data"])
        .arg(gate.data.file("state"));
    let mut piped = PipedInbox(
        start
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let printed = lines(piped.0.stdout.take().unwrap());
    let next = || printed.recv_timeout(SOON).expect("a line");
    let first = note(&gate, "PAYLOAD");
    let id = gate.pending();
    let line = next();
    let wanted = format!(" approval {id}: anonymous@http calls demo.note and waits ");
    assert!(
        line.contains(&wanted) && line.contains(&format!("toolgate approve {id} --data ")),
        "{line}"
    );
    gate.cli(&["approve", &id]);
    first.join().unwrap();
    let line = next();
    assert!(
        line.contains(&format!(" approval {id}: approved by ")),
        "{line}"
    );
    let second = note(&gate, "second");
    let id = gate.pending();
    assert!(next().contains(&format!("approval {id}: ")));
    gate.cli(&["deny", &id, "-m", "not today"]);
    second.join().unwrap();
    let line = next();
    assert!(
        line.contains(&format!(" approval {id}: denied by ")),
        "{line}"
    );
    assert!(
        line.ends_with(": demo.note for anonymous@http: not today"),
        "{line}"
    );
    // A caller that hangs up.
    let body = Modern::request(
        gate.port,
        &json!(1),
        "demo_note",
        json!({"name": "n", "text": "third"}),
    );
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", gate.port)).unwrap();
    std::io::Write::write_all(&mut stream, &body).unwrap();
    let line = next();
    assert!(line.contains(" calls demo.note and waits "), "{line}");
    drop(stream);
    let line = next();
    assert!(
        line.contains(": the caller no longer waits: demo.note for anonymous@http"),
        "{line}"
    );
}

#[test]
fn the_lines_end_with_their_pipe() {
    let gate = Setup::demo().start();
    let mut start = crate::help::toolgate();
    start
        .args(["inbox", "--watch", "--data"])
        .arg(gate.data.file("state"));
    let mut piped = PipedInbox(
        start
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    drop(piped.0.stdout.take());
    let status = until("the program ends", SOON, || piped.0.try_wait().unwrap());
    assert!(status.success());
}
