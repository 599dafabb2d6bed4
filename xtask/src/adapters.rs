//! `cargo xtask adapters`: the adapters for agent frameworks, a workspace of their own, built and tested.

use crate::report::Report;
use crate::run::{cargo, must, root};

/// Builds the adapters with the frameworks of their lock file, and runs their tests and examples.
pub(crate) fn all(report: &mut Report) {
    let folder = root().join("adapters");
    report.step("the adapters", || {
        let mut test = cargo();
        test.args(["test", "--locked", "--workspace"]);
        must(test.current_dir(&folder))
    });
}
