//! The cases of `interop/odd`, and what must come of each.

use super::raw_client::{Listed, RawClient};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The files of which one server offers all cases.
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
/// The revision of a server whose case names none.
const USUAL_REVISION: &str = "2025-11-25";

/// One line of a file.
pub(super) struct Case {
    pub(super) file: &'static str,
    pub(super) name: String,
    server: String,
    said: Value,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/odd")
}

/// The lines of a file.
pub(super) fn lines(file: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(folder().join(file).with_extension("jsonl")).unwrap();
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines
        .map(|line| serde_json::from_str(line).expect(line))
        .collect()
}

fn revision(said: &Value) -> &str {
    said["revision"].as_str().unwrap_or(USUAL_REVISION)
}

/// One server for each file and revision.
fn server_name(file: &str, revision: &str) -> String {
    match revision {
        USUAL_REVISION => file.to_owned(),
        other => format!("{file}-{}", &other[..4]),
    }
}

/// All cases of the files with one server for all.
pub(super) fn cases() -> Vec<Case> {
    let case = |file: &'static str, said: Value| Case {
        file,
        name: said["case"].as_str().unwrap().to_owned(),
        server: server_name(file, revision(&said)),
        said,
    };
    let all = FILES
        .iter()
        .flat_map(|file| lines(file).into_iter().map(move |said| case(file, said)));
    all.collect()
}

/// The section of one server of `interop/servers/odd.py`.
pub(super) fn section(
    real: &Path,
    name: &str,
    file: &str,
    revision: &str,
    case: Option<&str>,
) -> String {
    let corpus = folder().join(file).with_extension("jsonl");
    let mut setting = json!({"corpus": corpus, "revision": revision});
    if let Some(case) = case {
        setting["case"] = json!(case);
    }
    let script = folder().with_file_name("servers").join("odd.py");
    let python = real.join("venv/bin/python");
    let words = [
        python.to_string_lossy(),
        script.to_string_lossy(),
        setting.to_string().into(),
    ];
    format!("[server.{name}]\ncommand = {words:?}\ntrust_annotations = true\n\n")
}

/// The good server, and rules that let everything pass.
pub(super) fn good() -> String {
    let program = env!("CARGO_BIN_EXE_toolgate");
    format!(
        "[limits]\nrate = \"1000000/s\"\n\n[[rule]]\ntools = [\"*\"]\nthen = \"allow\"\n\n\
         [server.good]\ncommand = [{program:?}, \"demo-server\"]\ntrust_annotations = true\n\n"
    )
}

/// A config with a server for each file and revision, beside the good one.
pub(super) fn config(real: &Path) -> String {
    let mut text = good();
    for file in FILES {
        let lines = lines(file);
        let revisions: BTreeSet<&str> = lines.iter().map(revision).collect();
        for revision in revisions {
            let _ = write!(
                text,
                "{}",
                section(real, &server_name(file, revision), file, revision, None)
            );
        }
    }
    text
}

/// The text of a result with its structured content, or the message of an error.
pub(super) fn text_of(answer: &Value) -> String {
    let result = &answer["result"];
    let mut text = String::new();
    for block in result["content"].as_array().into_iter().flatten() {
        text += block["text"].as_str().unwrap_or_default();
    }
    if let Some(structured) = result.get("structuredContent") {
        text += &structured.to_string();
    }
    text + answer["error"]["message"].as_str().unwrap_or_default()
}

impl Case {
    fn is_tool(&self) -> bool {
        self.said.get("tool").is_some()
    }

    /// Whether clients see its tool.
    fn is_listed(&self) -> bool {
        self.said["listed"] != json!(false)
    }

    fn each(&self, member: &str) -> impl Iterator<Item = &Value> {
        self.said[member].as_array().into_iter().flatten()
    }

    /// The name under which a client has its tool, where it is in the list.
    pub(super) fn shown<'a>(&self, listed: &'a Listed) -> Option<&'a str> {
        let own = format!(
            "{}_{}",
            self.server,
            self.said["tool"]["name"].as_str().unwrap_or(&self.name)
        );
        let is = |tool: &&Value| match self.file {
            "names" => tool["description"] == json!(self.name),
            _ => tool["name"] == json!(own),
        };
        listed.tools.iter().find(is)?["name"].as_str()
    }

    /// The arguments of a call that must end as the case says.
    pub(super) fn arguments(&self) -> Value {
        self.each("accepts")
            .next()
            .cloned()
            .unwrap_or_else(|| json!({}))
    }

    /// Uses it as a client would, and says what is wrong.
    pub(super) fn check(&self, client: &mut RawClient, listed: &Listed) -> Result<(), String> {
        if !self.is_tool() {
            return self.check_resource(client, listed);
        }
        let shown = self.shown(listed);
        if !self.is_listed() {
            return self.check_withheld(client, shown);
        }
        let shown = shown.ok_or("it is not listed")?;
        if let Some(wanted) = self.said["shown"].as_str() {
            expect(shown == wanted, || format!("it is shown as {shown}"))?;
        }
        let tool = listed
            .tools
            .iter()
            .find(|tool| tool["name"] == shown)
            .unwrap();
        self.check_absent(tool)?;
        let first = client.call(shown, &self.arguments());
        self.check_answer(&first, client)?;
        for arguments in self.each("accepts").skip(1) {
            self.check_answer(&client.call(shown, arguments), client)?;
        }
        for arguments in self.each("refuses") {
            let answer = client.call(shown, arguments);
            expect(!text_of(&answer).contains("ran "), || {
                format!("{arguments} reached the server")
            })?;
        }
        Ok(())
    }

    fn check_absent(&self, definition: &Value) -> Result<(), String> {
        for pointer in self.each("absent") {
            let there = definition.pointer(pointer.as_str().unwrap());
            expect(there.is_none(), || {
                format!("{pointer} is {}", there.unwrap())
            })?;
        }
        Ok(())
    }

    fn check_withheld(&self, client: &mut RawClient, shown: Option<&str>) -> Result<(), String> {
        expect(shown.is_none(), || "it is listed".to_owned())?;
        if self.file == "names" {
            return Ok(());
        }
        let name = format!("{}_{}", self.server, self.name);
        let answer = client.call(&name, &json!({}));
        expect(text_of(&answer).contains("withheld"), || {
            format!("a call is answered {answer}")
        })
    }

    /// The same expectation for a raw answer and for what an SDK made of it.
    fn check_answer(&self, answer: &Value, client: &RawClient) -> Result<(), String> {
        let (text, said) = (text_of(answer), || {
            format!("it is answered {}", short(answer))
        });
        if let Some(error) = self.said["error"].as_str() {
            let failed =
                answer.get("error").is_some() || answer["result"]["isError"] == json!(true);
            expect(failed && text.contains(error), said)?;
            let code = &self.said["code"];
            return expect(code.is_null() || answer["error"]["code"] == *code, said);
        }
        let result = &answer["result"];
        expect(result.is_object(), said)?;
        let wants_error = self.said["is_error"] == json!(true);
        expect((result["isError"] == json!(true)) == wants_error, said)?;
        let wanted = self.said["text"].as_str().unwrap_or_default();
        expect(text.contains(wanted), said)?;
        let never = !client.knows_structured() && result.get("structuredContent").is_some();
        expect(!never, || {
            "an older client gets structured content".to_owned()
        })
    }

    fn check_resource(&self, client: &mut RawClient, listed: &Listed) -> Result<(), String> {
        let Some(uri) = self.said["resource"]["uri"].as_str() else {
            let template = &self.said["template"]["uriTemplate"];
            let prompt = format!("{}_{}", self.server, self.name);
            let there = match (template.is_string(), self.said.get("prompt").is_some()) {
                (true, _) => listed
                    .templates
                    .iter()
                    .any(|item| item["uriTemplate"] == *template),
                (_, true) => listed
                    .prompts
                    .iter()
                    .any(|item| item["name"] == json!(prompt)),
                // A definition without a name or a URI cannot be listed.
                _ => true,
            };
            return expect(there, || "it is not listed".to_owned());
        };
        let item = listed
            .resources
            .iter()
            .find(|item| item["uri"] == json!(uri));
        self.check_absent(item.ok_or("it is not listed")?)?;
        let answer = client.read(uri);
        let text = answer["result"]["contents"][0]["text"].as_str();
        let wanted = self.said["read"] != json!(true) || text == Some("read");
        expect(wanted && answer.get("result").is_some(), || {
            format!("a read is answered {}", short(&answer))
        })
    }

    /// Whether an operator reads its reason, where it wants one.
    pub(super) fn reason_is_in(&self, shown: &str) -> bool {
        let Some(reason) = self.said["reason"].as_str() else {
            return true;
        };
        shown
            .lines()
            .any(|line| line.contains(&self.name) && line.contains(reason))
    }

    /// What an SDK's client must say of its call: text, or an error.
    pub(super) fn check_sdk(&self, event: &Value) -> Result<(), String> {
        if self.said.get("error").is_some() {
            let failed = event["event"] == "error" || event["is_error"] == json!(true);
            return expect(failed, || format!("it ends with {}", short(event)));
        }
        let text = format!(
            "{}{}",
            event["text"].as_str().unwrap_or_default(),
            event["structured"]
        );
        let wanted = self.said["text"].as_str().unwrap_or_default();
        let fine = event["event"] == "result" && text.contains(wanted);
        expect(fine, || format!("it ends with {}", short(event)))
    }

    /// Whether an SDK's client can use it.
    pub(super) fn is_usable_tool(&self) -> bool {
        self.is_tool() && self.is_listed()
    }
}

fn expect(is: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if is { Ok(()) } else { Err(why()) }
}

/// The beginning of a message, for a report.
fn short(value: &Value) -> String {
    value.to_string().chars().take(400).collect()
}
