//! `cargo xtask bench`: our server and client beside others and beside the bare limit; writes `docs/performance.md`.

use crate::report::Report;
use crate::run::{cargo, command, must, output, root, which};

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

/// Builds the peers, a workspace of their own, and measures them.
pub(crate) fn all(report: &mut Report) {
    let missing = NEEDED.iter().filter(|(name, _)| which(name).is_none());
    for (name, why) in missing.clone() {
        report.step(name, || Err(format!("not installed: {why}")));
    }
    if missing.count() > 0 {
        return;
    }
    let folder = root().join("bench");
    report.step("the peers", || {
        let mut build = cargo();
        build.args(["build", "--release", "--locked"]);
        must(build.current_dir(&folder))
    });
    report.step("the figures", || {
        let mut measure = command(folder.join("target/release/measure"));
        must(
            measure
                .arg("--write")
                .arg(root().join("docs/performance.md")),
        )
    });
}
