//! Schema definition of each message in each revision.

const V1: &str = "2024-11-05";
const V3: &str = "2025-06-18";
const V4: &str = "2025-11-25";
const V5: &str = "2026-07-28";

/// All revisions, the oldest first.
pub(super) const REVISIONS: [&str; 5] = [V1, "2025-03-26", V3, V4, V5];
/// The newest.
pub(super) const NEWEST: &str = V5;
/// The one in which many messages may be one array.
pub(super) const BATCHES: &str = "2025-03-26";

/// Side that may send a message.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Side {
    Client,
    Server,
}

impl Side {
    pub(super) fn other(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }
}

/// A method, the definition of its message and of its result, who may send it, and the revisions that have it.
pub(super) struct Row {
    pub(super) method: &'static str,
    pub(super) message: &'static str,
    /// None of a notification.
    pub(super) result: Option<&'static str>,
    from: &'static [Side],
    first: &'static str,
    last: &'static str,
}

const CLIENT: &[Side] = &[Side::Client];
const SERVER: &[Side] = &[Side::Server];
const BOTH: &[Side] = &[Side::Client, Side::Server];

const fn request(
    method: &'static str,
    message: &'static str,
    result: &'static str,
    from: &'static [Side],
    (first, last): (&'static str, &'static str),
) -> Row {
    Row {
        method,
        message,
        result: Some(result),
        from,
        first,
        last,
    }
}

const fn notification(
    method: &'static str,
    message: &'static str,
    from: &'static [Side],
    (first, last): (&'static str, &'static str),
) -> Row {
    Row {
        method,
        message,
        result: None,
        from,
        first,
        last,
    }
}

const ALL: (&str, &str) = (V1, V5);
const OLD: (&str, &str) = (V1, V4);
const NEW: (&str, &str) = (V5, V5);

#[rustfmt::skip]
static ROWS: &[Row] = &[
    request("initialize", "InitializeRequest", "InitializeResult", CLIENT, OLD),
    request("ping", "PingRequest", "EmptyResult", BOTH, OLD),
    request("server/discover", "DiscoverRequest", "DiscoverResult", CLIENT, NEW),
    request("tools/list", "ListToolsRequest", "ListToolsResult", CLIENT, ALL),
    request("tools/call", "CallToolRequest", "CallToolResult", CLIENT, ALL),
    request("resources/list", "ListResourcesRequest", "ListResourcesResult", CLIENT, ALL),
    request("resources/templates/list", "ListResourceTemplatesRequest", "ListResourceTemplatesResult", CLIENT, ALL),
    request("resources/read", "ReadResourceRequest", "ReadResourceResult", CLIENT, ALL),
    request("resources/subscribe", "SubscribeRequest", "EmptyResult", CLIENT, OLD),
    request("resources/unsubscribe", "UnsubscribeRequest", "EmptyResult", CLIENT, OLD),
    request("prompts/list", "ListPromptsRequest", "ListPromptsResult", CLIENT, ALL),
    request("prompts/get", "GetPromptRequest", "GetPromptResult", CLIENT, ALL),
    request("completion/complete", "CompleteRequest", "CompleteResult", CLIENT, ALL),
    request("logging/setLevel", "SetLevelRequest", "EmptyResult", CLIENT, OLD),
    request("subscriptions/listen", "SubscriptionsListenRequest", "SubscriptionsListenResult", CLIENT, NEW),
    request("sampling/createMessage", "CreateMessageRequest", "CreateMessageResult", SERVER, OLD),
    request("roots/list", "ListRootsRequest", "ListRootsResult", SERVER, OLD),
    request("elicitation/create", "ElicitRequest", "ElicitResult", SERVER, (V3, V4)),
    request("tasks/get", "GetTaskRequest", "GetTaskResult", CLIENT, (V4, V4)),
    request("tasks/result", "GetTaskPayloadRequest", "GetTaskPayloadResult", CLIENT, (V4, V4)),
    request("tasks/cancel", "CancelTaskRequest", "CancelTaskResult", CLIENT, (V4, V4)),
    request("tasks/list", "ListTasksRequest", "ListTasksResult", CLIENT, (V4, V4)),
    notification("notifications/tasks/status", "TaskStatusNotification", SERVER, (V4, V4)),
    notification("notifications/initialized", "InitializedNotification", CLIENT, OLD),
    notification("notifications/roots/list_changed", "RootsListChangedNotification", CLIENT, OLD),
    notification("notifications/cancelled", "CancelledNotification", BOTH, ALL),
    notification("notifications/progress", "ProgressNotification", BOTH, OLD),
    notification("notifications/progress", "ProgressNotification", SERVER, NEW),
    notification("notifications/message", "LoggingMessageNotification", SERVER, ALL),
    notification("notifications/tools/list_changed", "ToolListChangedNotification", SERVER, ALL),
    notification("notifications/prompts/list_changed", "PromptListChangedNotification", SERVER, ALL),
    notification("notifications/resources/list_changed", "ResourceListChangedNotification", SERVER, ALL),
    notification("notifications/resources/updated", "ResourceUpdatedNotification", SERVER, ALL),
    notification("notifications/elicitation/complete", "ElicitationCompleteNotification", SERVER, (V4, V4)),
    notification("notifications/subscriptions/acknowledged", "SubscriptionsAcknowledgedNotification", SERVER, NEW),
];

/// The row of a method that one side sends, where the revision has it.
pub(super) fn row(revision: &str, method: &str, from: Side) -> Option<&'static Row> {
    ROWS.iter().find(|row| {
        row.method == method
            && row.from.contains(&from)
            && (row.first..=row.last).contains(&revision)
    })
}

/// The newest revision that has it, for what comes before anyone named one.
pub(super) fn newest_with(method: &str, from: Side) -> &'static str {
    let mut newest_first = REVISIONS.into_iter().rev();
    newest_first
        .find(|revision| row(revision, method, from).is_some())
        .unwrap_or(NEWEST)
}

/// The definitions of a question inside of a result (2026-07-28), and of its answer.
pub(super) fn question(method: &str) -> Option<(&'static str, &'static str)> {
    Some(match method {
        "sampling/createMessage" => ("CreateMessageRequest", "CreateMessageResult"),
        "roots/list" => ("ListRootsRequest", "ListRootsResult"),
        "elicitation/create" => ("ElicitRequest", "ElicitResult"),
        _ => return None,
    })
}

/// The definition of all error replies.
pub(super) fn error_reply(revision: &str) -> &'static str {
    if revision < V4 {
        "JSONRPCError"
    } else {
        "JSONRPCErrorResponse"
    }
}

/// The definition of all good replies.
pub(super) fn good_reply(revision: &str) -> &'static str {
    if revision < V4 {
        "JSONRPCResponse"
    } else {
        "JSONRPCResultResponse"
    }
}

/// The definition of an error reply with that code, where it has one of its own.
pub(super) fn error_of(revision: &str, code: i64) -> Option<&'static str> {
    match (revision, code) {
        (V4, -32042) => Some("URLElicitationRequiredError"),
        (V5, -32020) => Some("HeaderMismatchError"),
        (V5, -32021) => Some("MissingRequiredClientCapabilityError"),
        (V5, -32022) => Some("UnsupportedProtocolVersionError"),
        _ => None,
    }
}

/// Returns whether an error reply may have that code. Since 2026-07-28, the reserved range has only the codes of the
/// protocol, and codes of earlier revisions are no longer sent. A relayed error may have an older one.
pub(super) fn may_have_code(revision: &str, code: i64, is_relayed: bool) -> bool {
    match code {
        _ if revision != V5 => true,
        -32002 => false,
        -32019..=-32000 => is_relayed,
        -32768..=-32000 => [
            -32700, -32600, -32601, -32602, -32603, -32020, -32021, -32022,
        ]
        .contains(&code),
        _ => true,
    }
}

/// Returns whether an error reply must name the request: before 2025-11-25 it cannot omit the id.
pub(super) fn errors_have_ids(revision: &str) -> bool {
    revision < V4
}
