//! Lint for the sections `[server.NAME.tools.TOOL]`, for `toolgate check`.

use crate::{
    config::{Config, NameGlob, ServerSettings},
    explained::nearest,
    unmatched::OfferedNames,
};
use std::collections::BTreeMap;
use toolgate_policy::GlobPattern;

/// Applies the overrides to the offered names. The result has the names that rules use.
pub(crate) fn shown(config: &Config, offered: &OfferedNames) -> OfferedNames {
    let mut by_server = offered.by_server.clone();
    for server in &config.servers {
        let Some(names) = by_server.get_mut(&server.id) else {
            continue;
        };
        let own = |tool: &str| format!("{}.{tool}", server.id);
        // Collect the new names first: a tool may be renamed to the old name of another tool.
        let renamed = server
            .tools
            .iter()
            .filter(|over| names.contains(&own(&over.tool)));
        let new: Vec<String> = renamed
            .filter(|over| !over.hide)
            .map(|over| own(over.shown()))
            .collect();
        names.retain(|name| !server.tools.iter().any(|over| *name == own(&over.tool)));
        names.extend(new);
    }
    OfferedNames {
        by_server,
        asked: offered.asked,
    }
}

/// Returns notes on sections of unknown tools, on duplicate names, and on rules that use an old name.
pub(crate) fn notes(config: &Config, offered: &OfferedNames) -> Vec<String> {
    let mut notes = Vec::new();
    for server in &config.servers {
        notes.extend(not_there(server, offered));
        notes.extend(same(server));
        notes.extend(of_before(config, server));
    }
    notes
}

fn not_there(server: &ServerSettings, offered: &OfferedNames) -> Vec<String> {
    let Some(names) = offered.by_server.get(&server.id) else {
        return Vec::new();
    };
    let full = |tool: &str| format!("{}.{tool}", server.id);
    let strange = server
        .tools
        .iter()
        .filter(|over| !names.contains(&full(&over.tool)));
    let note = |over: &crate::config::ToolOverride| {
        let tools = names.iter().filter(|name| !name.contains(':'));
        let near = nearest(&full(&over.tool), tools.cloned());
        let near = near.and_then(|name| Some(name.split_once('.')?.1.to_owned()));
        let hint = near.map_or_else(String::new, |name| format!("; did you mean {name:?}?"));
        format!(
            "[server.{}.tools.{}] (line {}) has no effect: it is not a tool that {}{hint}",
            server.id,
            over.tool,
            over.line,
            offered.of(&server.id)
        )
    };
    strange.map(note).collect()
}

/// Returns notes on names that the config gives to two tools.
fn same(server: &ServerSettings) -> Vec<String> {
    let mut by_name: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for over in server.tools.iter().filter(|over| !over.hide) {
        by_name.entry(over.shown()).or_default().push(&over.tool);
    }
    let twice = by_name.iter().filter(|(_, of)| of.len() > 1);
    let note = |(name, of): (&&str, &Vec<&str>)| {
        format!(
            "{} of {} have the same name {name:?}, so all of them are withheld",
            of.join(" and "),
            server.id
        )
    };
    twice.map(note).collect()
}

/// Returns notes on rules that use the server's name of a tool that the config renames.
fn of_before(config: &Config, server: &ServerSettings) -> Vec<String> {
    let full = |tool: &str| format!("{}.{tool}", server.id);
    let renamed = || server.tools.iter().filter(|over| over.tool != over.shown());
    let taken = |name: &str| server.tools.iter().any(|over| over.shown() == name);
    let mut notes = Vec::new();
    for (n, rule) in config.rules.iter().enumerate() {
        let fits = |name: &str| {
            let fits = |glob: &NameGlob| GlobPattern::new(glob.as_str()).matches(name);
            rule.tools.iter().any(fits) && !rule.except.iter().any(fits)
        };
        for over in renamed().filter(|over| !taken(&over.tool)) {
            let (old, new) = (full(&over.tool), full(over.shown()));
            if fits(&old) && !fits(&new) {
                notes.push(format!(
                    "rule {} (line {}) matches {old}, which is renamed to {new}; rules use the new name",
                    n + 1,
                    rule.line
                ));
            }
        }
    }
    notes
}
