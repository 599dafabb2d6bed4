//! Allowlists: matches of a secret rule that are not secrets.

#[cfg(feature = "secret-rule-files")]
use super::rule_file::AllowTable;
use regex::Regex;
use std::collections::HashSet;

/// An allowlist of a rule or of a rule file.
#[derive(Clone, Debug)]
pub(super) struct SecretAllowlist {
    regexes: Vec<Regex>,
    target: AllowlistTarget,
    /// Lowercase substrings of secrets.
    stopwords: Vec<String>,
    /// True if a regex and a stopword must both match.
    both: bool,
    /// Ids of the rules it applies to; empty for all rules of its file.
    rules: HashSet<String>,
}

/// The text that the regexes are searched in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum AllowlistTarget {
    Secret,
    Match,
    Line,
}

/// A match of a rule.
pub(super) struct RuleMatch<'a> {
    pub(super) text: &'a str,
    pub(super) whole: (usize, usize),
    pub(super) secret: &'a str,
}

#[cfg(feature = "secret-rule-files")]
impl SecretAllowlist {
    /// Reads an allowlist; `None` if it only applies to files and commits.
    pub(super) fn read(table: AllowTable) -> Result<Option<SecretAllowlist>, (usize, String)> {
        let both = match table.condition.as_ref() {
            None => false,
            Some(word) => match word.get_ref().to_ascii_uppercase().as_str() {
                "AND" | "&&" => true,
                "OR" | "||" => false,
                other => {
                    let text = format!(
                        "the condition {other:?} of an allowlist is unknown; use \"OR\" or \"AND\""
                    );
                    return Err((word.span().start, text));
                }
            },
        };
        // Text has no file and no commit, so with "AND" the list never applies.
        let is_of_files = table.paths.is_some() || table.commits.is_some();
        if (is_of_files && both) || (table.regexes.is_empty() && table.stopwords.is_empty()) {
            return Ok(None);
        }
        let target = match table
            .regex_target
            .as_ref()
            .map(|word| (word, word.get_ref().as_str()))
        {
            None | Some((_, "secret" | "")) => AllowlistTarget::Secret,
            Some((_, "match")) => AllowlistTarget::Match,
            Some((_, "line")) => AllowlistTarget::Line,
            Some((word, other)) => {
                let text = format!(
                    "the regexTarget {other:?} of an allowlist is unknown; use \"secret\", \"match\" or \"line\""
                );
                return Err((word.span().start, text));
            }
        };
        let compile = |regex: &toml::Spanned<String>| {
            let text = regex.get_ref();
            Regex::new(text).map_err(|why| {
                let why = super::rules::in_one_line(&why.to_string());
                (
                    regex.span().start,
                    format!("the regex {text:?} of an allowlist cannot be used: {why}; correct it"),
                )
            })
        };
        let lower = |word: &String| word.to_ascii_lowercase();
        Ok(Some(SecretAllowlist {
            regexes: table
                .regexes
                .iter()
                .map(compile)
                .collect::<Result<_, _>>()?,
            target,
            stopwords: table.stopwords.iter().map(lower).collect(),
            both,
            rules: table.target_rules.into_iter().collect(),
        }))
    }

    pub(super) fn is_for(&self, id: &str) -> bool {
        self.rules.is_empty() || self.rules.contains(id)
    }
}

impl SecretAllowlist {
    /// Returns whether the match is allowed, so not a secret.
    pub(super) fn holds(&self, matched: &RuleMatch<'_>) -> bool {
        let by_regex = || {
            let target = self.target_of(matched);
            self.regexes.iter().any(|regex| regex.is_match(target))
        };
        let by_word = || {
            let lower = matched.secret.to_ascii_lowercase();
            self.stopwords.iter().any(|word| lower.contains(word))
        };
        match self.both && !self.regexes.is_empty() && !self.stopwords.is_empty() {
            true => by_regex() && by_word(),
            false => by_regex() || by_word(),
        }
    }

    fn target_of<'a>(&self, matched: &RuleMatch<'a>) -> &'a str {
        let (from, to) = matched.whole;
        let text = matched.text;
        match self.target {
            AllowlistTarget::Secret => matched.secret,
            AllowlistTarget::Match => text.get(from..to).unwrap_or_default(),
            AllowlistTarget::Line => {
                let begin = text
                    .get(..from)
                    .and_then(|t| t.rfind('\n'))
                    .map_or(0, |at| at + 1);
                let end = text
                    .get(to..)
                    .and_then(|t| t.find('\n'))
                    .map_or(text.len(), |at| to + at);
                text.get(begin..end).unwrap_or_default()
            }
        }
    }
}
