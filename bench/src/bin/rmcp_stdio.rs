//! The Rust SDK of the specification's project, as its papers say: over stdio, or with `--http` over HTTP.

use hyper_util::service::TowerToHyperService;
use rmcp::{
    ServerHandler, ServiceExt,
    handler::server::{router::tool::ToolRouter, wrapper::Parameters},
    model::{ServerCapabilities, ServerConfig},
    tool, tool_handler, tool_router,
    transport::streamable_http_server::{
        StreamableHttpService, session::local::LocalSessionManager,
    },
};
use std::sync::Arc;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    /// The text.
    text: String,
}

#[derive(Clone)]
struct Bench {
    tool_router: ToolRouter<Bench>,
}

#[tool_router]
impl Bench {
    /// Says the text again.
    #[tool]
    async fn echo(&self, Parameters(Echo { text }): Parameters<Echo>) -> String {
        text
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Bench {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let bench = Bench {
        tool_router: Bench::tool_router(),
    };
    if std::env::args().any(|word| word == "--http") {
        let each = move || Ok(bench.clone());
        let sessions = Arc::new(LocalSessionManager::default());
        let http = StreamableHttpService::new(each, sessions, Default::default());
        toolgate_bench::serve_http(move || TowerToHyperService::new(http.clone())).await?;
        return Ok(());
    }
    bench
        .serve(rmcp::transport::io::stdio())
        .await?
        .waiting()
        .await?;
    Ok(())
}
