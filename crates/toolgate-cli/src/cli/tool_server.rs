//! Servers of this program: tools over standard input and output, for a gateway that starts the program as a child.

use std::{process::ExitCode, sync::Arc};
use toolgate::edge::{ProtocolServer, ServerCapabilities, ServerLimits, standard, stdio};
use toolgate_core::{Caller, Catalog, Definition, Item, Json, Origin, Service};

/// Serves tools on stdin and stdout until stdin ends. `name` is the name of the server in the handshake.
pub(super) async fn serve(service: Arc<dyn Service>, name: &str) -> ExitCode {
    let mut offered = ServerCapabilities::default();
    offered.resources = false;
    offered.subscribe = false;
    offered.prompts = false;
    offered.completions = false;
    let version = env!("CARGO_PKG_VERSION");
    let server = match ProtocolServer::new(service, name, version, ServerLimits::default()) {
        Ok(server) => Arc::new(server.with_capabilities(offered)),
        Err(error) => {
            eprintln!("{name}: {error}");
            return ExitCode::FAILURE;
        }
    };
    let (input, output) = standard::streams();
    match stdio::serve(server, Caller::new("stdio"), input, output).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the catalog of tools with these definitions.
pub(super) fn catalog(server: &str, definitions: Vec<serde_json::Value>) -> Catalog {
    let origin = Origin {
        server: server.into(),
        trusted: true,
    };
    let read = |definition: serde_json::Value| Definition::tool(Json::from_value(&definition)).ok();
    let tools = definitions.into_iter().filter_map(read);
    let items = tools
        .map(|tool| Arc::new(Item::new(origin.clone(), tool)))
        .collect();
    Catalog::new(items)
}
