//! `toolgate completions` and `toolgate man`: files that shells and `man` read.

use super::{CommandError, Result, print};
use crate::args;
use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use std::{fs, io, path::Path, process::ExitCode};

/// Prints the completions of a shell.
pub(super) fn completions(shell: Shell) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut args::command_line(), "toolgate", &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// Prints the man page of a command, or writes all man pages into a directory.
///
/// # Errors
/// The command is unknown (exit code 2), or the directory cannot be written.
pub(super) fn man(path: &[String], dir: Option<&Path>) -> Result<ExitCode> {
    match dir {
        None => print_page(path),
        Some(dir) => write_pages(dir),
    }
}

fn print_page(path: &[String]) -> Result<ExitCode> {
    let root = built_command();
    let names = path.iter().flat_map(|name| name.split_whitespace());
    let mut command = &root;
    for name in names {
        command = command.find_subcommand(name).ok_or_else(|| {
            CommandError::Usage(format!(
                "there is no command {:?}; `toolgate --help` lists the commands",
                path.join(" ")
            ))
        })?;
    }
    let mut page = Vec::new();
    let rendered = man_page(command).render(&mut page);
    rendered.map_err(|error| error.to_string())?;
    print(&String::from_utf8_lossy(&page))
}

fn write_pages(dir: &Path) -> Result<ExitCode> {
    let written = fs::create_dir_all(dir).and_then(|()| write_pages_below(&built_command(), dir));
    written.map_err(|error| {
        format!(
            "cannot write the man pages to {}: {error}; name a directory that you can write to",
            dir.display()
        )
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the page of a command, and those of its subcommands.
fn write_pages_below(command: &Command, dir: &Path) -> io::Result<()> {
    man_page(command).generate_to(dir)?;
    let mut subcommands = command
        .get_subcommands()
        .filter(|sub| sub.get_name() != "help");
    subcommands.try_for_each(|sub| write_pages_below(sub, dir))
}

fn man_page(command: &Command) -> Man {
    Man::new(command.clone()).source(concat!("toolgate ", env!("TOOLGATE_VERSION")))
}

/// Returns the command line with the full names of all subcommands, which the titles of the pages contain.
fn built_command() -> Command {
    let mut command = args::command_line();
    command.build();
    command
}
