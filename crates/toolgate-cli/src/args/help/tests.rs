use super::*;
use crate::args::examples::EXAMPLES;
use std::{collections::BTreeMap, path::PathBuf};

/// Environment variable that writes the snapshots instead of comparing them.
const WRITE_SNAPSHOTS: &str = "TOOLGATE_WRITE_SNAPSHOTS";
/// Returns all command paths, such as `audit tail`, with their definitions.
fn all_commands() -> Vec<(String, Command)> {
    fn collect(path: &str, command: &Command, found: &mut Vec<(String, Command)>) {
        found.push((path.to_owned(), command.clone()));
        for sub in command.get_subcommands() {
            collect(format!("{path} {}", sub.get_name()).trim(), sub, found);
        }
    }
    let mut found = Vec::new();
    collect("", &command_of_fixed_width(), &mut found);
    found
}

/// Returns the command line as in a wide terminal, whatever terminal the test has.
fn command_of_fixed_width() -> Command {
    complete(Cli::command().term_width(MAX_HELP_WIDTH))
}

/// Returns the output of `toolgate PATH --help`.
fn help_of(path: &str) -> String {
    let words = ["toolgate"].into_iter().chain(path.split_whitespace());
    let parsed = command_of_fixed_width().try_get_matches_from(words.chain(["--help"]));
    let error = parsed.expect_err(path);
    assert_eq!(error.exit_code(), 0, "{path}: {error}");
    let text = error.render().to_string();
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    format!("{}\n", lines.join("\n").trim_end())
}

/// Splits a command line like a shell: at spaces, with single quotes, up to a pipe or redirection.
fn shell_words(line: &str) -> Vec<String> {
    let mut words = vec![];
    for (n, part) in line.split('\'').enumerate() {
        match n % 2 {
            1 => words.push(part.to_owned()),
            _ => words.extend(part.split_whitespace().map(str::to_owned)),
        }
    }
    let is_operator = |word: &String| [">", ">>", "|"].contains(&word.as_str());
    let end = words.iter().position(is_operator);
    words.truncate(end.unwrap_or(words.len()));
    words
}

#[test]
fn every_command_is_in_exactly_one_group() {
    let mut grouped: Vec<&str> = COMMAND_GROUPS
        .iter()
        .flat_map(|group| group.commands)
        .copied()
        .collect();
    grouped.sort_unstable();
    let mut built = command();
    built.build();
    let mut visible: Vec<&str> = built
        .get_subcommands()
        .filter(|sub| !sub.is_hide_set())
        .map(Command::get_name)
        .collect();
    visible.sort_unstable();
    assert_eq!(grouped, visible);
}

#[test]
fn every_command_and_option_has_an_about_line() {
    for (path, command) in all_commands() {
        let about = command
            .get_about()
            .map(ToString::to_string)
            .unwrap_or_default();
        assert_about(&about, &path);
        let verb = about.split([' ', ',']).next().unwrap_or_default();
        assert!(
            path.is_empty() || !verb.ends_with('s'),
            "{path} opens with {verb:?}, not with an imperative"
        );
        for arg in command.get_arguments() {
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            assert_about(&help, &format!("{path} {}", arg.get_id()));
        }
    }
}

/// An about line is one short sentence or noun phrase, with a capital and without a full stop.
fn assert_about(text: &str, of: &str) {
    assert!(
        text.starts_with(|c: char| c.is_ascii_uppercase()),
        "{of}: {text:?}"
    );
    assert!(
        !text.ends_with('.') && !text.contains('\n'),
        "{of}: {text:?}"
    );
    assert!(text.split_whitespace().count() <= 25, "{of}: {text:?}");
    let banned = [
        "told", "taken", "nobody", "somebody", "whoever", "gone", "anew", "such a ", "what is",
        "who did",
    ];
    for word in banned {
        assert!(!text.contains(word), "{of} contains {word:?}: {text:?}");
    }
}

#[test]
fn every_command_has_an_example_that_parses() {
    for (path, _) in all_commands() {
        let lines: Vec<&str> = examples_of(&path)
            .lines()
            .filter(|line| !line.starts_with('#'))
            .collect();
        assert!(!lines.is_empty(), "no example of {path:?}");
        for line in lines {
            let words = shell_words(line);
            assert_eq!(
                words.first().map(String::as_str),
                Some("toolgate"),
                "{line}"
            );
            let parsed = Cli::from_args(&words);
            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            let of_command = format!("{} ", words[1..].join(" "));
            assert!(
                ["demo-server", "host-tools"].contains(&path.as_str())
                    || of_command.trim_start().starts_with(&path),
                "{line} is no example of {path:?}"
            );
        }
    }
}

#[test]
fn no_example_is_of_an_unknown_command() {
    let known: Vec<String> = all_commands().into_iter().map(|(path, _)| path).collect();
    for (path, _) in EXAMPLES {
        assert!(known.iter().any(|known| known == path), "{path:?}");
    }
    assert_eq!(known.len(), EXAMPLES.len());
}

#[test]
fn global_options_are_described_once() {
    for (path, _) in all_commands() {
        let help = help_of(&path);
        let described = help.matches("Data directory: ").count();
        assert_eq!(described, usize::from(path.is_empty()), "{path}:\n{help}");
        assert_eq!(
            help.matches(GLOBAL_OPTIONS_HEADING).count(),
            1,
            "{path}:\n{help}"
        );
    }
}

#[test]
fn help_fits_a_terminal() {
    for (path, _) in all_commands() {
        for line in help_of(&path).lines() {
            assert!(line.chars().count() <= MAX_HELP_WIDTH, "{path}: {line}");
        }
    }
}

/// The help of each command with its subcommands, compared with a file. Set `TOOLGATE_WRITE_SNAPSHOTS=1` to write them.
#[test]
fn help_equals_its_snapshots() {
    let mut pages: BTreeMap<String, String> = BTreeMap::new();
    for (path, _) in all_commands() {
        let name = path
            .split(' ')
            .next()
            .filter(|name| !name.is_empty())
            .unwrap_or("toolgate");
        let title = format!("$ toolgate {path}").trim_end().to_owned();
        let page = pages.entry(format!("{name}.txt")).or_default();
        page.push_str(&format!("{title} --help\n{}\n", help_of(&path)));
    }
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots/help");
    if std::env::var_os(WRITE_SNAPSHOTS).is_some() {
        std::fs::create_dir_all(&folder).unwrap();
        for (name, page) in &pages {
            std::fs::write(folder.join(name), page).unwrap();
        }
    }
    let files = std::fs::read_dir(&folder).unwrap();
    let mut names: Vec<String> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, pages.keys().cloned().collect::<Vec<_>>());
    for (name, page) in &pages {
        let stored = std::fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!(
            *page, stored,
            "{name} differs; set {WRITE_SNAPSHOTS}=1 to write it"
        );
    }
}
