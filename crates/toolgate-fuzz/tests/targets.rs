//! Runs of all fuzz targets with mutated seeds. `TOOLGATE_FUZZ_CASES`, `TOOLGATE_FUZZ_SECONDS` (for each target),
//! `TOOLGATE_FUZZ_SEED` and `TOOLGATE_FUZZ_TARGET` change a run.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test; the figures of a run are its report"
)]

use std::{env, sync::Mutex, thread, time::Duration};
use toolgate_fuzz::{FuzzRun, FuzzTarget, TARGETS, read_seeds};

/// Inputs for each target in an ordinary run.
const CASES: u64 = 3_000;
/// Maximum time for each target in an ordinary run, in seconds.
const SECONDS: u64 = 3;

fn number(name: &str, default: u64) -> u64 {
    env::var(name).map_or(default, |text| text.parse().unwrap())
}

fn run() -> FuzzRun {
    FuzzRun {
        seed: number("TOOLGATE_FUZZ_SEED", 1),
        cases: number("TOOLGATE_FUZZ_CASES", CASES),
        max_time: Duration::from_secs(number("TOOLGATE_FUZZ_SECONDS", SECONDS)),
    }
}

#[test]
fn no_mutated_seed_makes_a_reader_panic_or_lose_a_property() {
    let run = run();
    let only = env::var("TOOLGATE_FUZZ_TARGET").unwrap_or_default();
    let chosen: Vec<_> = TARGETS
        .iter()
        .filter(|one| one.name.contains(&only))
        .collect();
    assert!(!chosen.is_empty(), "no target has {only:?} in its name");
    let (left, failures) = (Mutex::new(chosen.into_iter()), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(target) = left.lock().unwrap().next() else {
                        return;
                    };
                    let began = std::time::Instant::now();
                    match run.run(target, &read_seeds(target.name).unwrap()) {
                        Ok(cases) => println!(
                            "{}: {cases} inputs, {} ms, seed {}",
                            target.name,
                            began.elapsed().as_millis(),
                            run.seed
                        ),
                        Err(failure) => failures.lock().unwrap().push(failure.to_string()),
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn every_target_has_seeds_and_a_libfuzzer_binary() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz");
    let manifest = std::fs::read_to_string(format!("{root}/Cargo.toml")).unwrap();
    for FuzzTarget { name, .. } in TARGETS {
        assert!(!read_seeds(name).unwrap().is_empty(), "{name} has no seeds");
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
        let binary = std::fs::read_to_string(format!("{root}/fuzz_targets/{name}.rs")).unwrap();
        assert!(
            binary.contains(&format!("toolgate_fuzz::{name}(")),
            "{name}"
        );
    }
}

#[test]
fn a_panic_is_reported_with_input_and_seed() {
    let target = FuzzTarget {
        name: "planted",
        run: |input| assert!(!input.contains(&b'{'), "a planted panic"),
    };
    let run = FuzzRun {
        seed: 7,
        cases: 10_000,
        max_time: Duration::from_secs(60),
    };
    let failure = run.run(&target, &[b"[1, 2]".to_vec()]).unwrap_err();
    assert!(failure.input.contains(&b'{') && failure.case > 0);
    assert!(failure.to_string().contains("planted, seed 7, case"));
    assert!(failure.reason.contains("a planted panic"));
    let again = run.run(&target, &[b"[1, 2]".to_vec()]).unwrap_err();
    assert_eq!((again.case, again.input), (failure.case, failure.input));
}
