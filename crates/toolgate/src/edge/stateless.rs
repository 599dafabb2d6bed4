//! Stateless requests of revision 2026-07-28: each has its own metadata.

use super::{
    ProtocolServer,
    call::{self, RequestContext},
    changes, lists,
    operation::ObservedOperation,
    received_lists::{ReceivedLists, ReportedLists, add_pending},
    responder::{OutgoingFrame, Responder, log_level_rank},
    response::{self, RequestResult},
    skills, tasks,
};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use toolgate_core::{
    Caller, ChangeFilter, ChangeSet, ChangeStream, ClientCapabilities, DecisionLog, ItemKind,
};
use toolgate_protocol::{
    dialect::{self, Dialect},
    json::{Json, JsonKind, ObjectWriter},
    message::{self, Id, RpcError, code},
    method::{
        self, discover,
        initialize::Implementation,
        meta::{self, RequestMeta},
        notifications, operation,
    },
};

/// Returns the context of a request, from its `_meta`. Boxed, because the future of the request is moved as it is made.
pub(crate) fn request_context(
    server: &ProtocolServer,
    caller: Caller,
    transport: &'static str,
    meta: &RequestMeta,
) -> Result<Box<RequestContext>, RpcError> {
    let sender = server.client_metadata.get_or_read(meta)?;
    Ok(Box::new(RequestContext {
        caller,
        transport,
        dialect: sender.dialect,
        capabilities: sender.capabilities.clone(),
        client: sender.client.clone(),
        log_level: log_level(meta)?,
        progress_token: meta.progress.clone(),
        trace: meta.trace(),
        connection: None,
        received_lists: None,
        session_tasks: None,
        decision_log: DecisionLog::default(),
        address: None,
        transport_parts: None,
        transport_trace: None,
        span: OnceLock::new(),
    }))
}

/// Parsed client metadata of a request.
struct ClientMetadata {
    dialect: &'static Dialect,
    capabilities: ClientCapabilities,
    client: Option<Arc<str>>,
}

impl ClientMetadata {
    fn read(meta: &RequestMeta) -> Result<ClientMetadata, RpcError> {
        let Some(version) = meta.version.as_ref().and_then(Json::string) else {
            return Err(response::invalid_params(
                "\"_meta\" needs \"io.modelcontextprotocol/protocolVersion\", a string",
            ));
        };
        let dialect = dialect::stateless()
            .find(|d| d.revision == version)
            .ok_or_else(|| unsupported_version(&version, dialect::stateless()))?;
        let capabilities = meta.capabilities.as_ref();
        let Some(capabilities) = capabilities.filter(|c| c.kind() == JsonKind::Object) else {
            return Err(response::invalid_params(
                "\"_meta\" needs \"io.modelcontextprotocol/clientCapabilities\", an object",
            ));
        };
        let client = meta
            .client
            .as_ref()
            .and_then(Implementation::read_name_and_version);
        Ok(ClientMetadata {
            dialect,
            capabilities: call::client_capabilities(capabilities, dialect),
            client: client.map(|(name, version)| [&*name, &*version].join(" ").into()),
        })
    }
}

/// Cache of the last client metadata: a client sends the same in each request, so it is parsed once.
#[derive(Default)]
pub(crate) struct ClientMetadataCache(Mutex<Option<(RawClientMetadata, Arc<ClientMetadata>)>>);

/// The raw cache key: JSON of version, capabilities and client.
type RawClientMetadata = [Option<Box<str>>; 3];

/// Longest metadata that is cached, in bytes.
const MAX_CACHED_METADATA_BYTES: usize = 4 << 10;

impl ClientMetadataCache {
    fn get_or_read(&self, meta: &RequestMeta) -> Result<Arc<ClientMetadata>, RpcError> {
        let said = [&meta.version, &meta.capabilities, &meta.client];
        let said = said.map(|part| part.as_ref().map(Json::as_str));
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same =
            |(words, _): &&(RawClientMetadata, _)| words.each_ref().map(Option::as_deref) == said;
        if let Some((_, sender)) = last.as_ref().filter(same) {
            return Ok(sender.clone());
        }
        let sender = Arc::new(ClientMetadata::read(meta)?);
        if said.iter().flatten().map(|part| part.len()).sum::<usize>() <= MAX_CACHED_METADATA_BYTES
        {
            *last = Some((said.map(|part| part.map(Into::into)), sender.clone()));
        }
        Ok(sender)
    }
}

fn log_level(meta: &RequestMeta) -> Result<Option<u8>, RpcError> {
    let Some(word) = &meta.log_level else {
        return Ok(None);
    };
    let rank = word.string().as_deref().and_then(log_level_rank);
    rank.map(Some).ok_or_else(|| {
        response::invalid_params(
            "\"io.modelcontextprotocol/logLevel\" is not a log level of the protocol",
        )
    })
}

/// Returns the error for an unsupported revision, with the supported ones.
pub(crate) fn unsupported_version(
    version: &str,
    supported: impl Iterator<Item = &'static Dialect>,
) -> RpcError {
    let mut data = ObjectWriter::new();
    data.array("supported", |a| supported.for_each(|d| a.str(d.revision)));
    data.str("requested", version);
    RpcError::new(
        code::UNSUPPORTED_VERSION,
        "this protocol revision is not supported; use one of those in \"supported\"",
    )
    .with_data(data.finish())
}

/// Handles a request and returns its response. Dropping the future cancels it. Rare cases are boxed, so that the future
/// of a call is small.
pub(crate) async fn handle_request(
    server: &Arc<ProtocolServer>,
    context: &RequestContext,
    id: &Id,
    method: &str,
    params: Option<&Json>,
    responder: &Responder,
) -> Result<RequestResult, RpcError> {
    let observed = ObservedOperation::begin(server, context, Some(id), method);
    if let Some(observed) = &observed {
        observed.attach_span();
    }
    let answer = dispatch_request(server, context, id, method, params, responder).await;
    if let Some(observed) = observed {
        observed.end(&answer);
    }
    answer
}

async fn dispatch_request(
    server: &Arc<ProtocolServer>,
    context: &RequestContext,
    id: &Id,
    method: &str,
    params: Option<&Json>,
    responder: &Responder,
) -> Result<RequestResult, RpcError> {
    match method {
        discover::NAME => Ok(discover_result(server, context).into()),
        used if operation::is_operation(used) => {
            call::handle_operation(server, context, id, used, params, responder, None).await
        }
        used if tasks::is_method(server, context.dialect, context.connection, used) => {
            let answer = Box::pin(tasks::handle_method(server, context, used, params, None)).await;
            answer.map(RequestResult::Json)
        }
        method::LISTEN => {
            let told = Box::pin(listen(server, context, id, params.cloned(), responder)).await;
            told.map(RequestResult::Json)
        }
        used if skills::is_method(server, used) => {
            let answer = Box::pin(skills::handle_method(server, context, used, params)).await;
            answer.map(RequestResult::Json)
        }
        other => match ItemKind::listed_by(other).filter(|kind| server.lists_kind(*kind)) {
            Some(kind) => {
                let given = context.received_lists.as_deref();
                let (dialect, caller) = (context.dialect, &context.caller);
                let page = lists::list_page(server, dialect, caller, (kind, params), given);
                Box::pin(page).await.map(RequestResult::Json)
            }
            None => Err(response::method_not_found(other)),
        },
    }
}

fn discover_result(server: &ProtocolServer, context: &RequestContext) -> Json {
    let versions = dialect::stateless().map(|d| d.revision.to_owned());
    let capabilities = server.capabilities(context.dialect, false);
    discover::DiscoverResult {
        versions: versions.collect(),
        capabilities,
        server: Some(server.info.clone()),
        instructions: server.instructions(&context.caller),
    }
    .json()
}

/// Returns the changed lists to report: those that differ from the client's, or all if that is unknown.
async fn outdated_lists(
    server: &ProtocolServer,
    context: &RequestContext,
    changed: &[ItemKind],
    known: Option<&mut (&ReceivedLists, Box<ReportedLists>)>,
) -> Vec<ItemKind> {
    match known {
        Some((received, told)) => {
            received
                .outdated(server, &context.caller, changed, told)
                .await
        }
        None => changed.to_vec(),
    }
}

/// Handles `subscriptions/listen`: sends the acknowledgement, then notifications until the stream ends. A stream mostly
/// waits, so rare steps are boxed, and it keeps no parameters.
pub(crate) async fn listen(
    server: &ProtocolServer,
    context: &RequestContext,
    id: &Id,
    params: Option<Json>,
    responder: &Responder,
) -> Result<Json, RpcError> {
    let (mut changes, of_tasks) =
        Box::pin(subscribe(server, context, id, params, responder)).await?;
    let notifications = async {
        let received = context.received_lists.as_deref();
        let mut known = received.map(|lists| (lists, Box::<ReportedLists>::default()));
        let mut pending = Vec::new();
        let mut over = false;
        loop {
            tokio::select! {
                changed = changes.next(), if !over => match changed {
                    Some(changed) => {
                        let merged = Box::pin(changes::merge_following(changed, &mut changes));
                        let mut changed = merged.await;
                        add_pending(&mut pending, std::mem::take(&mut changed.lists));
                        Box::pin(send_changes(changed, id, responder)).await;
                    }
                    None => over = true,
                },
                lists = async { Box::pin(outdated_lists(server, context, &pending, known.as_mut())).await }, if !pending.is_empty() => {
                    pending.clear();
                    let changed = ChangeSet::of_lists(lists);
                    Box::pin(send_changes(changed, id, responder)).await;
                }
                else => break,
            }
        }
        // No more changes will come: the stream stays open until the client ends it.
        std::future::pending::<()>().await;
    };
    let telling_tasks = async {
        if of_tasks.is_empty() {
            return std::future::pending().await;
        }
        Box::pin(of_tasks.send_status(context, |method, params| {
            let more = |o: &mut ObjectWriter| params.members().for_each(|(k, v)| o.raw(&k, &v));
            let frame = notification_frame(method, id, more);
            async move { responder.send(frame).await }
        }))
        .await
    };
    tokio::select! {
        () = notifications => {}
        () = telling_tasks => {}
        () = server.closed() => {}
    }
    if context.transport == "stdio" {
        // Page basic/utilities/cancellation: on stdio there is no stream to close, so a notification reports the end.
        let params = notifications::cancelled(id, "the server ends this subscription");
        let text = message::notification(notifications::CANCELLED, Some(&params));
        responder
            .send(OutgoingFrame::BeforeReply(text.into()))
            .await;
    }
    let mut result = ObjectWriter::new();
    result.str("resultType", "complete");
    result.object("_meta", |m| {
        m.raw(meta::SUBSCRIPTION, id.json());
        m.raw(meta::SERVER, &server.info.json());
    });
    Ok(result.finish())
}

/// Subscribes to the changes in the filter, and acknowledges them.
async fn subscribe(
    server: &ProtocolServer,
    context: &RequestContext,
    id: &Id,
    params: Option<Json>,
    responder: &Responder,
) -> Result<(ChangeStream, tasks::TaskSubscription), RpcError> {
    let Some(filter) = params
        .as_ref()
        .and_then(|p| p.get("notifications"))
        .filter(|f| f.kind() == JsonKind::Object)
    else {
        return Err(response::invalid_params(
            "\"notifications\" must be an object",
        ));
    };
    let want = read_filter(&context.caller, &filter, server.limits.max_subscriptions)?;
    want.uris
        .iter()
        .try_for_each(|uri| server.check_name_length(uri))?;
    let of_tasks = tasks::TaskSubscription::from_filter(server, context, &filter)?;
    let changes = server
        .service
        .changes(want.clone())
        .await
        .map_err(|e| response::list_error(&e))?
        .filtered(&want);
    // Resources that the caller may not see are not acknowledged.
    let want = changes.filter().cloned().unwrap_or(want);
    responder
        .send(notification_frame(notifications::ACKNOWLEDGED, id, |o| {
            o.object("notifications", |n| {
                write_filter(n, &want);
                of_tasks.acknowledge(n);
            })
        }))
        .await;
    Ok((changes, of_tasks))
}

/// Sends the notifications for a change.
async fn send_changes(changed: ChangeSet, id: &Id, responder: &Responder) {
    for (method, params) in changes::change_notifications(&changed) {
        let params = params.finish();
        let more = |o: &mut ObjectWriter| params.members().for_each(|(k, v)| o.raw(&k, &v));
        responder.send(notification_frame(method, id, more)).await;
    }
}

/// The list members of the filter, and their kinds.
const LIST_FILTER_MEMBERS: [(&str, ItemKind); 3] = [
    ("toolsListChanged", ItemKind::Tool),
    ("promptsListChanged", ItemKind::Prompt),
    ("resourcesListChanged", ItemKind::Resource),
];

fn read_filter(caller: &Caller, filter: &Json, most: usize) -> Result<ChangeFilter, RpcError> {
    let wants = |key: &str| filter.get(key).and_then(|t| t.bool()).unwrap_or(false);
    let lists = LIST_FILTER_MEMBERS.iter().filter(|(key, _)| wants(key));
    let subscriptions = filter.get("resourceSubscriptions");
    let uris: Option<Vec<String>> = subscriptions
        .iter()
        .flat_map(Json::items)
        .map(|uri| uri.string())
        .collect();
    let uris = uris.filter(|uris| uris.len() <= most).ok_or_else(|| {
        let text = format!("\"resourceSubscriptions\" must be an array of at most {most} strings");
        RpcError::new(code::INVALID_PARAMS, text)
    })?;
    let mut wanted = ChangeFilter::all_lists(caller.clone());
    wanted.lists = lists.map(|(_, kind)| *kind).collect();
    wanted.uris = uris;
    Ok(wanted)
}

fn write_filter(o: &mut ObjectWriter, want: &ChangeFilter) {
    for (key, kind) in LIST_FILTER_MEMBERS {
        if want.lists.contains(&kind) {
            o.bool(key, true);
        }
    }
    if !want.uris.is_empty() {
        o.array("resourceSubscriptions", |a| {
            want.uris.iter().for_each(|uri| a.str(uri))
        });
    }
}

fn notification_frame(
    method: &str,
    id: &Id,
    fill: impl FnOnce(&mut ObjectWriter),
) -> OutgoingFrame {
    let mut params = ObjectWriter::new();
    params.object("_meta", |m| m.raw(meta::SUBSCRIPTION, id.json()));
    fill(&mut params);
    OutgoingFrame::BeforeReply(message::notification(method, Some(&params.finish())).into())
}
