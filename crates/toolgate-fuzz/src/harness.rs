//! Harness for the stable compiler: bounded in count and time, repeatable by its seed.

use crate::{FuzzTarget, mutator::InputMutator};
use std::{
    fmt, fs, io,
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// Maximum time for one input. Readers take far less than a hundredth of it.
const MAX_INPUT_TIME: Duration = Duration::from_secs(20);

/// Bounds of a run of one target.
#[derive(Clone, Copy, Debug)]
pub struct FuzzRun {
    /// Seed of the mutations.
    pub seed: u64,
    /// Number of mutated inputs.
    pub cases: u64,
    /// Maximum duration; the run ends early after it.
    pub max_time: Duration,
}

/// Input that a target failed on.
#[derive(Debug)]
#[non_exhaustive]
pub struct FuzzFailure {
    /// Name of the target.
    pub target: &'static str,
    /// Seed of the run.
    pub seed: u64,
    /// Number of the case: 0 for a seed input, from 1 for a mutation.
    pub case: u64,
    /// Input.
    pub input: Vec<u8>,
    /// Message of the panic.
    pub reason: String,
}

impl fmt::Display for FuzzFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (target, seed, case) = (self.target, self.seed, self.case);
        let input = self.input.escape_ascii();
        write!(
            f,
            "{target}, seed {seed}, case {case}: {}\ninput: {input}",
            self.reason
        )
    }
}

impl std::error::Error for FuzzFailure {}

/// Returns the committed seeds of a target, sorted by file name.
///
/// # Errors
/// The directory cannot be read.
pub fn read_seeds(target: &str) -> io::Result<Vec<Vec<u8>>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/seeds")
        .join(target);
    let mut files: Vec<PathBuf> = fs::read_dir(dir)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<_>>()?;
    files.sort();
    files.iter().map(fs::read).collect()
}

impl FuzzRun {
    /// Runs a target with its seeds, then with mutations of them. Returns the number of inputs.
    ///
    /// # Errors
    /// Returns the first input that the target panics on, or that takes longer than 20 s.
    pub fn run(&self, target: &FuzzTarget, seeds: &[Vec<u8>]) -> Result<u64, Box<FuzzFailure>> {
        let until = Instant::now() + self.max_time;
        for input in seeds {
            self.check(target, 0, input)?;
        }
        let mut inputs = InputMutator::new(seeds, self.seed);
        for case in 1..=self.cases {
            self.check(target, case, &inputs.next_input())?;
            if Instant::now() > until {
                return Ok(case);
            }
        }
        Ok(self.cases)
    }

    fn check(&self, target: &FuzzTarget, case: u64, input: &[u8]) -> Result<(), Box<FuzzFailure>> {
        let began = Instant::now();
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
        let reason = match outcome {
            Err(panic) => panic_message(&*panic),
            Ok(()) if began.elapsed() > MAX_INPUT_TIME => "it takes too long".to_owned(),
            Ok(()) => return Ok(()),
        };
        Err(Box::new(FuzzFailure {
            target: target.name,
            seed: self.seed,
            case,
            input: input.to_vec(),
            reason,
        }))
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without a message".to_owned())
}
