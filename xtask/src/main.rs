//! The project's chores: `cargo xtask check` before a commit, `cargo xtask test` before a submission.
//!
//! Few crates are used, so that the chores start in seconds on a fresh machine.
#![allow(
    clippy::print_stdout,
    reason = "a chore's report is what was asked for"
)]

mod adapters;
mod api;
mod bench;
mod conformance;
mod cycles;
mod dist;
mod docs;
mod eras;
mod evidence;
mod examples;
mod features;
mod first_call;
mod first_use;
mod install;
mod interop;
mod long;
mod package;
mod pgo;
mod platforms;
mod published;
mod report;
mod requirements;
mod run;
mod running_program;
mod steps;
mod terms;
mod words;
mod zig;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask check | test | install | docs | api | requirements | words | cycles | eras | examples | terms | features | platforms | package | pgo | dist | long | interop | bench | budgets | adapters | first-call | conformance
  check    format, clippy and unit tests: for every commit
  test     everything: check, licences, documents, all tests, the real clients and servers
  api [--write]
           the public API of the library crates against the snapshots in api/; --write writes them
  requirements [--write]
           docs/requirements.md against the tests; --write puts the tests that were found into it
  docs [--write] [--pages] [--pictures]
           checks links, examples and generated pages, and builds the book into target/book; --write writes the
           generated pages, --pages runs no example and builds nothing, --pictures makes the pictures of the console anew
  words    how many names and doc comments cannot be searched for or read, against the limits
  cycles   import cycles between the modules of each crate
  eras     how often code outside toolgate-protocol asks for the era of a revision, against the limit
  examples the public items of toolgate, toolgate-core and toolgate-policy that no example uses, against the limits
  terms [--write]
           the search terms against the names and first doc lines of the items that implement them; --write writes the page
  features the Cargo features of the library, alone and in pairs
  platforms
           the library crates for Windows, macOS and WebAssembly, as far as the tools can be had
  package [--footprint]
           the crates as they are published, each built from its package, and a hello world from the packages alone,
           with the size, crates and processor time of small servers beside rmcp; writes docs/footprint.md;
           --footprint only builds the small servers, from packages that are not built one by one
  pgo      the program for this machine with profile-guided optimization, in target/pgo
  dist [--verify] [--check] [--host-only] [--profile FILE]
           the release artifacts of the checked-out commit for Linux, in target/dist; --verify builds a second time
           elsewhere and compares all bytes, --check installs each artifact and uses it, --host-only builds for this
           machine alone, --profile takes the profile of another build instead of recording one
  long     the rows of attacks and the fuzz targets with their full counts, which take long, api and package
  install  only puts the real clients and servers into the target folder
  interop  the real clients and servers of every revision, with those of the Rust SDK, and published servers; writes docs/interop.md
  bench    our server and client beside others and the bare limit, instructions and calls/s; writes docs/performance.md
  bench gateway
           the gateway beside a bare proxy and proxies of others: CPU, latency, calls/s, instructions; then the gateway
           under overload; writes docs/gateway-performance.md
  budgets [--write]
           the instructions of a call in a debug build against bench/budgets.txt; --write writes the file
  adapters the adapters for agent frameworks in adapters/, a workspace of their own, with their tests
  first-call
           from the config of a host to a governed call in an empty home directory, with servers of npm and PyPI;
           needs the debug build of the program
  conformance [RUN]... [--skip-install] [--url URL] [--client COMMAND]
           the official suite against our server, gateway and client, or those that are given;
           RUN is the beginning of a name such as server-2026-07-28";

fn main() -> ExitCode {
    let chore = std::env::args().nth(1).unwrap_or_default();
    let mut report = report::Report::new();
    match chore.as_str() {
        "check" => steps::check(&mut report),
        "test" => steps::test(&mut report),
        "install" => steps::install(&mut report),
        "requirements" => {
            let write = std::env::args().nth(2).as_deref() == Some("--write");
            report.step("requirements", || requirements::check(write));
        }
        "docs" => {
            let has = |option: &str| std::env::args().any(|arg| arg == option);
            if has("--pictures") {
                report.step("pictures of the console", docs::pictures);
            }
            docs::pages(&mut report, has("--write"));
            if !has("--pages") {
                docs::book_and_examples(&mut report);
            }
        }
        "api" => {
            let write = std::env::args().nth(2).as_deref() == Some("--write");
            api::check(&mut report, write);
        }
        "words" => report.step("words", words::check),
        "cycles" => report.step("import cycles", cycles::check),
        "eras" => report.step("questions for the era", eras::check),
        "examples" => report.step("examples", examples::check),
        "terms" => {
            let write = std::env::args().nth(2).as_deref() == Some("--write");
            report.step("terms", || terms::check(write));
        }
        "features" => features::all(&mut report),
        "platforms" => platforms::check(&mut report),
        "package" => match std::env::args().nth(2).as_deref() {
            Some("--footprint") => package::footprint(&mut report),
            _ => package::all(&mut report),
        },
        "pgo" => report.step("profile-guided optimization", || {
            pgo::build_for_host().map(drop)
        }),
        "dist" => match dist::DistOptions::read(std::env::args().skip(2)) {
            Ok(options) => dist::all(&mut report, options),
            Err(why) => {
                eprintln!("{why}");
                return usage();
            }
        },
        "long" => {
            report.step("rows", long::rows);
            report.step("fuzz targets", long::fuzz);
            api::check(&mut report, false);
            features::all(&mut report);
            package::all(&mut report);
        }
        "interop" => interop::all(&mut report),
        "bench" => {
            let gateway = std::env::args().nth(2).as_deref() == Some("gateway");
            bench::all(&mut report, gateway);
        }
        "budgets" => {
            let write = std::env::args().nth(2).as_deref() == Some("--write");
            report.step("instruction budgets", || bench::budgets(write));
        }
        "adapters" => adapters::all(&mut report),
        "first-call" => report.step("from an import to the first call", first_call::after_import),
        "conformance" => return conformance(),
        _ => return usage(),
    }
    report.finish()
}

/// Its last line is the count, so it has no summary.
fn conformance() -> ExitCode {
    let options = match conformance::Options::read(std::env::args().skip(2)) {
        Ok(options) => options,
        Err(why) => {
            eprintln!("{why}");
            return usage();
        }
    };
    match conformance::all(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("conformance: {why}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}
