//! Paths of hosts' files.

use std::{ffi::OsString, path::PathBuf};

/// Path of a host's file, relative to a directory of the user or of a project.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum HostPath {
    /// Relative to the home directory.
    Home(&'static str),
    /// Relative to `XDG_CONFIG_HOME`, or `~/.config`.
    Config(&'static str),
    /// Relative to the directory that a variable names.
    Variable {
        /// Name of the variable.
        name: &'static str,
        /// Directory without the variable, relative to the home directory; empty for the home directory itself.
        default: &'static str,
        /// Path below the directory.
        file: &'static str,
    },
    /// Relative to the directory of a project.
    Project(&'static str),
}

/// Directories at which hosts' files are looked up.
#[derive(Clone, Debug)]
pub(crate) struct HostPlaces {
    /// Home directory.
    pub(crate) home: Option<PathBuf>,
    /// Directory of the project.
    pub(crate) project: PathBuf,
    /// True on macOS.
    pub(crate) macos: bool,
    /// Environment variables that name a directory.
    variables: Vec<(&'static str, PathBuf)>,
}

/// Variable with the directory of configs.
const CONFIG_VARIABLE: &str = "XDG_CONFIG_HOME";

/// Variables of hosts with the directory of their own files.
const HOST_VARIABLES: [&str; 4] = [
    CONFIG_VARIABLE,
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "COPILOT_HOME",
];

impl HostPlaces {
    /// Returns the directories of this user and system, with the given directory of the project.
    pub(crate) fn of_this_user(project: PathBuf) -> HostPlaces {
        HostPlaces::new(
            |name| std::env::var_os(name),
            project,
            cfg!(target_os = "macos"),
        )
    }

    /// Returns the directories that an environment names. A relative path is ignored, because it would depend on the
    /// working directory.
    pub(crate) fn new(
        env: impl Fn(&str) -> Option<OsString>,
        project: PathBuf,
        macos: bool,
    ) -> HostPlaces {
        let directory = |name: &str| {
            env(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        HostPlaces {
            home: directory("HOME"),
            project,
            macos,
            variables: HOST_VARIABLES
                .iter()
                .filter_map(|name| Some((*name, directory(name)?)))
                .collect(),
        }
    }

    fn variable(&self, wanted: &str) -> Option<PathBuf> {
        let mut all = self.variables.iter();
        all.find(|(name, _)| *name == wanted)
            .map(|(_, path)| path.clone())
    }
}

impl HostPath {
    /// Returns the absolute path, or `None` if its directory is unknown.
    pub(crate) fn resolve(self, places: &HostPlaces) -> Option<PathBuf> {
        match self {
            HostPath::Home(file) => Some(places.home.as_ref()?.join(file)),
            HostPath::Config(file) => HostPath::Variable {
                name: CONFIG_VARIABLE,
                default: ".config",
                file,
            }
            .resolve(places),
            HostPath::Variable {
                name,
                default,
                file,
            } => {
                let directory = places.variable(name);
                let directory = directory.or_else(|| Some(places.home.as_ref()?.join(default)))?;
                Some(directory.join(file))
            }
            HostPath::Project(file) => Some(places.project.join(file)),
        }
    }
}
