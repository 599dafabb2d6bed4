//! Globs for names: `*` matches any characters, `?` matches one. This module validates them; the policy matches them.

use std::fmt;

/// Glob for whole names such as `server.tool`; case-sensitive.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct NameGlob(String);

impl NameGlob {
    /// Parses a glob.
    ///
    /// # Errors
    /// The text is empty or contains characters of unsupported glob syntax; the message says what to write.
    pub(crate) fn parse(text: &str) -> Result<NameGlob, String> {
        if text.is_empty() {
            return Err("the glob is empty; write \"*\" for everything".to_owned());
        }
        if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(format!(
                "the glob {text:?} contains whitespace or a control character; write ? in its place"
            ));
        }
        match text.chars().find(|c| "[]{}!\\,^".contains(*c)) {
            Some(c) => Err(format!(
                "the glob {text:?} contains {c:?}, but only * and ? are supported; write several globs instead"
            )),
            None => Ok(NameGlob(text.to_owned())),
        }
    }

    /// Returns the text of the glob.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the texts of globs.
    pub(crate) fn texts(globs: &[NameGlob]) -> Vec<&str> {
        globs.iter().map(NameGlob::as_str).collect()
    }

    /// Returns true if the glob can match a name that begins with `prefix`.
    pub(crate) fn can_begin_with(&self, prefix: &str) -> bool {
        let mut glob = self.0.chars();
        for c in prefix.chars() {
            match glob.next() {
                // It also matches the rest of the prefix, and the name can end as the glob does.
                Some('*') => return true,
                Some('?') => {}
                Some(own) if own == c => {}
                _ => return false,
            }
        }
        true
    }

    /// Returns the server part, unless it contains `*` or `?`.
    pub(crate) fn server(&self) -> Option<&str> {
        self.0
            .split_once('.')
            .map(|(server, _)| server)
            .filter(|server| !server.contains(['*', '?']))
    }
}

impl fmt::Display for NameGlob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use toolgate_policy::GlobPattern;

    /// Reference implementation: the definition of a glob, without regard to cost.
    fn naive(glob: &[char], name: &[char]) -> bool {
        match glob.split_first() {
            None => name.is_empty(),
            Some(('*', rest)) => (0..=name.len()).any(|skip| naive(rest, &name[skip..])),
            Some((c, rest)) => name
                .split_first()
                .is_some_and(|(n, left)| (*c == '?' || c == n) && naive(rest, left)),
        }
    }

    /// Matches as the gateway does.
    fn matches(glob: &str, name: &str) -> bool {
        GlobPattern::new(NameGlob::parse(glob).unwrap().as_str()).matches(name)
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(glob in "[ab.é*?]{1,8}", name in "[ab.é]{0,10}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(matches(&glob, &name), naive(&chars(&glob), &chars(&name)));
        }

        #[test]
        fn can_begin_with_every_beginning_of_a_match(glob in "[ab.*?]{1,8}", name in "[ab.]{0,10}", end in 0..10_usize) {
            let beginning = &name[..end.min(name.len())];
            let can_begin = NameGlob::parse(&glob).unwrap().can_begin_with(beginning);
            prop_assert!(can_begin || !matches(&glob, &name));
        }
    }

    #[test]
    fn names_the_server() {
        let server = |text: &str| NameGlob::parse(text).unwrap().server().map(str::to_owned);
        assert_eq!(server("files.*"), Some("files".to_owned()));
        assert_eq!(server("fi*s.*"), None);
        assert_eq!(server("*"), None);
    }

    #[test]
    fn cannot_begin_with_the_name_of_another_server() {
        let can_begin = |text: &str| NameGlob::parse(text).unwrap().can_begin_with("files.");
        for text in [
            "files.*",
            "*",
            "*.read",
            "f*",
            "?iles.a",
            "*s.read_*",
            "files.a",
        ] {
            assert!(can_begin(text), "{text}");
        }
        for text in ["read_*", "files", "file.*", "????.a", "files_*", "F*"] {
            assert!(!can_begin(text), "{text}");
        }
    }

    #[test]
    fn refuses_what_it_cannot_do() {
        for text in ["", "a b", "a.[bc]", "{a,b}.c", "!a.b", "a.b\n"] {
            assert!(NameGlob::parse(text).is_err(), "{text:?}");
        }
    }
}
