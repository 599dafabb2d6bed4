//! Keywords computed for a rule without keywords: the literal prefixes of its matches.

use super::rule_set::MIN_KEYWORD_BYTES;
use regex_syntax::hir::literal::Extractor;

/// Maximum number of computed keywords; a regex with more prefixes must declare its keywords.
const MAX_COMPUTED_KEYWORDS: usize = 64;

/// Returns the keywords of a regex, in lower case; `None` if a match may begin with arbitrary or too short text.
pub(super) fn computed_keywords(regex: &str) -> Option<Vec<String>> {
    let hir = regex_syntax::parse(regex).ok()?;
    // A case-insensitive letter is a class of two or three characters; digit classes are too large to expand.
    let prefixes = Extractor::new().limit_class(4).extract(&hir);
    let literals = prefixes.literals()?;
    let mut keywords: Vec<String> = literals
        .iter()
        .map(|literal| {
            let text = std::str::from_utf8(literal.as_bytes()).ok()?;
            (text.len() >= MIN_KEYWORD_BYTES).then(|| text.to_ascii_lowercase())
        })
        .collect::<Option<_>>()?;
    keywords.sort();
    keywords.dedup();
    (1..=MAX_COMPUTED_KEYWORDS)
        .contains(&keywords.len())
        .then_some(keywords)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computes_the_beginnings_of_all_matches() {
        let words = |regex: &str| computed_keywords(regex).map(|all| all.join(" "));
        assert_eq!(words("acme_[0-9a-f]{32}").as_deref(), Some("acme_"));
        assert_eq!(words(r"\b(?:aaa|BBB)-[0-9]+").as_deref(), Some("aaa- bbb-"));
        for none in [
            r"[0-9a-f]{32}",
            r"\w+",
            r"(?:ab)[0-9x]",
            r"(?:acme)?[0-9]",
            "(",
        ] {
            assert_eq!(words(none), None, "{none}");
        }
    }
}
