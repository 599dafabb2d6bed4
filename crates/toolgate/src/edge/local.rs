//! A call from within this process: the operator's own, from the console or the command line.

use super::{
    Front,
    ask::{self, Left},
    call::Context,
};
use std::sync::Arc;
use toolgate_core::{
    Abilities, Background, Call, Caller, Error, Kind, Reporter, Seen, ToolResult, Trail,
};
use toolgate_wire::{dialect, json::Json, method::trace::TraceContext};

/// Uses a tool as `caller`, through the same pipeline as everybody. Waits where a person has to approve.
///
/// # Errors
/// Those of the pipeline; [`Kind::Unsupported`] where the tool itself asks something.
pub async fn call_here(
    server: &Front,
    caller: Caller,
    transport: &'static str,
    tool: &str,
    arguments: Json,
    reporter: Reporter,
) -> Result<ToolResult, Error> {
    let abilities = Abilities::default();
    let dialect = dialect::MODERN;
    let context = Context {
        caller: caller.clone(),
        transport,
        dialect,
        abilities,
        client: None,
        log_level: None,
        progress: None,
        trace: TraceContext::default(),
        link: None,
        session: None,
        trail: Trail::default(),
    };
    // Held open so that the caller does not read as gone.
    let (outlet, _frames) = server.outlet(&caller);
    let mut call = Call::tool(crate::ids::call(), caller, tool, arguments);
    call.reporter = reporter;
    // It is waited for, however long it takes.
    call.background = Background::new().0;
    call.seen = Arc::new(Seen {
        revision: dialect.revision.into(),
        transport,
        client: None,
        request: None,
    });
    let first = call.clone();
    let again = || Ok(first.clone());
    match ask::rounds(server, &context, call, &again, &outlet, None).await? {
        Left::Done(output) => Ok(output.into_tool().unwrap_or_default()),
        Left::Questions(..) => Err(Error::new(
            Kind::Unsupported(toolgate_core::Need::Elicitation),
            "this tool asks a question, and nobody can be asked here",
        )),
    }
}
