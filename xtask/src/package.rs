//! `cargo xtask package`: the crates as they are published. Each is packaged and built from its package, and a hello
//! world in an empty folder is built from the packages and the registry alone.

mod footprint;
mod hello;
mod manifest;
mod servers;

use crate::report::Report;
use crate::run::{cargo, must, target};

pub(crate) use manifest::check_manifests;

/// Packages and builds all published crates, then the hello world.
pub(crate) fn all(report: &mut Report) {
    report.step("manifests of published crates", check_manifests);
    report.step("packages", || {
        must(cargo().args([
            "publish",
            "--workspace",
            "--dry-run",
            "--locked",
            "--allow-dirty",
        ]))
    });
    report.step("hello world from the packages", || {
        hello::run(&target().join("package"))
    });
}
