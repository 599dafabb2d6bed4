//! The methods `tasks/*`: get, list, result, update and cancel.

use super::{TaskOffer, TaskTable, task::ServerTask};
use crate::edge::{ProtocolServer, call::RequestContext, input_rounds::InputRequester, response};
use std::sync::Arc;
use toolgate_core::{CancelReason, Error, ErrorKind, RequiredCapability};
use toolgate_protocol::{
    dialect::{Dialect, with_related_task},
    json::{self, Json},
    message::{RpcError, code},
    method::tasks::{self, EXTENSION, TaskForm},
};

/// Returns whether `method` is one of the task methods of the revision, and tasks are offered.
pub(crate) fn is_method(
    server: &ProtocolServer,
    dialect: &Dialect,
    connection: Option<u64>,
    method: &str,
) -> bool {
    let common = [tasks::GET, tasks::CANCEL].contains(&method);
    server.offered.tasks != TaskOffer::None
        && match dialect.tasks {
            TaskForm::None => false,
            TaskForm::Extension => common || method == tasks::UPDATE,
            TaskForm::Core => {
                // A client may list its tasks only on a connection that no other client shares.
                let lists = method == tasks::LIST && connection.is_some();
                common || method == tasks::RESULT || lists
            }
        }
}

/// Handles a task method.
pub(crate) async fn handle_method(
    server: &ProtocolServer,
    context: &RequestContext,
    method: &str,
    params: Option<&Json>,
    requester: Option<&dyn InputRequester>,
) -> Result<Json, RpcError> {
    let (dialect, limits) = (context.dialect, &server.limits.tasks);
    check_extension_declared(context)?;
    if method == tasks::LIST {
        return list_page(server, context, params);
    }
    let id = tasks::task_id(params)
        .ok_or_else(|| response::invalid_params("\"params.taskId\" must be a string"))?;
    let found = server
        .tasks
        .find(&context.caller, dialect.tasks, &id, limits);
    let found = found.or_else(|| {
        let stored = server
            .tasks
            .find_stored(&context.caller, dialect.tasks, &id, limits);
        // Only the process that runs a task can wait for it and change it.
        stored.filter(|task| task.has_ended() || method == tasks::GET)
    });
    let task = found.ok_or_else(|| {
        response::invalid_params("the task does not exist or has expired; call the tool again")
    })?;
    if [tasks::GET, tasks::RESULT].contains(&method) {
        task.poll_limiter.take_token(task.poll_interval)?;
    }
    let core = dialect.tasks == TaskForm::Core;
    match method {
        tasks::RESULT => wait_for_result(&task, requester).await,
        tasks::UPDATE => {
            let answers = params.and_then(|p| p.get("inputResponses"));
            let answers = answers.filter(|a| a.kind() == json::JsonKind::Object);
            let answers = answers.ok_or_else(|| {
                response::invalid_params("\"params.inputResponses\" must be an object")
            })?;
            task.answer_requests(
                answers
                    .members()
                    .map(|(key, answer)| (key.into_owned(), answer)),
            );
            Ok(dialect.empty(&server.info))
        }
        tasks::CANCEL => match task.cancel(Some(CancelReason::Caller(None))) {
            false if core => Err(response::invalid_params("the task has already ended")),
            _ if core => Ok(dialect.task(&task.to_protocol(), &server.info)),
            _ => Ok(dialect.empty(&server.info)),
        },
        _ => Ok(dialect.task(&task.to_protocol(), &server.info)),
    }
}

/// Checks that the client declared the tasks extension, if its revision has one.
pub(super) fn check_extension_declared(context: &RequestContext) -> Result<(), RpcError> {
    let needs = context.dialect.tasks == TaskForm::Extension;
    if !needs || context.capabilities.extension(EXTENSION).is_some() {
        return Ok(());
    }
    let text = format!("declare the extension {EXTENSION} with each request about tasks");
    let error = Error::new(
        ErrorKind::MissingCapability(RequiredCapability::Tasks),
        text,
    );
    Err(response::missing_capability(
        RequiredCapability::Tasks,
        &error,
    ))
}

/// Error text for a client that waits for a result when the gateway shuts down.
const HANDED_OVER_TEXT: &str =
    "this server is shutting down, and the call continues; request the result again";

/// Handles `tasks/result`: sends the input requests of the task to the client, and waits for its end.
async fn wait_for_result(
    task: &Arc<ServerTask>,
    requester: Option<&dyn InputRequester>,
) -> Result<Json, RpcError> {
    let mut changes = task.subscribe();
    loop {
        changes.mark_unchanged();
        match task.response() {
            Some(Some(answer)) => return answer.map(|json| with_related_task(&json, &task.id)),
            Some(None) => {
                return Err(RpcError::new(
                    code::INTERNAL_ERROR,
                    "the task was cancelled",
                ));
            }
            None if task.is_handed_over() => {
                return Err(RpcError::new(code::INTERNAL_ERROR, HANDED_OVER_TEXT));
            }
            None => {}
        }
        if let Some((taken, requester)) =
            requester.and_then(|requester| Some((task.take_request()?, requester)))
        {
            let ask = &taken.request;
            let empty = || json::ObjectWriter::new().finish();
            let params = with_related_task(&ask.params.clone().unwrap_or_else(empty), &task.id);
            tokio::select! {
                answer = requester.send_request(&ask.method, Some(params)) => match answer {
                    Ok(answer) => task.answer_requests(std::iter::once((ask.key.clone(), answer))),
                    // The input request stays open for the next `tasks/result`.
                    Err(error) => return Err(RpcError::new(code::INTERNAL_ERROR, error.public_message())),
                },
                () = task.wait_until_settled(&ask.key) => {}
            }
            continue;
        }
        if changes.changed().await.is_err() {
            return Err(RpcError::new(
                code::INTERNAL_ERROR,
                "internal error: the task ended without a result; its call may have taken effect, so check before you repeat it",
            ));
        }
    }
}

/// Prefix of a cursor; the rest is the id of the last task of the previous page.
const TASK_CURSOR_PREFIX: &str = "after:";

fn list_page(
    server: &ProtocolServer,
    context: &RequestContext,
    params: Option<&Json>,
) -> Result<Json, RpcError> {
    let all = TaskTable::of_caller(
        &server.tasks,
        &context.caller,
        context.dialect.tasks,
        &server.limits.tasks,
    );
    let own: Vec<_> = all
        .iter()
        .filter(|task| task.connection == context.connection)
        .collect();
    let wrong = || {
        response::invalid_params(
            "the cursor does not belong to this list; list again from the start",
        )
    };
    let start = match params.and_then(|p| p.get("cursor")) {
        None => 0,
        Some(cursor) => {
            let cursor = cursor.string().ok_or_else(wrong)?;
            let id = cursor.strip_prefix(TASK_CURSOR_PREFIX).ok_or_else(wrong)?;
            let at = own.iter().position(|task| task.id == id);
            at.ok_or_else(wrong)? + 1
        }
    };
    let page: Vec<_> = own
        .iter()
        .skip(start)
        .take(server.limits.page_items)
        .collect();
    let more = start + page.len() < own.len();
    let next = page.last().filter(|_| more);
    let next = next.map(|last| format!("{TASK_CURSOR_PREFIX}{}", last.id));
    let shown: Vec<_> = page.iter().map(|task| task.to_protocol()).collect();
    Ok(context.dialect.task_list(&shown, next.as_deref()))
}
