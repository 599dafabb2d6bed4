//! Demo server: one tool for every rule decision. It runs as a child process of the gateway, like any other server.

mod tools;

use std::{
    collections::BTreeMap,
    process::ExitCode,
    sync::{Arc, Mutex},
};
use toolgate::edge::{ProtocolServer, ServerCapabilities, ServerLimits, standard, stdio};
use toolgate_core::{
    BoxFuture, Call, Caller, Catalog, ChangeCounters, ChangeFilter, ChangeStream, Definition,
    Error, ErrorKind, Item, ItemKind, Json, ListRequest, Op, Origin, Outcome, Service,
};

/// Serves the demo tools on stdin and stdout until stdin ends.
pub(crate) async fn run() -> ExitCode {
    let service = Arc::new(DemoService::new());
    let mut offered = ServerCapabilities::default();
    offered.resources = false;
    offered.subscribe = false;
    offered.prompts = false;
    offered.completions = false;
    let server = match ProtocolServer::new(
        service,
        "toolgate-demo",
        env!("CARGO_PKG_VERSION"),
        ServerLimits::default(),
    ) {
        Ok(server) => Arc::new(server.with_capabilities(offered)),
        Err(error) => {
            eprintln!("toolgate demo-server: {error}");
            return ExitCode::FAILURE;
        }
    };
    let (input, output) = standard::streams();
    match stdio::serve(server, Caller::new("stdio"), input, output).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("toolgate demo-server: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Demo service: the tools, and notes that live as long as the process.
pub(crate) struct DemoService {
    catalog: Catalog,
    notes: Mutex<BTreeMap<String, String>>,
    stale: tokio::sync::watch::Sender<ChangeCounters>,
}

impl DemoService {
    fn new() -> DemoService {
        let origin = Origin {
            server: "demo".into(),
            trusted: true,
        };
        let read =
            |definition: serde_json::Value| Definition::tool(Json::from_value(&definition)).ok();
        let tools = tools::definitions().into_iter().filter_map(read);
        let items = tools
            .map(|tool| Arc::new(Item::new(origin.clone(), tool)))
            .collect();
        let notes = BTreeMap::from([("shopping".to_owned(), "milk, bread".to_owned())]);
        DemoService {
            catalog: Catalog::new(items),
            notes: Mutex::new(notes),
            stale: Default::default(),
        }
    }
}

impl Service for DemoService {
    fn list(&self, ask: ListRequest) -> BoxFuture<'_, Result<Catalog, Error>> {
        let tools = (ask.kind == ItemKind::Tool).then(|| self.catalog.clone());
        Box::pin(async { Ok(tools.unwrap_or_default()) })
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(async move {
            if call.op != Op::Tool || self.catalog.find(call.name()).is_none() {
                return Err(call.unknown_item_error());
            }
            tools::call(self, &call).await
        })
    }

    fn changes(&self, _: ChangeFilter) -> BoxFuture<'_, Result<ChangeStream, Error>> {
        Box::pin(async { Ok(ChangeStream::new(self.stale.subscribe())) })
    }
}

/// Returns an invalid-arguments error: the demo server has no policy layers, so it checks its arguments itself.
fn invalid(text: &'static str) -> Error {
    Error::new(ErrorKind::InvalidArguments(Vec::new()), text)
}
