//! Requests of 2026-07-28: each carries all that it needs.

use super::{
    Front, answer,
    call::{self, Context},
    changes, lists,
    outlet::{Frame, Outlet, level},
    tasks,
};
use std::sync::Arc;
use toolgate_core::{Caller, Interest, ItemKind};
use toolgate_wire::{
    dialect::{self, Dialect},
    json::{Json, Kind, Members, ObjectWriter},
    message::{self, Id, RpcError, code},
    method::{
        self, discover, initialize::Implementation, meta, notifications, trace::TraceContext, usage,
    },
};

/// Whether a request speaks of itself as one of this era.
pub(crate) fn is_modern(meta: &Members) -> bool {
    meta.get(meta::VERSION).is_some()
}

/// What the request says of its sender.
pub(crate) fn context(
    caller: Caller,
    transport: &'static str,
    meta: &Members,
) -> Result<Context, RpcError> {
    let Some(version) = meta.string(meta::VERSION) else {
        return Err(answer::bad_params(
            "\"_meta\" needs \"io.modelcontextprotocol/protocolVersion\", a string",
        ));
    };
    let dialect = dialect::find(&version)
        .filter(|d| d.stateless)
        .ok_or_else(|| unsupported(&version))?;
    let capabilities = meta
        .get(meta::CAPABILITIES)
        .filter(|c| c.kind() == Kind::Object);
    let Some(capabilities) = capabilities else {
        return Err(answer::bad_params(
            "\"_meta\" needs \"io.modelcontextprotocol/clientCapabilities\", an object",
        ));
    };
    let client = meta.get(meta::CLIENT);
    let client = client.as_ref().and_then(Implementation::named);
    Ok(Context {
        caller,
        transport,
        dialect,
        abilities: call::abilities(&capabilities, dialect),
        client: client.map(|(name, version)| [&*name, &*version].join(" ")),
        log_level: log_level(meta)?,
        progress: meta.get(meta::PROGRESS),
        trace: TraceContext::read(meta),
        link: None,
        session: None,
    })
}

fn log_level(meta: &Members) -> Result<Option<u8>, RpcError> {
    let Some(word) = meta.get(meta::LOG_LEVEL) else {
        return Ok(None);
    };
    let rank = word.string().as_deref().and_then(level);
    rank.map(Some).ok_or_else(|| {
        answer::bad_params("\"io.modelcontextprotocol/logLevel\" is not a level of the protocol")
    })
}

/// The revision is not spoken here; says which are.
pub(crate) fn unsupported(version: &str) -> RpcError {
    let mut data = ObjectWriter::new();
    data.array("supported", |a| supported().for_each(|d| a.str(d.revision)));
    data.str("requested", version);
    RpcError::new(
        code::UNSUPPORTED_VERSION,
        "this revision of the protocol is not spoken here",
    )
    .with(data.finish())
}

fn supported() -> impl Iterator<Item = &'static Dialect> {
    dialect::ALL.into_iter().filter(|d| d.stateless)
}

/// Works on a request until there is an answer. Dropping the future cancels it. What is rare is in a box, so that the future of
/// a call is small.
pub(crate) async fn answer(
    server: &Arc<Front>,
    context: &Context,
    id: &Id,
    method: &str,
    params: Option<&Json>,
    outlet: &Outlet,
) -> Result<Json, RpcError> {
    match method {
        discover::NAME => Ok(about(server, context)),
        used if usage::is_usage(used) => {
            call::run(server, context, id, used, params, outlet, None).await
        }
        used if tasks::is_method(server, context, used) => {
            Box::pin(tasks::answer(server, context, used, params, None)).await
        }
        method::LISTEN => Box::pin(listen(server, context, id, params, outlet)).await,
        other => match ItemKind::listed_by(other) {
            Some(kind) => {
                let page = lists::page(server, context.dialect, &context.caller, kind, params);
                Box::pin(page).await
            }
            None => Err(answer::no_method(other)),
        },
    }
}

fn about(server: &Front, context: &Context) -> Json {
    let versions = supported().map(|d| d.revision.to_owned()).collect();
    let capabilities = server.capabilities(context.dialect, false);
    discover::Answer {
        versions,
        capabilities,
        server: Some(server.info.clone()),
        instructions: server.instructions(&context.caller),
    }
    .json()
}

/// `subscriptions/listen`: the acknowledgement first, then what was asked for, until the stream ends.
async fn listen(
    server: &Front,
    context: &Context,
    id: &Id,
    params: Option<&Json>,
    outlet: &Outlet,
) -> Result<Json, RpcError> {
    let Some(filter) = params
        .and_then(|p| p.get("notifications"))
        .filter(|f| f.kind() == Kind::Object)
    else {
        return Err(answer::bad_params("\"notifications\" must be an object"));
    };
    let want = interest(&context.caller, &filter, server.limits.uris)?;
    want.uris.iter().try_for_each(|uri| server.fits(uri))?;
    let of_tasks = tasks::Subscribed::of(server, context, &filter)?;
    let mut changes = server
        .service
        .changes(want.clone())
        .await
        .map_err(|e| answer::list_failed(&e))?
        .only(&want);
    // What this caller may not see is not acknowledged.
    let want = changes.told().cloned().unwrap_or(want);
    outlet
        .send(told(notifications::ACKNOWLEDGED, id, |o| {
            o.object("notifications", |n| {
                acknowledged(n, &want);
                of_tasks.acknowledge(n);
            })
        }))
        .await;
    let telling = async {
        while let Some(changed) = changes::next(&mut changes).await {
            for (method, params) in changes::told(&changed) {
                let params = params.finish();
                let more = |o: &mut ObjectWriter| params.members().for_each(|(k, v)| o.raw(&k, &v));
                outlet.send(told(method, id, more)).await;
            }
        }
        // Nothing will change any more: the stream stays until the client ends it.
        std::future::pending::<()>().await;
    };
    let telling_tasks = of_tasks.tell(context, |method, params| {
        let more = |o: &mut ObjectWriter| params.members().for_each(|(k, v)| o.raw(&k, &v));
        let frame = told(method, id, more);
        async move { outlet.send(frame).await }
    });
    tokio::select! {
        () = telling => {}
        () = telling_tasks => {}
        () = server.closed() => {}
    }
    if context.transport == "stdio" {
        // Page basic/utilities/cancellation: there is no stream of its own to close, so the end is told.
        let params = notifications::cancelled(id, "the server ends this subscription");
        let text = message::notification(notifications::CANCELLED, Some(&params));
        outlet.send(Frame::Before(text.into())).await;
    }
    let mut result = ObjectWriter::new();
    result.str("resultType", "complete");
    result.object("_meta", |m| {
        m.raw(meta::SUBSCRIPTION, id.json());
        m.raw(meta::SERVER, &server.info.json());
    });
    Ok(result.finish())
}

/// The lists of the filter, and what stands for them.
const FILTER: [(&str, ItemKind); 3] = [
    ("toolsListChanged", ItemKind::Tool),
    ("promptsListChanged", ItemKind::Prompt),
    ("resourcesListChanged", ItemKind::Resource),
];

fn interest(caller: &Caller, filter: &Json, most: usize) -> Result<Interest, RpcError> {
    let wants = |key: &str| filter.get(key).and_then(|t| t.bool()).unwrap_or(false);
    let lists = FILTER.iter().filter(|(key, _)| wants(key));
    let subscriptions = filter.get("resourceSubscriptions");
    let uris: Option<Vec<String>> = subscriptions
        .iter()
        .flat_map(Json::items)
        .map(|uri| uri.string())
        .collect();
    let uris = uris.filter(|uris| uris.len() <= most).ok_or_else(|| {
        let text = format!("\"resourceSubscriptions\" must be at most {most} strings");
        RpcError::new(code::INVALID_PARAMS, text)
    })?;
    Ok(Interest {
        lists: lists.map(|(_, kind)| *kind).collect(),
        uris,
        ..Interest::lists(caller.clone())
    })
}

fn acknowledged(o: &mut ObjectWriter, want: &Interest) {
    for (key, kind) in FILTER {
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

fn told(method: &str, id: &Id, fill: impl FnOnce(&mut ObjectWriter)) -> Frame {
    let mut params = ObjectWriter::new();
    params.object("_meta", |m| m.raw(meta::SUBSCRIPTION, id.json()));
    fill(&mut params);
    Frame::Before(message::notification(method, Some(&params.finish())).into())
}
