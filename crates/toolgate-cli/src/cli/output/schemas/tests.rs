//! The published schemas, and the commands that have one.

use super::*;
use crate::args::command_line;
use clap::Command;
use std::{collections::BTreeSet, env, fs, path::PathBuf};

/// Commands without `--json`: they act, serve, or print a single value or a text for another program.
const COMMANDS_WITHOUT_JSON: [&str; 51] = [
    "serve",
    "run",
    "demo-server",
    "host-tools",
    "init",
    "add",
    "remove",
    "enable",
    "disable",
    // The schema is JSON already.
    "config schema",
    "schema",
    "disconnect",
    "hook",
    "approve",
    "deny",
    "stop",
    "grants revoke",
    "freeze caller",
    "freeze server",
    "freeze all",
    "thaw caller",
    "thaw server",
    "thaw all",
    // The result is JSON already.
    "call",
    "tasks stop",
    "pins accept",
    "pins reject",
    "pins forget",
    "login",
    "logout",
    // Its formats are those of other systems.
    "audit checkpoints",
    "audit export",
    "audit acknowledge",
    "audit erase",
    "audit key",
    "audit prune-copies",
    "audit restore-copy",
    "console",
    "keys create",
    "keys rotate",
    "keys extend",
    "keys revoke",
    "passkeys export",
    "reload",
    "service install",
    "service uninstall",
    "store migrate",
    "store export",
    "store import",
    "store pki",
    "store clear",
];
/// Texts for other programs.
const TEXT_COMMANDS: [&str; 2] = ["completions", "man"];

/// Returns the commands without subcommands, with and without `--json`.
fn commands() -> (BTreeSet<String>, BTreeSet<String>) {
    fn collect(path: &str, command: &Command, found: &mut (BTreeSet<String>, BTreeSet<String>)) {
        let mut subcommands = command.get_subcommands().peekable();
        if subcommands.peek().is_none() {
            let has_json = command.get_arguments().any(|arg| arg.get_id() == "json");
            let of = if has_json { &mut found.0 } else { &mut found.1 };
            of.insert(path.to_owned());
        }
        for sub in subcommands {
            collect(format!("{path} {}", sub.get_name()).trim(), sub, found);
        }
    }
    let mut found = Default::default();
    collect("", &command_line(), &mut found);
    found
}

#[test]
fn every_command_that_lists_or_shows_has_json() {
    let (with, without) = commands();
    let expected = COMMANDS_WITHOUT_JSON.iter().chain(&TEXT_COMMANDS);
    let expected: BTreeSet<String> = expected.map(|&name| name.to_owned()).collect();
    assert_eq!(without, expected);
    let names = OUTPUT_SCHEMAS.iter().map(|schema| schema.command);
    let commands = names.map(|name| name.split(" --").next().unwrap_or(name).to_owned());
    assert_eq!(with, commands.collect(), "each --json has a schema");
}

#[test]
fn the_published_schemas_are_those_of_the_program() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/json");
    let file = |schema: &OutputSchema| format!("{}.schema.json", schema.name().replace(' ', "-"));
    if env::var_os("TOOLGATE_WRITE_SNAPSHOTS").is_some() {
        fs::create_dir_all(&folder).unwrap();
        for schema in OUTPUT_SCHEMAS {
            fs::write(folder.join(file(schema)), schema.text()).unwrap();
        }
    }
    for schema in OUTPUT_SCHEMAS {
        let published = fs::read_to_string(folder.join(file(schema))).unwrap_or_default();
        assert!(
            published == schema.text(),
            "docs/reference/json/{} is old; run the test with TOOLGATE_WRITE_SNAPSHOTS=1",
            file(schema)
        );
    }
    let files = fs::read_dir(&folder).unwrap();
    let files = files.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let expected = OUTPUT_SCHEMAS.iter().map(file).collect::<BTreeSet<_>>();
    assert_eq!(files.collect::<BTreeSet<_>>(), expected);
}

/// Returns the names of all members in a schema.
fn members(schema: &serde_json::Value, found: &mut BTreeSet<String>) {
    let parts = schema.as_object().into_iter().flatten();
    for (name, part) in parts {
        if name == "properties" {
            found.extend(
                part.as_object()
                    .into_iter()
                    .flatten()
                    .map(|(name, _)| name.clone()),
            );
        }
        members(part, found);
    }
    let items = schema.as_array().into_iter().flatten();
    items.for_each(|item| members(item, found));
}

#[test]
fn the_page_has_each_output_with_an_example_of_its_members() {
    let page = include_str!("../../../../../../docs/reference/json-output.md");
    for schema in OUTPUT_SCHEMAS {
        let name = schema.name().replace(' ', "-");
        let row = format!("| `toolgate {}` |", schema.command);
        let row = page.lines().find(|line| line.starts_with(&row));
        let row = row.unwrap_or_else(|| panic!("no row of {}", schema.command));
        assert!(
            row.ends_with(&format!("| [{name}](json/{name}.schema.json) |")),
            "{row}"
        );
        assert_eq!(
            schema.is_stream,
            row.contains("one object per line"),
            "{row}"
        );
        let example = format!("toolgate {} ", schema.command);
        let is_example = |line: &&str| {
            let history = line.contains("--history") == schema.command.contains("--history");
            line.starts_with(&example) && history && line.contains(" --json | jq ")
        };
        let example = page.lines().find(is_example);
        let example = example.unwrap_or_else(|| panic!("no example of {}", schema.command));
        let text: serde_json::Value = serde_json::from_str(&schema.text()).unwrap();
        let mut known = BTreeSet::new();
        members(&text, &mut known);
        // Records have the fields of their events as well.
        let (_, filter) = example.split_once("jq ").unwrap();
        let used = filter.split('.').skip(1).map(|rest| {
            let end = rest.find(|c: char| c != '_' && !c.is_ascii_lowercase());
            &rest[..end.unwrap_or(rest.len())]
        });
        for name in used.filter(|name| !name.is_empty()) {
            assert!(
                known.contains(name),
                "{example}: {name} is not in the schema"
            );
        }
    }
}
