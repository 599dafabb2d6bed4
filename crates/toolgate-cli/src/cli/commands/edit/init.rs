//! `toolgate init`: a config to start with.

use super::super::{CommandError, DataLocation, Result, print};
use crate::{
    args::InitOptions,
    config::{Config, schema::config_schema_text},
    config_edit::write_private_file,
};
use std::{path::Path, process::ExitCode};
use toolgate_core::visible_line;
use toolgate_protocol::plural::count_of;

/// Text of the config, with the path of this program in place of [`PROGRAM_MARK`].
const STARTER: &str = include_str!("starter.toml");
const PROGRAM_MARK: &str = "\"toolgate\"";
/// Name of the schema, which the first line of the config names.
const SCHEMA_NAME: &str = "toolgate.schema.json";

/// Writes a config and its schema. Fails if the config exists, unless it is to be replaced.
pub(in crate::cli::commands) fn init(
    place: &DataLocation<'_>,
    wanted: &InitOptions,
) -> Result<ExitCode> {
    let path = place.config_path()?;
    let shown = visible_line(&path.display().to_string());
    let options = place.option_words();
    let before = match path.symlink_metadata() {
        Ok(_) if !wanted.force => {
            return Err(CommandError::Failure(format!(
                "{shown} exists already; add a server to it with `toolgate add{options}`, or replace it with `toolgate init --force{options}`"
            )));
        }
        Ok(_) => Some(Config::read_text(&path).map_err(super::super::usage)?),
        Err(_) => None,
    };
    let program = Config::demo().map_err(super::super::usage)?;
    let program = program
        .servers
        .first()
        .and_then(|server| server.command.first().cloned());
    let program = toml_edit::Value::from(program.unwrap_or_default()).to_string();
    let text = STARTER.replace(PROGRAM_MARK, program.trim());
    let config = Config::check_text(&path, &text).map_err(super::super::usage)?;
    if let Some(before) = before {
        let backup = with_suffix(&path, ".bak");
        write_private_file(&backup, &before)?;
        eprintln!(
            "toolgate: the old config is now {}",
            visible_line(&backup.display().to_string())
        );
    }
    write_private_file(&path.with_file_name(SCHEMA_NAME), &config_schema_text())?;
    write_private_file(&path, &text)?;
    print(&format!(
        "wrote {shown} and {SCHEMA_NAME} beside it: {}, {}\n\n\
         Next:\n  \
         toolgate add{options} -- npx -y @modelcontextprotocol/server-filesystem ~/docs\n  \
         toolgate doctor{options}\n  \
         toolgate{options}\n",
        count_of(config.servers.len() as u64, "server"),
        count_of(config.rules.len() as u64, "rule")
    ))
}

fn with_suffix(path: &Path, suffix: &str) -> std::path::PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
