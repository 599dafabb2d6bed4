//! Scopes that tokens need, from the config.

use crate::config::{Config, NameGlob};
use toolgate_policy::{GlobPattern, RequiredScopes, ScopeRule};

/// Returns the scopes that tokens need.
pub(crate) fn required_scopes(config: &Config) -> RequiredScopes {
    let patterns =
        |globs: &[NameGlob]| globs.iter().map(|g| GlobPattern::new(g.as_str())).collect();
    let rules = config.auth.scopes.iter().map(|scope| {
        let mut rule = ScopeRule::new(patterns(&scope.tools), scope.scopes.clone());
        rule.except = patterns(&scope.except);
        rule
    });
    RequiredScopes::new(rules.collect()).implying(config.auth.implies.clone())
}
