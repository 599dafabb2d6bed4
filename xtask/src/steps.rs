//! The steps of each chore, in order.

use std::env;
use std::fs;
use std::num::NonZero;
use std::thread;

use crate::report::{Report, Tests};
use crate::run::{cargo, command, each_line, must, output, target, which, without_warnings};
use crate::{
    bench, conformance, cycles, docs, eras, evidence, examples, features, first_use, install,
    package, platforms, requirements, terms, words,
};

/// Environment variable that sets how many tests Rust's test harness runs at once.
const TEST_THREADS: &str = "RUST_TEST_THREADS";

/// Checks of the sources alone.
fn sources(report: &mut Report) {
    report.step("format", format);
    report.step("words", words::check);
    report.step("import cycles", cycles::check);
    report.step("questions for the era", eras::check);
    report.step("examples", examples::check);
    report.step("terms", || terms::check(false));
    report.step("manifests of published crates", package::check_manifests);
    report.step("clippy", clippy);
    report.step("requirements", || requirements::check(false));
    report.step("security rows", evidence::check);
    docs::pages(report, false);
    report.step("lock file of the bench", bench::lock);
}

/// The quick half.
pub(crate) fn check(report: &mut Report) {
    sources(report);
    let mut tests = Tests::default();
    report.step("unit tests", || {
        each_line(
            cargo().args(["test", "--workspace", "--locked", "--lib", "--bins"]),
            |line| tests.add_line(line),
        )
    });
    report.tests(tests);
}

/// Everything. The installs run beside the compile: one waits for the network, the other for the processor.
pub(crate) fn test(report: &mut Report) {
    let installs = thread::spawn(install::all);
    sources(report);
    report.step("documents", documents);
    report.step("features of dependencies", dependency_features);
    features::gate(report);
    platforms::check(report);
    report.step("build of the tests", || {
        must(cargo().args(["test", "--workspace", "--locked", "--no-run"]))
    });
    let missing = installs
        .join()
        .unwrap_or_else(|_| vec!["the installs: a bug in xtask stopped them".to_owned()]);
    missing.iter().for_each(|what| report.skip(what));
    licences(report);
    tests(report);
    report.step("configs in the pages", docs::examples::check);
    report.step("conformance", || {
        conformance::all(&conformance::Options::default())
    });
    match which("valgrind") {
        Some(_) => report.step("instruction budgets", || bench::budgets(false)),
        None => report.skip("the instruction budgets: valgrind is not installed"),
    }
    report.step(
        "first use with an empty home",
        first_use::starts_with_an_empty_home,
    );
}

/// Only the installs.
pub(crate) fn install(report: &mut Report) {
    report.step("install", || match install::all() {
        missing if missing.is_empty() => Ok(()),
        missing => Err(missing.join("; ")),
    });
}

fn format() -> Result<(), String> {
    must(cargo().args(["fmt", "--all", "--check"]))
}

fn clippy() -> Result<(), String> {
    must(cargo().args([
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--",
        "-D",
        "warnings",
    ]))
}

fn documents() -> Result<(), String> {
    let mut doc = cargo();
    without_warnings(
        doc.args(["doc", "--workspace", "--no-deps", "--locked"])
            .env("RUSTDOCFLAGS", "-D warnings"),
    )
}

/// `serde_json/arbitrary_precision` would change how numbers of others read, in silence.
fn dependency_features() -> Result<(), String> {
    let tree = output(cargo().args([
        "tree",
        "--workspace",
        "--locked",
        "-e",
        "features",
        "-i",
        "serde_json",
    ]))?;
    match tree
        .lines()
        .find(|line| line.contains("\"arbitrary_precision\""))
    {
        Some(line) => Err(format!("serde_json has arbitrary_precision on: {line}")),
        None => Ok(()),
    }
}

fn licences(report: &mut Report) {
    let Some(deny) = install::cargo_deny() else {
        return;
    };
    report.step("licences, bans and sources", || {
        must(command(deny).args(["--locked", "check", "licenses", "bans", "sources"]))
    });
}

fn tests(report: &mut Report) {
    let skips = target().join("interop/skips.txt");
    let _ = fs::remove_file(&skips);
    let mut run = cargo();
    run.args(["test", "--workspace", "--locked", "--no-fail-fast"]);
    run.env("TOOLGATE_INTEROP", install::folder())
        .env("TOOLGATE_SKIPS", &skips);
    if let Some(browser) = install::chromium() {
        run.env("TOOLGATE_CHROMIUM", browser);
    }
    // Many tests wait for another program, so more of them run at once than there are cores.
    if env::var_os(TEST_THREADS).is_none() {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        run.env(TEST_THREADS, (2 * cores).to_string());
    }
    let mut tests = Tests::default();
    report.step("tests", || each_line(&mut run, |line| tests.add_line(line)));
    report.tests(tests);
    for line in fs::read_to_string(&skips).unwrap_or_default().lines() {
        report.skip(line);
    }
}
