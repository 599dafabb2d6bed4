//! `cargo xtask bench`: our server and client beside others and beside the bare limit; writes `docs/performance.md`.
//! `cargo xtask bench gateway`: the gateway beside a bare proxy and proxies of others, under overload, and as it
//! grows; writes `docs/gateway-performance.md`.
//! `cargo xtask budgets`: the instructions of a call beside the committed ones.

use crate::install;
use crate::pgo;
use crate::report::Report;
use crate::run::{cargo, command, must, output, root, target, which};
use std::fs;

/// What it needs besides, and for what.
const NEEDED: [(&str, &str); 2] = [
    ("valgrind", "it counts the instructions of a call"),
    ("strace", "it counts the system calls of a call"),
];

/// Whether the lock file of the peers is up to date: they are built with it, and depend on the product.
///
/// # Errors
/// It is not.
pub(crate) fn lock() -> Result<(), String> {
    let folder = root().join("bench");
    let mut tree = cargo();
    tree.args(["metadata", "--locked", "--format-version", "1"]);
    output(tree.current_dir(&folder)).map(drop).map_err(|_| {
        "bench/Cargo.lock is not up to date; run `cargo metadata` in bench/ and commit it"
            .to_owned()
    })
}

/// Builds the peers, a workspace of their own, and measures them; with `gateway`, the gateway.
pub(crate) fn all(report: &mut Report, gateway: bool) {
    let missing = NEEDED.iter().filter(|(name, _)| which(name).is_none());
    for (name, why) in missing.clone() {
        report.step(name, || Err(format!("not installed: {why}")));
    }
    if missing.count() > 0 {
        return;
    }
    let folder = root().join("bench");
    report.step("the peers", pgo::build_bench);
    if gateway {
        report.step("the gateway", build_gateway);
        report.step("the proxies of others", install::proxies);
    }
    let (page, parts): (_, &[&[&str]]) = match gateway {
        true => (
            "docs/gateway-performance.md",
            &[
                &["gateway"],
                &["gateway-overload"],
                &["gateway-growth"],
                &["gateway-duties"],
            ],
        ),
        false => ("docs/performance.md", &[&[]]),
    };
    for part in parts {
        report.step(part.first().unwrap_or(&"the figures"), || {
            let mut measure = command(folder.join("target/release/measure"));
            must(measure.args(*part).arg("--write").arg(root().join(page)))
        });
    }
}

/// Compares the instructions of a call with the budgets in `bench/budgets.txt`. With `write`, writes the file instead.
///
/// # Errors
/// A call takes more instructions than its budget allows.
pub(crate) fn budgets(write: bool) -> Result<(), String> {
    // The same build as that of the tests: the features of the dependencies differ in another one, and so do the counts.
    must(cargo().args(["test", "--workspace", "--locked", "--no-run"]))?;
    let folder = target().join("budgets");
    let mut build = cargo();
    build.args([
        "build",
        "--locked",
        "--no-default-features",
        "--bins",
        "--target-dir",
    ]);
    must(build.arg(&folder).current_dir(root().join("bench")))?;
    let mut measure = command(folder.join("debug/measure"));
    measure.args(["budgets", "bench/budgets.txt"]);
    measure.env("TOOLGATE_PROGRAM", target().join("debug/toolgate"));
    must(if write {
        measure.arg("--write")
    } else {
        &mut measure
    })
}

/// Builds the gateway with the profile `dist` and profile-guided optimization, for the system of this machine.
fn build_gateway() -> Result<(), String> {
    let built = pgo::build_for_host()?;
    let folder = root().join("bench/target/gateway/pgo");
    let program = folder.join("toolgate");
    fs::create_dir_all(&folder)
        .and_then(|()| fs::copy(&built, &program))
        .map(drop)
        .map_err(|error| format!("{}: {error}", program.display()))
}
