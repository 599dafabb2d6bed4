//! Calls: from request parameters to a [`Call`], through its rounds, to a response.

use super::{
    ProtocolServer, Rejection, TaskOffer,
    answer::{self, RequestResult},
    ask::{self, InputRequester, RoundsOutcome},
    outlet::{CallReport, Responder},
    tasks,
};
use std::sync::Arc;
use toolgate_core::{
    Call, CallReporter, Caller, ClientCapabilities, DecisionLog, Error, ErrorKind, HeldPermits,
    RequestInfo, Round,
};
use toolgate_wire::{
    dialect::Dialect,
    json::Json,
    message::{Id, RpcError},
    method::{elicitation::InputRequiredResult, trace::TraceContext, usage},
};

/// The context of a request: its caller, its client, and their connection.
#[derive(Clone, Debug)]
pub(crate) struct RequestContext {
    pub(crate) caller: Caller,
    pub(crate) transport: &'static str,
    pub(crate) dialect: &'static Dialect,
    pub(crate) abilities: ClientCapabilities,
    pub(crate) client: Option<Arc<str>>,
    pub(crate) log_level: Option<u8>,
    /// The progress token of the request.
    pub(crate) progress: Option<Json>,
    pub(crate) trace: TraceContext,
    /// The connection whose end cancels its calls, if there is one.
    pub(crate) link: Option<u64>,
    /// The tasks whose status is sent on the client's notification stream, if it has one.
    pub(crate) session: Option<Arc<tasks::SessionTasks>>,
    /// The decision log of the call, shared with the code that cancels it.
    pub(crate) trail: DecisionLog,
}

/// Runs a `tools/call`, `resources/read`, `prompts/get` or `completion/complete` and returns its response.
pub(crate) async fn run(
    server: &Arc<ProtocolServer>,
    context: &RequestContext,
    id: &Id,
    method: &str,
    params: Option<&Json>,
    outlet: &Responder,
    asker: Option<&dyn InputRequester>,
) -> Result<RequestResult, RpcError> {
    let mut read = match usage::OperationParams::read(method, params) {
        Ok(read) => read,
        Err(reason) => {
            let refused = context.refused(method, None, reason);
            Box::pin(server.refused(refused)).await;
            return Err(answer::bad_params(reason));
        }
    };
    if let Err(error) = server.fits(&read.name) {
        let refused = context.refused(method, None, &error.message);
        Box::pin(server.refused(refused)).await;
        return Err(error);
    }
    let report = || {
        Arc::new(CallReport::new(
            outlet.clone(),
            context.dialect,
            context.progress.clone(),
            context.log_level,
        ))
    };
    let mut call = context.call(&mut read, crate::ids::call(), id);
    if let Some(params) = params {
        call.held.hold(params);
    }
    // Without a progress token and a log level, no event would be sent.
    let wanted = (context.progress.is_some() || context.log_level.is_some()).then(report);
    if let Some(report) = &wanted {
        let logs = report.logs();
        call.reporter = CallReporter::new(report.clone()).with_logs(logs);
    }
    if let Err(error) = resume(server, context, &mut call, read) {
        let refused = context.refused(method, Some(call.name()), error.public());
        Box::pin(server.refused(refused)).await;
        return Err(answer::bad_params(error.public()));
    }
    if server.offers.tasks != TaskOffer::None
        && let Some(wish) = Box::pin(tasks::wish(server, context, &call, params)).await?
    {
        let report = wanted.unwrap_or_else(report);
        let answer = Box::pin(tasks::run(server, context, call, report, wish)).await;
        return answer.map(RequestResult::Made);
    }
    let _closer = wanted.as_ref().map(|report| report.closer());
    let first = FirstRound {
        context,
        of: (method, params, id),
        id: call.id.clone(),
        held: call.held.clone(),
        reporter: call.reporter.clone(),
        number: call.round.number,
    };
    let again = || first.again();
    let error = match ask::rounds(server, context, call, &again, outlet, asker).await {
        Ok(RoundsOutcome::Done(output)) => return Ok(RequestResult::Output(output)),
        Ok(RoundsOutcome::Questions(call, questions)) => {
            match leave(server, context, &call, questions) {
                Ok(asked) => return Ok(RequestResult::Made(asked)),
                Err(error) => error,
            }
        }
        Err(error) => error,
    };
    // The parameters are valid, see above. The error response needs the name again.
    let named = usage::OperationParams::read(method, params).map_err(answer::bad_params)?;
    let named = (named.op, named.name.as_str());
    answer::failed(&error, named, context.dialect, &server.info).map(RequestResult::Made)
}

/// The parts of a call, from which another round of it is made. It holds the memory permits of the first round until
/// the response is ready.
struct FirstRound<'a> {
    context: &'a RequestContext,
    of: (&'a str, Option<&'a Json>, &'a Id),
    id: Arc<str>,
    held: HeldPermits,
    reporter: CallReporter,
    number: u32,
}

impl FirstRound<'_> {
    /// Returns the call again, without the input responses that came with the request.
    ///
    /// # Errors
    /// Never fails: the parameters were read before.
    fn again(&self) -> Result<Call, Error> {
        let (method, params, id) = self.of;
        let mut read = usage::OperationParams::read(method, params)
            .map_err(|why| Error::new(ErrorKind::Invalid(Vec::new()), why))?;
        let mut call = self.context.call(&mut read, self.id.clone(), id);
        call.held = self.held.clone();
        call.reporter = self.reporter.clone();
        call.round.number = self.number;
        Ok(call)
    }
}

/// Runs a call and returns its result for the caller's revision.
///
/// # Errors
/// The call failed. The code that waits for it decides between a tool result and a JSON-RPC error.
pub(crate) async fn rounds(
    server: &ProtocolServer,
    context: &RequestContext,
    call: Call,
    outlet: &Responder,
    asker: Option<&dyn InputRequester>,
) -> Result<Json, Error> {
    let first = call.clone();
    let again = || Ok(first.clone());
    match ask::rounds(server, context, call, &again, outlet, asker).await? {
        RoundsOutcome::Done(output) => Ok(context.dialect.output(&output, &server.info)),
        RoundsOutcome::Questions(call, questions) => leave(server, context, &call, questions),
    }
}

/// Restores the input responses and the sealed state of the round before. Responses without state begin a first round.
/// A layer that requests input under a fixed key can use them; input that must have been requested first, for example
/// an approval, needs its slot in the state.
fn resume(
    server: &ProtocolServer,
    context: &RequestContext,
    call: &mut Call,
    params: usage::OperationParams,
) -> Result<(), Error> {
    if !context.dialect.stateless {
        return Ok(());
    }
    let Some(sealed) = params.state else {
        call.round.answers = params.answers;
        return Ok(());
    };
    let kept = server.seal.open(call, &sealed, server.clock.now())?;
    if kept.round >= server.limits.rounds {
        let text = format!(
            "a call may request input at most {} times; call the tool again without requestState",
            server.limits.rounds
        );
        return Err(Error::new(ErrorKind::NotFound, text));
    }
    call.id = kept.call.into();
    call.round = Round {
        number: kept.round + 1,
        answers: params.answers,
        slots: kept.slots,
    };
    Ok(())
}

/// Returns the input required result, with the state of the round sealed in it.
fn leave(
    server: &ProtocolServer,
    context: &RequestContext,
    call: &Call,
    questions: toolgate_core::InputRequests,
) -> Result<Json, Error> {
    let state = server
        .seal
        .close(call, &questions.slots, server.clock.now())?;
    let requests = questions
        .asks
        .iter()
        .map(|a| ask::request(a, call, context))
        .collect();
    questions.open.leave();
    Ok(InputRequiredResult {
        requests,
        state: Some(state),
        server: Some(server.info.clone()),
    }
    .json())
}

impl RequestContext {
    /// Returns the call with these parameters, under the id `own`. Moves the name out of them.
    fn call(&self, params: &mut usage::OperationParams, own: Arc<str>, id: &Id) -> Call {
        let mut call = Call::on(
            self.trail.clone(),
            own,
            self.caller.clone(),
            params.op,
            std::mem::take(&mut params.name),
            params.arguments.clone(),
        );
        call.abilities = self.abilities.clone();
        call.trace = self.trace.clone();
        call.seen = Arc::new(RequestInfo {
            revision: self.dialect.revision.into(),
            transport: self.transport,
            client: self.client.clone(),
            request: Some(id.json().as_str().to_owned()),
        });
        call
    }

    pub(crate) fn refused(&self, method: &str, tool: Option<&str>, reason: &str) -> Rejection {
        Rejection {
            caller: self.caller.clone(),
            transport: self.transport,
            method: Some(method.to_owned()),
            tool: tool.map(str::to_owned),
            reason: reason.to_owned(),
        }
    }
}

/// Returns the client's capabilities, from `capabilities` of a handshake or of a request.
pub(crate) fn abilities(capabilities: &Json, dialect: &Dialect) -> ClientCapabilities {
    let elicitation = capabilities
        .get("elicitation")
        .filter(|_| dialect.elicitation);
    let url = dialect.elicitation_url;
    let sampling = capabilities.get("sampling");
    let with = |name: &str| sampling.as_ref().is_some_and(|s| s.get(name).is_some());
    let mode = |name: &str| elicitation.as_ref().is_some_and(|e| e.get(name).is_some());
    ClientCapabilities {
        // An empty object means form mode.
        elicitation: elicitation.is_some() && (mode("form") || !mode("url")),
        elicitation_url: url && mode("url"),
        sampling: sampling.is_some(),
        sampling_tools: dialect.sampling_tools && with("tools"),
        sampling_context: with("context"),
        roots: capabilities.get("roots").is_some(),
        extensions: capabilities.get("extensions"),
    }
}
