//! Calls: from request parameters to a [`Call`], through its rounds, to a response.

use super::{
    ProtocolServer, Rejection, TaskOffer,
    input_rounds::{self, InputRequester, RoundsOutcome},
    received_lists::ReceivedLists,
    responder::{CallReport, Responder},
    response::{self, RequestResult},
    tasks,
};
use std::{
    net::IpAddr,
    sync::{Arc, OnceLock},
};
use toolgate_core::{
    Call, CallReporter, CallSpan, Caller, ClientCapabilities, DecisionLog, Error, ErrorKind,
    HeldPermits, RequestInfo, Round, TransportParts,
};
use toolgate_protocol::{
    dialect::Dialect,
    json::Json,
    message::{Id, RpcError},
    method::{elicitation::InputRequiredResult, operation, trace::TraceContext},
};

/// The context of a request: its caller, its client, and their connection.
#[derive(Clone, Debug)]
pub(crate) struct RequestContext {
    pub(crate) caller: Caller,
    pub(crate) transport: &'static str,
    pub(crate) dialect: &'static Dialect,
    pub(crate) capabilities: ClientCapabilities,
    pub(crate) client: Option<Arc<str>>,
    pub(crate) log_level: Option<u8>,
    /// The progress token of the request.
    pub(crate) progress_token: Option<Json>,
    pub(crate) trace: TraceContext,
    /// The connection whose end cancels its calls, if there is one.
    pub(crate) connection: Option<u64>,
    /// The lists that the client of this connection received. `None` for requests without a connection: their clients
    /// cannot be distinguished.
    pub(crate) received_lists: Option<Arc<ReceivedLists>>,
    /// The tasks whose status is sent on the client's notification stream, if it has one.
    pub(crate) session_tasks: Option<Arc<tasks::SessionTasks>>,
    /// The decision log of the call, shared with the code that cancels it.
    pub(crate) decision_log: DecisionLog,
    /// The address of the client, if the transport knows one.
    pub(crate) address: Option<IpAddr>,
    /// The parts of the request that only its transport knows.
    pub(crate) transport_parts: Option<TransportParts>,
    /// The trace context of the HTTP request, if it differs from that of the message.
    pub(crate) transport_trace: Option<TraceContext>,
    /// The span of the request, if it is traced.
    pub(crate) span: OnceLock<Arc<dyn CallSpan>>,
}

/// The sender of a message: its caller, its address, and the parts of the request that only its transport knows.
#[derive(Clone)]
pub(crate) struct MessageSender {
    pub(crate) caller: Caller,
    pub(crate) address: Option<IpAddr>,
    pub(crate) transport_parts: Option<TransportParts>,
    /// The trace context of the HTTP request, if it has one.
    pub(crate) transport_trace: Option<TraceContext>,
}

impl From<Caller> for MessageSender {
    fn from(caller: Caller) -> MessageSender {
        MessageSender {
            caller,
            address: None,
            transport_parts: None,
            transport_trace: None,
        }
    }
}

/// Runs a `tools/call`, `resources/read`, `prompts/get` or `completion/complete` and returns its response.
pub(crate) async fn handle_operation(
    server: &Arc<ProtocolServer>,
    context: &RequestContext,
    id: &Id,
    method: &str,
    params: Option<&Json>,
    responder: &Responder,
    requester: Option<&dyn InputRequester>,
) -> Result<RequestResult, RpcError> {
    let mut call = match read_call(server, context, id, (method, params)) {
        Ok(call) => call,
        Err((tool, error)) => {
            let refused = context.rejection(method, tool.as_deref(), &error.message);
            Box::pin(server.log_rejection(refused)).await;
            return Err(error);
        }
    };
    let report = || context.new_report(responder);
    // Without a progress token and a log level, no event would be sent.
    let wanted = (context.progress_token.is_some() || context.log_level.is_some()).then(report);
    if let Some(report) = &wanted {
        let logs = report.min_log_level();
        call.reporter = CallReporter::new(report.clone()).with_min_log_level(logs);
    }
    if server.offered.tasks != TaskOffer::None
        && let Some(wish) = Box::pin(tasks::task_trigger(server, context, &call, params)).await?
    {
        let report = wanted.unwrap_or_else(report);
        let answer = Box::pin(tasks::run_call(server, context, call, report, wish)).await;
        return answer.map(RequestResult::Json);
    }
    let _closer = wanted.as_ref().map(|report| report.close_on_drop());
    let first = FirstRound::of(&call, context, (method, params, id));
    let again = || first.rebuild_call();
    let error =
        match input_rounds::run_rounds(server, context, call, &again, responder, requester).await {
            Ok(RoundsOutcome::Completed(output)) => {
                if output.is_error() {
                    context.decision_log.mark_failed();
                }
                return Ok(RequestResult::Output(output));
            }
            Ok(RoundsOutcome::InputRequired(call, questions)) => {
                match input_required_result(server, context, &call, questions) {
                    Ok(asked) => return Ok(RequestResult::Json(asked)),
                    Err(error) => error,
                }
            }
            Err(error) => error,
        };
    let response = failed_response(server, context, &error, (method, params));
    if response.is_ok() {
        context.decision_log.mark_failed();
    }
    response
}

/// Reads the call of a request, with the state of its earlier rounds.
///
/// # Errors
/// The request is invalid. Returns the name of the item if it was read, and the error.
fn read_call(
    server: &ProtocolServer,
    context: &RequestContext,
    id: &Id,
    (method, params): (&str, Option<&Json>),
) -> Result<Call, (Option<String>, RpcError)> {
    let mut read = operation::OperationParams::read(method, params)
        .map_err(|reason| (None, response::invalid_params(reason)))?;
    server
        .check_name_length(&read.name)
        .map_err(|error| (None, error))?;
    let mut call = context.build_call(&mut read, crate::ids::call_id(), id);
    if let Some(params) = params {
        call.held_permits.hold(params);
    }
    match restore_round(server, context, &mut call, read) {
        Ok(()) => Ok(call),
        Err(error) => {
            let error = response::invalid_params(error.public_message());
            Err((Some(call.name().to_owned()), error))
        }
    }
}

/// Returns the response to a failed call. Its parameters are valid; the response needs the name in them.
fn failed_response(
    server: &ProtocolServer,
    context: &RequestContext,
    error: &Error,
    (method, params): (&str, Option<&Json>),
) -> Result<RequestResult, RpcError> {
    let named =
        operation::OperationParams::read(method, params).map_err(response::invalid_params)?;
    let named = (named.op, named.name.as_str());
    response::failed_call_response(error, named, context.dialect, &server.info)
        .map(RequestResult::Json)
}

/// The parts of a call, from which another round of it is made. It holds the memory permits of the first round until
/// the response is ready.
struct FirstRound<'a> {
    context: &'a RequestContext,
    request: (&'a str, Option<&'a Json>, &'a Id),
    id: Arc<str>,
    held_permits: HeldPermits,
    reporter: CallReporter,
    round_number: u32,
}

impl<'a> FirstRound<'a> {
    fn of(
        call: &Call,
        context: &'a RequestContext,
        request: (&'a str, Option<&'a Json>, &'a Id),
    ) -> FirstRound<'a> {
        FirstRound {
            context,
            request,
            id: call.id.clone(),
            held_permits: call.held_permits.clone(),
            reporter: call.reporter.clone(),
            round_number: call.round.number,
        }
    }

    /// Returns the call again, without the input responses that came with the request.
    ///
    /// # Errors
    /// Never fails: the parameters were read before.
    fn rebuild_call(&self) -> Result<Call, Error> {
        let (method, params, id) = self.request;
        let mut read = operation::OperationParams::read(method, params)
            .map_err(|why| Error::new(ErrorKind::InvalidArguments(Vec::new()), why))?;
        let mut call = self.context.build_call(&mut read, self.id.clone(), id);
        call.held_permits = self.held_permits.clone();
        call.reporter = self.reporter.clone();
        call.round.number = self.round_number;
        Ok(call)
    }
}

/// Runs a call and returns its result for the caller's revision.
///
/// # Errors
/// The call failed. The code that waits for it decides between a tool result and a JSON-RPC error.
pub(crate) async fn run_to_result(
    server: &ProtocolServer,
    context: &RequestContext,
    call: Call,
    responder: &Responder,
    requester: Option<&dyn InputRequester>,
) -> Result<Json, Error> {
    let first = call.clone();
    let again = || Ok(first.clone());
    match input_rounds::run_rounds(server, context, call, &again, responder, requester).await? {
        RoundsOutcome::Completed(output) => Ok(context.dialect.output(&output, &server.info)),
        RoundsOutcome::InputRequired(call, questions) => {
            input_required_result(server, context, &call, questions)
        }
    }
}

/// Restores the input responses and the sealed state of the round before. Responses without state begin a first round.
/// A layer that requests input under a fixed key can use them; input that must have been requested first, for example
/// an approval, needs its slot in the state.
fn restore_round(
    server: &ProtocolServer,
    context: &RequestContext,
    call: &mut Call,
    params: operation::OperationParams,
) -> Result<(), Error> {
    if !context.dialect.input_required_results {
        return Ok(());
    }
    let Some(sealed) = params.state else {
        call.round.answers = params.answers;
        return Ok(());
    };
    let kept = server.seal.open_call(call, &sealed, server.clock.now())?;
    if kept.round >= server.limits.max_rounds {
        let text = format!(
            "a call may request input at most {} times; call the tool again without requestState",
            server.limits.max_rounds
        );
        return Err(Error::new(ErrorKind::NotFound, text));
    }
    call.id = kept.call.into();
    let mut round = Round::default();
    round.number = kept.round + 1;
    round.answers = params.answers;
    round.slots = kept.slots;
    call.round = round;
    Ok(())
}

/// Returns the input required result, with the state of the round sealed in it.
fn input_required_result(
    server: &ProtocolServer,
    context: &RequestContext,
    call: &Call,
    questions: toolgate_core::InputRequests,
) -> Result<Json, Error> {
    let state = server
        .seal
        .seal_call(call, &questions.slots, server.clock.now())?;
    let requests = questions
        .requests
        .iter()
        .map(|a| input_rounds::raw_input_request(a, call, context))
        .collect();
    questions.guard.defuse();
    Ok(InputRequiredResult {
        requests,
        state: Some(state),
        server: Some(server.info.clone()),
    }
    .json())
}

impl RequestContext {
    /// Continues the trace context of the HTTP request, unless the message has its own.
    pub(crate) fn continue_transport_trace(&mut self, trace: Option<TraceContext>) {
        match trace {
            Some(trace) if self.trace.is_empty() => self.trace = trace,
            Some(trace) if trace.parent != self.trace.parent => self.transport_trace = Some(trace),
            _ => {}
        }
    }

    /// Returns a report that sends the events of a call to its client.
    fn new_report(&self, responder: &Responder) -> Arc<CallReport> {
        let token = self.progress_token.clone();
        Arc::new(CallReport::new(
            responder.clone(),
            self.dialect,
            token,
            self.log_level,
        ))
    }

    /// Returns the call with these parameters, under the id `own`. Moves the name out of them.
    fn build_call(&self, params: &mut operation::OperationParams, own: Arc<str>, id: &Id) -> Call {
        let mut call = Call::with_decision_log(
            self.decision_log.clone(),
            own,
            self.caller.clone(),
            params.op,
            std::mem::take(&mut params.name),
            params.arguments.clone(),
        );
        call.capabilities = self.capabilities.clone();
        call.trace = self.trace.clone();
        call.span = self.span.get().cloned();
        let mut info = RequestInfo::default();
        info.revision = self.dialect.revision.into();
        info.transport = self.transport;
        info.client = self.client.clone();
        info.request = Some(id.json().as_str().to_owned());
        info.address = self.address;
        info.transport_parts = self.transport_parts.clone();
        call.request_info = Arc::new(info);
        call
    }

    pub(crate) fn rejection(&self, method: &str, tool: Option<&str>, reason: &str) -> Rejection {
        Rejection {
            caller: self.caller.clone(),
            transport: self.transport,
            method: Some(method.to_owned()),
            tool: tool.map(str::to_owned),
            reason: reason.to_owned(),
            address: self.address,
        }
    }
}

/// Returns the client's capabilities, from `capabilities` of a handshake or of a request.
pub(crate) fn client_capabilities(capabilities: &Json, dialect: &Dialect) -> ClientCapabilities {
    let elicitation = capabilities
        .get("elicitation")
        .filter(|_| dialect.elicitation);
    let url = dialect.elicitation_url;
    let sampling = capabilities.get("sampling");
    let with = |name: &str| sampling.as_ref().is_some_and(|s| s.get(name).is_some());
    let mode = |name: &str| elicitation.as_ref().is_some_and(|e| e.get(name).is_some());
    let mut client_capabilities = ClientCapabilities::default();
    // An empty object means form mode.
    client_capabilities.elicitation = elicitation.is_some() && (mode("form") || !mode("url"));
    client_capabilities.elicitation_url = url && mode("url");
    client_capabilities.sampling = sampling.is_some();
    client_capabilities.sampling_tools = dialect.sampling_tools && with("tools");
    client_capabilities.sampling_context = with("context");
    client_capabilities.roots = capabilities.get("roots").is_some();
    client_capabilities.extensions = capabilities.get("extensions");
    client_capabilities
}
