//! `cargo xtask docs`: checks the pages of the project and builds the book.

mod book;
pub(crate) mod examples;
pub(crate) mod links;
mod markdown;
pub(crate) mod names;
mod pages;

use crate::report::Report;
use crate::run::{cargo, must};

/// Checks the pages, and builds the book. With `write`, the generated pages are written first.
pub(crate) fn all(report: &mut Report, write: bool) {
    report.step("generated pages", || check_generated(write));
    report.step("links of the pages", links::check);
    report.step("names of code in the pages", names::check);
    report.step("configs in the pages", || {
        must(cargo().args(["build", "--package", "toolgate-cli", "--locked"]))?;
        examples::check()
    });
    report.step("Rust examples in the pages", || {
        must(cargo().args([
            "test",
            "--package",
            "toolgate",
            "--doc",
            "--locked",
            "--",
            "guide",
            "Readme",
        ]))
    });
    report.step("book", book::build);
}

/// The program has its own reference, so a test of the program compares or writes it.
fn check_generated(write: bool) -> Result<(), String> {
    let mut test = cargo();
    test.args([
        "test",
        "--package",
        "toolgate-cli",
        "--locked",
        "--bin",
        "toolgate",
        "--",
        "generated_page",
    ]);
    if write {
        test.env("TOOLGATE_WRITE_DOCS", "1");
    }
    must(&mut test)
}
