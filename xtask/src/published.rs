//! Published servers of other people, directly and through the gateway, and their table in `docs/interop.md`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;

use serde_json::Value;

use crate::install;
use crate::interop::PAGE;
use crate::report::Tests;
use crate::run::{cargo, each_line, root};

/// What begins and ends the table in the page.
const BEGIN: &str = "<!-- published servers: begin -->\n";
const END: &str = "<!-- published servers: end -->";
/// The servers, how each is started, what is called, and the known differences with their reasons.
const SERVERS: &str = "interop/published/servers.json";

/// Installs the servers, compares each with itself behind the gateway, and writes the table.
pub(crate) fn all(tests: &mut Tests) -> Result<(), String> {
    install::published()?;
    let mut run = cargo();
    run.args(["test", "--locked", "-p", "toolgate-cli"])
        .args(["--features", "published", "--test", "it"])
        .args(["published::", "--", "--nocapture"])
        .env("TOOLGATE_PUBLISHED", install::published_folder());
    let mut rows = Vec::new();
    each_line(&mut run, |line| {
        tests.add_line(line);
        let row = line.strip_prefix("published: ");
        rows.extend(row.and_then(|row| serde_json::from_str::<Value>(row).ok()));
    })?;
    write(&rows)
}

fn read(file: &str) -> Result<String, String> {
    fs::read_to_string(root().join(file)).map_err(|error| format!("cannot read {file}: {error}"))
}

fn write(rows: &[Value]) -> Result<(), String> {
    let text = read(PAGE)?;
    let missing = || format!("{PAGE} has no place for the published servers");
    let (before, rest) = text.split_once(BEGIN).ok_or_else(missing)?;
    let (_, after) = rest.split_once(END).ok_or_else(missing)?;
    let table = table(rows)?;
    fs::write(
        root().join(PAGE),
        format!("{before}{BEGIN}{table}{END}{after}"),
    )
    .map_err(|error| format!("cannot write {PAGE}: {error}"))
}

fn table(rows: &[Value]) -> Result<String, String> {
    let servers: Value = serde_json::from_str(&read(SERVERS)?)
        .map_err(|error| format!("{SERVERS} is no JSON: {error}"))?;
    let mut text = String::from(
        "| server | release | written with | tools | resources | prompts | calls | differences |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    let mut used = BTreeSet::new();
    for entry in servers["servers"].as_array().into_iter().flatten() {
        let name = entry["name"].as_str().unwrap_or_default();
        let row = rows.iter().find(|row| row["name"] == name);
        let row = row.ok_or_else(|| format!("{name} was not compared"))?;
        let differences = row["differences"].as_array().into_iter().flatten();
        let ids: BTreeSet<&str> = differences.filter_map(Value::as_str).collect();
        let shown: Vec<&str> = ids.iter().copied().collect();
        used.extend(ids);
        let release = release(entry)?;
        let cells = ["tools", "resources", "prompts", "calls"].map(|cell| row[cell].to_string());
        let _ = writeln!(
            text,
            "| {name} | {release} | {} | {} | {} |",
            row["by"].as_str().unwrap_or_default(),
            cells.join(" | "),
            shown.join(", "),
        );
    }
    text.push_str("\nThe differences:\n\n");
    let entries = servers["servers"].as_array().into_iter().flatten();
    let own = entries.flat_map(|entry| entry["differences"].as_array().into_iter().flatten());
    let all = servers["general"]
        .as_array()
        .into_iter()
        .flatten()
        .chain(own);
    let mut told = BTreeSet::new();
    for known in all {
        let [id, reason] = ["id", "reason"].map(|key| known[key].as_str().unwrap_or_default());
        if used.contains(id) && told.insert(id) {
            let _ = writeln!(text, "- **{id}**: {reason}");
        }
    }
    Ok(text)
}

/// The release of a server, by the file that pins it.
fn release(entry: &Value) -> Result<String, String> {
    let name = entry["name"].as_str().unwrap_or_default();
    let set = entry["run"][0].as_str().unwrap_or_default();
    let unpinned = || format!("nothing pins {name}");
    if set == "node" {
        let package: Value = serde_json::from_str(&read("interop/published/package.json")?)
            .map_err(|error| error.to_string())?;
        let version = package["dependencies"][name]
            .as_str()
            .ok_or_else(unpinned)?;
        return Ok(format!("npm {version}"));
    }
    let pins = read(&format!("interop/published/requirements-{set}.txt"))?;
    let version = pins
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix("=="));
    Ok(format!("PyPI {}", version.ok_or_else(unpinned)?))
}
