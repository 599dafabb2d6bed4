//! T44: confusable names are detected, whichever characters they consist of.

use super::{
    Pins,
    confusables::{are_confusable, comparison_forms},
};
use crate::{AuditRecorder, MemoryStateStore};
use proptest::prelude::*;
use serde_json::json;
use std::sync::Arc;
use toolgate_core::{Definition, Item, Json, Origin};

/// A cached key of one server identity is not used for another identity under the same id.
#[test]
fn the_key_of_an_item_is_that_of_the_server_as_these_pins_know_it() {
    let origin = Origin {
        server: "s".into(),
        trusted: false,
    };
    let def = Json::from_value(&json!({"name": "t", "inputSchema": {}}));
    let item = Arc::new(Item::new(origin, Definition::tool(def).unwrap()));
    let key = |is: &str| {
        let pins = Pins::new(
            Arc::new(MemoryStateStore::new()),
            Arc::new(AuditRecorder::log()),
        );
        let pins = pins.identities([("s".to_owned(), is.to_owned())]);
        pins.observed_item(&item).key
    };
    let first = key("one command");
    assert_ne!(first, key("another command"));
    assert_eq!(first, key("one command"));
}

#[test]
fn t44_names_that_people_confuse() {
    for (one, two) in [
        ("send_email", "send_emai\u{406}"), // Cyrillic
        ("send_email", "s\u{435}nd_email"), // Cyrillic
        ("send_email", "send_emaiI"),       // a capital i
        ("send_email", "send_emai1"),       // a digit
        ("send_email", "Send_Email"),       // case
        ("send_email", "send-email"),       // a separator
        ("send_email", "sendEmail"),
        ("send_email", "\u{ff53}end_email"), // full width
        ("send_email", "send\u{2010}email"), // a hyphen
        ("list", "1ist"),
        ("TOOL", "T00L"),
        ("modern", "rnodern"),
        ("files", "\u{fb01}les"), // a ligature
        ("scope", "\u{455}\u{441}\u{43e}\u{440}\u{435}"),
    ] {
        assert!(
            are_confusable(one, two),
            "{one} {two} {:?} {:?}",
            comparison_forms(one),
            comparison_forms(two)
        );
    }
    for (one, two) in [
        ("read_file", "read_files"),
        ("get", "set"),
        ("add", "delete"),
        ("git_log", "git_tag"),
        ("写入", "读取"),
        ("a", "a"),
    ] {
        assert!(!are_confusable(one, two), "{one} {two}");
    }
}

/// Pairs of confusable characters.
const CONFUSABLE_CHARACTERS: [(char, char); 14] = [
    ('a', 'а'),
    ('c', 'с'),
    ('e', 'е'),
    ('o', 'о'),
    ('p', 'р'),
    ('x', 'х'),
    ('y', 'у'),
    ('i', 'і'),
    ('s', 'ѕ'),
    ('j', 'ј'),
    ('o', '0'),
    ('l', '1'),
    ('l', 'I'),
    ('-', '_'),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Names stay confusable when characters are replaced by confusable ones.
    #[test]
    fn t44_no_disguise_goes_unseen(name in "[acexyjs][acelopxyijs_-]{1,11}", picks in prop::collection::vec(any::<usize>(), 12)) {
        let swap = |(at, (c, pick)): (usize, (char, &usize))| {
            let others: Vec<char> = CONFUSABLE_CHARACTERS.iter().filter(|(plain, _)| *plain == c).map(|(_, other)| *other).collect();
            match others.get(pick % others.len().max(1)) {
                Some(other) if at == 0 || pick % 3 == 0 => *other,
                _ => c,
            }
        };
        let disguised: String = name.chars().zip(&picks).enumerate().map(swap).collect();
        prop_assert!(disguised != name && are_confusable(&name, &disguised), "{name} {disguised} {:?} {:?}", comparison_forms(&name), comparison_forms(&disguised));
    }
}
