//! Responses: the one place where an error becomes an error code or a tool result.

use super::responder::OutgoingFrame;
use toolgate_core::{Error, ErrorKind, Output, RequiredCapability};
use toolgate_protocol::{
    dialect::Dialect,
    json::{Json, ObjectWriter},
    message::{self, Id, RpcError, code},
    method::{initialize::Implementation, operation::Op, tasks},
};

/// The successful result of a request.
pub(crate) enum RequestResult {
    /// A result that is already JSON.
    Json(Json),
    /// The output of a call, serialized together with its reply.
    Output(Output),
}

impl From<Json> for RequestResult {
    fn from(result: Json) -> RequestResult {
        RequestResult::Json(result)
    }
}

/// Returns the reply frame of a request.
pub(crate) fn result_frame(
    id: &Id,
    answer: Result<RequestResult, RpcError>,
    (dialect, server): (&Dialect, &Json),
) -> OutgoingFrame {
    match answer {
        Ok(RequestResult::Output(output)) => {
            OutgoingFrame::Reply(dialect.reply(id, &output, server).into(), None)
        }
        Ok(RequestResult::Json(result)) => reply_frame(Some(id), &Ok(result)),
        Err(error) => reply_frame(Some(id), &Err(error)),
    }
}

/// Returns a reply frame. Its error code is set unless the error was relayed from an upstream server.
pub(crate) fn reply_frame(id: Option<&Id>, answer: &Result<Json, RpcError>) -> OutgoingFrame {
    OutgoingFrame::Reply(
        message::reply(id, answer).into(),
        answer.as_ref().err().filter(|e| !e.relayed).map(|e| e.code),
    )
}

/// Returns the response to a failed call. An error that a model can act on becomes a tool result with `isError`. All
/// others are JSON-RPC errors, as is an error response of an upstream server.
pub(crate) fn failed_call_response(
    error: &Error,
    (op, name): (Op, &str),
    dialect: &Dialect,
    server: &Implementation,
) -> Result<Json, RpcError> {
    if let ErrorKind::InsufficientScope(scopes) = error.kind() {
        return Err(insufficient_scope(scopes, error));
    }
    if op != Op::Tool {
        return Err(non_tool_error(error, op, name, dialect));
    }
    let as_result = || Ok(dialect.output(&Output::error(error.public_message()), server));
    match error.kind() {
        ErrorKind::NotFound => Err(RpcError::new(code::INVALID_PARAMS, error.public_message())),
        ErrorKind::InvalidArguments(problems) if !dialect.bad_arguments_are_tool_errors => {
            let rpc = RpcError::new(code::INVALID_PARAMS, error.public_message());
            Err(match problems.first() {
                Some(problem) => rpc.with_data(problem.json()),
                None => rpc,
            })
        }
        ErrorKind::MissingCapability(need) if dialect.missing_capability_error => {
            Err(missing_capability(*need, error))
        }
        // Revision 2025-11-25 uses this code for a tool that must be called as a task.
        ErrorKind::MissingCapability(RequiredCapability::Tasks)
            if dialect.tasks == tasks::TaskForm::Core =>
        {
            Err(RpcError::new(
                code::METHOD_NOT_FOUND,
                error.public_message(),
            ))
        }
        ErrorKind::Bug => Err(RpcError::new(code::INTERNAL_ERROR, error.public_message())),
        ErrorKind::JsonRpc(code) => Err(upstream_error(*code, error, dialect)),
        _ => as_result(),
    }
}

/// Returns the error of an upstream server under its own code.
///
/// Three kinds of codes are replaced, and `data.serverCode` contains the original: those of
/// [`Dialect::relayed_error_code`], and the request to open URLs, which becomes an internal error because its data is not
/// relayed.
fn upstream_error(code: i64, error: &Error, dialect: &Dialect) -> RpcError {
    let replaced = match code {
        // The list of pages is not relayed, and the code means nothing without it.
        code::URL_ELICITATION_REQUIRED if dialect.elicitation_id => code::INTERNAL_ERROR,
        code => dialect.relayed_error_code(code),
    };
    let relayed = RpcError::new(replaced, error.public_message()).into_relayed();
    if replaced == code {
        return relayed;
    }
    let mut data = ObjectWriter::new();
    data.int("serverCode", code);
    relayed.with_data(data.finish())
}

/// Returns the error for a failed resource, prompt or completion request: only tools have a result for errors.
fn non_tool_error(error: &Error, op: Op, name: &str, dialect: &Dialect) -> RpcError {
    let missing_resource = || {
        let mut data = ObjectWriter::new();
        data.str("uri", name);
        RpcError::new(dialect.resource_not_found, error.public_message()).with_data(data.finish())
    };
    match error.kind() {
        ErrorKind::NotFound if op == Op::Resource => missing_resource(),
        ErrorKind::JsonRpc(code::RESOURCE_NOT_FOUND) if op == Op::Resource => missing_resource(),
        ErrorKind::NotFound => RpcError::new(code::INVALID_PARAMS, error.public_message()),
        ErrorKind::InvalidArguments(problems) => {
            let rpc = RpcError::new(code::INVALID_PARAMS, error.public_message());
            match problems.first() {
                Some(problem) => rpc.with_data(problem.json()),
                None => rpc,
            }
        }
        ErrorKind::MissingCapability(need) if dialect.missing_capability_error => {
            missing_capability(*need, error)
        }
        ErrorKind::JsonRpc(code) => upstream_error(*code, error, dialect),
        _ => RpcError::new(code::INTERNAL_ERROR, error.public_message()),
    }
}

/// Returns the error for a token that lacks scopes. The required scopes are in `data.scopes`.
fn insufficient_scope(scopes: &[String], error: &Error) -> RpcError {
    let mut data = ObjectWriter::new();
    data.raw("scopes", &Json::from_value(&serde_json::json!(scopes)));
    RpcError::new(code::INSUFFICIENT_SCOPE, error.public_message()).with_data(data.finish())
}

/// Returns the error for a failed list request.
pub(crate) fn list_error(error: &Error) -> RpcError {
    RpcError::new(code::INTERNAL_ERROR, error.public_message())
}

pub(crate) fn missing_capability(need: RequiredCapability, error: &Error) -> RpcError {
    let wanted = match need {
        RequiredCapability::Elicitation => serde_json::json!({"elicitation": {"form": {}}}),
        RequiredCapability::ElicitationUrl => serde_json::json!({"elicitation": {"url": {}}}),
        RequiredCapability::Sampling => serde_json::json!({"sampling": {}}),
        RequiredCapability::SamplingTools => serde_json::json!({"sampling": {"tools": {}}}),
        RequiredCapability::Roots => serde_json::json!({"roots": {}}),
        RequiredCapability::Tasks => serde_json::json!({"extensions": {tasks::EXTENSION: {}}}),
        // A capability that this edge cannot name yet: the message says what is missing.
        _ => serde_json::json!({}),
    };
    let mut data = ObjectWriter::new();
    data.raw("requiredCapabilities", &Json::from_value(&wanted));
    RpcError::new(code::MISSING_CAPABILITY, error.public_message()).with_data(data.finish())
}

pub(crate) fn method_not_found(method: &str) -> RpcError {
    let short: String = method
        .chars()
        .filter(|c| c.is_ascii_graphic())
        .take(64)
        .collect();
    RpcError::new(
        code::METHOD_NOT_FOUND,
        format!("there is no method {short:?} on this server"),
    )
}

pub(crate) fn invalid_params(reason: &str) -> RpcError {
    RpcError::new(code::INVALID_PARAMS, reason)
}
