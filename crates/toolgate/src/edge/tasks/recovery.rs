//! Task recovery: calls that continue at an upstream server after this process ends. Their state is stored, and the
//! next process resumes them.
//!
//! A resumed call is one more round of itself. It passes every layer again, so that rules which were added in the
//! meantime apply. The server finds it by the state of that round. No layer starts it again, because
//! [`toolgate_core::CallParts::resumed_after`] is set.

use super::{
    run::{TaskWork, spawn_work},
    task::{CancelTaskOnDrop, ServerTask, TaskReporter, millis, now},
};
use crate::edge::{ProtocolServer, call::RequestContext};
use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::sync::watch;
use toolgate_core::{
    Call, CallReporter, Caller, CallerAttributes, ClientCapabilities, ItemKind, ListRequest,
    Principal, RequestInfo, Round, TraceContext,
};
use toolgate_protocol::{
    dialect::{self, Dialect},
    json::{Json, JsonLimits, ObjectWriter},
};

/// Interval of the check whether the server of a call is available again.
const RECOVERY_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Recovery state of a call that continues at an upstream server, while it runs here.
pub(super) struct RecoveryState {
    server: Arc<ProtocolServer>,
    call: Call,
    revision: &'static str,
    /// The round in which the call can be found again, as its layers report it.
    round: watch::Receiver<Option<Round>>,
}

impl RecoveryState {
    /// Returns the recovery state of a call, or `None` if it cannot be a task.
    pub(super) fn of_call(
        server: &Arc<ProtocolServer>,
        context: &RequestContext,
        call: &Call,
    ) -> Option<RecoveryState> {
        Some(RecoveryState {
            server: server.clone(),
            call: call.clone(),
            revision: context.dialect.revision,
            round: call.task_control.resume_round()?,
        })
    }

    /// Stores each reported round. Never returns.
    pub(super) async fn store_rounds(&self, task: &ServerTask) {
        let mut rounds = self.round.clone();
        rounds.mark_changed();
        while rounds.changed().await.is_ok() {
            self.store_round(task);
        }
        std::future::pending().await
    }

    /// Stores the last reported round.
    pub(super) fn store_round(&self, task: &ServerTask) {
        let Some(round) = self.round.borrow().clone() else {
            return;
        };
        let kept = self.to_json(task, &round);
        // If it cannot be sealed, the task ends with this process, like other tasks.
        if let Ok(sealed) = self.server.seal.seal_text(&task.seal_identity(), &kept) {
            task.store_recovery_state(sealed);
        }
    }

    fn to_json(&self, task: &ServerTask, round: &Round) -> Json {
        let (call, mut o) = (&self.call, ObjectWriter::new());
        o.str("revision", self.revision);
        o.str("since", &task.upstream_since().to_string());
        o.int("round", i64::from(round.number));
        o.object("slots", |slots| {
            round
                .slots
                .iter()
                .for_each(|(key, kept)| slots.str(key, kept));
        });
        o.raw("arguments", call.arguments().raw());
        let able = &call.capabilities;
        o.object("abilities", |o| {
            for (name, able) in CAPABILITY_NAMES
                .into_iter()
                .zip(capability_flags(&mut able.clone()))
            {
                o.bool(name, *able);
            }
            if let Some(extensions) = &able.extensions {
                o.raw("extensions", extensions);
            }
        });
        o.object("trace", |trace| call.trace.write(trace));
        o.str("transport", call.request_info.transport);
        if let Some(client) = &call.request_info.client {
            o.str("client", client);
        }
        if let Some(who) = call.caller.principal() {
            o.raw("principal", &write_principal(who));
        }
        let attributes = call.caller.attributes();
        if !attributes.is_empty() {
            o.raw("attributes", &Json::from_value(&attributes.to_value()));
        }
        o.finish()
    }
}

const CAPABILITY_NAMES: [&str; 6] = [
    "elicitation",
    "elicitation_url",
    "sampling",
    "sampling_tools",
    "sampling_context",
    "roots",
];

fn capability_flags(able: &mut ClientCapabilities) -> [&mut bool; 6] {
    [
        &mut able.elicitation,
        &mut able.elicitation_url,
        &mut able.sampling,
        &mut able.sampling_tools,
        &mut able.sampling_context,
        &mut able.roots,
    ]
}

fn write_principal(who: &Principal) -> Json {
    let mut o = ObjectWriter::new();
    o.str("issuer", &who.issuer);
    o.str("subject", &who.subject);
    if let Some(client) = &who.client {
        o.str("client", client);
    }
    o.array("scopes", |a| who.scopes.iter().for_each(|s| a.str(s)));
    o.array("actors", |a| who.actors.iter().for_each(|s| a.str(s)));
    o.finish()
}

/// A call read from its stored state.
struct RecoveredCall {
    dialect: &'static Dialect,
    /// In milliseconds since 1970.
    since: u64,
    call: Call,
}

fn read_state(text: Vec<u8>, task: &ServerTask) -> Option<RecoveredCall> {
    // It passed the JSON limits when it was written.
    let limits = JsonLimits {
        bytes: usize::MAX,
        depth: JsonLimits::MAX_DEPTH,
        keys: usize::MAX,
        elements: usize::MAX,
    };
    let json = Json::read(text, &limits).ok()?;
    let text = |key: &str| json.get(key)?.string();
    let slots = json.get("slots")?;
    let slots = slots.members();
    let slots: BTreeMap<_, _> = slots
        .filter_map(|(key, kept)| Some((key.into_owned(), kept.string()?)))
        .collect();
    let able = json.get("abilities")?;
    let mut abilities = ClientCapabilities::default();
    abilities.extensions = able.get("extensions");
    for (name, ability) in CAPABILITY_NAMES
        .into_iter()
        .zip(capability_flags(&mut abilities))
    {
        *ability = able.get(name)?.bool()?;
    }
    let mut caller = task.owner.clone();
    if let Some(who) = json.get("principal") {
        let list = |key: &str| -> Option<Vec<String>> {
            who.get(key)?.items().map(|item| item.string()).collect()
        };
        let text = |key: &str| who.get(key)?.string();
        let mut principal = Principal::new(text("issuer")?, text("subject")?);
        principal.client = text("client");
        principal.scopes = list("scopes")?;
        principal.actors = list("actors")?;
        caller = caller.with_principal(principal);
    }
    if let Some(attributes) = json.get("attributes") {
        let (attributes, _) = attributes.to_value_and_loss();
        caller = caller.with_attributes(CallerAttributes::from_value(&attributes));
    }
    let dialect = dialect::find(&text("revision")?)?;
    let since: u64 = text("since")?.parse().ok()?;
    let mut call = Call::tool(
        task.call.clone(),
        caller,
        task.tool.clone(),
        json.get("arguments")?,
    );
    let mut round = Round::default();
    round.number = u32::try_from(json.get("round")?.u64()?)
        .ok()?
        .checked_add(1)?;
    round.slots = slots;
    call.round = round;
    call.capabilities = abilities;
    let trace = json.get("trace")?;
    let of_trace = ["traceparent", "tracestate", "baggage"].map(|key| trace.get(key));
    call.trace = TraceContext::read(of_trace.each_ref().map(Option::as_ref));
    let mut info = RequestInfo::default();
    info.revision = dialect.revision.into();
    info.transport = match text("transport")?.as_str() {
        "http" => "http",
        "stdio" => "stdio",
        _ => "",
    };
    info.client = text("client").map(Into::into);
    call.request_info = Arc::new(info);
    Some(RecoveredCall {
        dialect,
        since,
        call,
    })
}

/// Recovers the tasks of ended processes that continue at an upstream server.
pub(crate) async fn recover_tasks(server: &Arc<ProtocolServer>) {
    let left = server.tasks.needing_recovery().into_iter();
    // All claims start now and are awaited below.
    let left: Vec<_> = left
        .filter_map(|task| task.begin_recovery().map(|left| (task, left)))
        .collect();
    for (task, left) in left {
        match left.claim.await {
            // Another process was faster and owns the task.
            Ok(false) => {
                server.tasks.release(&task.id);
                continue;
            }
            Ok(true) => {}
            Err(_) => {
                task.fail_interrupted();
                continue;
            }
        }
        let opened = server.seal.open_text(&task.seal_identity(), &left.sealed);
        match opened.and_then(|text| read_state(text, &task)) {
            Some(read) => resume_task(server, task, read),
            // The seal key was removed, or the stored state was modified.
            None => task.fail_interrupted(),
        }
    }
}

fn resume_task(server: &Arc<ProtocolServer>, task: Arc<ServerTask>, read: RecoveredCall) {
    let RecoveredCall {
        dialect,
        since,
        mut call,
    } = read;
    task.mark_recovered(since, call.round.number);
    call.decision_log = task.decision_log().clone();
    let context = RequestContext {
        caller: call.caller.clone(),
        transport: call.request_info.transport,
        dialect,
        capabilities: call.capabilities.clone(),
        client: call.request_info.client.clone(),
        log_level: None,
        progress_token: None,
        trace: call.trace.clone(),
        connection: None,
        received_lists: None,
        session_tasks: None,
        decision_log: call.decision_log.clone(),
        address: None,
        transport_parts: None,
        transport_trace: None,
        span: OnceLock::new(),
    };
    call.task_control = task.task_control().clone();
    let _known = call.task_control.start_task();
    call.resumed_after = Some(Duration::from_millis(now().saturating_sub(since)));
    call.reporter = CallReporter::new(Arc::new(TaskReporter {
        task: task.clone(),
        to: CallReporter::default(),
    }));
    let end = task.created.saturating_add(millis(task.lifetime));
    let work = TaskWork {
        server: server.clone(),
        context,
        task: task.clone(),
        time_left: Duration::from_millis(end.saturating_sub(now())),
    };
    let (server, caller) = (server.clone(), call.caller.clone());
    let abort = spawn_work(async move {
        let _working = CancelTaskOnDrop(work.task.clone());
        let there = wait_until_listed(&server, caller, &work.task.tool);
        if tokio::time::timeout(work.time_left, there).await.is_err() {
            return work.task.fail_interrupted();
        }
        let name = call.name().to_owned();
        let again = RecoveryState::of_call(&work.server, &work.context, &call);
        if let Some(answer) = work.run_rounds(call, again.as_ref()).await {
            work.finish(answer, &name).await;
        }
    });
    task.set_abort_handle(abort);
}

/// Waits until its tool is listed, or no server is missing: servers may start more slowly than this process.
async fn wait_until_listed(server: &ProtocolServer, caller: Caller, tool: &str) {
    loop {
        let ask = ListRequest::one(caller.clone(), ItemKind::Tool, tool);
        let listed = server.service.list(ask).await;
        // The call itself reports all other errors.
        match listed {
            Ok(listed) if listed.find(tool).is_none() && !listed.missing_servers().is_empty() => {}
            Err(error) if !error.starting_servers().is_empty() => {}
            _ => return,
        }
        tokio::time::sleep(RECOVERY_POLL_INTERVAL).await;
    }
}
