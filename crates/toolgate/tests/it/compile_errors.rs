//! Messages of the compiler for handlers whose types do not fit: their first lines, and the place that they point to.

use std::{fs, path::PathBuf, process::Command};

/// Returns the newest library of this crate beside this test.
fn library(deps: &PathBuf) -> PathBuf {
    let files = fs::read_dir(deps).unwrap().map(|file| file.unwrap());
    let is_library = |name: &str| name.starts_with("libtoolgate-") && name.ends_with(".rlib");
    let libraries = files.filter(|file| is_library(&file.file_name().to_string_lossy()));
    let newest = libraries.max_by_key(|file| file.metadata().unwrap().modified().unwrap());
    newest.expect("cargo built the library").path()
}

/// Compiles a function and returns the errors.
#[allow(clippy::disallowed_methods, reason = "the compiler ends by itself")]
fn errors(name: &str, code: &str) -> String {
    let deps = std::env::current_exe()
        .unwrap()
        .parent()
        .unwrap()
        .to_owned();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("compile_errors");
    fs::create_dir_all(&folder).unwrap();
    let source = folder.join(format!("{name}.rs"));
    fs::write(&source, code).unwrap();
    let library = format!("toolgate={}", library(&deps).display());
    let output = Command::new("rustc")
        .args([
            "--edition=2024",
            "--crate-type=lib",
            "--emit=metadata",
            "--extern",
            &library,
        ])
        .arg("-L")
        .arg(format!("dependency={}", deps.display()))
        .arg("--out-dir")
        .arg(&folder)
        .arg(format!("{name}.rs"))
        .current_dir(&folder)
        .output()
        .unwrap();
    assert!(!output.status.success(), "it compiles");
    String::from_utf8(output.stderr).unwrap()
}

/// Asserts the lines of the first error that show the message, the place and the label, in its first ten lines.
#[track_caller]
fn begins(name: &str, code: &str, lines: &[&str]) {
    let errors = errors(name, code);
    let first = errors.lines().take(10).map(str::trim_end);
    let found: Vec<&str> = first.filter(|line| lines.contains(line)).collect();
    assert_eq!(errors.lines().next(), lines.first().copied());
    assert_eq!(found, lines, "{errors}");
}

#[test]
fn an_unsuitable_value_of_a_tool_is_reported_at_the_return_type() {
    begins(
        "tool_value",
        "pub struct Forecast;\n\n#[toolgate::tool]\nfn forecast() -> Forecast {\n    Forecast\n}\n",
        &[
            "error[E0277]: `Forecast` cannot be the value of a tool",
            " --> tool_value.rs:4:18",
            "4 | fn forecast() -> Forecast {",
            "  |                  ^^^^^^^^ a tool does not return this type",
        ],
    );
}

#[test]
fn an_unsuitable_error_is_reported_at_the_error_type() {
    begins(
        "error_type",
        "pub struct Lost;\n\n#[toolgate::tool]\nasync fn find() -> Result<String, Lost> {\n    Err(Lost)\n}\n",
        &[
            "error[E0277]: `Lost` cannot be the error type of a handler",
            " --> error_type.rs:4:35",
            "4 | async fn find() -> Result<String, Lost> {",
            "  |                                   ^^^^ this error type has no text for the model",
        ],
    );
}

#[test]
fn an_unsuitable_value_of_a_method_is_reported_at_the_return_type() {
    let code = "pub struct Notes;\n\n#[toolgate::tools]\nimpl Notes {\n    #[resource(\"notes:///all\")]\n    fn all(&self) -> Result<Notes, String> {\n        Ok(Notes)\n    }\n}\n";
    begins(
        "resource_value",
        code,
        &[
            "error[E0277]: `Notes` cannot be the value of a resource",
            " --> resource_value.rs:6:29",
            "6 |     fn all(&self) -> Result<Notes, String> {",
            "  |                             ^^^^^ a resource does not return this type",
        ],
    );
}

#[test]
fn an_unsuitable_value_of_a_prompt_is_reported_at_the_return_type() {
    begins(
        "prompt_value",
        "#[toolgate::prompt]\nfn ask() -> u64 {\n    7\n}\n",
        &[
            "error[E0277]: `u64` cannot be the value of a prompt",
            " --> prompt_value.rs:2:13",
            "2 | fn ask() -> u64 {",
            "  |             ^^^ a prompt does not return this type",
        ],
    );
}

#[test]
fn an_unreadable_variable_is_reported_at_its_type() {
    let code = "pub struct Day;\n\n#[toolgate::template(\"notes:///{day}\")]\nfn note(day: Day) -> String {\n    drop(day);\n    String::new()\n}\n";
    begins(
        "variable",
        code,
        &[
            "error[E0277]: `Day` cannot be read from text",
            " --> variable.rs:4:14",
            "4 | fn note(day: Day) -> String {",
            "  |              ^^^ arguments of prompts and variables of templates are text",
        ],
    );
}

#[test]
fn a_variable_without_a_parameter_is_reported_at_the_template() {
    begins(
        "missing",
        "#[toolgate::template(\"notes:///{year}/{day}\")]\nfn note(day: u8) -> String {\n    day.to_string()\n}\n",
        &[
            "error: the function has no parameter for the variable `{year}`",
            " --> missing.rs:1:22",
            "1 | #[toolgate::template(\"notes:///{year}/{day}\")]",
            "  |                      ^^^^^^^^^^^^^^^^^^^^^^^",
        ],
    );
}

#[test]
fn an_unknown_argument_of_a_completion_is_reported_at_its_name() {
    let code = "pub struct Atlas;\n\n#[toolgate::tools]\nimpl Atlas {\n    #[prompt(complete(citty = Self::cities))]\n    fn describe(&self, city: String) -> String {\n        city\n    }\n\n    fn cities(&self, typed: String) -> Vec<String> {\n        vec![typed]\n    }\n}\n";
    begins(
        "completed_argument",
        code,
        &[
            "error: the prompt has no argument `citty`; use one of `city`",
            " --> completed_argument.rs:5:23",
            "5 |     #[prompt(complete(citty = Self::cities))]",
            "  |                       ^^^^^",
        ],
    );
}

#[test]
fn unsuitable_values_of_a_completion_are_reported_at_the_return_type() {
    let code = "pub struct Atlas;\n\n#[toolgate::tools]\nimpl Atlas {\n    #[prompt(complete(city = Self::cities))]\n    fn describe(&self, city: String) -> String {\n        city\n    }\n\n    fn cities(&self, _: String) -> Vec<u64> {\n        Vec::new()\n    }\n}\n";
    begins(
        "completion_values",
        code,
        &[
            "error[E0277]: `Vec<u64>` cannot be the values of a completion",
            "  --> completion_values.rs:10:36",
            "10 |     fn cities(&self, _: String) -> Vec<u64> {",
            "   |                                    ^^^ a completion function does not return this type",
        ],
    );
}
