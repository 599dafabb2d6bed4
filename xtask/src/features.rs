//! `cargo xtask features`: the Cargo features of the library, checked in combinations.
//!
//! Each check has a target directory of its own, so that the builds of the workspace stay warm.

use crate::report::Report;
use crate::run::{cargo, must, target};

/// Features of the crate `toolgate`, all of which are on by default.
const FEATURES: [&str; 14] = [
    "audit",
    "auth",
    "client",
    "full-json-schema",
    "full-regex",
    "full-uri",
    "http-client",
    "http-server",
    "macros",
    "secret-rule-files",
    "skills",
    "spawn",
    "stdio",
    "tasks",
];

/// Combinations that `cargo xtask test` checks: nothing, and a small server over each transport.
const GATE: [&[&str]; 3] = [&[], &["stdio", "macros"], &["http-server", "http-client"]];

/// Checks the combinations of the gate.
pub(crate) fn gate(report: &mut Report) {
    report.step("features", || GATE.iter().try_for_each(|set| check(set)));
}

/// Checks each feature alone and each pair of two, and runs the tests of the reduced checkers.
pub(crate) fn all(report: &mut Report) {
    report.step("features", || {
        check(&[])?;
        for (at, one) in FEATURES.iter().enumerate() {
            check(&[one])?;
            FEATURES[..at]
                .iter()
                .try_for_each(|other| check(&[one, other]))?;
        }
        Ok(())
    });
    report.step("tests without features", || {
        // The second has the reduced search of `regex`, and the samples of the secret rules.
        ["", "secret-rule-files"].iter().try_for_each(|features| {
            let mut test = cargo();
            test.args(["test", "--locked", "--lib", "--no-default-features"]);
            test.args(["-p", "toolgate-policy", "--features", features]);
            must(test.args(folder()))
        })
    });
}

/// Checks the library with these features only; a warning is an error.
fn check(features: &[&str]) -> Result<(), String> {
    let mut check = cargo();
    check.args(["check", "--locked", "--quiet", "-p", "toolgate"]);
    check.args(["--no-default-features", "--features", &features.join(",")]);
    must(check.args(folder()).env("RUSTFLAGS", "-D warnings"))
}

fn folder() -> [String; 2] {
    let folder = target().join("features");
    ["--target-dir".to_owned(), folder.display().to_string()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::root;

    #[test]
    fn the_list_has_each_feature_of_the_manifest() {
        let manifest = std::fs::read_to_string(root().join("crates/toolgate/Cargo.toml")).unwrap();
        let (_, features) = manifest.split_once("[features]").unwrap();
        let (features, _) = features.split_once("\n[").unwrap();
        let names = features.lines().filter_map(|line| line.split_once(" = "));
        let mut names: Vec<&str> = names.map(|(name, _)| name).collect();
        names.retain(|name| *name != "default");
        names.sort_unstable();
        assert_eq!(names, FEATURES);
    }
}
