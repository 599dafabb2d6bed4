//! Lint for rules that match no offered item, for `toolgate check`.

use crate::{
    config::{ConfigRule, NameGlob},
    runtime::dry_run::nearest_name,
};
use std::collections::BTreeMap;
use toolgate_core::Item;
use toolgate_policy::GlobPattern;

/// Names of the items that servers are known to offer.
#[derive(Debug, Default)]
pub(crate) struct OfferedNames {
    /// Full names by server ID. An absent server is unknown.
    pub(crate) by_server: BTreeMap<String, Vec<String>>,
    /// True if the servers were just asked; otherwise the names come from the state of a gateway.
    pub(crate) just_asked: bool,
}

impl OfferedNames {
    /// Names the source of the names, as the end of a sentence.
    pub(crate) fn source(&self, server: &str) -> String {
        match self.just_asked {
            true => format!("the server {server} offers"),
            false => format!("a gateway has listed for the server {server}"),
        }
    }

    /// Returns whether a glob certainly matches nothing. It must name a known server, and it must not match URIs,
    /// because a resource can be readable without being listed.
    fn matches_nothing(&self, glob: &NameGlob) -> bool {
        let names = glob.server().and_then(|id| self.by_server.get(id));
        let pattern = GlobPattern::new(glob.as_str());
        let fits = |names: &Vec<String>| names.iter().any(|name| pattern.matches(name));
        !may_fit_uri(glob) && names.is_some_and(|names| !fits(names))
    }

    fn unmatched_note(&self, glob: &NameGlob) -> String {
        let server = glob.server().unwrap_or_default();
        let names = self.by_server.get(server).into_iter().flatten();
        let near = nearest_name(&glob.as_str().replace(['*', '?'], ""), names.cloned());
        let hint = near.map_or_else(String::new, |name| format!(" (did you mean {name:?}?)"));
        let of = self.source(server);
        format!("{:?} matches no item that {of}{hint}", glob.as_str())
    }
}

/// Returns whether a glob may match the name of a resource.
fn may_fit_uri(glob: &NameGlob) -> bool {
    let own = glob.as_str().split_once('.').map_or("", |(_, own)| own);
    match own.find(['*', '?']) {
        Some(at) => {
            Item::RESOURCE_PREFIX.starts_with(&own[..at]) || own.starts_with(Item::RESOURCE_PREFIX)
        }
        None => own.starts_with(Item::RESOURCE_PREFIX),
    }
}

/// Returns a note for each rule that matches nothing, and for each such glob of another rule.
pub(crate) fn notes(rules: &[ConfigRule], offered: &OfferedNames) -> Vec<String> {
    let notes = |rule| rule_notes(rule, offered);
    rules.iter().flat_map(notes).collect()
}

fn rule_notes(rule: &ConfigRule, offered: &OfferedNames) -> Vec<String> {
    let place = rule.label();
    let missing = |globs: &[NameGlob]| {
        let missing = globs.iter().filter(|glob| offered.matches_nothing(glob));
        missing
            .map(|glob| offered.unmatched_note(glob))
            .collect::<Vec<String>>()
    };
    let (tools, except) = (missing(&rule.tools), missing(&rule.except));
    if tools.len() == rule.tools.len() {
        return vec![format!("{place} never matches: {}", tools.join("; "))];
    }
    let named = |key, notes: Vec<String>| notes.into_iter().map(move |note| (key, note));
    let notes = named("tools", tools).chain(named("except", except));
    notes
        .map(|(key, note)| format!("{place}, in {key}: {note}"))
        .collect()
}

/// Returns the servers that rules name or may match, and that are not known.
pub(crate) fn unknown_servers<'r>(
    rules: &'r [ConfigRule],
    servers: impl Iterator<Item = &'r str>,
    offered: &OfferedNames,
) -> Vec<&'r str> {
    let globs = || rules.iter().flat_map(|rule| &rule.tools);
    let meant = |id: &&str| globs().any(|glob| glob.server().is_none_or(|server| server == *id));
    let unknown = servers.filter(|id| !offered.by_server.contains_key(*id));
    unknown.filter(meant).collect()
}
