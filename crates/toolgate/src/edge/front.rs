//! What all serving edges share: the service, the limits, and who is told of refusals.

use super::{
    QueueLimits, TaskLimits, TaskOffer, TaskView,
    given::GivenByConnection,
    modern::Senders,
    outlet::{Frames, Outlet},
    pages::Pages,
    tasks::Tasks,
};
use crate::seal::Seal;
use std::{sync::Arc, time::Duration};
use tokio::sync::watch;
use toolgate_core::{BoxFuture, Caller, Error, GivenUp, Service};
use toolgate_policy::{Clock, Store};
use toolgate_wire::{
    dialect::Dialect,
    json::{Json, Limits, ObjectWriter},
    message::{RpcError, code},
    method::{
        definition::{Definition, ItemKind},
        initialize::Implementation,
        skills,
        tasks::{EXTENSION, Support, Words},
        usage,
    },
    room::{Account, Claim, Room},
};

/// The front of a service: what all its serving edges share.
pub struct Front {
    pub(crate) service: Arc<dyn Service>,
    pub(crate) info: Implementation,
    /// The same as it stands in each reply.
    pub(crate) signature: Json,
    pub(crate) limits: ServerLimits,
    pub(crate) seal: Seal,
    pub(crate) witness: Option<Arc<dyn Witness>>,
    instructions: Option<Arc<dyn Instructs>>,
    pub(crate) offers: Offers,
    pub(crate) tasks: Tasks,
    room: Option<Arc<Room>>,
    closing: watch::Sender<bool>,
    pub(crate) pages: Pages,
    /// Lists that clients without a session were given.
    pub(crate) given: GivenByConnection,
    pub(crate) senders: Senders,
    mirrors: Option<Box<dyn Fn() -> bool + Send + Sync>>,
    /// The clock by which sealed state expires.
    pub(crate) clock: Arc<Clock>,
}

/// The limits of a serving edge.
#[derive(Clone, Debug)]
pub struct ServerLimits {
    /// Of the JSON in one message.
    pub json: Limits,
    /// The longest name or URI of what is used or listened to, in bytes.
    pub name: usize,
    /// Requests of one connection or session at once.
    pub in_flight: usize,
    /// Items on one page of a list.
    pub page: usize,
    /// How long sealed state is good.
    pub seal_life: Duration,
    /// How long the caller's own client may take over a question of a tool.
    pub question: Duration,
    /// After how long a client with a handshake that has a stream open is asked whether it is there, each time; never. One
    /// that answered such pings and leaves two in a row without an answer for 30 s each is gone: its connection or session
    /// ends, with all that runs for it. A client that is busy with its user may answer nothing meanwhile.
    pub ping: Option<Duration>,
    /// How often one call may come back with answers.
    pub rounds: u32,
    /// What may wait for a slow reader.
    pub queue: QueueLimits,
    /// Resources of which one session or stream may hear.
    pub uris: usize,
    /// Of calls that go on after their answer.
    pub tasks: TaskLimits,
}

impl Default for ServerLimits {
    fn default() -> ServerLimits {
        ServerLimits {
            json: Limits::default(),
            name: 8 * 1024,
            in_flight: 64,
            page: 1000,
            seal_life: Duration::from_secs(300),
            question: Duration::from_secs(600),
            ping: None,
            rounds: 10,
            queue: QueueLimits::default(),
            uris: 1024,
            tasks: TaskLimits::default(),
        }
    }
}

impl Front {
    /// Serves `service` under this name and version.
    ///
    /// # Errors
    /// The system gives no random bytes for the seal.
    pub fn new(
        service: Arc<dyn Service>,
        name: &str,
        version: &str,
        limits: ServerLimits,
    ) -> Result<Front, Error> {
        let info = Implementation::new(name, version);
        let seal = Seal::random(name, limits.seal_life)?;
        Ok(Front {
            service,
            signature: info.json(),
            info,
            limits,
            seal,
            witness: None,
            instructions: None,
            offers: Offers::default(),
            tasks: Tasks::default(),
            room: None,
            closing: watch::Sender::new(false),
            pages: Pages::default(),
            given: GivenByConnection::default(),
            senders: Senders::default(),
            mirrors: None,
            clock: Arc::default(),
        })
    }

    /// Sets the clock by which sealed state expires: that of the store, which never goes back.
    pub fn with_clock(mut self, clock: Arc<Clock>) -> Front {
        self.clock = clock;
        self
    }

    /// Tells `witness` of every call that the edge refuses before any layer sees it.
    pub fn with_witness(mut self, witness: Arc<dyn Witness>) -> Front {
        self.witness = Some(witness);
        self
    }

    /// Seals with the first of these keys, and opens what any of them sealed: for replicas, and for questions that
    /// outlive the process.
    ///
    /// # Errors
    /// There are none.
    pub fn with_seal_keys(self, keys: &[[u8; 32]]) -> Result<Front, Error> {
        self.seal.set_keys(keys)?;
        Ok(self)
    }

    /// Takes other keys from now on. Keep the one before for as long as its states are good: `seal_life`.
    ///
    /// # Errors
    /// There are none; then nothing changed.
    pub fn set_seal_keys(&self, keys: &[[u8; 32]]) -> Result<(), Error> {
        self.seal.set_keys(keys)
    }

    /// Counts what its messages take up. Where there is no room for one it is refused.
    pub fn with_room(mut self, room: Arc<Room>) -> Front {
        self.room = Some(room);
        self
    }

    /// A queue for what is told to a caller.
    pub(crate) fn outlet(&self, caller: &Caller) -> (Outlet, Frames) {
        Outlet::new(self.limits.queue, self.account(caller))
    }

    /// The account of a caller.
    pub(crate) fn account(&self, caller: &Caller) -> Account {
        match &self.room {
            Some(room) => Account::of(room, caller.shared()),
            None => Account::default(),
        }
    }

    /// Says more of the program than its name and version.
    pub fn with_info(mut self, info: Implementation) -> Front {
        self.signature = info.json();
        self.info = info;
        self
    }

    /// Declares these abilities instead of all.
    pub fn with_offers(mut self, offers: Offers) -> Front {
        self.offers = offers;
        self
    }

    /// Knows whether any tool wants arguments repeated in headers: where it says no, no tool is looked up for that.
    pub(crate) fn with_mirrors(
        mut self,
        any: Option<impl Fn() -> bool + Send + Sync + 'static>,
    ) -> Front {
        self.mirrors = any.map(|any| Box::new(any) as Box<_>);
        self
    }

    /// Whether a tool may want arguments repeated in headers.
    pub(crate) fn may_mirror(&self) -> bool {
        self.mirrors.as_ref().is_none_or(|any| any())
    }

    /// Says how a model should use it all.
    pub fn with_instructions(self, instructions: Option<String>) -> Front {
        match instructions {
            Some(text) => self.with_instructions_of(Arc::new(Fixed(text))),
            None => self,
        }
    }

    /// Says how a model should use it all, as somebody else knows it.
    pub fn with_instructions_of(mut self, instructions: Arc<dyn Instructs>) -> Front {
        self.instructions = Some(instructions);
        self
    }

    /// How a model of this caller should use it all.
    pub(crate) fn instructions(&self, caller: &Caller) -> Option<String> {
        self.instructions.as_ref()?.instructions(caller)
    }

    /// Ends what would wait for ever: streams of changes, calls that only wait for a person, and tasks. What runs may
    /// end.
    pub fn close(&self) {
        // Tasks before what their calls wait for: such a call would answer that the gateway stops.
        self.tasks.end();
        self.closing.send_replace(true);
    }

    /// Ends once [`Front::close`] was called.
    pub async fn closed(&self) {
        let mut closing = self.closing.subscribe();
        let _ = closing.wait_for(|closing| *closing).await;
    }

    /// Whether [`Front::close`] was called.
    pub(crate) fn is_closing(&self) -> bool {
        *self.closing.borrow()
    }

    /// Why what runs for a peer ends, where its connection or its session does.
    pub(crate) fn why_it_ends(&self) -> GivenUp {
        match self.is_closing() {
            true => GivenUp::Stop,
            false => GivenUp::Link,
        }
    }

    /// The bytes of one message as strict JSON.
    pub(crate) fn read(
        &self,
        bytes: Vec<u8>,
        claim: Claim,
    ) -> Result<Json, toolgate_wire::json::ReadError> {
        Json::read_for(bytes, &self.limits.json, claim)
    }

    /// The same of bytes that stand in a buffer.
    pub(crate) fn read_part(
        &self,
        bytes: &[u8],
        claim: Claim,
    ) -> Result<Json, toolgate_wire::json::ReadError> {
        Json::read_part_for(bytes, &self.limits.json, claim)
    }

    /// Whether a name or URI may be looked up: a template is compared with all of it.
    pub(crate) fn fits(&self, name: &str) -> Result<(), RpcError> {
        let limit = self.limits.name;
        if name.len() <= limit {
            return Ok(());
        }
        let text = format!("the name or URI is longer than {limit} bytes, which is the limit here");
        Err(RpcError::new(code::INVALID_PARAMS, text))
    }

    pub(crate) async fn refused(&self, refused: Refused) {
        if let Some(witness) = &self.witness {
            witness.refused(refused).await;
        }
    }

    /// Puts a request on record that is refused before any layer sees it, where it means a call.
    pub(crate) async fn refused_request(
        &self,
        caller: &Caller,
        transport: &'static str,
        (method, params): (&str, Option<&Json>),
        why: &RpcError,
    ) {
        if !usage::is_usage(method) {
            return;
        }
        let named = |key| params?.get(key)?.string();
        let tool = named("name").or_else(|| named("uri"));
        self.refused(Refused {
            caller: caller.clone(),
            transport,
            method: Some(method.to_owned()),
            tool,
            reason: why.message.clone(),
        })
        .await;
    }

    /// The abilities that are declared in this revision, as JSON; `lists` where a client may list its tasks.
    pub(crate) fn capabilities(&self, dialect: &Dialect, lists: bool) -> Json {
        self.offers.json(dialect, lists)
    }

    /// Whether things of that kind are listed here.
    pub(crate) fn lists(&self, kind: ItemKind) -> bool {
        kind != ItemKind::Skill || self.offers.skills
    }

    /// Whether a tool can be called as a task here.
    pub(crate) fn support(&self, tool: &Definition) -> Support {
        match self.offers.tasks {
            TaskOffer::None => Support::Forbidden,
            TaskOffer::Marked => Support::of(tool),
            TaskOffer::Every if Support::is_forbidden_by(tool) => Support::Forbidden,
            // Its server may want a task of every call: that is between that server and us.
            TaskOffer::Every => Support::Optional,
        }
    }

    /// A definition in the words of a revision, with what it says of tasks.
    ///
    /// # Errors
    /// What in it the revision does not allow.
    pub(crate) fn definition(
        &self,
        dialect: &Dialect,
        definition: &Definition,
    ) -> Result<Json, &'static str> {
        let json = dialect.definition(definition)?;
        if dialect.tasks != Words::Core || definition.kind() != ItemKind::Tool {
            return Ok(json);
        }
        Ok(match self.support(definition) {
            Support::Forbidden if json.get("execution").is_none() => json,
            Support::Forbidden if Support::is_forbidden_by(definition) => json,
            Support::Forbidden => json.without("execution"),
            support => {
                let mut execution = ObjectWriter::new();
                execution.str("taskSupport", support.word());
                json.with("execution", &execution.finish())
            }
        })
    }

    /// Keeps tasks in a store, so that a client finds them again after a restart: their states and results. `process`
    /// names this one among those that share the store. The tasks of those that are gone are taken up now: what ran
    /// there `failed`, and what had ended has its result.
    ///
    /// Tasks of a connection that ends with its process, such as stdio, are not kept.
    pub fn with_task_store(
        self,
        store: Arc<dyn Store>,
        process: &str,
        is_gone: impl Fn(&str) -> bool,
    ) -> Front {
        let limits = &self.limits.tasks;
        self.tasks.keep(store, process, limits, is_gone);
        self
    }

    /// Takes up the tasks of processes that are gone with which somebody else goes on, a server that has a task of its own:
    /// they are followed there to their end. To be called once, when what this serves can be called, and in the runtime
    /// that is to run them. Those that cannot be taken up have `failed` then.
    pub async fn take_up_tasks(self: &Arc<Front>) {
        crate::edge::tasks::take_up(self).await;
    }

    /// The calls that go on as tasks, or did and are kept, the oldest first.
    pub fn tasks(&self) -> Vec<TaskView> {
        self.tasks.views()
    }

    /// Ends the task that is that call; whether one ran.
    pub fn stop_task(&self, call: &str) -> bool {
        self.tasks.stop(call)
    }
}

/// What a server declares that it can do.
#[derive(Clone, Debug)]
pub struct Offers {
    /// It has tools.
    pub tools: bool,
    /// It has resources.
    pub resources: bool,
    /// It tells changes of single resources to those who ask.
    pub subscribe: bool,
    /// It has prompts.
    pub prompts: bool,
    /// It completes arguments.
    pub completions: bool,
    /// It tells when its lists change.
    pub list_changed: bool,
    /// Which calls may go on as tasks.
    pub tasks: TaskOffer,
    /// It has skills (2026-07-28).
    pub skills: bool,
    /// Its extensions: an object of settings by their identifiers (2026-07-28).
    pub extensions: Option<Json>,
}

impl Default for Offers {
    /// All but tasks, and of extensions skills only: what a gateway joins may change at any time.
    fn default() -> Offers {
        Offers {
            tools: true,
            resources: true,
            subscribe: true,
            prompts: true,
            completions: true,
            list_changed: true,
            tasks: TaskOffer::default(),
            skills: true,
            extensions: None,
        }
    }
}

impl Offers {
    fn json(&self, dialect: &Dialect, lists: bool) -> Json {
        let mut o = ObjectWriter::new();
        let changes = |o: &mut ObjectWriter| {
            if self.list_changed {
                o.bool("listChanged", true);
            }
        };
        if self.completions && dialect.completions {
            o.object("completions", |_| {});
        }
        let tasks = Some(dialect.tasks).filter(|_| self.tasks != TaskOffer::None);
        let extends = self.extensions.is_some() || self.skills || tasks == Some(Words::Extension);
        if dialect.stateless && extends {
            o.object("extensions", |e| {
                let own = self.extensions.iter().flat_map(Json::members);
                own.for_each(|(id, settings)| e.raw(&id, &settings));
                if self.skills {
                    e.object(skills::EXTENSION, |s| {
                        s.bool(skills::READS_DIRECTORIES, true)
                    });
                }
                if tasks == Some(Words::Extension) {
                    e.object(EXTENSION, |_| {});
                }
            });
        }
        o.object("logging", |_| {});
        if self.prompts {
            o.object("prompts", changes);
        }
        if self.resources {
            o.object("resources", |r| {
                changes(r);
                if self.subscribe {
                    r.bool("subscribe", true);
                }
            });
        }
        if tasks == Some(Words::Core) {
            o.object("tasks", |t| {
                t.object("cancel", |_| {});
                if lists {
                    t.object("list", |_| {});
                }
                t.object("requests", |r| {
                    r.object("tools", |t| t.object("call", |_| {}))
                });
            });
        }
        if self.tools {
            o.object("tools", changes);
        }
        o.finish()
    }
}

/// Knows how a model should use it all.
pub trait Instructs: Send + Sync + 'static {
    /// The words for a model of this caller. Waits for nobody.
    fn instructions(&self, caller: &Caller) -> Option<String>;
}

/// The same words for all.
struct Fixed(String);

impl Instructs for Fixed {
    fn instructions(&self, _: &Caller) -> Option<String> {
        Some(self.0.clone())
    }
}

/// A call, or an attempt at one, that an edge refused before any layer saw it.
#[derive(Clone, Debug)]
pub struct Refused {
    /// Who tried; where that is not known, the listener.
    pub caller: Caller,
    /// `http` or `stdio`.
    pub transport: &'static str,
    /// The method, where it could be read.
    pub method: Option<String>,
    /// The tool, prompt or URI, where it could be read.
    pub tool: Option<String>,
    /// Why, without anything that the caller sent.
    pub reason: String,
}

/// Is told of what the edge refuses, so that it stands in the record.
pub trait Witness: Send + Sync + 'static {
    /// Ends when it is recorded.
    fn refused(&self, refused: Refused) -> BoxFuture<'_, ()>;

    /// A client left pings without an answer. Must not block.
    fn unheard(&self, caller: &Caller, transport: &'static str, unheard: Unheard) {
        let _ = (caller, transport, unheard);
    }
}

/// Pings that a client left without an answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Unheard {
    /// How many in a row.
    pub missed: u32,
    /// Whether its connection or session ends for it. One that never answered any gets no more, and nothing ends.
    pub ends: bool,
}
