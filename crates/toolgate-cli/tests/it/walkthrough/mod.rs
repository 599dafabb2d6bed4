//! The walkthrough of the documents, run as it stands there.

mod page;
mod terminal;

use crate::help::{SOON, TempDir, real, within};
use page::{Step, fits};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use terminal::Terminal;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(file: &str) -> String {
    let file = root().join(file);
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// Returns the reader's `PATH`: our programs, those that the project installed, and those of the system.
fn path(real: &Path) -> String {
    let ours = Path::new(env!("CARGO_BIN_EXE_toolgate")).parent().unwrap();
    let mut folders = vec![
        ours.to_owned(),
        real.join("node/node_modules/.bin"),
        real.join("venv/bin"),
    ];
    folders.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
    let path = std::env::join_paths(folders).unwrap();
    path.into_string().unwrap()
}

/// Checks that the page installs the versions that the project pinned and installed.
fn installed(step: &Step) {
    let pins = [
        read("interop/package.json"),
        read("interop/requirements-clients.txt"),
    ]
    .concat();
    let packages = step
        .text
        .split_whitespace()
        .filter(|word| !["npm", "pip", "install"].contains(word) && !word.starts_with('-'));
    for package in packages {
        let pinned = [format!("\"{package}\":"), format!("\n{package}==")];
        assert!(
            pinned.iter().any(|pin| pins.contains(pin)),
            "line {}: {package} is not pinned in interop/",
            step.line
        );
    }
}

/// Compares the output with the page; a repeated block gets some time.
fn compare(step: &Step, terminal: &mut Terminal, again: Option<&Step>) {
    let good = |printed: &str| fits(&step.text, printed);
    let there = match again {
        None => Some(terminal.printed(good)),
        Some(block) => within(SOON, || {
            let there = terminal.printed(good);
            if good(&there) {
                return Some(there);
            }
            terminal.type_in(block);
            None
        }),
    };
    let there = there.unwrap_or_else(|| terminal.printed(good));
    let (line, text) = (step.line, &step.text);
    assert!(
        good(&there),
        "line {line}: expected\n{text}\nbut there was\n{there}"
    );
}

#[test]
#[allow(clippy::print_stdout, reason = "the figures of the test")]
fn the_walkthrough_is_true() {
    let Some(real) = real() else { return };
    let home = TempDir::new("walkthrough");
    let path = path(&real);
    let mut terminals: HashMap<String, Terminal> = HashMap::new();
    let steps = Step::all(&read("docs/walkthrough.md"));
    let (mut typed, mut compared) = (0, 0);
    let mut last = None;
    for step in &steps {
        if step.place() == "installs" {
            installed(step);
            continue;
        }
        let open = || Terminal::open(home.path(), &path);
        let terminal = terminals
            .entry(step.place().to_owned())
            .or_insert_with(open);
        match step.language() {
            "sh" => {
                typed += 1;
                terminal.type_in(step);
                if !step.is("stays") && !step.is("waits") {
                    terminal.end();
                }
                last = Some(step);
            }
            "text" => {
                compared += 1;
                let again = last.filter(|last| last.is("again"));
                compare(step, terminal, again);
            }
            other => panic!("line {}: nobody can run {other:?}", step.line),
        }
    }
    let open = terminals.values_mut().filter(|terminal| terminal.ends());
    open.for_each(Terminal::end);
    println!("walkthrough: {typed} blocks run, {compared} compared");
}
