//! Environment of a child process.

use std::ffi::{OsStr, OsString};

/// Names of the environment variables that a child process inherits by default.
pub const DEFAULT_ALLOWLIST: &[&str] = match cfg!(windows) {
    true => WINDOWS_VARIABLES,
    false => UNIX_VARIABLES,
};

/// Default variables of Windows; without `SYSTEMROOT`, most programs do not start.
const WINDOWS_VARIABLES: &[&str] = &[
    "APPDATA",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "NUMBER_OF_PROCESSORS",
    "PATH",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMFILES",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
];

/// Default variables of Unix.
const UNIX_VARIABLES: &[&str] = &[
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "SHELL",
    "TERM",
];

/// Variables by which an environment can make a program run foreign code.
const DANGEROUS_VARIABLES: &[&str] = &[
    "BASH_ENV",
    "ENV",
    "GCONV_PATH",
    "IFS",
    "JAVA_TOOL_OPTIONS",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PERL5LIB",
    "PERL5OPT",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "RUBYLIB",
    "RUBYOPT",
];

/// Builds the environment of a child process from an allowlist of inherited variables and extra ones of the operator.
///
/// It starts empty. A variable of `allow` is inherited if it is set. Variables that make a program run foreign code
/// (`LD_*`, `DYLD_*`, `NODE_OPTIONS`, `PYTHONPATH` and similar ones) are never inherited. `extra` comes from the
/// operator, so it is used unchanged and overrides inherited variables.
pub fn environment(allow: &[&str], extra: &[(String, String)]) -> Vec<(OsString, OsString)> {
    compose(|name| std::env::var_os(name), allow, extra)
}

fn compose(
    ours: impl Fn(&str) -> Option<OsString>,
    allow: &[&str],
    extra: &[(String, String)],
) -> Vec<(OsString, OsString)> {
    let mut env: Vec<(OsString, OsString)> = Vec::new();
    for name in allow.iter().filter(|name| !is_dangerous(name)) {
        if let Some(value) = ours(name) {
            set(&mut env, name.as_ref(), value);
        }
    }
    for (name, value) in extra {
        set(&mut env, name.as_ref(), value.into());
    }
    env
}

fn is_dangerous(name: &str) -> bool {
    name.starts_with("LD_") || name.starts_with("DYLD_") || DANGEROUS_VARIABLES.contains(&name)
}

fn set(env: &mut Vec<(OsString, OsString)>, name: &OsStr, value: OsString) {
    match env.iter_mut().find(|(other, _)| other == name) {
        Some(entry) => entry.1 = value,
        None => env.push((name.to_owned(), value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(name: &str, value: &str) -> (OsString, OsString) {
        (name.into(), value.into())
    }

    #[test]
    fn inherits_only_allowed_variables() {
        let ours = |name: &str| (name != "TZ").then(|| OsString::from("x"));
        assert_eq!(compose(ours, &["PATH", "TZ"], &[]), [pair("PATH", "x")]);
        assert_eq!(compose(ours, &[], &[]), []);
    }

    #[test]
    fn never_inherits_dangerous_variables() {
        let ours = |_: &str| Some(OsString::from("evil"));
        for name in [
            "LD_PRELOAD",
            "LD_AUDIT",
            "DYLD_INSERT_LIBRARIES",
            "NODE_OPTIONS",
            "BASH_ENV",
            "LD_LIBRARY_PATH",
            "PYTHONPATH",
            "PYTHONSTARTUP",
        ] {
            assert_eq!(compose(ours, &[name], &[]), [], "{name}");
            let extra = [(name.to_owned(), "meant".to_owned())];
            assert_eq!(compose(ours, &[name], &extra), [pair(name, "meant")]);
        }
    }

    #[test]
    fn extra_variables_override_without_duplicates() {
        let ours = |_: &str| Some(OsString::from("ours"));
        let extra = [("PATH".to_owned(), "theirs".to_owned())];
        assert_eq!(
            compose(ours, &["PATH", "PATH"], &extra),
            [pair("PATH", "theirs")]
        );
    }
}
