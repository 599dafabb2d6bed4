//! Metadata that each published crate has.

use std::path::Path;

use serde_json::Value;

use crate::run::{cargo, output, root};

/// Checks the manifest of each crate that is published.
///
/// # Errors
/// A crate lacks metadata, a README or the license text, or a dependency keeps it from being published.
pub(crate) fn check_manifests() -> Result<(), String> {
    let text =
        output(cargo().args(["metadata", "--no-deps", "--format-version", "1", "--locked"]))?;
    let metadata: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let packages = metadata["packages"]
        .as_array()
        .ok_or("cargo metadata lists no packages")?;
    let published: Vec<&Value> = packages
        .iter()
        .filter(|package| package["publish"] != Value::Array(Vec::new()))
        .collect();
    let mut wrong: Vec<String> = published
        .iter()
        .flat_map(|package| problems(package))
        .collect();
    wrong.extend(publishing_order(&published).err());
    let book =
        std::fs::read_to_string(root().join("book.toml")).map_err(|error| error.to_string())?;
    let repository = published
        .first()
        .and_then(|package| package["repository"].as_str());
    if !repository
        .is_some_and(|address| book.contains(&format!("git-repository-url = \"{address}\"")))
    {
        wrong.push("book.toml and Cargo.toml name different repositories".to_owned());
    }
    match wrong.is_empty() {
        true => {
            println!("{} crates can be published", published.len());
            Ok(())
        }
        false => Err(wrong.join("\n")),
    }
}

fn problems(package: &Value) -> Vec<String> {
    let name = package["name"].as_str().unwrap_or_default();
    let mut wrong = Vec::new();
    let texts = [
        "description",
        "license",
        "readme",
        "repository",
        "documentation",
        "rust_version",
    ];
    for key in texts
        .iter()
        .filter(|key| package[**key].as_str().is_none_or(str::is_empty))
    {
        wrong.push(format!("{name}: Cargo.toml has no {key}"));
    }
    let count = |key: &str| package[key].as_array().map_or(0, Vec::len);
    for key in ["keywords", "categories"]
        .iter()
        .filter(|key| !(1..=5).contains(&count(key)))
    {
        wrong.push(format!(
            "{name}: Cargo.toml has {} {key}; 1 to 5 are allowed",
            count(key)
        ));
    }
    let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
    let folder = manifest.parent().unwrap_or(manifest);
    for file in ["README.md", "LICENSE"]
        .iter()
        .filter(|file| !folder.join(file).is_file())
    {
        wrong.push(format!("{name}: has no {file}"));
    }
    wrong
}

/// Checks that the crates can be published one after the other: a dependency with a version has to be published first.
fn publishing_order(published: &[&Value]) -> Result<(), String> {
    let name = |package: &Value| package["name"].as_str().unwrap_or_default().to_owned();
    let own: Vec<String> = published.iter().map(|package| name(package)).collect();
    let needs = |package: &Value| -> Vec<String> {
        let all = package["dependencies"].as_array().into_iter().flatten();
        // A dev-dependency without a version is left out of the package.
        all.filter(|one| one["path"].is_string() && (one["kind"] != "dev" || one["req"] != "*"))
            .map(name)
            .collect()
    };
    let mut left: Vec<&Value> = published.to_vec();
    while !left.is_empty() {
        let waiting: Vec<String> = left.iter().map(|package| name(package)).collect();
        let before = left.len();
        left.retain(|package| {
            needs(package)
                .iter()
                .any(|need| waiting.contains(need) || !own.contains(need))
        });
        if left.len() == before {
            return Err(format!(
                "these crates cannot be published: {}; they need each other, or a crate that is not published",
                waiting.join(", ")
            ));
        }
    }
    Ok(())
}
