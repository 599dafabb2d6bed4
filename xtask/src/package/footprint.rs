//! Footprint of a stdio server: crates, size and processor time of a cold build, beside rmcp.

use std::fs;
use std::path::Path;

use crate::run::{cargo, command, must, output};

/// Maximum number of crates of the server with the features `stdio` and `macros`.
const MAX_CRATES: usize = 75;
/// Maximum size of its stripped debug build, in bytes.
const MAX_STRIPPED_BYTES: u64 = 8_000_000;

const OUR_SERVER: &str = r#"use toolgate::{Server, tool};

/// Greets someone.
#[tool(read_only)]
fn greet(name: String) -> String {
    format!("hello {name}")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    toolgate::stdio(Server::new("hello", "1.0.0").tool(greet)).await?;
    Ok(())
}
"#;

const RMCP_DEPENDENCIES: &str = r#"rmcp = { version = "=3.11.0", features = ["macros", "server", "transport-io"] }
schemars = "1"
serde = { version = "1", features = ["derive"] }
"#;

const RMCP_SERVER: &str = r#"use rmcp::{
    ServerHandler, ServiceExt, handler::server::wrapper::Parameters, tool, tool_handler, tool_router,
};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Greeting {
    name: String,
}

#[derive(Clone)]
struct Hello;

#[tool_router]
impl Hello {
    /// Greets someone.
    #[tool]
    fn greet(&self, Parameters(Greeting { name }): Parameters<Greeting>) -> String {
        format!("hello {name}")
    }
}

#[tool_handler]
impl ServerHandler for Hello {}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    Hello.serve(rmcp::transport::stdio()).await?.waiting().await?;
    Ok(())
}
"#;

/// Figures of one program.
struct Footprint {
    name: &'static str,
    crates: usize,
    bytes: u64,
    seconds: f64,
}

/// Builds both servers cold, one after the other, and prints their figures.
///
/// # Errors
/// A server does not build, or ours exceeds a limit.
pub(super) fn compare(folder: &Path, library: &str, patches: &str) -> Result<(), String> {
    let ours = |features: &str| format!("toolgate = {{ version = \"{library}\"{features} }}\n");
    let small = ours(", default-features = false, features = [\"macros\", \"stdio\"]");
    let servers = [
        (
            "toolgate: stdio, macros",
            "small",
            OUR_SERVER,
            small,
            patches,
        ),
        (
            "toolgate: default features",
            "full",
            OUR_SERVER,
            ours(""),
            patches,
        ),
        (
            "rmcp 3.11",
            "rmcp",
            RMCP_SERVER,
            RMCP_DEPENDENCIES.to_owned(),
            "",
        ),
    ];
    let mut all = Vec::new();
    for (name, project, source, dependencies, patches) in servers {
        all.push(measure(
            name,
            &folder.join(project),
            source,
            &(dependencies + patches),
        )?);
    }
    println!("| hello world over stdio | crates | stripped debug build | processor time, cold |");
    println!("| --- | ---: | ---: | ---: |");
    for Footprint {
        name,
        crates,
        bytes,
        seconds,
    } in &all
    {
        let megabytes = *bytes as f64 / 1e6;
        println!("| {name} | {crates} | {megabytes:.1} MB | {seconds:.0} s |");
    }
    match all.first() {
        Some(small) if small.crates > MAX_CRATES || small.bytes > MAX_STRIPPED_BYTES => Err(
            format!("the small server exceeds {MAX_CRATES} crates or {MAX_STRIPPED_BYTES} bytes"),
        ),
        _ => Ok(()),
    }
}

fn measure(
    name: &'static str,
    project: &Path,
    source: &str,
    dependencies: &str,
) -> Result<Footprint, String> {
    let told = |error: std::io::Error| format!("{}: {error}", project.display());
    fs::create_dir_all(project.join("src")).map_err(told)?;
    fs::write(project.join("src/main.rs"), source).map_err(told)?;
    let manifest = format!(
        "[package]\nname = \"hello\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [profile.dev]\ndebug = \"line-tables-only\"\n\n[dependencies]\n\
         tokio = {{ version = \"1\", features = [\"macros\", \"rt\"] }}\n{dependencies}"
    );
    fs::write(project.join("Cargo.toml"), manifest).map_err(told)?;
    must(cargo().args(["fetch", "--quiet"]).current_dir(project))?;
    let words = [
        "tree", "--quiet", "--edges", "normal", "--prefix", "none", "--format", "{p}",
    ];
    let tree = output(cargo().args(words).current_dir(project))?;
    // The program itself is no dependency; `(*)` marks a repetition.
    let mut crates: Vec<&str> = tree
        .lines()
        .map(|line| line.trim_end_matches(" (*)"))
        .collect();
    crates.sort_unstable();
    crates.dedup();
    let before = child_seconds();
    must(cargo().args(["build", "--quiet"]).current_dir(project))?;
    let seconds = child_seconds() - before;
    let (program, stripped) = (project.join("target/debug/hello"), project.join("stripped"));
    must(command("strip").arg("-o").arg(&stripped).arg(program))?;
    let bytes = fs::metadata(&stripped).map_err(told)?.len();
    Ok(Footprint {
        name,
        crates: crates.len() - 1,
        bytes,
        seconds,
    })
}

/// Returns the processor time of all ended child processes, in seconds; 0 where the system has no `/proc`.
fn child_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // After the name in parentheses: fields 16 and 17 of proc(5), in hundredths of a second.
    let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let ticks = rest.split(' ').skip(13).take(2);
    ticks
        .filter_map(|field| field.parse::<f64>().ok())
        .sum::<f64>()
        / 100.0
}
