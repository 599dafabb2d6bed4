//! The software bill of materials: a CycloneDX file of the crates that the program of a platform links.
//!
//! It comes from `cargo tree`, which knows the dependencies and features of one package for one target, and from the
//! lock file. `cargo metadata` unites the features of the workspace, and the published generators read it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use super::{DistPlatform, DistRelease, read, write};
use crate::first_use::tool_home;
use crate::run::{cargo, command, output};

/// Line format of `cargo tree`, behind the depth: package, license, repository.
const TREE_FORMAT: &str = "{p}|{l}|{r}";

/// Writes the file for the program of a platform.
pub(super) fn write_bom(release: &DistRelease, platform: &DistPlatform) -> Result<(), String> {
    let tree = output(
        cargo()
            .args([
                "tree",
                "--locked",
                "-p",
                "toolgate-cli",
                "-e",
                "normal,no-proc-macro",
            ])
            .args([
                "--target",
                platform.target,
                "--prefix",
                "depth",
                "--format",
                TREE_FORMAT,
            ])
            .current_dir(&release.source),
    )?;
    let crates = CrateGraph::read(&tree, &read(&release.source.join("Cargo.lock"))?)?;
    let line =
        |command: &mut std::process::Command| Ok::<_, String>(output(command)?.trim().to_owned());
    let when = format!("@{}", release.epoch);
    let time = line(command("date").args(["--utc", "--date", &when, "+%Y-%m-%dT%H:%M:%SZ"]))?;
    let rustc = line(
        command("rustc")
            .arg("--version")
            .current_dir(&release.source),
    )?;
    let commit = line(
        command("git")
            .args(["rev-parse", "HEAD"])
            .current_dir(&release.source),
    )?;
    let bundled = [
        ("sqlite", crates.sqlite_version()?),
        (
            "rust-std",
            rustc.split(' ').nth(1).unwrap_or_default().to_owned(),
        ),
    ];
    let bom = crates.bom(&release.version, &commit, &time, &rustc, &bundled);
    let file = release
        .output
        .join(format!("{}.cdx.json", release.name(platform)));
    write(&file, &format!("{bom:#}\n"))
}

/// The crates of a program, by package URL, and what each depends on.
struct CrateGraph {
    /// Package URL of the program.
    root: String,
    components: BTreeMap<String, Value>,
    dependencies: BTreeMap<String, BTreeSet<String>>,
}

impl CrateGraph {
    /// Reads the output of `cargo tree --prefix depth`, and the checksums of a lock file.
    fn read(tree: &str, lock: &str) -> Result<Self, String> {
        let mut graph = Self {
            root: String::new(),
            components: BTreeMap::new(),
            dependencies: BTreeMap::new(),
        };
        let checksums = checksums(lock);
        let mut path: Vec<String> = Vec::new();
        for line in tree.lines() {
            let unreadable = || format!("cargo tree: unexpected line: {line}");
            let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (depth, rest) = line.split_at(digits);
            let depth: usize = depth.parse().map_err(|_| unreadable())?;
            // A crate whose dependencies were listed before has a mark behind the last field.
            let fields: Vec<&str> = rest.trim_end_matches(" (*)").split('|').collect();
            let [package, license, repository] = fields[..] else {
                return Err(unreadable());
            };
            let (name, version) = package.split_once(" v").ok_or_else(unreadable)?;
            let version = version.split(' ').next().unwrap_or(version);
            let url = format!("pkg:cargo/{name}@{}", version.replace('+', "%2B"));
            path.truncate(depth);
            match path.last() {
                Some(parent) => {
                    let known = graph.dependencies.entry(parent.clone()).or_default();
                    known.insert(url.clone());
                }
                None => graph.root.clone_from(&url),
            }
            path.push(url.clone());
            graph.dependencies.entry(url.clone()).or_default();
            let checksum = checksums.get(&(name, version)).copied();
            let component = component(name, version, &url, license, repository, checksum);
            graph.components.insert(url, component);
        }
        Ok(graph)
    }

    /// Version of the C library that `libsqlite3-sys` brings along.
    fn sqlite_version(&self) -> Result<String, String> {
        let prefix = "pkg:cargo/libsqlite3-sys@";
        let version = self
            .components
            .keys()
            .find_map(|url| url.strip_prefix(prefix));
        let version = version.ok_or("the program has no libsqlite3-sys")?;
        let registries = tool_home("CARGO_HOME", ".cargo").join("registry/src");
        let registries = std::fs::read_dir(&registries).map_err(|error| error.to_string())?;
        let header = format!("libsqlite3-sys-{version}/sqlite3/sqlite3.h");
        let found = registries
            .flatten()
            .map(|entry| entry.path().join(&header))
            .find(|file| file.is_file());
        let text = read(found.as_deref().unwrap_or(Path::new(&header)))?;
        let line = text
            .lines()
            .find(|line| line.starts_with("#define SQLITE_VERSION "));
        let version = line.and_then(|line| line.split('"').nth(1));
        version
            .map(str::to_owned)
            .ok_or(format!("{header} names no version"))
    }

    fn bom(
        mut self,
        version: &str,
        commit: &str,
        time: &str,
        rustc: &str,
        bundled: &[(&str, String)],
    ) -> Value {
        let _ = self.components.remove(&self.root);
        for (name, version) in bundled {
            let url = format!("pkg:generic/{name}@{version}");
            let library = json!({
                "type": "library", "bom-ref": &url, "name": name, "version": version, "purl": &url,
            });
            self.components.insert(url, library);
        }
        let edges = self.dependencies.iter();
        let edges = edges.map(|(from, to)| json!({ "ref": from, "dependsOn": to }));
        json!({
            "bomFormat": "CycloneDX",
            "specVersion": "1.5",
            "version": 1,
            "metadata": {
                "timestamp": time,
                "tools": { "components": [{ "type": "application", "name": "cargo xtask dist" }] },
                "component": {
                    "type": "application",
                    "bom-ref": self.root,
                    "name": "toolgate",
                    "version": version,
                    "purl": self.root,
                    "licenses": [{ "expression": "Apache-2.0" }],
                    "properties": [
                        { "name": "commit", "value": commit },
                        { "name": "compiler", "value": rustc },
                    ],
                },
            },
            "components": self.components.values().collect::<Vec<_>>(),
            "dependencies": edges.collect::<Vec<_>>(),
        })
    }
}

fn component(
    name: &str,
    version: &str,
    url: &str,
    license: &str,
    repository: &str,
    checksum: Option<&str>,
) -> Value {
    let mut component = json!({
        "type": "library", "bom-ref": url, "name": name, "version": version, "purl": url, "scope": "required",
    });
    if !license.is_empty() {
        // The slash is an old way to write `OR`, which is no SPDX expression.
        component["licenses"] = json!([{ "expression": license.replace('/', " OR ") }]);
    }
    if !repository.is_empty() {
        component["externalReferences"] = json!([{ "type": "vcs", "url": repository }]);
    }
    if let Some(checksum) = checksum {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    component
}

/// Checksums of a lock file by name and version.
fn checksums(lock: &str) -> BTreeMap<(&str, &str), &str> {
    lock.split("[[package]]")
        .filter_map(|block| {
            let value = |key: &str| {
                let line = block
                    .lines()
                    .find(|line| line.starts_with(&format!("{key} = ")))?;
                line.split('"').nth(1)
            };
            Some(((value("name")?, value("version")?), value("checksum")?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "\
0top v0.1.0 (/here/top)|Apache-2.0|https://example.com/top
1one v1.0.0|MIT/Apache-2.0|https://example.com/one
2two v2.0.0+zstd.1|MIT|
1two v2.0.0+zstd.1|MIT| (*)
";
    const LOCK: &str =
        "version = 4\n\n[[package]]\nname = \"one\"\nversion = \"1.0.0\"\nchecksum = \"ab\"\n";

    #[test]
    fn the_bom_lists_each_crate_once_with_its_dependencies() {
        let graph = CrateGraph::read(TREE, LOCK).unwrap();
        let bom = graph.bom(
            "0.1.0",
            "c0ffee",
            "2026-01-01T00:00:00Z",
            "rustc 1",
            &[("sqlite", "3".to_owned())],
        );
        let names: Vec<&str> = bom["components"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|c| c["name"].as_str())
            .collect();
        assert_eq!(names, ["one", "two", "sqlite"]);
        assert_eq!(
            bom["components"][0]["licenses"][0]["expression"],
            "MIT OR Apache-2.0"
        );
        assert_eq!(bom["components"][0]["hashes"][0]["content"], "ab");
        let top = &bom["dependencies"][1];
        assert_eq!(top["ref"], "pkg:cargo/top@0.1.0");
        assert_eq!(
            top["dependsOn"],
            json!(["pkg:cargo/one@1.0.0", "pkg:cargo/two@2.0.0%2Bzstd.1"])
        );
    }

    #[test]
    fn an_unexpected_line_of_cargo_tree_is_an_error() {
        assert!(CrateGraph::read("0top|MIT\n", LOCK).is_err());
    }
}
