//! Fuzz targets of the config readers, which are in a program and not in a library that `toolgate-fuzz` could call.

use super::*;
use std::time::Duration;
use toolgate_fuzz::{FuzzRun, FuzzTarget, read_seeds};

/// Reads a text as a config file; each error names the file and has a position or a reason.
fn read_config(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    if let Err(error) = parse(&text) {
        assert!(error.contains("toolgate.toml"), "{error}");
        assert!(!error.contains('\u{1b}'), "{error:?}");
    }
}

/// Checks mutations of the seeds. `TOOLGATE_FUZZ_CASES`, `TOOLGATE_FUZZ_SECONDS` and `TOOLGATE_FUZZ_SEED` change the run.
fn no_panic(name: &'static str) {
    let number = |name: &str, default| {
        std::env::var(name).map_or(default, |text| text.parse::<u64>().unwrap())
    };
    let run = FuzzRun {
        seed: number("TOOLGATE_FUZZ_SEED", 1),
        cases: number("TOOLGATE_FUZZ_CASES", 2_000),
        max_time: Duration::from_secs(number("TOOLGATE_FUZZ_SECONDS", 3)),
    };
    let target = FuzzTarget {
        name,
        run: read_config,
    };
    if let Err(failure) = run.run(&target, &read_seeds(name).unwrap()) {
        panic!("{failure}");
    }
}

#[test]
fn fuzz_no_mutated_toml_makes_the_reader_panic() {
    no_panic("config_toml");
}

#[test]
fn fuzz_no_mutated_host_config_makes_the_reader_panic() {
    no_panic("config_json");
}
