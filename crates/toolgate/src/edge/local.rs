//! In-process tool calls by the operator, from the console or the command line.

use super::{
    ProtocolServer,
    ask::{self, RoundsOutcome},
    call::RequestContext,
};
use std::sync::Arc;
use toolgate_core::{
    Call, CallReporter, Caller, ClientCapabilities, DecisionLog, Error, ErrorKind, RequestInfo,
    TaskControl, ToolResult,
};
use toolgate_wire::{dialect, json::Json, method::trace::TraceContext};

/// Calls a tool as `caller`, through the same pipeline as every other call. Waits if the call needs approval.
///
/// # Errors
/// The errors of the pipeline, and [`ErrorKind::Unsupported`] if the tool itself requests input.
pub async fn call_here(
    server: &ProtocolServer,
    caller: Caller,
    transport: &'static str,
    tool: &str,
    arguments: Json,
    reporter: CallReporter,
) -> Result<ToolResult, Error> {
    let abilities = ClientCapabilities::default();
    let dialect = dialect::MODERN;
    let context = RequestContext {
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
        trail: DecisionLog::default(),
    };
    // Dropping the frames would close the outlet, and a closed outlet means that the caller disconnected.
    let (outlet, _frames) = server.outlet(&caller);
    let mut call = Call::tool(crate::ids::call(), caller, tool, arguments);
    call.reporter = reporter;
    // Supports tasks: a tool that must run as a task can run, and this caller waits for it.
    call.background = TaskControl::new().0;
    call.seen = Arc::new(RequestInfo {
        revision: dialect.revision.into(),
        transport,
        client: None,
        request: None,
    });
    let first = call.clone();
    let again = || Ok(first.clone());
    match ask::rounds(server, &context, call, &again, &outlet, None).await? {
        RoundsOutcome::Done(output) => Ok(output.into_tool().unwrap_or_default()),
        RoundsOutcome::Questions(..) => Err(Error::new(
            ErrorKind::Unsupported(toolgate_core::RequiredCapability::Elicitation),
            "this tool requests input, which is not available here",
        )),
    }
}
