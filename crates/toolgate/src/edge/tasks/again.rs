//! Calls with which somebody else goes on whatever becomes of this process: what is kept of them, and how the next
//! process takes them up.
//!
//! A call that is taken up is one more round of itself. It passes every duty again, so that a rule which came meanwhile
//! holds for it, and it is found below by the state of that round. Nobody begins it anew: [`Call::under_way`] says so.

use super::{
    entry::{Entry, Told, Working, millis, now},
    run::{Work, spawned},
};
use crate::edge::{Front, call::Context};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::sync::watch;
use toolgate_core::{
    Abilities, Call, Caller, ItemKind, List, Principal, Reporter, Round, Seen, TraceContext,
};
use toolgate_wire::{
    dialect::{self, Dialect},
    json::{Json, Limits, ObjectWriter},
};

/// How often it is looked whether the server of a call is there again.
const LOOK: Duration = Duration::from_secs(1);

/// What a call that goes on elsewhere is made of, for as long as it runs here.
pub(super) struct Again {
    server: Arc<Front>,
    call: Call,
    revision: &'static str,
    /// The round in which it is found again, as those say who know.
    round: watch::Receiver<Option<Round>>,
}

impl Again {
    /// What is kept of a call; nothing where it is no task.
    pub(super) fn of(server: &Arc<Front>, context: &Context, call: &Call) -> Option<Again> {
        Some(Again {
            server: server.clone(),
            call: call.clone(),
            revision: context.dialect.revision,
            round: call.background.again()?,
        })
    }

    /// Keeps every round that is said. Never ends.
    pub(super) async fn keep(&self, task: &Entry) {
        let mut rounds = self.round.clone();
        rounds.mark_changed();
        while rounds.changed().await.is_ok() {
            self.now(task);
        }
        std::future::pending().await
    }

    /// Keeps the round that was said last.
    pub(super) fn now(&self, task: &Entry) {
        let Some(round) = self.round.borrow().clone() else {
            return;
        };
        let kept = self.written(task, &round);
        // Where it cannot be sealed the task ends with this process, as others do.
        if let Ok(sealed) = self.server.seal.keep(&task.named(), &kept) {
            task.goes_on(sealed);
        }
    }

    fn written(&self, task: &Entry, round: &Round) -> Json {
        let (call, mut o) = (&self.call, ObjectWriter::new());
        o.str("revision", self.revision);
        o.str("since", &task.since().to_string());
        o.int("round", i64::from(round.number));
        o.object("slots", |slots| {
            round
                .slots
                .iter()
                .for_each(|(key, kept)| slots.str(key, kept));
        });
        o.raw("arguments", call.arguments().raw());
        let able = &call.abilities;
        o.object("abilities", |o| {
            for (name, able) in WORDS.into_iter().zip(words(&mut able.clone())) {
                o.bool(name, *able);
            }
            if let Some(extensions) = &able.extensions {
                o.raw("extensions", extensions);
            }
        });
        o.object("trace", |trace| call.trace.write(trace));
        o.str("transport", call.seen.transport);
        if let Some(client) = &call.seen.client {
            o.str("client", client);
        }
        if let Some(who) = call.caller.principal() {
            o.raw("principal", &principal(who));
        }
        o.finish()
    }
}

const WORDS: [&str; 6] = [
    "elicitation",
    "elicitation_url",
    "sampling",
    "sampling_tools",
    "sampling_context",
    "roots",
];

fn words(able: &mut Abilities) -> [&mut bool; 6] {
    [
        &mut able.elicitation,
        &mut able.elicitation_url,
        &mut able.sampling,
        &mut able.sampling_tools,
        &mut able.sampling_context,
        &mut able.roots,
    ]
}

fn principal(who: &Principal) -> Json {
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

/// A call as it was kept.
struct Read {
    dialect: &'static Dialect,
    /// Milliseconds since 1970.
    since: u64,
    call: Call,
}

fn read(text: Vec<u8>, task: &Entry) -> Option<Read> {
    // It came through the limits of the day on which it was written.
    let limits = Limits {
        bytes: usize::MAX,
        depth: Limits::DEEPEST,
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
    let mut abilities = Abilities {
        extensions: able.get("extensions"),
        ..Abilities::default()
    };
    for (name, ability) in WORDS.into_iter().zip(words(&mut abilities)) {
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
        caller = caller.with(principal);
    }
    let dialect = dialect::find(&text("revision")?)?;
    let since: u64 = text("since")?.parse().ok()?;
    let mut call = Call::tool(
        task.call.clone(),
        caller,
        task.tool.clone(),
        json.get("arguments")?,
    );
    call.round = Round {
        number: u32::try_from(json.get("round")?.u64()?)
            .ok()?
            .checked_add(1)?,
        answers: Vec::new(),
        slots,
    };
    call.abilities = abilities;
    let trace = json.get("trace")?;
    let of_trace = ["traceparent", "tracestate", "baggage"].map(|key| trace.get(key));
    call.trace = TraceContext::read(of_trace.each_ref().map(Option::as_ref));
    call.seen = Arc::new(Seen {
        revision: dialect.revision.into(),
        transport: match text("transport")?.as_str() {
            "http" => "http",
            "stdio" => "stdio",
            _ => "",
        },
        client: text("client").map(Into::into),
        request: None,
    });
    Some(Read {
        dialect,
        since,
        call,
    })
}

/// Takes up the tasks that go on elsewhere, of processes that are gone.
pub(crate) async fn take_up(server: &Arc<Front>) {
    let left = server.tasks.left_on().into_iter();
    // All are claimed at once, and waited for together.
    let left: Vec<_> = left
        .filter_map(|task| task.left().map(|left| (task, left)))
        .collect();
    for (task, left) in left {
        match left.claim.await {
            // Another process was faster: it answers for the task.
            Ok(false) => {
                server.tasks.drop_of(&task.id);
                continue;
            }
            Ok(true) => {}
            Err(_) => {
                task.lose();
                continue;
            }
        }
        let opened = server.seal.kept(&task.named(), &left.sealed);
        match opened.and_then(|text| read(text, &task)) {
            Some(read) => begin(server, task, read),
            // Its key is gone, or somebody wrote there.
            None => task.lose(),
        }
    }
}

fn begin(server: &Arc<Front>, task: Arc<Entry>, read: Read) {
    let Read {
        dialect,
        since,
        mut call,
    } = read;
    task.is_taken_up(since, call.round.number);
    call.trail = task.trail().clone();
    let context = Context {
        caller: call.caller.clone(),
        transport: call.seen.transport,
        dialect,
        abilities: call.abilities.clone(),
        client: call.seen.client.clone(),
        log_level: None,
        progress: None,
        trace: call.trace.clone(),
        link: None,
        session: None,
        trail: call.trail.clone(),
    };
    call.background = task.background().clone();
    let _known = call.background.start();
    call.under_way = Some(Duration::from_millis(now().saturating_sub(since)));
    call.reporter = Reporter::new(Arc::new(Told {
        task: task.clone(),
        to: Reporter::default(),
    }));
    let end = task.created.saturating_add(millis(task.life));
    let work = Work {
        server: server.clone(),
        context,
        task: task.clone(),
        life: Duration::from_millis(end.saturating_sub(now())),
    };
    let (server, caller) = (server.clone(), call.caller.clone());
    let abort = spawned(async move {
        let _working = Working(work.task.clone());
        let there = until_there(&server, caller, &work.task.tool);
        if tokio::time::timeout(work.life, there).await.is_err() {
            return work.task.lose();
        }
        let name = call.name().to_owned();
        let again = Again::of(&work.server, &work.context, &call);
        if let Some(answer) = work.answered(call, again.as_ref()).await {
            work.finish(answer, &name).await;
        }
    });
    task.runs_as(abort);
}

/// Waits until its tool is offered, or nothing is missing any more: servers may need longer to start than we do.
async fn until_there(server: &Front, caller: Caller, tool: &str) {
    loop {
        let ask = List::one(caller.clone(), ItemKind::Tool, tool);
        let listed = server.service.list(ask).await;
        // What a list cannot say the call is told.
        match listed {
            Ok(listed) if listed.find(tool).is_none() && !listed.missing().is_empty() => {}
            Err(error) if !error.starting().is_empty() => {}
            _ => return,
        }
        tokio::time::sleep(LOOK).await;
    }
}
