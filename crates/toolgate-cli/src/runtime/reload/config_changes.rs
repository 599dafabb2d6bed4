//! Differences between two configs, for the message about a reload.

use crate::config::{Config, ConfigRule, GatewayLimits, ServerSettings};
use toolgate_protocol::plural::count_of;

/// Returns one phrase for each kind of change: servers, rules and limits.
pub(super) fn describe(before: &Config, now: &Config) -> Vec<String> {
    let mut changes = Vec::new();
    let find = |config: &Config, id: &str| config.servers.iter().any(|server| server.id == id);
    let ids = |servers: Vec<&ServerSettings>| {
        let ids: Vec<&str> = servers.iter().map(|server| server.id.as_str()).collect();
        ids.join(", ")
    };
    let added = now.servers.iter().filter(|new| !find(before, &new.id));
    let removed = before.servers.iter().filter(|old| !find(now, &old.id));
    let changed = now.servers.iter().filter(|new| {
        let old = before.servers.iter().find(|old| old.id == new.id);
        old.is_some_and(|old| old != *new)
    });
    for (what, servers) in [
        ("added", added.collect::<Vec<_>>()),
        ("removed", removed.collect()),
        ("changed", changed.collect()),
    ] {
        if !servers.is_empty() {
            let noun = if servers.len() == 1 {
                "server"
            } else {
                "servers"
            };
            changes.push(format!("{what} {noun} {}", ids(servers)));
        }
    }
    changes.extend(rule_changes(&before.rules, &now.rules));
    if (&before.views, &before.default_view) != (&now.views, &now.default_view) {
        changes.push("changed views".to_owned());
    }
    let limits = GatewayLimits::differing(&before.limits, &now.limits);
    if !limits.is_empty() {
        changes.push(format!("changed limits {}", limits.join(", ")));
    }
    changes
}

/// Counts the rules that only one of the configs has, wherever they are in the file.
fn rule_changes(before: &[ConfigRule], now: &[ConfigRule]) -> Option<String> {
    let without_lines = |rules: &[ConfigRule]| -> Vec<ConfigRule> {
        let rules = rules.iter().cloned();
        let rule = |rule| ConfigRule {
            line: 0,
            number: 0,
            ..rule
        };
        rules.map(rule).collect()
    };
    let (mut removed, mut added) = (without_lines(before), Vec::new());
    for rule in without_lines(now) {
        match removed.iter().position(|old| *old == rule) {
            Some(at) => drop(removed.remove(at)),
            None => added.push(rule),
        }
    }
    let count = |rules: Vec<ConfigRule>, verb| {
        let count = count_of(rules.len() as u64, "rule");
        (!rules.is_empty()).then(|| format!("{verb} {count}"))
    };
    let parts = [count(added, "added"), count(removed, "removed")];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn config(text: &str) -> Config {
        Config::parse(Path::new("/tmp/toolgate.toml"), text).unwrap()
    }

    #[test]
    fn names_changed_servers_rules_and_limits() {
        let rule = |tools: &str| format!("[[rule]]\ntools = [\"{tools}\"]\naction = \"ask\"\n");
        let before = config(&format!(
            "[server.a]\ncommand = [\"a\"]\n[server.b]\ncommand = [\"b\"]\n{}{}",
            rule("a.x"),
            rule("a.y")
        ));
        let now = config(&format!(
            "[limits]\ncalls = 9\ncalls_per_caller = 9\n[server.b]\ncommand = [\"b\", \"more\"]\n[server.c]\ncommand = [\"c\"]\n{}{}",
            rule("b.z"),
            rule("b.x"),
        ));
        let changes = describe(&before, &now).join("; ");
        assert_eq!(
            changes,
            "added server c; removed server a; changed server b; added 2 rules, removed 2 rules; changed limits calls_per_caller, calls"
        );
        assert_eq!(describe(&now, &now), [""; 0]);
    }
}
