//! Lint for the sections `[server.NAME.tools.TOOL]`, for `toolgate check`.

use crate::{
    cli::unmatched_lint::OfferedNames,
    config::{Config, NameGlob, ServerSettings},
    runtime::dry_run::nearest_name,
};
use std::collections::BTreeMap;
use toolgate_policy::GlobPattern;

/// Applies the overrides to the offered names. The result has the names that rules use.
pub(crate) fn apply_overrides(config: &Config, offered: &OfferedNames) -> OfferedNames {
    let mut by_server = offered.by_server.clone();
    for server in &config.servers {
        let Some(names) = by_server.get_mut(&server.id) else {
            continue;
        };
        let own = |tool: &str| format!("{}.{tool}", server.id);
        // Collect the new names first: a tool may be renamed to the old name of another tool.
        let renamed = server
            .tool_overrides
            .iter()
            .filter(|over| names.contains(&own(&over.tool)));
        let new: Vec<String> = renamed
            .filter(|over| !over.hide)
            .map(|over| own(over.rule_name()))
            .collect();
        names.retain(|name| {
            !server
                .tool_overrides
                .iter()
                .any(|over| *name == own(&over.tool))
        });
        names.extend(new);
    }
    OfferedNames {
        by_server,
        just_asked: offered.just_asked,
    }
}

/// Returns notes on sections of unknown tools, on duplicate names, and on rules that use an old name.
pub(crate) fn notes(config: &Config, offered: &OfferedNames) -> Vec<String> {
    let mut notes = Vec::new();
    for server in &config.servers {
        notes.extend(unknown_tools(server, offered));
        notes.extend(duplicate_names(server));
        notes.extend(old_names(config, server));
    }
    notes
}

fn unknown_tools(server: &ServerSettings, offered: &OfferedNames) -> Vec<String> {
    let Some(names) = offered.by_server.get(&server.id) else {
        return Vec::new();
    };
    let full = |tool: &str| format!("{}.{tool}", server.id);
    let strange = server
        .tool_overrides
        .iter()
        .filter(|over| !names.contains(&full(&over.tool)));
    let note = |over: &crate::config::ToolOverride| {
        let tools = names.iter().filter(|name| !name.contains(':'));
        let near = nearest_name(&full(&over.tool), tools.cloned());
        let near = near.and_then(|name| Some(name.split_once('.')?.1.to_owned()));
        let hint = near.map_or_else(
            || "; correct its name, or remove the section".to_owned(),
            |name| format!("; did you mean {name:?}?"),
        );
        let (id, tool, line) = (&server.id, &over.tool, over.line);
        let missing = match offered.just_asked {
            true => format!("the server {id} offers no tool {tool:?}"),
            false => format!("no gateway has listed a tool {tool:?} for the server {id}"),
        };
        format!("[server.{id}.tools.{tool}] (line {line}) has no effect: {missing}{hint}")
    };
    strange.map(note).collect()
}

/// Returns notes on names that the config gives to two tools.
fn duplicate_names(server: &ServerSettings) -> Vec<String> {
    let mut by_name: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for over in server.tool_overrides.iter().filter(|over| !over.hide) {
        by_name
            .entry(over.rule_name())
            .or_default()
            .push(&over.tool);
    }
    let twice = by_name.iter().filter(|(_, of)| of.len() > 1);
    let note = |(name, of): (&&str, &Vec<&str>)| {
        format!(
            "the tools {} of the server {} have the same name {name:?} in the config, so all of them are withheld; give each a different name",
            of.join(" and "),
            server.id
        )
    };
    twice.map(note).collect()
}

/// Returns notes on rules that use the server's name of a tool that the config renames.
fn old_names(config: &Config, server: &ServerSettings) -> Vec<String> {
    let full = |tool: &str| format!("{}.{tool}", server.id);
    let renamed = || {
        server
            .tool_overrides
            .iter()
            .filter(|over| over.tool != over.rule_name())
    };
    let taken = |name: &str| {
        server
            .tool_overrides
            .iter()
            .any(|over| over.rule_name() == name)
    };
    let mut notes = Vec::new();
    for rule in &config.rules {
        let fits = |name: &str| {
            let fits = |glob: &NameGlob| GlobPattern::new(glob.as_str()).matches(name);
            rule.tools.iter().any(fits) && !rule.except.iter().any(fits)
        };
        for over in renamed().filter(|over| !taken(&over.tool)) {
            let (old, new) = (full(&over.tool), full(over.rule_name()));
            if fits(&old) && !fits(&new) {
                notes.push(format!(
                    "{} matches {old}, but not {new}, the name that the config gives to this tool; write the new name in the rule",
                    rule.label()
                ));
            }
        }
    }
    notes
}
