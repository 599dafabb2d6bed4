//! Demo server: one tool for every rule decision. It runs as a child process of the gateway, like any other server.

mod tools;

use super::tool_server;
use std::{
    collections::BTreeMap,
    process::ExitCode,
    sync::{Arc, Mutex},
};
use toolgate_core::{
    BoxFuture, Call, Catalog, ChangeCounters, ChangeFilter, ChangeStream, Error, ErrorKind,
    ItemKind, ListRequest, Op, Outcome, Service,
};

/// Serves the demo tools on stdin and stdout until stdin ends.
pub(crate) async fn run() -> ExitCode {
    tool_server::serve(Arc::new(DemoService::new()), "toolgate-demo").await
}

/// Demo service: the tools, and notes that live as long as the process.
pub(crate) struct DemoService {
    catalog: Catalog,
    notes: Mutex<BTreeMap<String, String>>,
    stale: tokio::sync::watch::Sender<ChangeCounters>,
}

impl DemoService {
    fn new() -> DemoService {
        let notes = BTreeMap::from([("shopping".to_owned(), "milk, bread".to_owned())]);
        DemoService {
            catalog: tool_server::catalog("demo", tools::definitions()),
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
