//! Laws that hold for random inputs.

mod crossed;
mod dropped;
mod planted;
mod planter;
mod tasks;
mod verdicts;

use std::future::Future;

/// Runs one case.
fn run<T>(case: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(case)
}
