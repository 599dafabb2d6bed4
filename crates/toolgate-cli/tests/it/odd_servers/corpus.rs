//! The cases of `interop/odd`, and the servers that offer them.

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The files of which one server offers all cases of a revision.
const FILES: [&str; 8] = [
    "definitions",
    "dialects",
    "patterns",
    "defaults",
    "names",
    "resources",
    "results",
    "replies",
];
/// The file of which each case is a server of its own.
const OWN_SERVERS: &str = "servers";
/// The revision of a server whose case names none.
const USUAL_REVISION: &str = "2025-11-25";

/// One line of a file.
pub(super) struct Case {
    pub(super) file: &'static str,
    pub(super) name: String,
    /// The name of its server in the config.
    pub(super) server: String,
    /// The line; the README of the corpus says what each member means.
    pub(super) line: Value,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/odd")
}

fn lines(file: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(folder().join(file).with_extension("jsonl")).unwrap();
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines
        .map(|line| serde_json::from_str(line).expect(line))
        .collect()
}

fn revision(line: &Value) -> &str {
    line["revision"].as_str().unwrap_or(USUAL_REVISION)
}

/// The server of a case: one for each file and revision, or its own.
fn server_name(file: &str, line: &Value) -> String {
    match (file, revision(line)) {
        (OWN_SERVERS, _) => line["case"].as_str().unwrap().replace('_', "-"),
        (_, USUAL_REVISION) => file.to_owned(),
        (_, other) => format!("{file}-{}", &other[..4]),
    }
}

/// All cases.
pub(super) fn cases() -> Vec<Case> {
    let case = |file: &'static str, line: Value| Case {
        file,
        name: line["case"].as_str().unwrap().to_owned(),
        server: server_name(file, &line),
        line,
    };
    let files = FILES.into_iter().chain([OWN_SERVERS]);
    files
        .flat_map(|file| lines(file).into_iter().map(move |line| case(file, line)))
        .collect()
}

/// A config with all servers of the corpus beside the good one, and a rule that allows everything.
pub(super) fn config(real: &Path) -> String {
    let program = env!("CARGO_BIN_EXE_toolgate");
    let good = format!(
        "[limits]\nrate = \"1000000/s\"\nlist_wait_seconds = 600\n\n\
         [[rule]]\ntools = [\"*\"]\naction = \"allow\"\n\n\
         [server.good]\ncommand = [{program:?}, \"demo-server\"]\ntrust_annotations = true\n\n"
    );
    let sections: BTreeSet<String> = cases().iter().map(|case| case.section(real)).collect();
    good + &sections.into_iter().collect::<String>()
}

impl Case {
    /// Returns whether it is a separate server.
    pub(super) fn is_server(&self) -> bool {
        self.file == OWN_SERVERS
    }

    /// The elements of a member that is a list.
    pub(super) fn each(&self, member: &str) -> impl Iterator<Item = &Value> {
        self.line[member].as_array().into_iter().flatten()
    }

    /// The section of its server in the config.
    fn section(&self, real: &Path) -> String {
        let corpus = folder().join(self.file).with_extension("jsonl");
        let mut setting = json!({"corpus": corpus, "revision": revision(&self.line)});
        if self.is_server() {
            setting["case"] = json!(self.name);
        }
        let script = folder().with_file_name("servers").join("odd.py");
        let python = real.join("venv/bin/python");
        let words = [
            python.to_string_lossy(),
            script.to_string_lossy(),
            setting.to_string().into(),
        ];
        // Many of them start at once on a machine that may have other work.
        format!(
            "[server.{}]\ncommand = {words:?}\ntrust_annotations = true\nstart_seconds = 600\n\n",
            self.server
        )
    }
}
