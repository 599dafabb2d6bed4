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

/// Default variables of Unix. Without those of certificates and proxies, a program such as `npx` or `uvx` cannot reach
/// its registry from a network that has its own.
const UNIX_VARIABLES: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "SHELL",
    "TERM",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "ALL_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "all_proxy",
    "https_proxy",
    "http_proxy",
    "no_proxy",
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

/// Builds the environment of a child process from inherited variables and extra ones of the operator.
///
/// It starts empty. A variable of [`DEFAULT_ALLOWLIST`] or of `pass` is inherited if it is set. Variables that make a program run foreign code
/// (`LD_*`, `DYLD_*`, `NODE_OPTIONS`, `PYTHONPATH` and similar ones) are never inherited. The URL of a proxy
/// that contains credentials is inherited only if `pass` names its variable. `extra` comes from the
/// operator, so it is used unchanged and overrides inherited variables.
pub fn environment(pass: &[&str], extra: &[(String, String)]) -> Vec<(OsString, OsString)> {
    compose(|name| std::env::var_os(name), pass, extra)
}

fn compose(
    ours: impl Fn(&str) -> Option<OsString>,
    pass: &[&str],
    extra: &[(String, String)],
) -> Vec<(OsString, OsString)> {
    let mut env: Vec<(OsString, OsString)> = Vec::new();
    for name in DEFAULT_ALLOWLIST {
        if let Some(value) = ours(name)
            && !is_proxy_with_credentials(name, &value)
        {
            set(&mut env, name.as_ref(), value);
        }
    }
    for name in pass.iter().filter(|name| !is_dangerous(name)) {
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

fn is_proxy_with_credentials(name: &str, value: &OsStr) -> bool {
    name.to_ascii_lowercase().ends_with("_proxy") && value.as_encoded_bytes().contains(&b'@')
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
    fn inherits_the_default_variables_and_those_to_pass() {
        let ours = |name: &str| {
            ["PATH", "MINE", "OTHER"]
                .contains(&name)
                .then(|| OsString::from("x"))
        };
        assert_eq!(
            compose(ours, &["MINE", "TZ"], &[]),
            [pair("PATH", "x"), pair("MINE", "x")]
        );
        assert_eq!(compose(ours, &[], &[]), [pair("PATH", "x")]);
    }

    #[cfg(unix)]
    #[test]
    fn a_proxy_with_credentials_is_inherited_only_on_request() {
        let proxy = |value: &'static str| {
            move |name: &str| (name == "HTTPS_PROXY").then(|| OsString::from(value))
        };
        let (plain, private) = ("http://proxy:3128", "http://me:secret@proxy:3128");
        assert_eq!(
            compose(proxy(plain), &[], &[]),
            [pair("HTTPS_PROXY", plain)]
        );
        assert_eq!(compose(proxy(private), &[], &[]), []);
        assert_eq!(
            compose(proxy(private), &["HTTPS_PROXY"], &[]),
            [pair("HTTPS_PROXY", private)]
        );
    }

    #[test]
    fn never_inherits_dangerous_variables() {
        let evil =
            |name: &'static str| move |asked: &str| (asked == name).then(|| OsString::from("evil"));
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
            let ours = evil(name);
            assert_eq!(compose(ours, &[name], &[]), [], "{name}");
            let extra = [(name.to_owned(), "meant".to_owned())];
            assert_eq!(compose(ours, &[name], &extra), [pair(name, "meant")]);
        }
    }

    #[test]
    fn extra_variables_override_without_duplicates() {
        let ours = |name: &str| (name == "PATH").then(|| OsString::from("ours"));
        let extra = [("PATH".to_owned(), "theirs".to_owned())];
        assert_eq!(
            compose(ours, &["PATH", "PATH"], &extra),
            [pair("PATH", "theirs")]
        );
    }
}
