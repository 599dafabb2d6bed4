//! Names that every host takes: `[A-Za-z0-9_-]`, at most 64 characters, and no two tools under one.

use ring::digest::{SHA256, digest};
use std::{collections::HashSet, fmt};

/// Longest name on the wire.
const LIMIT: usize = 64;
/// Longest prefix; leaves room for the tool.
const PREFIX: usize = 32;
/// What stands before the hash of a name that had to be changed.
const MARK: &str = "-x";
/// Characters of the hash, five bits each.
const HASH: usize = 12;
const LETTERS: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";

/// A prefix by which two names could meet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BadPrefix {
    /// The prefix.
    pub prefix: String,
    reason: &'static str,
}

impl fmt::Display for BadPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the prefix {:?} cannot be used: {}",
            self.prefix, self.reason
        )
    }
}

impl std::error::Error for BadPrefix {}

/// Checks the prefixes of members that stand side by side.
pub(super) fn check<'a>(prefixes: impl Iterator<Item = &'a str>) -> Result<(), BadPrefix> {
    let prefixes: Vec<&str> = prefixes.collect();
    let mut seen = HashSet::new();
    for prefix in &prefixes {
        let bad = |reason| {
            Err(BadPrefix {
                prefix: (*prefix).to_owned(),
                reason,
            })
        };
        match *prefix {
            "" if prefixes.len() > 1 => return bad("only a single server can do without one"),
            p if p.len() > PREFIX => return bad("it has more than 32 characters"),
            p if !p.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') => {
                return bad("it may only have letters, digits and \"-\"");
            }
            p if !seen.insert(p) => return bad("another server has it"),
            _ => {}
        }
    }
    Ok(())
}

/// Checks the prefixes of what is put into another one.
pub(super) fn check_inner<'a>(prefixes: impl Iterator<Item = &'a str>) -> Result<(), BadPrefix> {
    let prefixes: Vec<&str> = prefixes.collect();
    match prefixes.contains(&"") {
        true => Err(BadPrefix {
            prefix: String::new(),
            reason: "what is put into a server needs a name",
        }),
        false => check(prefixes.into_iter()),
    }
}

/// The name of a tool on the wire. Names that hosts take stay as they are behind the prefix; all others get
/// their bad characters replaced and a hash of the original appended, so that no two become one.
///
/// `salt` is 0, and is raised where two names of one server should meet all the same.
pub fn wire_name(prefix: &str, tool: &str, salt: u32) -> String {
    let head = if prefix.is_empty() {
        String::new()
    } else {
        format!("{prefix}_")
    };
    let room = LIMIT.saturating_sub(head.len());
    if salt == 0 && fits(tool, room) {
        return head + tool;
    }
    let keep = room.saturating_sub(MARK.len() + HASH);
    let safe = |c: char| {
        if c.is_ascii_alphanumeric() || c == '_' || c == '-' {
            c
        } else {
            '-'
        }
    };
    let short: String = tool.chars().map(safe).take(keep).collect();
    head + &short + MARK + &hash(tool, salt)
}

/// Whether a name can stay. One that looks as if it had been changed cannot, or it could meet one that was.
fn fits(tool: &str, room: usize) -> bool {
    let good = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    !tool.is_empty() && tool.len() <= room && tool.bytes().all(good) && !looks_changed(tool)
}

fn looks_changed(tool: &str) -> bool {
    let Some((_, end)) = tool
        .len()
        .checked_sub(HASH + MARK.len())
        .and_then(|at| tool.split_at_checked(at))
    else {
        return false;
    };
    end.strip_prefix(MARK)
        .is_some_and(|hash| hash.bytes().all(|b| LETTERS.contains(&b)))
}

fn hash(tool: &str, salt: u32) -> String {
    let text = format!("{salt}:{tool}");
    let digest = digest(&SHA256, text.as_bytes());
    let bits = digest
        .as_ref()
        .iter()
        .take(8)
        .fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
    let letter = |at: usize| char::from(LETTERS[(bits >> (5 * at) & 31) as usize]);
    (0..HASH).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pieces() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            Just("_".to_owned()),
            Just(".".to_owned()),
            Just("-".to_owned()),
            Just("-x".to_owned()),
            Just("a".to_owned()),
            Just("A".to_owned()),
            Just("é".to_owned()),
            Just("０".to_owned()),
            Just("0123456789ab".to_owned()),
            Just("long".repeat(9)),
            "\\PC{0,3}",
        ];
        prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
    }

    fn prefix() -> impl Strategy<Value = String> {
        prop::sample::select(vec![
            "a",
            "A",
            "a-x",
            "files",
            "a0123456789ab",
            "a-x0123456789ab",
            "-",
        ])
        .prop_map(str::to_owned)
    }

    proptest! {
        /// Two tools never meet, whatever their servers and names.
        ///
        /// Holds: TOOL-28
        #[test]
        fn names_are_injective_and_fit(one in (prefix(), pieces()), two in (prefix(), pieces())) {
            let (a, b) = (wire_name(&one.0, &one.1, 0), wire_name(&two.0, &two.1, 0));
            prop_assert_eq!(one == two, a == b, "{:?} {:?}", one, two);
            for name in [a, b] {
                prop_assert!(name.len() <= LIMIT && !name.is_empty());
                prop_assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'));
            }
        }

        /// A name made for one tool is never the name that another tool has by itself.
        #[test]
        fn a_made_name_is_taken_by_nobody(tool in pieces()) {
            let made = wire_name("", &tool, 0);
            prop_assert!(made == tool || wire_name("", &made, 0) != made);
        }
    }

    #[test]
    fn names_that_hosts_take_stay_as_they_are() {
        assert_eq!(wire_name("files", "read_file", 0), "files_read_file");
        assert_eq!(wire_name("", "read-File", 0), "read-File");
        let long = "x".repeat(64 - "files_".len());
        assert_eq!(wire_name("files", &long, 0), format!("files_{long}"));
    }

    #[test]
    fn other_names_say_what_they_were_and_stay_apart() {
        let dotted = wire_name("git", "log.show", 0);
        assert!(dotted.starts_with("git_log-show-x"), "{dotted}");
        assert_ne!(dotted, wire_name("git", "log/show", 0));
        assert_ne!(wire_name("git", "a.b", 0), wire_name("git", "a.b", 1));
    }

    #[test]
    fn prefixes_by_which_names_could_meet_are_refused() {
        let check = |prefixes: &[&str]| check(prefixes.iter().copied()).is_ok();
        assert!(check(&[""]) && check(&["a", "b-1"]) && check(&[]));
        for bad in [
            &["", "a"][..],
            &["a", "a"],
            &["a_b"],
            &["a.b"],
            &["é"],
            &["a".repeat(33).as_str()],
        ] {
            assert!(!check(bad), "{bad:?}");
        }
    }
}
