//! `cargo xtask docs`: checks the pages of the project and builds the book.

mod book;
mod command_line;
mod config_reference;
mod config_schema;
pub(crate) mod examples;
mod limit_groups;
mod line_counts;
mod links;
mod markdown;
mod names;
mod pages;

use crate::install;
use crate::report::Report;
use crate::run::{cargo, must, root};

/// Checks the pages without the program. With `write`, the generated pages are written first.
pub(crate) fn pages(report: &mut Report, write: bool) {
    report.step("generated pages", || {
        command_line::check(write)?;
        config_reference::check(write)?;
        line_counts::check(write)
    });
    report.step("groups of limits", limit_groups::check);
    report.step("links of the pages", links::check);
    report.step("names of code in the pages", names::check);
}

/// Makes the pictures of the console for the book, with a real browser.
pub(crate) fn pictures() -> Result<(), String> {
    let mut test = cargo();
    test.args([
        "test",
        "--locked",
        "-p",
        "toolgate-cli",
        "--test",
        "it",
        "the_pictures_of_the_book",
    ]);
    test.env("TOOLGATE_INTEROP", install::folder());
    must(test.env("TOOLGATE_BOOK_PICTURES", root().join("docs/images")))
}

/// Builds the book, and runs the examples of the pages.
pub(crate) fn book_and_examples(report: &mut Report) {
    report.step("book", book::build);
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
            "BookGuide",
        ]))
    });
}
