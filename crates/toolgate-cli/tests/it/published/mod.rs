//! Published servers of other people, listed and called directly and through the gateway: both must give the same, but
//! for the differences that `interop/published/servers.json` lists with a reason. `cargo xtask interop` installs them.

mod compare;
mod peer;

use crate::help::TempDir;
use compare::{Known, differences};
use peer::Peer;
use serde_json::{Map, Value, json};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Mutex,
};

/// Servers that are compared at the same time.
const WORKERS: usize = 3;
/// The prefix of the gateway before the names of tools and prompts.
const PREFIX: &str = "s_";

/// The lists, with the member that holds their items and the one that names an item.
const LISTS: [(&str, &str, &str); 4] = [
    ("tools/list", "tools", "name"),
    ("resources/list", "resources", "uri"),
    (
        "resources/templates/list",
        "resourceTemplates",
        "uriTemplate",
    ),
    ("prompts/list", "prompts", "name"),
];

/// Everything that one side gives: lists by item, then calls.
type Seen = BTreeMap<String, Value>;

/// A server and what is asked of it.
struct Published {
    entry: Value,
    /// Directory of the installed packages.
    packages: PathBuf,
    scratch: PathBuf,
}

impl Published {
    fn text(&self, key: &str) -> String {
        self.entry[key].as_str().unwrap_or_default().to_owned()
    }

    /// Puts the scratch folder into every text.
    fn placed(&self, value: &Value) -> Value {
        let scratch = self.scratch.to_string_lossy();
        let text = value.to_string().replace("{scratch}", &scratch);
        serde_json::from_str(&text).unwrap()
    }

    fn words(&self) -> Vec<String> {
        let run = self.placed(&self.entry["run"]);
        let words = run.as_array().unwrap().iter().map(|w| w.as_str().unwrap());
        let mut words: Vec<String> = words.map(str::to_owned).collect();
        let set = words.remove(0);
        let bin = if set == "node" {
            "node/node_modules/.bin"
        } else {
            "bin"
        };
        let folder = if set == "node" {
            bin.into()
        } else {
            Path::new(&set).join(bin)
        };
        words[0] = self
            .packages
            .join(folder)
            .join(&words[0])
            .to_string_lossy()
            .into_owned();
        words
    }

    fn environment(&self) -> Map<String, Value> {
        let given = self.placed(&self.entry["env"]);
        given.as_object().cloned().unwrap_or_default()
    }

    /// An empty scratch folder with a few files, which is a repository.
    fn prepare(&self) {
        let _ = fs::remove_dir_all(&self.scratch);
        fs::create_dir_all(&self.scratch).unwrap();
        fs::write(self.scratch.join("notes.txt"), "one\r\ntwo\n").unwrap();
        fs::write(self.scratch.join("code.js"), "var a = 1\n").unwrap();
        let mut git = crate::help::command("git");
        let made = git
            .args(["init", "--quiet", "--initial-branch=main"])
            .current_dir(&self.scratch);
        assert!(made.status().unwrap().success());
    }

    fn command(&self) -> Command {
        let words = self.words();
        let mut command = crate::help::command(&words[0]);
        command.args(&words[1..]);
        for (name, value) in self.environment() {
            command.env(name, value.as_str().unwrap());
        }
        command
    }

    /// The gateway before this one server.
    fn gateway(&self, folder: &TempDir) -> Command {
        let env: Vec<String> = self
            .environment()
            .iter()
            .map(|(name, value)| format!("{name} = {value}"))
            .collect();
        let config = format!(
            "[server.s]\ncommand = {:?}\ncwd = {:?}\nenv = {{ {} }}\n[[rule]]\ntools = [\"*\"]\naction = \"allow\"\n",
            self.words(),
            self.scratch,
            env.join(", ")
        );
        let file = folder.write("toolgate.toml", &config);
        let mut command = crate::help::command(env!("CARGO_BIN_EXE_toolgate"));
        command.args(["serve", "--stdio", "--config"]).arg(file);
        command.arg("--data").arg(folder.file("data"));
        command
    }

    /// Lists everything and makes the calls, with this before the names of tools and prompts.
    fn look(&self, mut command: Command, prefix: &str) -> Result<Seen, String> {
        self.prepare();
        let mut peer = Peer::open(command.current_dir(&self.scratch))?;
        let mut seen = Seen::new();
        for (method, member, key) in LISTS {
            for mut item in peer.list(method, member)? {
                let name = item[key].as_str().unwrap_or_default().to_owned();
                let name = name.strip_prefix(prefix).unwrap_or(&name).to_owned();
                if key == "name" {
                    item[key] = json!(name);
                }
                seen.insert(format!("{member}/{name}"), item);
            }
        }
        for (at, call) in self.entry["calls"]
            .as_array()
            .into_iter()
            .flatten()
            .enumerate()
        {
            let tool = call[0].as_str().unwrap();
            let arguments = self.placed(&call[1]);
            let name = format!("{prefix}{tool}");
            let answer = peer.ask("tools/call", json!({"name": name, "arguments": arguments}))?;
            seen.insert(format!("call {}/{tool}", at + 1), answer);
        }
        peer.close();
        Ok(seen)
    }

    /// Returns the unknown differences between the two sides, and a row of the table.
    fn compare(&self, general: &[Known]) -> Result<Value, String> {
        let folder = TempDir::new("published");
        let direct = self
            .look(self.command(), "")
            .map_err(|e| format!("directly: {e}"))?;
        let through = self.look(self.gateway(&folder), PREFIX);
        let through = through.map_err(|e| format!("through the gateway: {e}"))?;
        let own = Known::read(&self.entry["differences"]);
        let (known, new): (Vec<_>, Vec<_>) = differences(&json!(direct), &json!(through))
            .into_iter()
            .partition(|found| general.iter().chain(&own).any(|known| known.covers(found)));
        if !new.is_empty() {
            let lines: Vec<String> = new.iter().map(ToString::to_string).collect();
            return Err(lines.join("\n"));
        }
        let count = |of: &str| direct.keys().filter(|key| key.starts_with(of)).count();
        let reasons: Vec<&str> = general
            .iter()
            .chain(&own)
            .filter(|reason| known.iter().any(|found| reason.covers(found)))
            .map(|reason| reason.id.as_str())
            .collect();
        Ok(json!({
            "name": self.text("name"), "by": self.text("by"), "tools": count("tools/"),
            "resources": count("resources/") + count("resourceTemplates/"), "prompts": count("prompts/"),
            "calls": count("call "), "differences": reasons,
        }))
    }
}

#[test]
fn published_servers_give_the_same_through_the_gateway() {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/published/servers.json");
    let table: Value = serde_json::from_str(&fs::read_to_string(table).unwrap()).unwrap();
    let packages = std::env::var_os("TOOLGATE_PUBLISHED").map(PathBuf::from);
    let packages = packages.expect("`cargo xtask interop` sets TOOLGATE_PUBLISHED");
    let only = std::env::var("TOOLGATE_PUBLISHED_ONLY").unwrap_or_default();
    let general = Known::read(&table["general"]);
    let servers = table["servers"].as_array().unwrap().clone();
    let chosen = |entry: &Value| entry["name"].as_str().unwrap().contains(&only);
    let todo: Mutex<Vec<Value>> = Mutex::new(servers.into_iter().rev().filter(chosen).collect());
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|threads| {
        for _ in 0..WORKERS {
            threads.spawn(|| {
                loop {
                    let Some(entry) = todo.lock().unwrap().pop() else {
                        return;
                    };
                    let folder = TempDir::new("scratch");
                    let scratch = folder.file("work");
                    let server = Published {
                        entry,
                        packages: packages.clone(),
                        scratch,
                    };
                    match server.compare(&general) {
                        Ok(row) => println!("published: {row}"),
                        Err(why) => failed
                            .lock()
                            .unwrap()
                            .push(format!("{}:\n{why}", server.text("name"))),
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}
