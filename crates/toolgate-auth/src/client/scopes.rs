//! What is asked for.
//!
//! Source: "Scope Selection Strategy" and "Step-Up Authorization Flow" of the page on authorization.

use std::{collections::BTreeSet, fmt};

/// A scope that asks for a refresh token.
const OFFLINE: &str = "offline_access";
/// Most scopes of one request.
const MOST: usize = 256;
/// Most bytes of a scope.
const LONGEST: usize = 255;
/// Most scopes that are remembered for the next sign-in.
const WANTED: usize = 64;

/// A set of scopes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Scopes(BTreeSet<String>);

impl Scopes {
    /// The words of a text. What no scope can be is left out.
    pub fn read(text: &str) -> Scopes {
        Scopes::of(text.split(' '))
    }

    /// These words.
    pub fn of<'a>(words: impl IntoIterator<Item = &'a str>) -> Scopes {
        let plain = |word: &&str| {
            !word.is_empty()
                && word.len() <= LONGEST
                && word
                    .bytes()
                    .all(|b| b.is_ascii_graphic() && b != b'"' && b != b'\\')
        };
        let words = words.into_iter().filter(plain).take(MOST);
        Scopes(words.map(str::to_owned).collect())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether all of the others are here.
    pub fn covers(&self, others: &Scopes) -> bool {
        others.0.is_subset(&self.0)
    }

    /// Whether a refresh token is among what is asked for.
    pub(super) fn asks_to_stay(&self) -> bool {
        self.0.contains(OFFLINE)
    }

    /// These and as many of the others as can be remembered: what a server wants is not kept without end.
    pub(super) fn remembering(&self, others: &Scopes) -> Scopes {
        let room = WANTED.saturating_sub(self.0.len());
        let new = others.0.difference(&self.0).take(room);
        Scopes(self.0.iter().chain(new).cloned().collect())
    }

    /// All of both.
    #[must_use]
    pub fn and(&self, others: &Scopes) -> Scopes {
        Scopes(self.0.union(&others.0).take(MOST).cloned().collect())
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, scope) in self.0.iter().enumerate() {
            let blank = if at == 0 { "" } else { " " };
            write!(f, "{blank}{scope}")?;
        }
        Ok(())
    }
}

/// What to ask for: what the refusal names, else all that the resource names, and what was asked for before. A refresh
/// token is asked for where the authorization server has a scope for that.
pub(super) fn choose(
    challenged: Option<&Scopes>,
    of_resource: Option<&Scopes>,
    before: &Scopes,
    of_server: Option<&Scopes>,
    offline: bool,
) -> Scopes {
    let named = challenged.or(of_resource).cloned().unwrap_or_default();
    let scopes = named.and(before);
    let known = of_server.is_some_and(|scopes| scopes.0.contains(OFFLINE));
    if offline && known && !scopes.is_empty() {
        return scopes.and(&Scopes::of([OFFLINE]));
    }
    scopes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds: AUTH-15, AUTH-16, AUTH-17, AUTH-36.
    #[test]
    fn a_refusal_names_the_scopes_then_the_resource_and_old_ones_stay() {
        let check = |challenged: Option<&str>,
                     resource: Option<&str>,
                     before: &str,
                     server: Option<&str>,
                     expected: &str| {
            let chosen = choose(
                challenged.map(Scopes::read).as_ref(),
                resource.map(Scopes::read).as_ref(),
                &Scopes::read(before),
                server.map(Scopes::read).as_ref(),
                true,
            );
            assert_eq!(chosen.to_string(), expected);
        };
        check(None, None, "", None, "");
        check(None, Some("b a"), "", None, "a b");
        check(Some("c"), Some("a b"), "", None, "c");
        check(Some("c"), Some("a b"), "a", None, "a c");
        check(
            None,
            Some("a"),
            "",
            Some("a offline_access"),
            "a offline_access",
        );
        check(None, Some("a"), "", Some("a b"), "a");
        check(None, None, "", Some("offline_access"), "");
    }

    #[test]
    fn what_a_server_wants_is_not_remembered_without_end() {
        let words = |begin: u32| (begin..).map(|n| format!("s{n}"));
        let of = |begin: u32, count| {
            let words: Vec<String> = words(begin).take(count).collect();
            Scopes::of(words.iter().map(String::as_str))
        };
        let mut wanted = of(100, 60);
        for round in 0..10 {
            wanted = wanted.remembering(&of(1000 + round * 20, 20));
        }
        assert_eq!(wanted.0.len(), WANTED);
        assert!(wanted.covers(&of(100, 60)), "what was there first stays");
    }

    #[test]
    fn what_is_no_scope_is_left_out() {
        let longest = "x".repeat(LONGEST);
        assert_eq!(
            Scopes::read(&format!("{longest} {longest}y")).to_string(),
            longest
        );
        assert_eq!(Scopes::read("a  b\u{1} \"c\" d\\ é e").to_string(), "a e");
    }
}
