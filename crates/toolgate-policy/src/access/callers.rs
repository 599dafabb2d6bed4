//! Callers that a rule matches: by name, group or role.

use crate::GlobPattern;
use std::{fmt, sync::Arc};
use toolgate_core::Caller;

/// Prefix of patterns that match the groups of a caller.
const GROUP_PREFIX: &str = "group:";
/// Prefix of patterns that match the roles of a caller.
const ROLE_PREFIX: &str = "role:";

/// Pattern of callers in a rule: a glob over their names, or `group:GLOB` or `role:GLOB` over their groups or roles.
///
/// ```
/// use toolgate_core::{Caller, CallerAttributes};
/// use toolgate_policy::CallerPattern;
///
/// let mut attributes = CallerAttributes::default();
/// attributes.groups = vec!["oncall".to_owned()];
/// let ann = Caller::new("corp:ann").with_attributes(attributes);
/// assert!(CallerPattern::new("corp:*").matches(&ann));
/// assert!(CallerPattern::new("group:oncall").matches(&ann));
/// assert!(!CallerPattern::new("role:oncall").matches(&ann));
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CallerPattern {
    text: String,
    subject: PatternSubject,
    glob: GlobPattern,
}

/// The part of a caller that a pattern matches.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum PatternSubject {
    Name,
    Group,
    Role,
}

impl CallerPattern {
    /// Creates a pattern of callers from its text. Every text is valid.
    pub fn new(text: impl Into<String>) -> CallerPattern {
        let text = text.into();
        let (subject, glob) = if let Some(group) = text.strip_prefix(GROUP_PREFIX) {
            (PatternSubject::Group, group)
        } else if let Some(role) = text.strip_prefix(ROLE_PREFIX) {
            (PatternSubject::Role, role)
        } else {
            (PatternSubject::Name, text.as_str())
        };
        CallerPattern {
            glob: GlobPattern::new(glob),
            subject,
            text,
        }
    }

    /// Returns whether the pattern matches the caller's name, one of its groups or one of its roles.
    pub fn matches(&self, caller: &Caller) -> bool {
        let any = |names: &[String]| names.iter().any(|name| self.glob.matches(name));
        match self.subject {
            PatternSubject::Name => self.glob.matches(caller.name()),
            PatternSubject::Group => any(&caller.attributes().groups),
            PatternSubject::Role => any(&caller.attributes().roles),
        }
    }

    /// Returns the text of the pattern.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for CallerPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Callers that a rule applies to: those that one of its patterns matches, or all if it has none. It may be limited to the callers
/// of one view.
///
/// ```
/// use toolgate_core::Caller;
/// use toolgate_policy::{AccessRule, CallerMatcher, GlobPattern, RuleAction};
///
/// let mut rule = AccessRule::new("rule 1", RuleAction::Allow, vec![GlobPattern::new("pager.*")]);
/// rule.callers = CallerMatcher::from_iter(["group:oncall", "key:ops"]);
/// assert!(rule.callers.matches(&Caller::new("key:ops")));
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CallerMatcher {
    patterns: Vec<CallerPattern>,
    view: Option<Arc<str>>,
}

impl CallerMatcher {
    /// Limits the matcher to callers at the endpoint of a view.
    #[must_use]
    pub fn in_view(self, view: impl Into<Arc<str>>) -> CallerMatcher {
        CallerMatcher {
            view: Some(view.into()),
            ..self
        }
    }

    /// Returns whether the caller is in the view, if one is set, and one of the patterns matches it, if there are any.
    pub fn matches(&self, caller: &Caller) -> bool {
        let in_view = self.view.is_none() || self.view.as_deref() == caller.view();
        let mut patterns = self.patterns.iter();
        in_view && (self.patterns.is_empty() || patterns.any(|pattern| pattern.matches(caller)))
    }
}

impl<T: Into<String>> FromIterator<T> for CallerMatcher {
    fn from_iter<I: IntoIterator<Item = T>>(patterns: I) -> CallerMatcher {
        CallerMatcher {
            patterns: patterns.into_iter().map(CallerPattern::new).collect(),
            view: None,
        }
    }
}
