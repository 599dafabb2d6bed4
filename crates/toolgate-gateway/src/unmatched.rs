//! Rules that fit nothing that the servers offer, for `toolgate check`.

use crate::{
    config::{Glob, Rule},
    explained::nearest,
};
use std::collections::BTreeMap;
use toolgate::Item;
use toolgate_policy::Pattern;

/// What the servers are known to offer.
#[derive(Debug, Default)]
pub(crate) struct Offered {
    /// The full names by server. A server that is not here is not known.
    pub(crate) by_server: BTreeMap<String, Vec<String>>,
    /// Whether the servers were asked just now; else it is what a gateway saw of them.
    pub(crate) asked: bool,
}

impl Offered {
    /// What was looked at, as the end of a sentence.
    pub(crate) fn of(&self, server: &str) -> String {
        match self.asked {
            true => format!("{server} offers"),
            false => format!("a gateway saw of {server}"),
        }
    }

    /// Whether a glob is certain to fit nothing. Only one that names a known server can be: and a resource can be
    /// read that no list shows, so it must not fit a URI.
    fn misses(&self, glob: &Glob) -> bool {
        let names = glob.server().and_then(|id| self.by_server.get(id));
        let pattern = Pattern::new(glob.as_str());
        let fits = |names: &Vec<String>| names.iter().any(|name| pattern.matches(name));
        !may_fit_uri(glob) && names.is_some_and(|names| !fits(names))
    }

    fn told(&self, glob: &Glob) -> String {
        let server = glob.server().unwrap_or_default();
        let names = self.by_server.get(server).into_iter().flatten();
        let near = nearest(&glob.as_str().replace(['*', '?'], ""), names.cloned());
        let hint = near.map_or_else(String::new, |name| format!("; did you mean {name:?}?"));
        let of = self.of(server);
        format!("{:?} fits nothing that {of}{hint}", glob.as_str())
    }
}

/// Whether some name that a glob fits may be that of a resource.
fn may_fit_uri(glob: &Glob) -> bool {
    let own = glob.as_str().split_once('.').map_or("", |(_, own)| own);
    match own.find(['*', '?']) {
        Some(at) => Item::RESOURCE.starts_with(&own[..at]) || own.starts_with(Item::RESOURCE),
        None => own.starts_with(Item::RESOURCE),
    }
}

/// A line for each rule that fits nothing, and for each glob that does.
pub(crate) fn notes(rules: &[Rule], offered: &Offered) -> Vec<String> {
    let numbered = rules.iter().enumerate();
    numbered
        .flat_map(|(n, rule)| of_rule(n, rule, offered))
        .collect()
}

fn of_rule(n: usize, rule: &Rule, offered: &Offered) -> Vec<String> {
    let place = format!("rule {} (line {})", n + 1, rule.line);
    let missing = |globs: &[Glob]| {
        let missing = globs.iter().filter(|glob| offered.misses(glob));
        missing
            .map(|glob| offered.told(glob))
            .collect::<Vec<String>>()
    };
    let (tools, except) = (missing(&rule.tools), missing(&rule.except));
    if tools.len() == rule.tools.len() {
        return vec![format!("{place} never speaks: {}", tools.join(", "))];
    }
    let of = |key, told: Vec<String>| told.into_iter().map(move |told| (key, told));
    let told = of("tools", tools).chain(of("except", except));
    told.map(|(key, told)| format!("{place}, in {key}: {told}"))
        .collect()
}

/// The servers that rules name, or may mean, and that are not known.
pub(crate) fn unknown<'r>(
    rules: &'r [Rule],
    servers: impl Iterator<Item = &'r str>,
    offered: &Offered,
) -> Vec<&'r str> {
    let globs = || rules.iter().flat_map(|rule| &rule.tools);
    let meant = |id: &&str| globs().any(|glob| glob.server().is_none_or(|server| server == *id));
    let unknown = servers.filter(|id| !offered.by_server.contains_key(*id));
    unknown.filter(meant).collect()
}
