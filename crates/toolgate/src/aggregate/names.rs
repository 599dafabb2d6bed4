//! Names of tools and prompts on the wire: valid for clients, unique, and the server's own name wherever possible.
//!
//! A valid name stays unchanged after the prefix. In any other name, each character that is not allowed becomes `-`. A
//! hash of the original is appended only if the name would be too long, or if another tool of the server has or gets
//! that name. The result depends on the set of names of a server, not on their order.

use ring::digest::{SHA256, digest};
use std::{
    collections::{HashMap, HashSet},
    fmt,
};

/// Maximum length of a prefix, in characters; leaves room for the tool name.
const MAX_PREFIX_CHARS: usize = 32;
/// Separator before the hash of a changed name.
const HASH_SEPARATOR: &str = "-x";
/// Number of characters of the hash, five bits each.
const HASH_CHARS: usize = 12;
const HASH_ALPHABET: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";

/// Error for a joined server's name prefix that is invalid or that another server already uses.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct PrefixError {
    /// The rejected name prefix.
    pub prefix: String,
    reason: &'static str,
}

impl fmt::Display for PrefixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the prefix {:?} cannot be used: {}; choose another prefix",
            self.prefix, self.reason
        )
    }
}

impl std::error::Error for PrefixError {}

/// Validates the prefixes of joined members.
pub(super) fn check<'a>(prefixes: impl Iterator<Item = &'a str>) -> Result<(), PrefixError> {
    let prefixes: Vec<&str> = prefixes.collect();
    let mut seen = HashSet::new();
    for prefix in &prefixes {
        let bad = |reason| {
            Err(PrefixError {
                prefix: (*prefix).to_owned(),
                reason,
            })
        };
        match *prefix {
            "" if prefixes.len() > 1 => {
                return bad("it is empty, which is only allowed for a single server");
            }
            p if p.len() > MAX_PREFIX_CHARS => return bad("it is longer than 32 characters"),
            p if !p.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') => {
                return bad("it may contain only letters, digits and \"-\"");
            }
            p if !seen.insert(p) => return bad("another server already uses it"),
            _ => {}
        }
    }
    Ok(())
}

/// Validates the prefixes of mounted services, which must not be empty.
pub(super) fn check_inner<'a>(prefixes: impl Iterator<Item = &'a str>) -> Result<(), PrefixError> {
    let prefixes: Vec<&str> = prefixes.collect();
    match prefixes.contains(&"") {
        true => Err(PrefixError {
            prefix: String::new(),
            reason: "it is empty, and a mounted server needs a name",
        }),
        false => check(prefixes.into_iter()),
    }
}

/// Allowed characters and length of tool and prompt names that joined servers offer; other names are changed to fit.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum NameRules {
    /// The MCP specification's rule for names: `[A-Za-z0-9_.-]`, 1 to 128 characters.
    #[default]
    Specification,
    /// The rule for names that every model API accepts: `[A-Za-z0-9_-]`, 1 to 64 characters.
    Portable,
}

/// Maximum length and allowed characters of wire names, beside letters, digits, `_` and `-`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct NameLimits {
    /// Maximum length of a name, in characters.
    pub(crate) max_chars: usize,
    /// True if a name may contain `.`.
    pub(crate) dots: bool,
}

impl NameLimits {
    fn allows(self, c: char) -> bool {
        c.is_ascii_alphanumeric() || c == '_' || c == '-' || (c == '.' && self.dots)
    }
}

impl NameRules {
    fn limits(self) -> NameLimits {
        match self {
            NameRules::Specification => NameLimits {
                max_chars: 128,
                dots: true,
            },
            NameRules::Portable => NameLimits {
                max_chars: 64,
                dots: false,
            },
        }
    }

    /// Returns whether a name that is joined to this prefix meets the rules, so that it stays unchanged.
    #[doc(hidden)]
    pub fn keeps_name(self, prefix: &str, name: &str) -> bool {
        let limits = self.limits();
        let fits = prefix_with_separator(prefix).len() + name.len() <= limits.max_chars;
        !name.is_empty() && fits && name.chars().all(|c| limits.allows(c))
    }
}

/// Assignment of wire names for one server.
pub(crate) struct WireNames {
    prefix: String,
    limits: NameLimits,
    assigned: HashSet<String>,
}

/// Wire name of an item, unless another item has it.
enum WireNameCandidate {
    /// The name itself, with the prefix.
    Unchanged(String),
    /// The name with the disallowed characters replaced.
    Replaced(String),
    /// No candidate: the name is empty or too long without a hash.
    Hashed,
}

impl WireNames {
    pub(super) fn new(prefix: &str, rules: NameRules) -> WireNames {
        WireNames::within(prefix, rules.limits())
    }

    /// Starts an assignment of names within these limits.
    pub(crate) fn within(prefix: &str, limits: NameLimits) -> WireNames {
        WireNames {
            prefix: prefix_with_separator(prefix),
            limits,
            assigned: HashSet::new(),
        }
    }

    /// Assigns wire names in the given order. Names from earlier calls stay assigned.
    pub(crate) fn assign(&mut self, names: &[&str]) -> Vec<String> {
        let candidates: Vec<WireNameCandidate> =
            names.iter().map(|name| self.candidate(name)).collect();
        let mut counts = HashMap::<&str, usize>::new();
        for candidate in &candidates {
            if let WireNameCandidate::Unchanged(name) | WireNameCandidate::Replaced(name) =
                candidate
            {
                *counts.entry(name).or_default() += 1;
            }
        }
        // Unchanged names come first: no other name may get one of them.
        let mut wire: Vec<Option<String>> = Vec::new();
        for candidate in &candidates {
            let stays = match candidate {
                WireNameCandidate::Unchanged(name) => !self.assigned.contains(name),
                WireNameCandidate::Replaced(name) => {
                    counts[name.as_str()] == 1 && !self.assigned.contains(name)
                }
                WireNameCandidate::Hashed => false,
            };
            let name = match candidate {
                WireNameCandidate::Unchanged(name) | WireNameCandidate::Replaced(name) if stays => {
                    Some(name.clone())
                }
                _ => None,
            };
            self.assigned.extend(name.clone());
            wire.push(name);
        }
        let wire = wire.into_iter().zip(names);
        wire.map(|(name, own)| name.unwrap_or_else(|| self.assign_hashed(own)))
            .collect()
    }

    /// Returns the names unchanged, except that a name already in use gets a hash.
    pub(super) fn assign_unchanged(&mut self, names: &[&str]) -> Vec<String> {
        let keep = |name: &&str| match self.assigned.insert((*name).to_owned()) {
            true => (*name).to_owned(),
            false => self.assign_hashed(name),
        };
        names.iter().map(keep).collect()
    }

    fn candidate(&self, name: &str) -> WireNameCandidate {
        let whole = |name: &str| [&self.prefix, name].concat();
        if self.prefix.len() + name.len() > self.limits.max_chars || name.is_empty() {
            return WireNameCandidate::Hashed;
        }
        match name.chars().all(|c| self.limits.allows(c)) {
            true => WireNameCandidate::Unchanged(whole(name)),
            false => WireNameCandidate::Replaced(whole(&self.replace_characters(name))),
        }
    }

    fn replace_characters(&self, name: &str) -> String {
        let allowed = |c: char| if self.limits.allows(c) { c } else { '-' };
        name.chars().map(allowed).collect()
    }

    /// Returns an unused name with a hash. A collision of two hashes is retried with another salt.
    fn assign_hashed(&mut self, name: &str) -> String {
        let used = self.prefix.len() + HASH_SEPARATOR.len() + HASH_CHARS;
        let keep = self.limits.max_chars.saturating_sub(used);
        let short: String = self.replace_characters(name).chars().take(keep).collect();
        let made = |salt| [&self.prefix, &short, HASH_SEPARATOR, &hash(name, salt)].concat();
        let mut all = (0..=u32::MAX).map(made);
        let free = all
            .find(|name| !self.assigned.contains(name))
            .unwrap_or_default();
        self.assigned.insert(free.clone());
        free
    }
}

fn prefix_with_separator(prefix: &str) -> String {
    match prefix {
        "" => String::new(),
        prefix => format!("{prefix}_"),
    }
}

fn hash(tool: &str, salt: u32) -> String {
    let text = format!("{salt}:{tool}");
    let digest = digest(&SHA256, text.as_bytes());
    let bits = digest
        .as_ref()
        .iter()
        .take(8)
        .fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
    let letter = |at: usize| char::from(HASH_ALPHABET[(bits >> (5 * at) & 31) as usize]);
    (0..HASH_CHARS).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const RULES: [NameRules; 2] = [NameRules::Specification, NameRules::Portable];

    fn names(prefix: &str, rules: NameRules, names: &[&str]) -> Vec<String> {
        WireNames::new(prefix, rules).assign(names)
    }

    fn one(prefix: &str, rules: NameRules, name: &str) -> String {
        names(prefix, rules, &[name]).remove(0)
    }

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
        prop::sample::select(vec!["a", "A", "a-x", "files", "a0123456789ab", "-"])
            .prop_map(str::to_owned)
    }

    proptest! {
        /// Two tools never share a wire name, whatever their servers and names, and each name is valid.
        ///
        /// Holds: TOOL-28
        #[test]
        fn names_are_injective_and_fit(
            servers in prop::collection::btree_map(prefix(), prop::collection::btree_set(pieces(), 1..8), 1..4)
        ) {
            for rules in RULES {
                let mut seen = HashSet::new();
                for (prefix, tools) in &servers {
                    let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
                    for name in names(prefix, rules, &tools) {
                        prop_assert!((1..=rules.limits().max_chars).contains(&name.len()), "{}", name);
                        prop_assert!(name.chars().all(|c| rules.limits().allows(c)), "{}", name);
                        prop_assert!(seen.insert(name.clone()), "{} stands for two of {:?}", name, servers);
                    }
                }
            }
        }

        /// The order in which a server lists its tools does not affect their names.
        #[test]
        fn names_do_not_depend_on_the_order(tools in prop::collection::btree_set(pieces(), 1..8), turn in 0usize..8) {
            let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
            let mut turned = tools.clone();
            turned.rotate_left(turn % tools.len());
            for rules in RULES {
                let pairs = |tools: &[&str]| -> BTreeSet<(String, String)> {
                    let own = tools.iter().map(|own| (*own).to_owned());
                    own.zip(names("s", rules, tools)).collect()
                };
                prop_assert_eq!(pairs(&tools), pairs(&turned));
            }
        }
    }

    #[test]
    fn valid_names_stay_as_they_are() {
        let (spec, portable) = (NameRules::Specification, NameRules::Portable);
        assert_eq!(one("s", spec, "admin.tools.list"), "s_admin.tools.list");
        assert_eq!(one("s", portable, "admin.tools.list"), "s_admin-tools-list");
        for rules in RULES {
            for name in ["read_file", "read-File", "log-xdud1a0p6s4t3"] {
                assert_eq!(one("files", rules, name), format!("files_{name}"));
                assert_eq!(one("", rules, name), name);
            }
            let long = "x".repeat(rules.limits().max_chars - "files_".len());
            assert_eq!(one("files", rules, &long), format!("files_{long}"));
            let over = one("files", rules, &format!("{long}x"));
            assert!(
                over.len() == rules.limits().max_chars && over.contains("-x"),
                "{over}"
            );
        }
    }

    #[test]
    fn a_hash_stands_only_where_two_names_meet() {
        let spec = NameRules::Specification;
        assert_eq!(
            names("s", spec, &["log/show", "log.show"]),
            ["s_log-show", "s_log.show"]
        );
        let met = names("s", spec, &["log/show", "log-show", "log show"]);
        assert_eq!(met[1], "s_log-show", "the valid name stays");
        assert!(
            met[0].starts_with("s_log-show-x") && met[2].starts_with("s_log-show-x"),
            "{met:?}"
        );
        assert_ne!(met[0], met[2]);
        let met = names("s", spec, &["log/show", "log show"]);
        assert!(
            met.iter().all(|name| name.starts_with("s_log-show-x")),
            "neither is first: {met:?}"
        );
        // A tool whose name is the one that another tool would get changes neither.
        let theirs = names("s", spec, &["a/b", "a b"]).remove(0);
        let theirs = theirs.strip_prefix("s_").unwrap();
        let all = names("s", spec, &["a/b", "a b", theirs]);
        assert_eq!(all[2], format!("s_{theirs}"));
        assert_ne!(all[0], all[2]);
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
