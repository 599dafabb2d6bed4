//! Sources of the hello-world servers whose footprints are compared.

use std::fs;

use crate::run::root;

/// Server to build: a row of the table.
pub(super) struct HelloServer {
    /// Name in the table.
    pub(super) name: String,
    /// Name of its folder.
    pub(super) folder: &'static str,
    pub(super) source: String,
    /// Lines of the manifest below `[dependencies]`.
    pub(super) dependencies: String,
}

/// Axum as both crates need it to serve HTTP.
const AXUM: &str =
    "axum = { version = \"0.8\", default-features = false, features = [\"http1\", \"tokio\"] }\n";
/// Further dependencies of a server with rmcp, as its documentation shows.
const RMCP_MORE: &str = "schemars = \"1\"\nserde = { version = \"1\", features = [\"derive\"] }\n";

const OUR_TOOL: &str = r#"use toolgate::{Server, tool};

/// Greets someone.
#[tool(read_only)]
fn greet(name: String) -> String {
    format!("hello {name}")
}
"#;

const RMCP_TOOL: &str = r#"use rmcp::{
    ServerHandler, handler::server::wrapper::Parameters, tool, tool_handler, tool_router,
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
"#;

const OUR_STDIO: &str = r#"toolgate::stdio(Server::new("hello", "1.0.0").tool(greet)).await?;"#;
const OUR_HTTP: &str = r#"let service = toolgate::http(Server::new("hello", "1.0.0").tool(greet))?;
    let app = axum::Router::new().nest_service("/mcp", service);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:8000").await?;
    axum::serve(listener, app).await?;"#;
const RMCP_STDIO: &str =
    "rmcp::ServiceExt::serve(Hello, rmcp::transport::stdio()).await?.waiting().await?;";
const RMCP_HTTP: &str = r#"use rmcp::transport::streamable_http_server::{
        StreamableHttpService, session::local::LocalSessionManager,
    };
    let sessions = std::sync::Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(|| Ok(Hello), sessions, Default::default());
    let app = axum::Router::new().nest_service("/mcp", service);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:8000").await?;
    axum::serve(listener, app).await?;"#;

/// Returns the servers. The first is the one with limits.
///
/// # Errors
/// The version of rmcp cannot be read.
pub(super) fn all(library: &str, patches: &str) -> Result<Vec<HelloServer>, String> {
    let rmcp = rmcp_version()?;
    let ours = |features: &str, more: &str| {
        let own = format!(
            "toolgate = {{ version = \"{library}\", default-features = false, features = [{features}] }}\n"
        );
        own + more + patches
    };
    let theirs = |features: &str, more: &str| {
        let own = format!(
            "rmcp = {{ version = \"={rmcp}\", default-features = false, features = [{features}] }}\n"
        );
        own + RMCP_MORE + more
    };
    let server = |name: String, folder, tool: &str, body: &str, dependencies| HelloServer {
        name,
        folder,
        source: program(tool, body),
        dependencies,
    };
    Ok(vec![
        server(
            "stdio, toolgate with `macros`, `stdio`".to_owned(),
            "our-stdio",
            OUR_TOOL,
            OUR_STDIO,
            ours("\"macros\", \"stdio\"", ""),
        ),
        server(
            format!("stdio, rmcp {rmcp} with `macros`, `server`, `transport-io`"),
            "rmcp-stdio",
            RMCP_TOOL,
            RMCP_STDIO,
            theirs("\"macros\", \"server\", \"transport-io\"", ""),
        ),
        server(
            "HTTP, toolgate with `macros`, `http-server`".to_owned(),
            "our-http",
            OUR_TOOL,
            OUR_HTTP,
            ours("\"macros\", \"http-server\"", AXUM),
        ),
        server(
            format!(
                "HTTP, rmcp {rmcp} with `macros`, `server`, `transport-streamable-http-server`"
            ),
            "rmcp-http",
            RMCP_TOOL,
            RMCP_HTTP,
            theirs(
                "\"macros\", \"server\", \"transport-streamable-http-server\"",
                AXUM,
            ),
        ),
    ])
}

fn program(tool: &str, body: &str) -> String {
    format!(
        "{tool}\n#[tokio::main(flavor = \"current_thread\")]\n\
         async fn main() -> Result<(), Box<dyn std::error::Error>> {{\n    {body}\n    Ok(())\n}}\n"
    )
}

/// Returns the version of rmcp that the benchmark pins.
fn rmcp_version() -> Result<String, String> {
    let path = "bench/Cargo.toml";
    let manifest =
        fs::read_to_string(root().join(path)).map_err(|error| format!("{path}: {error}"))?;
    let pinned = manifest.split_once("rmcp = { version = \"=");
    let version = pinned.and_then(|(_, rest)| rest.split_once('"'));
    version
        .map(|(version, _)| version.to_owned())
        .ok_or_else(|| format!("{path} pins no version of rmcp"))
}
