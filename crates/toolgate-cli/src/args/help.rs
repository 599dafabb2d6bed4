//! Help texts that clap has no notion of: groups of commands, examples and one place for the global options.

use super::{Cli, examples::examples_of};
use clap::{Arg, ArgAction, Command, CommandFactory};
use std::fmt::Write;

/// Heading of the options that every command accepts.
pub(super) const GLOBAL_OPTIONS_HEADING: &str = "Global options";
/// Maximum width of the help, for lines that are easy to read on wide terminals.
const MAX_HELP_WIDTH: usize = 100;
/// Commands that serve one server without a config, so they reject `--config`.
const COMMANDS_WITHOUT_CONFIG: [&str; 3] = ["run", "demo-server", "host-tools"];

/// Commands under one heading of `toolgate --help`.
pub(super) struct CommandGroup {
    pub(super) heading: &'static str,
    pub(super) commands: &'static [&'static str],
}

/// Groups of `toolgate --help`. Each command is in exactly one.
#[rustfmt::skip]
pub(super) const COMMAND_GROUPS: &[CommandGroup] = &[
    CommandGroup { heading: "Run", commands: &["serve", "run", "demo-server", "host-tools"] },
    CommandGroup { heading: "Configure", commands: &["init", "import", "add", "remove", "enable", "disable", "check", "doctor", "config"] },
    CommandGroup { heading: "Hosts", commands: &["connect", "disconnect", "hook"] },
    CommandGroup { heading: "Decide", commands: &["inbox", "approve", "deny", "stop", "grants", "freeze", "thaw"] },
    CommandGroup { heading: "Inspect", commands: &["status", "logs", "tools", "resources", "prompts", "call", "calls", "tasks", "explain", "replay"] },
    CommandGroup { heading: "Servers and sign-in", commands: &["pins", "login", "logout", "logins"] },
    CommandGroup { heading: "Audit", commands: &["audit"] },
    CommandGroup { heading: "Operate", commands: &["console", "keys", "passkeys", "reload", "service", "store", "uninstall", "schema", "completions", "man", "help"] },
];

/// Environment variables that the program reads, with their effects.
const ENVIRONMENT: &[(&str, &str)] = &[
    (
        "XDG_CONFIG_HOME",
        "Directory that contains toolgate/toolgate.toml [default: ~/.config]",
    ),
    (
        "XDG_DATA_HOME",
        "Directory that contains the data directory, toolgate [default: ~/.local/share]",
    ),
    (
        "BROWSER",
        "Program that opens sign-in URLs [default: the desktop's default browser]",
    ),
];

/// Returns the definition of the command line with all help texts, as wide as the terminal.
pub(crate) fn command() -> Command {
    complete(Cli::command().max_term_width(MAX_HELP_WIDTH))
}

/// Adds the help texts to a definition, which sets the width of the help.
fn complete(mut command: Command) -> Command {
    let globals: Vec<Arg> = command
        .get_arguments()
        .filter(|arg| arg.is_global_set())
        .cloned()
        .collect();
    for name in subcommand_names(&command) {
        command = command.mut_subcommand(&name, |sub| complete_subcommand(sub, &name, &globals));
    }
    let overview = overview(&command);
    command.override_help(overview)
}

fn subcommand_names(command: &Command) -> Vec<String> {
    let names = command.get_subcommands().map(|sub| sub.get_name());
    names.map(str::to_owned).collect()
}

/// Adds examples to a command and its subcommands, and hides the global options, which the last line names.
fn complete_subcommand(command: Command, path: &str, globals: &[Arg]) -> Command {
    let mut command = command;
    for name in subcommand_names(&command) {
        let path = format!("{path} {name}");
        command = command.mut_subcommand(&name, |sub| complete_subcommand(sub, &path, globals));
    }
    let hidden = globals.iter().map(|arg| arg.clone().hide(true));
    let mut after = examples_section(path);
    let _ = write!(after, "\n\n{}", global_options_line(path, globals));
    command.args(hidden).after_help(after)
}

/// Returns the examples of a command, under their heading.
fn examples_section(path: &str) -> String {
    let header = *styles().get_header();
    let mut text = format!("{header}Examples:{header:#}");
    for line in examples_of(path).lines() {
        let _ = write!(text, "\n  {line}");
    }
    text
}

/// Returns the line that names the global options which a command accepts.
fn global_options_line(path: &str, globals: &[Arg]) -> String {
    let accepted = globals
        .iter()
        .filter(|arg| arg.get_id() != "config" || !COMMANDS_WITHOUT_CONFIG.contains(&path));
    let names: Vec<String> = accepted.map(option_usage).collect();
    format!(
        "{GLOBAL_OPTIONS_HEADING}: {}; see `toolgate --help`",
        names.join(", ")
    )
}

/// Returns an option with its value, such as `--data <DIR>`.
fn option_usage(arg: &Arg) -> String {
    let values = arg.get_value_names().unwrap_or_default();
    let values: String = values.iter().map(|name| format!(" <{name}>")).collect();
    format!("--{}{values}", arg.get_long().unwrap_or_default())
}

fn styles() -> clap::builder::Styles {
    clap::builder::Styles::styled()
}

/// Renders `toolgate --help`: the groups of commands, then the options, the environment and the examples.
fn overview(command: &Command) -> String {
    let mut sections = COMMAND_GROUPS
        .iter()
        .map(|group| table(group.heading, group_rows(group, command)))
        .collect::<Vec<_>>();
    sections.push("{options}".to_owned());
    sections.push(table(
        "Environment variables",
        ENVIRONMENT
            .iter()
            .map(|(name, text)| (*name, (*text).to_owned())),
    ));
    sections.push(examples_section(""));
    sections.push("Help for a command: toolgate <COMMAND> --help\n".to_owned());
    let text = sections.join("\n\n");
    let options = options_only(command).render_long_help().ansi().to_string();
    let usage = command.clone().render_usage().ansi().to_string();
    let about = command
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default();
    format!(
        "{about}\n\n{usage}\n\n{}",
        text.replace("{options}", options.trim_end())
    )
}

/// Returns the definition without commands, which renders the options alone.
fn options_only(command: &Command) -> Command {
    let help = |name: &'static str, short, text, action| {
        Arg::new(name)
            .short(short)
            .long(name)
            .help(text)
            .action(action)
            .help_heading(GLOBAL_OPTIONS_HEADING)
    };
    let mut options = command.clone();
    for name in subcommand_names(command) {
        options = options.mut_subcommand(name, |sub| sub.hide(true));
    }
    options
        .disable_help_subcommand(true)
        .disable_help_flag(true)
        .disable_version_flag(true)
        .arg(help("help", 'h', "Print help", ArgAction::HelpLong))
        .arg(help(
            "version",
            'V',
            "Print the version",
            ArgAction::SetTrue,
        ))
        .help_template("{all-args}")
}

fn group_rows<'a>(
    group: &'a CommandGroup,
    command: &'a Command,
) -> impl Iterator<Item = (&'a str, String)> {
    group.commands.iter().map(|name| {
        let about = match (*name, command.find_subcommand(name)) {
            ("help", _) => "Print the help for a command".to_owned(),
            (_, found) => found
                .and_then(|sub| sub.get_about())
                .map(ToString::to_string)
                .unwrap_or_default(),
        };
        (*name, about)
    })
}

/// Formats names and their texts in two columns under a heading.
fn table<'a>(heading: &str, rows: impl Iterator<Item = (&'a str, String)>) -> String {
    let (header, literal) = (*styles().get_header(), *styles().get_literal());
    let mut text = format!("{header}{heading}:{header:#}");
    for (name, about) in rows {
        let fill = " ".repeat(NAME_COLUMN_WIDTH.saturating_sub(name.len()));
        let _ = write!(text, "\n  {literal}{name}{literal:#}{fill}  {about}");
    }
    text
}

/// Width of the first column, which fits the longest command and environment variable.
const NAME_COLUMN_WIDTH: usize = 15;

#[cfg(test)]
#[path = "help/tests.rs"]
mod tests;
