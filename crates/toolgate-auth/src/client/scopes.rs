//! Scope selection.
//!
//! Source: "Scope Selection Strategy" and "Step-Up Authorization Flow" of the page on authorization.

use std::{collections::BTreeSet, fmt};

/// Scope that requests a refresh token.
const OFFLINE_ACCESS: &str = "offline_access";
/// Maximum number of scopes in one set.
const MAX_SCOPES: usize = 256;
/// Maximum length of a scope in bytes.
const MAX_SCOPE_BYTES: usize = 255;
/// Maximum number of scopes that are stored for the next sign-in.
const MAX_DEMANDED_SCOPES: usize = 64;

/// Set of OAuth scopes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ScopeSet(BTreeSet<String>);

impl ScopeSet {
    /// Parses a space-separated list of OAuth scopes. Skips invalid ones.
    pub fn parse(text: &str) -> ScopeSet {
        ScopeSet::from_scopes(text.split(' '))
    }

    /// Creates a scope set from individual scopes. Skips invalid ones.
    pub fn from_scopes<'a>(scopes: impl IntoIterator<Item = &'a str>) -> ScopeSet {
        let plain = |word: &&str| {
            !word.is_empty()
                && word.len() <= MAX_SCOPE_BYTES
                && word
                    .bytes()
                    .all(|b| b.is_ascii_graphic() && b != b'"' && b != b'\\')
        };
        let scopes = scopes.into_iter().filter(plain).take(MAX_SCOPES);
        ScopeSet(scopes.map(str::to_owned).collect())
    }

    /// Returns whether the scope set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether the set contains all scopes of the other set.
    pub fn covers(&self, others: &ScopeSet) -> bool {
        others.0.is_subset(&self.0)
    }

    /// Returns whether the set requests a refresh token (`offline_access`).
    pub(super) fn requests_refresh_token(&self) -> bool {
        self.0.contains(OFFLINE_ACCESS)
    }

    /// Returns the set with the others added, up to [`MAX_DEMANDED_SCOPES`] scopes.
    /// The limit prevents a server from growing it without end.
    pub(super) fn with_demanded(&self, others: &ScopeSet) -> ScopeSet {
        let room = MAX_DEMANDED_SCOPES.saturating_sub(self.0.len());
        let new = others.0.difference(&self.0).take(room);
        ScopeSet(self.0.iter().chain(new).cloned().collect())
    }

    /// Returns the union of two scope sets.
    #[must_use]
    pub fn union(&self, others: &ScopeSet) -> ScopeSet {
        ScopeSet(self.0.union(&others.0).take(MAX_SCOPES).cloned().collect())
    }
}

impl fmt::Display for ScopeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, scope) in self.0.iter().enumerate() {
            let blank = if at == 0 { "" } else { " " };
            write!(f, "{blank}{scope}")?;
        }
        Ok(())
    }
}

/// Selects the scopes to request: those of the challenge, else those of the resource, plus those requested before. Adds
/// `offline_access` if the authorization server lists it.
pub(super) fn select_scopes(
    challenged: Option<&ScopeSet>,
    of_resource: Option<&ScopeSet>,
    before: &ScopeSet,
    of_server: Option<&ScopeSet>,
    offline: bool,
) -> ScopeSet {
    let named = challenged.or(of_resource).cloned().unwrap_or_default();
    let scopes = named.union(before);
    let known = of_server.is_some_and(|scopes| scopes.0.contains(OFFLINE_ACCESS));
    if offline && known && !scopes.is_empty() {
        return scopes.union(&ScopeSet::from_scopes([OFFLINE_ACCESS]));
    }
    scopes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds: AUTH-15, AUTH-16, AUTH-17, AUTH-36.
    #[test]
    fn selects_scopes_of_the_challenge_then_the_resource_plus_earlier_ones() {
        let check = |challenged: Option<&str>,
                     resource: Option<&str>,
                     before: &str,
                     server: Option<&str>,
                     expected: &str| {
            let chosen = select_scopes(
                challenged.map(ScopeSet::parse).as_ref(),
                resource.map(ScopeSet::parse).as_ref(),
                &ScopeSet::parse(before),
                server.map(ScopeSet::parse).as_ref(),
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
    fn limits_remembered_scopes() {
        let words = |begin: u32| (begin..).map(|n| format!("s{n}"));
        let of = |begin: u32, count| {
            let words: Vec<String> = words(begin).take(count).collect();
            ScopeSet::from_scopes(words.iter().map(String::as_str))
        };
        let mut wanted = of(100, 60);
        for round in 0..10 {
            wanted = wanted.with_demanded(&of(1000 + round * 20, 20));
        }
        assert_eq!(wanted.0.len(), MAX_DEMANDED_SCOPES);
        assert!(wanted.covers(&of(100, 60)), "what was there first stays");
    }

    #[test]
    fn skips_invalid_scopes() {
        let longest = "x".repeat(MAX_SCOPE_BYTES);
        assert_eq!(
            ScopeSet::parse(&format!("{longest} {longest}y")).to_string(),
            longest
        );
        assert_eq!(
            ScopeSet::parse("a  b\u{1} \"c\" d\\ é e").to_string(),
            "a e"
        );
    }
}
