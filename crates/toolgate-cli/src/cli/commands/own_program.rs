//! Path of this program, for files that start it later.

use super::Result;
use std::{env, path::Path};

/// Returns the path of this program.
pub(super) fn own_program() -> Result<String> {
    let program = env::current_exe()
        .map_err(|error| format!("the path of this program cannot be determined: {error}"))?;
    Ok(program.display().to_string())
}

/// Returns the path of this program for a file that starts it later. Warns if the program is in a cache, from which it
/// may vanish.
pub(super) fn lasting_program() -> Result<String> {
    let program = own_program()?;
    if let Some(owner) = cache_owner(Path::new(&program)) {
        eprintln!(
            "warning: {program} is in the cache of {owner}, which may delete it; to be safe, install toolgate and run this command again"
        );
    }
    Ok(program)
}

/// Returns the name of the tool whose cache contains a path.
fn cache_owner(program: &Path) -> Option<&'static str> {
    let has =
        |wanted: fn(&str) -> bool| program.iter().any(|part| part.to_str().is_some_and(wanted));
    if has(|part| part == "_npx") {
        return Some("npx");
    }
    (has(|part| part == "uv") && has(|part| part.starts_with("archive-v"))).then_some("uvx")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_in_caches() {
        for (path, owner) in [
            (
                "/home/ada/.npm/_npx/4f1c/node_modules/@toolgate/linux-x64/bin/toolgate",
                Some("npx"),
            ),
            (
                "/home/ada/.cache/uv/archive-v0/Ab3/bin/toolgate",
                Some("uvx"),
            ),
            (
                "/home/ada/.local/share/uv/tools/toolgate/bin/toolgate",
                None,
            ),
            (
                "/usr/lib/node_modules/toolgate/node_modules/@toolgate/linux-x64/bin/toolgate",
                None,
            ),
            ("/usr/bin/toolgate", None),
        ] {
            assert_eq!(cache_owner(Path::new(path)), owner, "{path}");
        }
    }
}
