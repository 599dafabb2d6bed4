//! A hello world in an empty folder, from the packages and the registry alone.

use std::fs;
use std::path::Path;

use super::footprint;
use crate::run::{command, must, output, target};

/// Beginning of the manifest.
const HEAD: &str = r#"[package]
name = "hello-world"
version = "0.1.0"
edition = "2024"

[workspace]

[dependencies]
serde_json = "1"
tokio = { version = "1", features = ["macros", "rt"] }
"#;

/// The program: a server with one tool, which a client in the same process calls.
const MAIN: &str = r#"use toolgate::{Client, Server, tool};

/// Greets someone.
#[tool(read_only)]
fn greet(name: String) -> String {
    format!("hello {name}")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::new("hello", "1.0.0").tool(greet);
    let client = Client::in_process(server).await?;
    let arguments: serde_json::Value = serde_json::from_str("{\"name\": \"world\"}")?;
    println!("{}", client.call("greet", arguments).await?.text());
    Ok(())
}
"#;

/// Puts the unpacked packages beside a new program in an empty folder, builds and runs the program, and writes the
/// footprints of small servers beside those of the same servers with rmcp into a page.
///
/// # Errors
/// A package is missing, or the program does not build, prints something else, or exceeds a limit.
pub(super) fn run(packages: &Path) -> Result<(), String> {
    in_folder(|folder| {
        let (library, patches) = copy_packages(folder, packages)?;
        say_hello(folder, &library, &patches)?;
        footprint::compare(folder, &library, &patches)
    })
}

/// Writes the footprints of small servers into a page, without the program.
///
/// # Errors
/// A server does not build or exceeds a limit.
pub(super) fn measure(packages: &Path) -> Result<(), String> {
    in_folder(|folder| {
        let (library, patches) = copy_packages(folder, packages)?;
        footprint::compare(folder, &library, &patches)
    })
}

/// Runs a step in an empty folder, and removes it.
fn in_folder(step: impl FnOnce(&Path) -> Result<(), String>) -> Result<(), String> {
    let folder = target().join("hello-world");
    // An interrupted run leaves it behind.
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|error| error.to_string())?;
    }
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let outcome = step(&folder);
    fs::remove_dir_all(&folder).map_err(|error| error.to_string())?;
    outcome
}

/// Copies the unpacked packages beside the programs. Returns the version of the library, and the lines of a manifest
/// that replace the packages of the registry.
fn copy_packages(folder: &Path, packages: &Path) -> Result<(String, String), String> {
    let told = |error: std::io::Error| error.to_string();
    let (mut library, mut patches) = (String::new(), String::from("\n[patch.crates-io]\n"));
    for entry in fs::read_dir(packages).map_err(told)? {
        let package = entry.map_err(told)?.path();
        let stem = package
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        // `toolgate-core-0.1.0`: the folder in which cargo built the package.
        let Some((name, version)) = stem
            .rsplit_once('-')
            .filter(|_| package.join("Cargo.toml").is_file())
        else {
            continue;
        };
        must(command("cp").arg("-R").arg(&package).arg(folder))?;
        patches += &format!("{name} = {{ path = \"../{stem}\" }}\n");
        if name == "toolgate" {
            library = version.to_owned();
        }
    }
    Ok((library, patches))
}

/// Builds and runs the program.
fn say_hello(folder: &Path, library: &str, patches: &str) -> Result<(), String> {
    let told = |error: std::io::Error| error.to_string();
    let program = folder.join("hello");
    fs::create_dir_all(program.join("src")).map_err(told)?;
    fs::write(program.join("src/main.rs"), MAIN).map_err(told)?;
    let manifest = format!("{HEAD}toolgate = \"{library}\"\n{patches}");
    fs::write(program.join("Cargo.toml"), manifest).map_err(told)?;
    footprint::fetch(&program)?;
    let said = output(footprint::cargo_in(&program).args(["run", "--quiet", "--offline"]))?;
    fs::remove_dir_all(&program).map_err(told)?;
    if said.trim() != "hello world" {
        return Err(format!(
            "the program prints {said:?} instead of \"hello world\""
        ));
    }
    Ok(())
}
