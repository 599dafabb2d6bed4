//! Default paths of the data directory and of the config.

use std::{ffi::OsString, path::PathBuf};

/// Returns the platform's data directory, which applies if neither `--data` nor the config names one.
///
/// # Errors
/// `HOME` is not an absolute path.
pub(crate) fn data_dir() -> Result<PathBuf, String> {
    default_data(|name| std::env::var_os(name), cfg!(target_os = "macos"))
}

/// Returns the default config if the file exists: `toolgate/toolgate.toml` in `XDG_CONFIG_HOME` or `~/.config`.
pub(crate) fn default_config() -> Option<PathBuf> {
    let path = default_config_location()?;
    // A dangling link or an unreadable file counts as existing, because loading it reports the problem.
    let missing = path
        .symlink_metadata()
        .is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
    (!missing).then_some(path)
}

/// Returns the path of the default config, which may not exist; `None` if `HOME` is not an absolute path.
pub(crate) fn default_config_location() -> Option<PathBuf> {
    default_config_path(|name| std::env::var_os(name))
}

fn default_data(env: impl Fn(&str) -> Option<OsString>, macos: bool) -> Result<PathBuf, String> {
    if let Some(xdg) = directory(env("XDG_DATA_HOME")).filter(|_| !macos) {
        return Ok(xdg.join("toolgate"));
    }
    let home = directory(env("HOME"));
    let home =
        home.ok_or("cannot determine the data directory: HOME is not set to an absolute path; set it, or pass --data DIR")?;
    Ok(home.join(if macos {
        "Library/Application Support/toolgate"
    } else {
        ".local/share/toolgate"
    }))
}

fn default_config_path(env: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let config = directory(env("XDG_CONFIG_HOME"))
        .or_else(|| Some(directory(env("HOME"))?.join(".config")))?;
    Some(config.join("toolgate/toolgate.toml"))
}

/// Returns an absolute path. A relative one is ignored, because it would depend on the working directory.
fn directory(value: Option<OsString>) -> Option<PathBuf> {
    value.map(PathBuf::from).filter(|path| path.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env<'a>(vars: &'a [(&str, &str)]) -> impl Fn(&str) -> Option<OsString> + 'a {
        move |name| {
            vars.iter()
                .find(|(n, _)| *n == name)
                .map(|(_, value)| value.into())
        }
    }

    #[test]
    fn data_of_the_platform() {
        let of = |vars, macos| default_data(env(vars), macos);
        let both: &[_] = &[("HOME", "/h"), ("XDG_DATA_HOME", "/x")];
        assert_eq!(of(both, false), Ok("/x/toolgate".into()));
        assert_eq!(
            of(both, true),
            Ok("/h/Library/Application Support/toolgate".into())
        );
        assert_eq!(
            of(&[("HOME", "/h"), ("XDG_DATA_HOME", "x")], false),
            Ok("/h/.local/share/toolgate".into())
        );
        let unset =
            Err("cannot determine the data directory: HOME is not set to an absolute path; set it, or pass --data DIR".to_owned());
        assert_eq!(of(&[], false), unset);
        assert_eq!(of(&[("HOME", "")], true), unset);
    }

    #[test]
    fn default_config() {
        assert_eq!(
            default_config_path(env(&[("HOME", "/h")])),
            Some("/h/.config/toolgate/toolgate.toml".into())
        );
        let both = [("HOME", "/h"), ("XDG_CONFIG_HOME", "/x")];
        assert_eq!(
            default_config_path(env(&both)),
            Some("/x/toolgate/toolgate.toml".into())
        );
        assert_eq!(default_config_path(env(&[])), None);
    }
}
