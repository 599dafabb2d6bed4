//! `toolgate pins` as a person types it: what it prints, where it fails, and that all gateways of a folder hear of it.

use super::{ALL, LEFT, Offer, offer, shows, tool};
use crate::help::{Gate, SOON, until};
use serde_json::json;

/// Runs a command that fails, and returns its message.
#[track_caller]
fn fails(gate: &Gate, args: &[&str]) -> String {
    let out = gate.run(args);
    assert_eq!(out.status.code(), Some(1), "{args:?} {out:?}");
    String::from_utf8(out.stderr).unwrap()
}

/// The line of a pin in the list: its name, how it stands, by whom, and up to two digests.
#[track_caller]
fn line(gate: &Gate, name: &str) -> Vec<String> {
    let list = gate.cli(&["pins", "list", "s"]);
    let mut lines = list.lines();
    let found = lines.find(|line| line.split(' ').next() == Some(name));
    let words = found.unwrap_or_else(|| panic!("no {name} in {list}"));
    words.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn each_command_says_what_it_did_or_why_not() {
    let offers = Offer::new(&offer("Looks"));
    let gate = offers.start("");
    shows(&gate, &ALL);
    let settled = line(&gate, "s.look");
    assert_eq!(settled[1..4], ["accepted", "first", "sight"]);
    assert_eq!((settled.len(), settled[4].len()), (5, 12), "{settled:?}");
    assert_eq!(
        gate.cli(&["pins", "diff", "s.look"]),
        "tool s.look: unchanged since it was accepted\n"
    );
    for (args, why) in [
        (
            &["pins", "list", "nobody"][..],
            "there is no server \"nobody\"",
        ),
        (
            &["pins", "diff", "s.nothing"],
            "there is no pin for \"s.nothing\"",
        ),
        (
            &["pins", "reject", "s.nothing"],
            "there is no pin for \"s.nothing\"",
        ),
        (
            &["pins", "forget", "other.it"],
            "there is no pin for \"other.it\"",
        ),
        (
            &["pins", "accept", "--server", "nobody"],
            "there is no pin for \"nobody\"",
        ),
        (&["pins", "accept", "s.look"], "nothing to decide"),
        (&["pins", "reject", "s.look"], "nothing to decide"),
    ] {
        let said = fails(&gate, args);
        assert!(said.contains(why), "{args:?}: {said}");
    }
    assert_eq!(
        gate.cli(&["pins", "accept", "--server", "s"]),
        "accepted: 0 definitions\n"
    );
    // What would move the cursor or is not seen stands there as its number.
    offers.put(&offer("Looks \u{1b}[31mat\u{200b} it"));
    shows(&gate, &LEFT);
    let diff = gate.cli(&["pins", "diff", "s.look"]);
    assert!(
        diff.contains("description (semantic)") && !diff.contains(['\u{1b}', '\u{200b}']),
        "{diff:?}"
    );
    let waits = line(&gate, "s.look");
    assert_eq!((waits[1].as_str(), waits.len()), ("changed", 6));
    for digest in ["0123456789ab", &waits[5][..7]] {
        let said = fails(&gate, &["pins", "reject", "s.look", "--digest", digest]);
        assert!(said.contains("changed after you reviewed it"), "{said}");
    }
    gate.cli(&["pins", "reject", "s.look", "--digest", &waits[5]]);
    assert_eq!(line(&gate, "s.look")[1], "rejected");
    // A no is for this definition alone, and accepting all of a server leaves it.
    assert_eq!(
        gate.cli(&["pins", "accept", "--server", "s"]),
        "accepted: 0 definitions\n"
    );
    shows(&gate, &LEFT);
    gate.cli(&["pins", "forget", "s.look"]);
    shows(&gate, &ALL);
    assert_eq!(line(&gate, "s.look")[1..4], ["accepted", "first", "sight"]);
    assert_eq!(line(&gate, "s.look")[4], waits[5]);
}

#[test]
fn a_decision_holds_in_all_gateways_of_a_folder() {
    let offers = Offer::new(&offer("Looks"));
    let (one, other) = (offers.start(""), offers.start(""));
    shows(&one, &ALL);
    shows(&other, &ALL);
    offers.put(&offer("Looks at it"));
    shows(&one, &LEFT);
    shows(&other, &LEFT);
    let waits = line(&one, "s.look");
    one.cli(&["pins", "accept", "s.look", "--digest", &waits[5]]);
    shows(&one, &ALL);
    shows(&other, &ALL);
    let seen = line(&other, "s.look");
    assert!(seen[1] == "accepted" && seen[3] == "(terminal)", "{seen:?}");
    one.stop();
    assert_eq!(line(&other, "s.look")[1], "accepted");
}

#[test]
fn the_list_shows_the_flags_of_each_item() {
    let alike = json!({"tools": [tool("send_mail", "Sends"), tool("send_mai\u{406}", "Sends")]});
    let gate = Offer::new(&alike).start("");
    let list = until("the tools are pinned", SOON, || {
        let list = gate.cli(&["pins", "list"]);
        (list.contains("s.send_mail ") && list.contains("s.send_mai\u{406} ")).then_some(list)
    });
    let after = |name: &str| {
        let mut lines = list.lines().skip_while(|line| !line.starts_with(name));
        lines.nth(1).unwrap_or_default().to_owned()
    };
    assert_eq!(
        after("s.send_mail "),
        "  flagged: its name looks like s.send_mai\u{406}"
    );
    assert_eq!(
        after("s.send_mai\u{406} "),
        "  flagged: its name looks like s.send_mail"
    );
}
