//! Reader of secret rule files in the format of gitleaks: TOML with a `[[rules]]` table for each rule.
//!
//! Only rules of an operator are read at run time; the built-in ones are in `rule_table.rs`. The reader supports the keys
//! of gitleaks that apply to text: `id`, `description`, `regex`, `secretGroup`, `entropy`, `keywords` and allowlists with
//! `regexes`, `regexTarget`, `stopwords` and `condition`. Two keys are specific to Toolgate: `check` and `assigns`.

use super::{
    allowlist::SecretAllowlist,
    check::SecretCheck,
    computed::computed_keywords,
    rule_set::{MIN_KEYWORD_BYTES, SecretRules},
    rules::{CompiledRule, SecretRule},
};
use serde::{Deserialize, de::IgnoredAny};
use std::{borrow::Cow, collections::HashSet, fmt};
use toml::Spanned;
use toolgate_protocol::plural::count_of;

/// Maximum length of a keyword, in bytes.
const MAX_KEYWORD_BYTES: usize = 64;
/// Maximum length of a rule id, in bytes.
const MAX_ID_BYTES: usize = 64;
/// Maximum number of rules in one file.
const MAX_RULES: usize = 1000;

/// Error in the operator's rule file for finding secrets, with its position.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct SecretRulesError {
    /// Position of the error in the rule file, as a byte offset into the text.
    pub at: usize,
    /// Description of the error in the rule file, with the id of the rule.
    pub message: String,
}

impl fmt::Display for SecretRulesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SecretRulesError {}

impl SecretRules {
    /// Parses the text of a rule file for finding secrets and compiles all patterns.
    ///
    /// # Errors
    /// Fails if the text is not TOML, has an unknown key, or has a rule that cannot be used.
    pub fn parse(text: &str) -> Result<SecretRules, SecretRulesError> {
        let mut rules = SecretRules::read(text, true)?;
        for rule in &mut rules.rules {
            // Operator rules have no bound on the distance from a match's start to its keyword.
            rule.lead = usize::MAX;
        }
        Ok(rules)
    }

    /// Reads a rule file: of an operator, or the source of the built-in rules.
    pub(super) fn read(text: &str, is_foreign: bool) -> Result<SecretRules, SecretRulesError> {
        let file: RuleFile = toml::from_str(text).map_err(|error| {
            let lines: Vec<&str> = error.message().lines().collect();
            let at = error.span().map_or(0, |span| span.start);
            wrong(at, lines.join("; "))
        })?;
        if file.rules.len() > MAX_RULES {
            let at = file.rules[MAX_RULES].span().start;
            return Err(wrong(
                at,
                format!("the file has more than {MAX_RULES} rules; split it into several files"),
            ));
        }
        let shared = file.allowlists.into_iter().chain(file.allowlist);
        let shared = allowlists(shared)?;
        let (mut read, mut ids) = (SecretRules::default(), HashSet::new());
        for rule in file.rules {
            let (at, rule) = (rule.span().start, rule.into_inner());
            let id = rule.id.get_ref().clone();
            check_id(&rule.id)?;
            if !ids.insert(id.clone()) {
                let text = format!("another rule already has the id {id:?}; choose a different id");
                return Err(wrong(rule.id.span().start, text));
            }
            match rule.left_out() {
                Some(why) => read.notes.push(format!("rule {id:?} is skipped: {why}")),
                None => read.rules.push(rule.build(at, &shared, is_foreign)?),
            }
        }
        Ok(read)
    }
}

fn wrong(at: usize, message: impl Into<String>) -> SecretRulesError {
    let message = message.into();
    SecretRulesError { at, message }
}

fn check_id(id: &Spanned<String>) -> Result<(), SecretRulesError> {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let text = id.get_ref();
    if (1..=MAX_ID_BYTES).contains(&text.len()) && text.bytes().all(plain) {
        return Ok(());
    }
    let write = "use 1 to 64 lower-case letters, digits and \"-\"";
    Err(wrong(
        id.span().start,
        format!("the rule id {text:?} cannot be used in a redaction placeholder; {write}"),
    ))
}

/// A rule file as written. Keys about repositories or gitleaks itself are accepted and have no effect.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct RuleFile {
    #[serde(default, rename = "title")]
    _title: Option<IgnoredAny>,
    #[serde(default, rename = "description")]
    _description: Option<IgnoredAny>,
    #[serde(default, rename = "minVersion")]
    _min_version: Option<IgnoredAny>,
    #[serde(default)]
    rules: Vec<Spanned<RuleTable>>,
    #[serde(default)]
    allowlists: Vec<AllowTable>,
    #[serde(default)]
    allowlist: Option<AllowTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct RuleTable {
    id: Spanned<String>,
    #[serde(default, rename = "description")]
    _description: String,
    #[serde(default)]
    regex: Option<Spanned<String>>,
    #[serde(default)]
    secret_group: Option<Spanned<usize>>,
    #[serde(default)]
    entropy: Option<f64>,
    #[serde(default)]
    keywords: Vec<Spanned<String>>,
    #[serde(default)]
    path: Option<IgnoredAny>,
    #[serde(default)]
    required: Option<IgnoredAny>,
    #[serde(default, rename = "tags")]
    _tags: Option<IgnoredAny>,
    #[serde(default)]
    allowlists: Vec<AllowTable>,
    #[serde(default)]
    allowlist: Option<AllowTable>,
    #[serde(default)]
    check: SecretCheck,
    #[serde(default)]
    assigns: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct AllowTable {
    #[serde(default, rename = "description")]
    _description: String,
    #[serde(default)]
    pub(super) condition: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) regex_target: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) regexes: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) stopwords: Vec<String>,
    #[serde(default)]
    pub(super) paths: Option<IgnoredAny>,
    #[serde(default)]
    pub(super) commits: Option<IgnoredAny>,
    /// Ids of the rules that a file-wide allowlist applies to.
    #[serde(default)]
    pub(super) target_rules: Vec<String>,
}

fn allowlists(
    tables: impl Iterator<Item = AllowTable>,
) -> Result<Vec<SecretAllowlist>, SecretRulesError> {
    let read =
        tables.map(|table| SecretAllowlist::read(table).map_err(|(at, text)| wrong(at, text)));
    read.filter_map(Result::transpose).collect()
}

impl RuleTable {
    /// Returns the reason why the rule does not apply to text.
    fn left_out(&self) -> Option<&'static str> {
        match (&self.regex, &self.path, &self.required) {
            (_, Some(_), _) => Some("it applies to file paths, but only text is searched"),
            (_, _, Some(_)) => Some("it depends on other rules, which is not supported"),
            (None, ..) => Some("it has no regex to search for"),
            _ => None,
        }
    }

    fn build(
        self,
        at: usize,
        shared: &[SecretAllowlist],
        is_foreign: bool,
    ) -> Result<SecretRule, SecretRulesError> {
        let id = self.id.into_inner();
        let Some(regex) = self.regex else {
            return Err(wrong(at, format!("rule {id:?} has no regex; add one")));
        };
        let compiled = match is_foreign {
            true => Some(CompiledRule::new(regex.get_ref()).map_err(|why| {
                let text = format!("the regex of rule {id:?} cannot be used: {why}; correct it");
                wrong(regex.span().start, text)
            })?),
            false => None,
        };
        let group = self.secret_group.filter(|group| *group.get_ref() > 0);
        if let (Some(group), Some(compiled)) = (&group, &compiled)
            && *group.get_ref() >= compiled.pattern.captures_len()
        {
            let (is, has) = (group.get_ref(), compiled.pattern.captures_len() - 1);
            let text = format!(
                "the secretGroup of rule {id:?} is {is}, but the regex of the rule has only {}; correct one of the two",
                count_of(has as u64, "group")
            );
            return Err(wrong(group.span().start, text));
        }
        let keywords = keywords(&id, &self.keywords, &regex, is_foreign)?;
        let mut allow = allowlists(self.allowlists.into_iter().chain(self.allowlist))?;
        allow.extend(shared.iter().filter(|list| list.is_for(&id)).cloned());
        Ok(SecretRule::new(
            &id,
            Cow::Owned(regex.into_inner()),
            compiled,
            super::rules::RuleParts {
                group: group.map(Spanned::into_inner),
                entropy: self.entropy,
                check: self.check,
                assigns: self.assigns.into_iter().map(Cow::Owned).collect(),
                keywords,
                allow,
            },
        ))
    }
}

/// Returns the keywords of a rule. Those of operators are compared without regard to case, as in gitleaks.
fn keywords(
    id: &str,
    written: &[Spanned<String>],
    regex: &Spanned<String>,
    is_foreign: bool,
) -> Result<Vec<Cow<'static, str>>, SecretRulesError> {
    if written.is_empty() {
        let computed = computed_keywords(regex.get_ref());
        let computed = computed.map(|words| words.into_iter().map(Cow::Owned).collect());
        return computed.ok_or_else(|| {
            let text = format!(
                "rule {id:?} has no keywords, and its regex does not begin with fixed text; add keywords = [\"…\"] in lower case, at least one of which is in every match"
            );
            wrong(regex.span().start, text)
        });
    }
    let one = |keyword: &Spanned<String>| {
        let text = keyword.get_ref();
        match (MIN_KEYWORD_BYTES..=MAX_KEYWORD_BYTES).contains(&text.len()) {
            true if is_foreign => Ok(Cow::Owned(text.to_ascii_lowercase())),
            true => Ok(Cow::Owned(text.clone())),
            false => Err(wrong(
                keyword.span().start,
                format!(
                    "the keyword {text:?} of rule {id:?} must be {MIN_KEYWORD_BYTES} to {MAX_KEYWORD_BYTES} bytes long"
                ),
            )),
        }
    };
    written.iter().map(one).collect()
}
