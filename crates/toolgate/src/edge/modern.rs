//! Requests of 2026-07-28: each carries all that it needs.

use super::{
    Server, answer,
    call::{self, Context},
    lists,
    outlet::{Frame, Outlet, level},
};
use toolgate_core::{Caller, Interest};
use toolgate_wire::{
    dialect::{self, Dialect},
    json::{Json, Kind, ObjectWriter},
    message::{self, Id, RpcError, code},
    method::{
        self, discover, initialize::Implementation, meta, notifications, tools_call, tools_list,
    },
};

/// Whether a request speaks of itself as one of this era.
pub(crate) fn is_modern(params: Option<&Json>) -> bool {
    meta::get(params, meta::VERSION).is_some()
}

/// What the request says of its sender.
pub(crate) fn context(
    caller: Caller,
    transport: &'static str,
    params: Option<&Json>,
) -> Result<Context, RpcError> {
    let Some(version) = meta::get(params, meta::VERSION).and_then(|v| v.string()) else {
        return Err(answer::bad_params(
            "\"_meta\" needs \"io.modelcontextprotocol/protocolVersion\", a string",
        ));
    };
    let dialect = dialect::find(&version)
        .filter(|d| d.stateless)
        .ok_or_else(|| unsupported(&version))?;
    let capabilities = meta::get(params, meta::CAPABILITIES).filter(|c| c.kind() == Kind::Object);
    let Some(capabilities) = capabilities else {
        return Err(answer::bad_params(
            "\"_meta\" needs \"io.modelcontextprotocol/clientCapabilities\", an object",
        ));
    };
    let client = meta::get(params, meta::CLIENT)
        .as_ref()
        .and_then(Implementation::read);
    Ok(Context {
        caller,
        transport,
        dialect,
        abilities: call::abilities(&capabilities, dialect),
        client: client.map(|c| format!("{} {}", c.name, c.version)),
        log_level: log_level(params)?,
    })
}

fn log_level(params: Option<&Json>) -> Result<Option<u8>, RpcError> {
    let Some(word) = meta::get(params, meta::LOG_LEVEL) else {
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

/// Works on a request until there is an answer. Dropping the future cancels it.
pub(crate) async fn answer(
    server: &Server,
    context: &Context,
    id: &Id,
    method: &str,
    params: Option<&Json>,
    outlet: &Outlet,
) -> Result<Json, RpcError> {
    match method {
        discover::NAME => Ok(about(server)),
        tools_list::NAME => lists::tools(server, context.dialect, &context.caller, params).await,
        tools_call::NAME => call::run(server, context, id, params, outlet, None).await,
        method::LISTEN => listen(server, context, id, params, outlet).await,
        other => Err(answer::no_method(other)),
    }
}

fn about(server: &Server) -> Json {
    let versions = supported().map(|d| d.revision.to_owned()).collect();
    let capabilities = server.capabilities();
    discover::Answer {
        versions,
        capabilities,
        server: Some(server.info.clone()),
        instructions: None,
    }
    .json()
}

/// `subscriptions/listen`: the acknowledgement first, then what was asked for, until the stream ends.
async fn listen(
    server: &Server,
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
    let tools = filter
        .get("toolsListChanged")
        .and_then(|t| t.bool())
        .unwrap_or(false);
    let want = Interest {
        caller: context.caller.clone(),
        tools,
    };
    let mut changes = server
        .service
        .changes(want)
        .await
        .map_err(|e| answer::list_failed(&e))?;
    outlet
        .send(told(notifications::ACKNOWLEDGED, id, |o| {
            o.object("notifications", |n| {
                if tools {
                    n.bool("toolsListChanged", true)
                }
            })
        }))
        .await;
    let telling = async {
        // Where nothing was asked for that is told here, the stream stays until the client ends it.
        while tools && changes.next().await.is_some() {
            outlet
                .send(told(notifications::TOOLS_CHANGED, id, |_| ()))
                .await;
        }
        if !tools {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = telling => {}
        () = server.closed() => {}
    }
    if context.transport == "stdio" {
        // Page basic/utilities/cancellation: there is no stream of its own to close, so the end is told.
        let params = notifications::cancelled(id, "the server ends this subscription");
        let text = message::notification(notifications::CANCELLED, Some(&params));
        outlet.send(Frame::Before(text)).await;
    }
    let mut result = ObjectWriter::new();
    result.str("resultType", "complete");
    result.object("_meta", |m| {
        m.raw(meta::SUBSCRIPTION, id.json());
        m.raw(meta::SERVER, &server.info.json());
    });
    Ok(result.finish())
}

fn told(method: &str, id: &Id, fill: impl FnOnce(&mut ObjectWriter)) -> Frame {
    let mut params = ObjectWriter::new();
    params.object("_meta", |m| m.raw(meta::SUBSCRIPTION, id.json()));
    fill(&mut params);
    Frame::Before(message::notification(method, Some(&params.finish())))
}
