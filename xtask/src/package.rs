//! `cargo xtask package`: the crates as they are published. Each is packaged and built from its package, and a hello
//! world in an empty folder is built from the packages and the registry alone.

mod footprint;
mod hello;
mod manifest;
mod servers;

use crate::report::Report;
use crate::run::{cargo, command, must, target};
use std::fs;

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

/// Measures the small servers, from packages that are not built one by one.
pub(crate) fn footprint(report: &mut Report) {
    report.step("footprints of small servers", || {
        must(cargo().args([
            "publish",
            "--workspace",
            "--dry-run",
            "--no-verify",
            "--locked",
            "--allow-dirty",
        ]))?;
        let packages = target().join("package");
        // A dry run that builds nothing leaves the archives there.
        let archives = packages.join("tmp-crate");
        for entry in fs::read_dir(archives).map_err(|error| error.to_string())? {
            let path = entry.map_err(|error| error.to_string())?.path();
            if path.extension().is_some_and(|end| end == "crate") {
                must(
                    command("tar")
                        .arg("-xzf")
                        .arg(path)
                        .arg("-C")
                        .arg(&packages),
                )?;
            }
        }
        hello::measure(&packages)
    });
}
