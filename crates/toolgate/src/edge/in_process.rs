//! In-process tool calls by the operator, from the console or the command line.

use super::{
    ProtocolServer,
    call::RequestContext,
    input_rounds::{self, RoundsOutcome},
};
use std::sync::{Arc, OnceLock};
use toolgate_core::{
    Call, CallReporter, Caller, ClientCapabilities, DecisionLog, Error, ErrorKind, RequestInfo,
    TaskControl, ToolResult,
};
use toolgate_protocol::{dialect, json::Json, method::trace::TraceContext};

/// Calls a tool of a server in the same process as `caller`, through the same pipeline as a call from a client. Waits
/// if the call needs approval.
///
/// # Errors
/// The errors of the pipeline, and [`ErrorKind::MissingCapability`] if the tool itself requests input.
#[doc(hidden)]
pub async fn call_in_process(
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
        capabilities: abilities,
        client: None,
        log_level: None,
        progress_token: None,
        trace: TraceContext::default(),
        connection: None,
        received_lists: None,
        session_tasks: None,
        decision_log: DecisionLog::default(),
        address: None,
        transport_parts: None,
        transport_trace: None,
        span: OnceLock::new(),
    };
    // Dropping the frames would close the responder, and a closed responder means that the caller disconnected.
    let (responder, _frames) = server.responder(&caller);
    let mut call = Call::tool(crate::ids::call_id(), caller, tool, arguments);
    call.reporter = reporter;
    // Supports tasks: a tool that must run as a task can run, and this caller waits for it.
    call.task_control = TaskControl::new().0;
    let mut info = RequestInfo::default();
    info.revision = dialect.revision.into();
    info.transport = transport;
    call.request_info = Arc::new(info);
    let first = call.clone();
    let again = || Ok(first.clone());
    match input_rounds::run_rounds(server, &context, call, &again, &responder, None).await? {
        RoundsOutcome::Completed(output) => Ok(output.into_tool().unwrap_or_default()),
        RoundsOutcome::InputRequired(..) => Err(Error::new(
            ErrorKind::MissingCapability(toolgate_core::RequiredCapability::Elicitation),
            "this tool requests input from a user during the call, which calls from the console and the command line do not support; call it with an MCP client",
        )),
    }
}
