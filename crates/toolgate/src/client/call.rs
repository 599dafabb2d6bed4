//! Parameters of a call, and reading of its result.

use super::{negotiate::NegotiatedServer, options::RemoteOptions, status::sanitize_line};
use toolgate_core::{
    Call, ClientCapabilities, Error, ErrorKind, InputRequest, InputRequestKind, InputRequests,
    Outcome, RequiredCapability, RoundSlots,
};
use toolgate_policy::sanitize_text;
use toolgate_protocol::{
    json::{self, Json, ObjectWriter},
    message::{Id, RpcError, code},
    method::{
        elicitation::{self, InputRequiredResult, RawInputRequest},
        meta,
        operation::{self, Op},
        output::Output,
        tasks,
    },
    normalize,
};

/// Slot that stores the server's `requestState` for the next round.
pub(super) const REQUEST_STATE_SLOT: &str = "upstream";
/// Key of the answer to an approval request, which is never sent to a server.
const APPROVAL_KEY: &str = "approval";

/// Returns the client capabilities that the server may use in this call.
pub(super) fn granted_capabilities(
    call: &Call,
    peer: &NegotiatedServer,
    options: &RemoteOptions,
) -> ClientCapabilities {
    let (caller, most) = (&call.capabilities, &options.capabilities);
    let mut capabilities = ClientCapabilities::default();
    capabilities.elicitation = caller.elicitation && most.elicitation;
    capabilities.elicitation_url = caller.elicitation_url && most.elicitation_url;
    capabilities.sampling = caller.sampling && most.sampling;
    capabilities.sampling_tools = caller.sampling_tools && most.sampling_tools;
    capabilities.sampling_context = caller.sampling_context && most.sampling_context;
    capabilities.roots = caller.roots && most.roots;
    // Extensions are agreed between this client and the server; the caller has no say.
    capabilities.extensions = match may_become_task(call, peer, options) {
        true => Some(with_tasks(most.extensions.as_ref())),
        false => most.extensions.clone(),
    };
    capabilities
}

/// Returns whether the server may answer the call with a task.
pub(super) fn may_become_task(
    call: &Call,
    peer: &NegotiatedServer,
    options: &RemoteOptions,
) -> bool {
    let wanted = options.tasks || call.task_control.is_supported();
    call.op == Op::Tool && wanted && peer.task_protocol == tasks::TaskForm::Extension
}

/// Returns the extensions plus the tasks extension, which this client supports.
fn with_tasks(extensions: Option<&Json>) -> Json {
    let empty = ObjectWriter::new().finish();
    extensions.unwrap_or(&empty).with(tasks::EXTENSION, &empty)
}

/// Returns the parameters of the call. The arguments are the caller's unchanged bytes.
pub(super) fn params(
    call: &Call,
    id: &Id,
    (peer, as_task): (&NegotiatedServer, bool),
    options: &RemoteOptions,
) -> Json {
    let mut o = ObjectWriter::new();
    let listens = call.reporter.has_listener();
    if listens || peer.dialect.request_meta || !call.trace.is_empty() {
        o.object("_meta", |m| {
            call.trace.write(m);
            if listens {
                m.raw(meta::PROGRESS, id.json());
            }
            if peer.dialect.request_meta {
                let granted = granted_capabilities(call, peer, options);
                peer.request_meta.write(m, peer.dialect, &granted);
                let least = call.reporter.min_log_level();
                if let Some(least) = least.filter(|_| peer.dialect.request_log_level) {
                    m.str(meta::LOG_LEVEL, least);
                }
            }
        });
    }
    operation::write(&mut o, call.op, call.name(), call.arguments().raw());
    if as_task {
        o.object("task", |_| {});
    }
    if peer.dialect.input_required_results {
        write_input_responses(&mut o, call);
    }
    o.finish().with_permit(call.arguments().raw().permit())
}

/// Returns the input responses for the server, without the approval.
pub(super) fn server_responses(call: &Call) -> impl Iterator<Item = &(String, Json)> {
    let answers = call.round.answers.iter();
    answers.filter(|(key, _)| key != APPROVAL_KEY)
}

fn write_input_responses(o: &mut ObjectWriter, call: &Call) {
    let mut theirs = server_responses(call).peekable();
    if theirs.peek().is_some() {
        o.object("inputResponses", |map| {
            theirs.for_each(|(key, answer)| map.raw(key, answer))
        });
    }
    if let Some(state) = call.round.slots.get(REQUEST_STATE_SLOT) {
        o.str("requestState", state);
    }
}

/// Returns whether a result is `input_required` although the revision has no such results.
pub(super) fn is_misplaced_input_request(result: &Json, peer: &NegotiatedServer) -> bool {
    let allowed = peer.dialect.input_required_results;
    let kind = result.get("resultType").filter(|_| !allowed);
    kind.and_then(|kind| kind.string())
        .is_some_and(|kind| kind == "input_required")
}

/// Returns the outcome that a result means.
///
/// # Errors
/// A description of the fault.
pub(super) fn outcome(
    call: &Call,
    result: &Json,
    peer: &NegotiatedServer,
    granted: &ClientCapabilities,
) -> Result<Outcome, String> {
    match peer
        .dialect
        .result_type(result)
        .map(|kind| kind.string().unwrap_or_default())
        .as_deref()
    {
        None | Some("complete") => Ok(Outcome::Done(read_output(call, result)?)),
        Some("input_required") => Ok(Outcome::InputRequired(read_input_required(
            InputRequiredResult::read(result)?,
            granted,
        )?)),
        Some(other) => Err(format!(
            "\"resultType\" is \"{}\", which this client does not support",
            sanitize_line(other, 60)
        )),
    }
}

/// Reads a complete result after repairing it. Repairs are recorded in the decision log.
///
/// # Errors
/// A description of the missing or invalid part.
pub(super) fn read_output(call: &Call, result: &Json) -> Result<Output, &'static str> {
    // An empty result would hide that the server sent something else.
    if result.kind() != json::JsonKind::Object {
        return Err("the result is not an object");
    }
    let (result, repairs) = normalize::result(call.op, result, call.name());
    for repair in repairs {
        call.decision_log.add("client", "repair", repair);
    }
    Output::read(call.op, &result)
}

fn read_input_required(
    required: InputRequiredResult,
    granted: &ClientCapabilities,
) -> Result<InputRequests, String> {
    let slots: RoundSlots = required
        .state
        .into_iter()
        .map(|state| (REQUEST_STATE_SLOT.to_owned(), state))
        .collect();
    let mut requests = read_input_requests(required.requests, granted)?;
    requests.slots = slots;
    Ok(requests)
}

/// Converts a server's input requests.
///
/// # Errors
/// A description of the invalid request.
pub(super) fn read_input_requests(
    requests: Vec<RawInputRequest>,
    granted: &ClientCapabilities,
) -> Result<InputRequests, String> {
    let asks = requests
        .into_iter()
        .map(|request| read_input_request(request, granted));
    let asks = asks.collect::<Result<Vec<InputRequest>, String>>()?;
    Ok(InputRequests::new(asks))
}

fn read_input_request(
    request: RawInputRequest,
    granted: &ClientCapabilities,
) -> Result<InputRequest, String> {
    if request.key == APPROVAL_KEY {
        return Err(format!(
            "an input request has the key {APPROVAL_KEY:?}, which is reserved"
        ));
    }
    let url = request.is_url();
    let RawInputRequest {
        key,
        method,
        params,
    } = request;
    let params = params.unwrap_or_else(|| ObjectWriter::new().finish());
    let (kind, may) = match method.as_str() {
        elicitation::NAME => (
            InputRequestKind::Elicit(params),
            if url {
                granted.elicitation_url
            } else {
                granted.elicitation
            },
        ),
        elicitation::SAMPLING => (InputRequestKind::Sample(params), granted.sampling),
        elicitation::ROOTS => (InputRequestKind::Roots, granted.roots),
        _ => {
            let method = sanitize_line(&method, 60);
            return Err(format!(
                "an input request has the method \"{method}\", which this client does not support"
            ));
        }
    };
    if !may {
        return Err(format!(
            "an input request has the method {method:?}, for which the caller declared no capability"
        ));
    }
    Ok(InputRequest { key, kind })
}

/// Returns the caller's error for a server's JSON-RPC error. The server's message is untrusted: sanitizers redact and
/// cut it.
pub(super) fn server_error(error: &RpcError) -> Error {
    let kind = match error.code {
        code::MISSING_CAPABILITY => {
            ErrorKind::MissingCapability(missing_capability(error.data.as_ref()))
        }
        code => ErrorKind::JsonRpc(code),
    };
    Error::new(
        kind,
        format!("the server answered: {}", sanitize_text(&error.message)),
    )
}

fn missing_capability(data: Option<&Json>) -> RequiredCapability {
    let required = data.and_then(|data| data.get("requiredCapabilities"));
    let has = |key: &str| required.as_ref().and_then(|required| required.get(key));
    let extension = |id: &str| has("extensions").is_some_and(|all| all.get(id).is_some());
    match (has("elicitation"), has("sampling"), has("roots")) {
        (None, None, None) if extension(tasks::EXTENSION) => RequiredCapability::Tasks,
        (None, Some(how), _) if how.get("tools").is_some() => RequiredCapability::SamplingTools,
        (None, Some(_), _) => RequiredCapability::Sampling,
        (None, None, Some(_)) => RequiredCapability::Roots,
        (Some(how), ..) if how.get("url").is_some() && how.get("form").is_none() => {
            RequiredCapability::ElicitationUrl
        }
        _ => RequiredCapability::Elicitation,
    }
}
