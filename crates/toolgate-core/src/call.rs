//! One use of one thing, with everything that travels with it.

use crate::{
    Background, Error, Held, Item, ItemNote, Kind, NoteAction, Principal, Refusal, Reporter, Trail,
};
use serde_json::Value;
use std::{
    borrow::Cow,
    cmp::Ordering,
    collections::BTreeMap,
    fmt,
    hash::{Hash, Hasher},
    ops::{Deref, DerefMut},
    sync::{Arc, LazyLock, OnceLock},
    time::Duration,
};
use toolgate_wire::{
    json::{Json, View},
    method::{definition::ItemKind, trace::TraceContext, usage::Op},
};

/// One use of one thing. There is no second argument to lose. What it is made of are the fields of [`CallParts`]; it is one
/// word to pass on, however much that is.
#[derive(Clone, Debug)]
pub struct Call(Box<CallParts>);

impl Deref for Call {
    type Target = CallParts;

    fn deref(&self) -> &CallParts {
        &self.0
    }
}

impl DerefMut for Call {
    fn deref_mut(&mut self) -> &mut CallParts {
        &mut self.0
    }
}

/// What a [`Call`] is made of.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CallParts {
    /// Names this call in the record, in the console and on the command line; the same in every round.
    pub id: Arc<str>,
    /// What is done with it.
    pub op: Op,
    /// What is used, and with what.
    pub of: Use,
    /// Who uses it; put here by the edge after authentication. Holds no token.
    pub caller: Caller,
    /// Answers and state of a repeated call; empty at first.
    pub round: Round,
    /// What the other end declared for this very request.
    pub abilities: Abilities,
    /// How long the caller waits without an answer or progress, where it says so. The hard limit stays.
    pub patience: Option<Duration>,
    /// Progress and log: the only way back before the outcome.
    pub reporter: Reporter,
    /// The way to say that it goes on as a task; off where the caller knows none.
    pub background: Background,
    /// For how long somebody else has worked on it already, where another process began it. It is to be found there by the
    /// state in its round, and never to be begun anew.
    pub under_way: Option<Duration>,
    /// The trace that it belongs to; passed on, and nothing decides by it.
    pub trace: TraceContext,
    /// How the edge saw it. For the record and the console; nothing decides by it.
    pub seen: Arc<Seen>,
    /// What was decided on the way, step by step.
    pub trail: Trail,
    /// What its messages take up, until its answer has left.
    pub held: Held,
    pub(crate) item: Option<Arc<Item>>,
}

/// What is used, and with what.
#[derive(Clone, Debug)]
pub struct Use {
    /// Its name or URI, as the service at hand calls it.
    pub name: String,
    /// With what; of a resource its `uri`, of a completion all parameters but the reference.
    pub arguments: Arguments,
}

/// The longest arguments that are looked at as they stand, in bytes: to step over what is nested goes through it once a level.
const SHORT: usize = 4 << 10;

/// The arguments of a call: the very bytes that came, and a tree of them for those who must look inside.
#[derive(Clone)]
pub struct Arguments(Arc<(Json, OnceLock<(Value, bool)>)>);

impl Arguments {
    /// Arguments from strict JSON; an object.
    pub fn new(raw: Json) -> Arguments {
        Arguments(Arc::new((raw, OnceLock::new())))
    }

    /// The text that is judged, shown, recorded and sent.
    pub fn raw(&self) -> &Json {
        &self.0.0
    }

    /// A tree of it, made once. Numbers that no machine type holds are rounded here; [`Arguments::lossy`] tells.
    pub fn value(&self) -> &Value {
        &self.tree().0
    }

    /// Whether some number does not survive in the tree.
    pub fn lossy(&self) -> bool {
        match self.short() {
            Some(_) => self.raw().lossy(),
            None => self.tree().1,
        }
    }

    /// They as they stand, where they are short and nobody made the tree: for who can do without it.
    pub fn short(&self) -> Option<View<'_>> {
        let (raw, tree) = &*self.0;
        (tree.get().is_none() && raw.as_str().len() <= SHORT).then(|| raw.view())
    }

    fn tree(&self) -> &(Value, bool) {
        self.0.1.get_or_init(|| self.0.0.to_value_and_loss())
    }
}

impl fmt::Debug for Arguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Arguments({} bytes)", self.raw().as_str().len())
    }
}

/// Who calls: a principal, never a credential. Two are the same where their names are.
#[derive(Clone)]
pub struct Caller {
    name: Arc<str>,
    principal: Option<Arc<Principal>>,
    holder: Option<u64>,
    session: Option<u64>,
}

/// Subject of rate and concurrency limits: a caller, and for anonymous callers over HTTP their session as well.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct LimitSubject {
    caller: Arc<str>,
    session: Option<u64>,
}

impl Caller {
    /// Name of all callers over HTTP that sent no credentials.
    pub const ANONYMOUS_HTTP: &'static str = "anonymous@http";

    /// A caller of that name, for example `anonymous@http` or `key:ci`.
    pub fn new(name: impl Into<Arc<str>>) -> Caller {
        Caller {
            name: name.into(),
            principal: None,
            holder: None,
            session: None,
        }
    }

    /// Records the session of an anonymous caller, which its [`LimitSubject`] contains. Without effect on other callers.
    ///
    /// A session is no identity: rules, approvals and audit records see the same caller in every session.
    #[must_use]
    pub fn in_session(self, session: u64) -> Caller {
        match &*self.name == Caller::ANONYMOUS_HTTP {
            true => Caller {
                session: Some(session),
                ..self
            },
            false => self,
        }
    }

    /// Returns the subject by which rate and concurrency limits count this caller.
    pub fn limit_subject(&self) -> LimitSubject {
        LimitSubject {
            caller: self.name.clone(),
            session: self.session,
        }
    }

    /// The same caller, and which of those it is that have the name one after the other: what one of them began is not for
    /// the next.
    #[must_use]
    pub fn held_by(self, holder: u64) -> Caller {
        Caller {
            holder: Some(holder),
            ..self
        }
    }

    /// Which of those it is that have the name one after the other, where that is known.
    pub fn holder(&self) -> Option<u64> {
        self.holder
    }

    /// Whether two are the same, and neither has the name after the other.
    pub fn is_still(&self, other: &Caller) -> bool {
        let apart = self.holder.is_some() && other.holder.is_some() && self.holder != other.holder;
        self == other && !apart
    }

    /// The same caller, of whom an authorization server says more.
    #[must_use]
    pub fn with(self, principal: Principal) -> Caller {
        Caller {
            principal: Some(Arc::new(principal)),
            ..self
        }
    }

    /// The same name, shared.
    pub fn shared(&self) -> Arc<str> {
        self.name.clone()
    }

    /// The name that rules and records use.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What a checked token says of it; `None` for callers that showed none, which no scope binds.
    pub fn principal(&self) -> Option<&Principal> {
        self.principal.as_deref()
    }
}

impl PartialEq for Caller {
    fn eq(&self, other: &Caller) -> bool {
        self.name == other.name
    }
}

impl Eq for Caller {}

impl Hash for Caller {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl PartialOrd for Caller {
    fn partial_cmp(&self, other: &Caller) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Caller {
    fn cmp(&self, other: &Caller) -> Ordering {
        self.name.cmp(&other.name)
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Caller({:?})", self.name)
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// What a layer wants to find again when the call comes back: one slot a layer. The edge seals it when it leaves.
pub type Slots = BTreeMap<String, String>;

/// What a repeated call brings along.
#[derive(Clone, Debug, Default)]
pub struct Round {
    /// How often the call came before; 0 at first.
    pub number: u32,
    /// The answers, by the key of the question.
    pub answers: Vec<(String, Json)>,
    /// What the layers left for themselves.
    pub slots: Slots,
}

impl Round {
    /// The answer to a question.
    pub fn answer(&self, key: &str) -> Option<&Json> {
        self.answers.iter().find(|(k, _)| k == key).map(|(_, v)| v)
    }
}

/// What the other end can be asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Abilities {
    /// To put a form to its user.
    pub elicitation: bool,
    /// To open a page for its user.
    pub elicitation_url: bool,
    /// To ask its model.
    pub sampling: bool,
    /// To ask its model, which may use tools meanwhile.
    pub sampling_tools: bool,
    /// To ask its model with context of servers included.
    pub sampling_context: bool,
    /// To name its roots.
    pub roots: bool,
    /// The extensions that it declared: an object of settings by their identifiers.
    pub extensions: Option<Json>,
}

impl Abilities {
    /// All that a caller may be asked for, without extensions.
    pub const ALL: Abilities = Abilities {
        elicitation: true,
        elicitation_url: true,
        sampling: true,
        sampling_tools: true,
        sampling_context: true,
        roots: true,
        extensions: None,
    };

    /// The settings of an extension that the other end declared.
    pub fn extension(&self, id: &str) -> Option<Json> {
        self.extensions.as_ref()?.get(id)
    }
}

/// How an edge saw a call: words for the record. The client's name is its own claim.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The revision that the caller speaks.
    pub revision: Cow<'static, str>,
    /// `http`, `stdio` or `console`.
    pub transport: &'static str,
    /// Name and version that the client gives itself; not verified.
    pub client: Option<Arc<str>>,
    /// The id of the request as the client wrote it.
    pub request: Option<String>,
}

/// How nobody saw a call: what most calls begin with, made once.
static UNSEEN: LazyLock<Arc<Seen>> = LazyLock::new(Arc::default);

impl Call {
    /// The first round of a use.
    pub fn new(
        id: impl Into<Arc<str>>,
        caller: Caller,
        op: Op,
        name: impl Into<String>,
        arguments: Json,
    ) -> Call {
        Call::on(Trail::default(), id, caller, op, name, arguments)
    }

    /// The same, on a trail that its edge holds too.
    pub fn on(
        trail: Trail,
        id: impl Into<Arc<str>>,
        caller: Caller,
        op: Op,
        name: impl Into<String>,
        arguments: Json,
    ) -> Call {
        Call(Box::new(CallParts {
            id: id.into(),
            op,
            of: Use {
                name: name.into(),
                arguments: Arguments::new(arguments),
            },
            caller,
            round: Round::default(),
            abilities: Abilities::default(),
            patience: None,
            reporter: Reporter::default(),
            background: Background::default(),
            under_way: None,
            trace: TraceContext::default(),
            seen: UNSEEN.clone(),
            trail,
            held: Held::default(),
            item: None,
        }))
    }

    /// The first round of a use of a tool.
    pub fn tool(
        id: impl Into<Arc<str>>,
        caller: Caller,
        name: impl Into<String>,
        arguments: Json,
    ) -> Call {
        Call::new(id, caller, Op::Tool, name, arguments)
    }

    /// The item behind the name, once the pipeline has looked it up.
    pub fn item(&self) -> Option<&Arc<Item>> {
        self.item.as_ref()
    }

    /// The name of what is used.
    pub fn name(&self) -> &str {
        &self.of.name
    }

    /// The arguments.
    pub fn arguments(&self) -> &Arguments {
        &self.of.arguments
    }

    /// The error of a call that another process began, where nothing is known of it.
    pub fn lost(&self) -> Error {
        let text = format!(
            "{} was called by a process that is gone, and what became of it is not to be found any more; it is not known \
             whether the call took effect",
            self.name()
        );
        Error::new(Kind::Upstream, text)
    }

    /// The error of a use of something that is not there, or that the caller may not see.
    pub fn unknown(&self) -> Error {
        let what = match self.op {
            Op::Resource => ItemKind::Resource.word(),
            op => op.kinds().first().map_or("thing", |kind| kind.word()),
        };
        Error::new(Kind::NotFound, format!("unknown {what}: {}", self.name()))
    }

    /// The error of a call to an item that is withheld, for a caller who may know of it.
    pub fn withheld(&self, item: &Item) -> Error {
        let why = item.withheld_for_callers().unwrap_or_default();
        let note = ItemNote::new(NoteAction::Withheld, why);
        let (kind, name) = (item.kind().word(), self.name());
        let text = format!("the {kind} {name} is withheld: {}", note.reason);
        Error::new(Kind::Refused(Refusal::Withheld), text)
    }
}

/// A wish to see what there is of one kind.
#[derive(Clone, Debug)]
pub struct List {
    /// Who asks.
    pub caller: Caller,
    /// For what.
    pub kind: ItemKind,
    /// Where only this one item matters, its name, or the URI that a template has to fit. Then a layer may leave the
    /// others as they are.
    pub only: Option<Arc<str>>,
    /// Takes down why that one item is hidden: for the record, never for the asker.
    pub trail: Trail,
    /// How long servers that are still starting may be waited for.
    pub wait: StartWait,
}

/// How long a request may wait for servers that are still starting.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum StartWait {
    /// As long as a list may: only for servers of which nothing is known.
    #[default]
    List,
    /// As long as a call may.
    Call,
    /// Not at all: what is known is returned.
    None,
}

impl List {
    /// All of that kind that the caller may see.
    pub fn all(caller: Caller, kind: ItemKind) -> List {
        List {
            caller,
            kind,
            only: None,
            trail: Trail::default(),
            wait: StartWait::List,
        }
    }

    /// The one thing of that name, for somebody who is about to use it.
    pub fn one(caller: Caller, kind: ItemKind, name: impl Into<Arc<str>>) -> List {
        List {
            only: Some(name.into()),
            wait: StartWait::Call,
            ..List::all(caller, kind)
        }
    }
}

/// What somebody wants to hear about.
#[derive(Clone, Debug)]
pub struct Interest {
    /// Who asks.
    pub caller: Caller,
    /// Of changes of these lists. Templates and skills change with the resources.
    pub lists: Vec<ItemKind>,
    /// Of changes of these resources, by their URIs.
    pub uris: Vec<String>,
    /// Where resources come from that were looked up for this caller: nobody else is asked about them.
    pub owners: BTreeMap<String, Arc<str>>,
}

impl Interest {
    /// In all lists, and in no resource.
    pub fn lists(caller: Caller) -> Interest {
        Interest {
            caller,
            lists: vec![ItemKind::Tool, ItemKind::Resource, ItemKind::Prompt],
            uris: Vec::new(),
            owners: BTreeMap::new(),
        }
    }
}
