//! The hooks that `toolgate connect HOST --hooks` wrote: their program exists, and a gateway can decide.

use super::{CheckResult, DoctorContext, gateways};
use crate::{
    banner::shell_quote,
    cli::commands::hook_setup::SERVER_NAME,
    hosts::{CodexTrust, EditedFile, HookHost, HostPlaces},
};
use std::{collections::BTreeSet, env, fs, path::Path};

pub(super) fn check(context: &DoctorContext) -> Vec<CheckResult> {
    let Ok(project) = env::current_dir() else {
        return Vec::new();
    };
    let places = HostPlaces::of_this_user(project);
    let files = HookHost::ALL.into_iter().flat_map(|host| {
        let paths = [false, true].map(|project| host.file(project, &places));
        let paths: BTreeSet<_> = paths.into_iter().flatten().collect();
        paths.into_iter().map(move |path| (host, path))
    });
    files
        .filter_map(|(host, path)| {
            let host_id = host.id();
            let file = EditedFile {
                host: host_id,
                path,
            };
            of_file(context, host, &file, &places)
        })
        .collect()
}

/// Returns the state of the hooks in a file; `None` if it has none.
fn of_file(
    context: &DoctorContext,
    host: HookHost,
    file: &EditedFile,
    places: &HostPlaces,
) -> Option<CheckResult> {
    let (id, path) = (host.id(), file.path.display());
    let found = file.read().and_then(|text| {
        let text = text.unwrap_or_default();
        Ok((host.hook_commands(&text)?, text))
    });
    let (commands, text) = match found {
        Ok(found) => found,
        Err(why) => return Some(CheckResult::problem(id, why)),
    };
    let command = commands.first()?;
    let program = program(command);
    if !Path::new(&program).is_file() {
        return Some(CheckResult::problem(
            id,
            format!(
                "the hook in {path} runs {program}, which does not exist; run `toolgate connect {id} --hooks` again"
            ),
        ));
    }
    if let Ok(config) = &context.config
        && !config.servers.iter().any(|server| server.id == SERVER_NAME)
    {
        return Some(CheckResult::problem(
            id,
            format!(
                "the hook in {path} needs the server {SERVER_NAME:?}, which the config does not have; run `toolgate connect {id} --hooks` again"
            ),
        ));
    }
    if host == HookHost::Codex
        && let Some(why) = missing_trust(file, &text, places)
    {
        return Some(CheckResult::problem(id, why));
    }
    Some(match gateways::statuses(context) {
        None => CheckResult::warning(
            id,
            format!(
                "the hook in {path} needs a gateway, and none is running; start one with `toolgate serve` or `toolgate service install`"
            ),
        ),
        Some(_) => CheckResult::ok(id, format!("its own tools go through the gateway: {path}")),
    })
}

/// Returns why Codex skips the hook.
fn missing_trust(file: &EditedFile, hooks: &str, places: &HostPlaces) -> Option<String> {
    let config = CodexTrust::config_path(places).and_then(|path| fs::read_to_string(path).ok());
    let what = match CodexTrust::find(&file.path, hooks, &config.unwrap_or_default()) {
        CodexTrust::Trusted => return None,
        CodexTrust::Changed => "changed since you trusted it",
        CodexTrust::Missing => "is not trusted yet",
    };
    Some(format!(
        "the hook in {} {what}, so Codex skips it and runs its tools unchecked; start `codex`, and choose \"Trust all and continue\" under \"Hooks need review\"",
        file.path.display()
    ))
}

/// Returns the program of a command line that [`shell_quote`] wrote.
fn program(command: &str) -> String {
    let Some((program, _)) = command.split_once(" hook ") else {
        return command.to_owned();
    };
    let inner = program
        .strip_prefix('\'')
        .and_then(|rest| rest.strip_suffix('\''))
        .map(|inner| inner.replace("'\\''", "'"));
    inner
        .filter(|inner| shell_quote(inner) == program)
        .unwrap_or_else(|| program.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_of_a_hook() {
        for path in ["/usr/bin/toolgate", "/home/a b/toolgate", "/it's/toolgate"] {
            let command = format!("{} hook codex --wait 590", shell_quote(path));
            assert_eq!(program(&command), path);
        }
    }
}
