//! What an application brings along, and which duties it sets otherwise.

use super::{
    CallEvent, Confirming, Form, Page, Sampled, Sampling, Told, answers::Functions,
    child::Settings, errors::unusable, roots,
};
use crate::{
    client::{EraPreference, HttpOptions},
    handlers::{
        Level,
        ask::{Reply, Root},
    },
};
use serde_json::Value;
use std::{fmt, future::Future, path::PathBuf, sync::Arc, time::Duration};
use toolgate_auth::client::Credentials;
use toolgate_core::{Error, Item, Json, LogMessage, Rule};
use toolgate_policy::{
    Access, AccessRule, Asking, Memory, OnLeak, OnPlaceholder, OnSecret, OutputSchema, Pattern,
    PerServer, PinEvent, Pins, Quota, Rate, Recorder, Size, Standard, Then,
};
use toolgate_wire::{
    dialect::{self, Dialect},
    json::{Kind, ObjectWriter},
    method::initialize::Implementation,
};

/// A client in the making. Every duty of a client is on; what the application does not answer is not declared.
///
/// ```
/// # use toolgate::{Client, Server, handlers::ask::Reply};
/// # use serde_json::json;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), toolgate::Error> {
/// # let server = Server::new("s", "1");
/// let client = Client::builder()
///     .name("my-app", "1.0.0")
///     .on_elicit(|form| async move {
///         println!("{} asks: {}", form.server, form.message);
///         Reply::Accepted(json!({"unit": "C"}))
///     })
///     .confirm(|call| async move {
///         match call.tool.hints().read_only {
///             true => Ok(()),
///             false => Err("only reading is allowed here".to_owned()),
///         }
///     })
///     .allow(["get_*", "list_*"])
///     .in_process(server)
///     .await?;
/// # drop(client);
/// # Ok(())
/// # }
/// ```
#[must_use = "a client is made by spawn, connect or in_process"]
pub struct ClientBuilder {
    pub(super) client: Option<Implementation>,
    pub(super) id: Option<String>,
    pub(super) revisions: Vec<&'static Dialect>,
    pub(super) era: EraPreference,
    pub(super) functions: Functions,
    pub(super) duties: Standard,
    pub(super) trusted: bool,
    pub(super) start: Duration,
    pub(super) rounds: u32,
    pub(super) observe: Option<Told<CallEvent>>,
    pub(super) log_level: Option<Level>,
    pub(super) process: Settings,
    pub(super) http: HttpOptions,
    pins: Option<Pins>,
    on_pin: Option<Told<PinEvent>>,
    allow: Vec<String>,
    deny: Vec<String>,
    extensions: Vec<(String, Json)>,
    audit: Option<PathBuf>,
    wrong: Option<String>,
}

/// Pins that last as long as the client.
fn in_memory() -> Pins {
    Pins::new(Arc::new(Memory::new()), Arc::new(Recorder::log()))
}

impl ClientBuilder {
    pub(super) fn new() -> ClientBuilder {
        ClientBuilder {
            client: None,
            id: None,
            revisions: Vec::new(),
            era: EraPreference::default(),
            functions: Functions::default(),
            duties: Standard::default(),
            trusted: false,
            start: Duration::from_secs(30),
            rounds: 10,
            observe: None,
            log_level: None,
            process: Settings::default(),
            http: HttpOptions::default(),
            pins: Some(in_memory()),
            on_pin: None,
            allow: Vec::new(),
            deny: Vec::new(),
            extensions: Vec::new(),
            audit: None,
            wrong: None,
        }
    }

    /// Who the application says it is: name and version.
    pub fn name(self, name: &str, version: &str) -> ClientBuilder {
        self.info(Implementation::new(name, version))
    }

    /// Who the application says it is, with title, icons and the like.
    pub fn info(mut self, info: Implementation) -> ClientBuilder {
        self.client = Some(info);
        self
    }

    /// How the server is called in questions, rules and records; else the name of its program, its host, or its own.
    pub fn id(mut self, id: &str) -> ClientBuilder {
        self.id = Some(id.to_owned());
        self
    }

    /// Speaks only this revision of the protocol, or those of several calls, the first before the others. All, where
    /// nothing is said.
    pub fn revision(mut self, revision: &str) -> ClientBuilder {
        match dialect::find(revision) {
            Some(dialect) => self.revisions.push(dialect),
            None => self.fault(format!("{revision:?} is no revision of the protocol")),
        }
        self
    }

    /// Uses a session (2025-11-25 or older) with a server that offers one beside the newest revision; the newest is
    /// the default. Tools of many SDKs can ask their user in a session only. Over HTTP a server that keeps no session
    /// is used in the newest revision all the same.
    ///
    /// ```no_run
    /// # async fn open() -> Result<(), toolgate::Error> {
    /// use toolgate::{Client, client::EraPreference};
    ///
    /// let client = Client::builder()
    ///     .prefer_era(EraPreference::Session)
    ///     .connect("http://127.0.0.1:8000/mcp")
    ///     .await?;
    /// # drop(client);
    /// # Ok(())
    /// # }
    /// ```
    pub fn prefer_era(mut self, era: EraPreference) -> ClientBuilder {
        self.era = era;
        self
    }

    /// Longest time until the server is open; 30 s.
    pub fn start(mut self, limit: Duration) -> ClientBuilder {
        self.start = limit;
        self
    }

    /// Declares an extension by its identifier, with its settings: an object.
    pub fn extension(mut self, id: &str, settings: Value) -> ClientBuilder {
        if !settings.is_object() || !id.contains('/') {
            self.fault(format!("the extension {id:?} needs an identifier with a prefix, as in com.example/thing, and an object of settings"));
        }
        self.extensions
            .push((id.to_owned(), Json::from_value(&settings)));
        self
    }

    /// Answers a form. Members that an answer leaves out are filled in with the defaults of the form, and an answer
    /// that does not fit it is not sent: the call fails.
    pub fn on_elicit<F, A>(mut self, fill: F) -> ClientBuilder
    where
        F: Fn(Form) -> A + Send + Sync + 'static,
        A: Future<Output = Reply<Value>> + Send + 'static,
    {
        self.functions.form = Some(Arc::new(move |form| Box::pin(fill(form))));
        self
    }

    /// Opens a page for the user; `Reply::Accepted(())` says that the user agreed to go there. See [`Page`] for what
    /// has to be shown first.
    pub fn on_elicit_url<F, A>(mut self, open: F) -> ClientBuilder
    where
        F: Fn(Page) -> A + Send + Sync + 'static,
        A: Future<Output = Reply<()>> + Send + 'static,
    {
        self.functions.page = Some(Arc::new(move |page| Box::pin(open(page))));
        self
    }

    /// Hears that the user is done with a page, by its id (2025-11-25). Ids that were not asked for are ignored.
    pub fn on_page_done(mut self, done: impl Fn(String) + Send + Sync + 'static) -> ClientBuilder {
        self.functions.page_done = Some(Arc::new(done));
        self
    }

    /// Asks the application's model. `Err` says why a person did not let the question pass.
    pub fn on_sample<F, A>(mut self, sample: F) -> ClientBuilder
    where
        F: Fn(Sampling) -> A + Send + Sync + 'static,
        A: Future<Output = Result<Sampled, String>> + Send + 'static,
    {
        self.functions.sample = Some(Arc::new(move |asked| Box::pin(sample(asked))));
        self
    }

    /// Says that the function of [`ClientBuilder::on_sample`] takes tools along. Without it a question that brings
    /// tools is refused.
    pub fn sample_with_tools(mut self) -> ClientBuilder {
        self.functions.sample_tools = true;
        self
    }

    /// Names the folders and files that the server may work on, as `file://` addresses.
    pub fn roots(mut self, roots: impl IntoIterator<Item = Root>) -> ClientBuilder {
        self.functions.roots = Some(roots.into_iter().collect());
        self
    }

    /// Hears log messages of the server from this level on. The protocol is about to drop them.
    pub fn on_log(
        mut self,
        level: Level,
        log: impl Fn(LogMessage) + Send + Sync + 'static,
    ) -> ClientBuilder {
        self.log_level = Some(level);
        self.functions.log = Some(Arc::new(log));
        self
    }

    /// Is asked about every call of a tool before it is sent, with exactly what would be sent. `Err` says why not; the
    /// model may read it.
    pub fn confirm<F, A>(mut self, confirm: F) -> ClientBuilder
    where
        F: Fn(Confirming) -> A + Send + Sync + 'static,
        A: Future<Output = Result<(), String>> + Send + 'static,
    {
        self.functions.confirm = Some(Arc::new(move |call| Box::pin(confirm(call))));
        self
    }

    /// Is told of every call as it begins and ends. The function must not block.
    pub fn observe(mut self, told: impl Fn(CallEvent) + Send + Sync + 'static) -> ClientBuilder {
        self.observe = Some(Arc::new(told));
        self
    }

    /// Allows only tools whose names fit one of these patterns, in which `*` is any run of characters and `?` is one.
    /// The others are not listed and cannot be called. `resource:` and `prompt:` before a pattern speak of resources,
    /// by their URIs, and of prompts; as long as no such pattern is given, all of those are allowed.
    pub fn allow<S: Into<String>>(
        mut self,
        patterns: impl IntoIterator<Item = S>,
    ) -> ClientBuilder {
        self.allow.extend(patterns.into_iter().map(Into::into));
        self
    }

    /// Hides and refuses what fits one of these patterns, whatever else is allowed.
    pub fn deny<S: Into<String>>(mut self, patterns: impl IntoIterator<Item = S>) -> ClientBuilder {
        self.deny.extend(patterns.into_iter().map(Into::into));
        self
    }

    /// Hears of definitions that changed since they were first seen, and are hidden now. The function must not block.
    pub fn on_pin(mut self, told: impl Fn(PinEvent) + Send + Sync + 'static) -> ClientBuilder {
        self.on_pin = Some(Arc::new(told));
        self
    }

    /// Pins definitions otherwise than in memory and at first sight: in a store that outlives the program, say, or such
    /// that a person accepts each. What the server is has to be said there, or its id alone is.
    pub fn pins(mut self, pins: Pins) -> ClientBuilder {
        self.pins = Some(pins);
        self
    }

    /// Takes definitions as they come, also when they change.
    pub fn no_pins(mut self) -> ClientBuilder {
        self.pins = None;
        self
    }

    /// Adds a rule about what may be used.
    pub fn guard(mut self, rule: impl Rule) -> ClientBuilder {
        self.duties.rules.push(Arc::new(rule));
        self
    }

    /// Believes what the server says of its tools; see [`Listed::hints`](super::Listed::hints).
    pub fn trust_annotations(mut self) -> ClientBuilder {
        self.trusted = true;
        self
    }

    /// How long a call may take without an answer or progress; 60 s.
    pub fn timeout(mut self, silence: Duration) -> ClientBuilder {
        self.duties.deadline.silence = PerServer::all(silence);
        self
    }

    /// How long a call may take at most, whatever its progress; 15 minutes. The time in which the application answers
    /// questions does not count.
    pub fn longest(mut self, hard: Duration) -> ClientBuilder {
        self.duties.deadline.hard = hard;
        self
    }

    /// How often each tool may be called; 6,000 a minute.
    pub fn rate(mut self, quota: Quota) -> ClientBuilder {
        self.duties.rate = Rate::new(Vec::new(), quota);
        self
    }

    /// How large things may be.
    pub fn size(mut self, size: Size) -> ClientBuilder {
        self.duties.size = size;
        self
    }

    /// What becomes of results that break their schema; they are held back.
    pub fn output_schema(mut self, duty: OutputSchema) -> ClientBuilder {
        self.duties.output_schema = duty;
        self
    }

    /// What becomes of secrets in results; they are redacted.
    pub fn secrets(mut self, found: OnSecret) -> ClientBuilder {
        self.duties.cleaning.secrets.found = PerServer::all(found);
        self
    }

    /// What becomes of calls with secrets in their arguments; the application is asked, or they are refused where
    /// nothing was set to answer.
    pub fn leaks(mut self, found: OnLeak) -> ClientBuilder {
        self.duties.cleaning.leaks.found = PerServer::all(found);
        self
    }

    /// What becomes of calls with placeholders such as `[redacted:RULE]` in their arguments, which would replace the
    /// original; the application is asked, or they are refused if nothing was set to answer.
    pub fn placeholders(mut self, found: OnPlaceholder) -> ClientBuilder {
        self.duties.cleaning.placeholders.found = PerServer::all(found);
        self
    }

    /// What the server may ask in the middle of a call. Forms that ask for a secret and pages that are not at `https` are
    /// refused; the model may be asked as often as the server likes, where [`ClientBuilder::on_sample`] answers.
    pub fn asking(mut self, asking: Asking) -> ClientBuilder {
        self.duties.asking = asking;
        self
    }

    /// How often one call may come back with questions; 10.
    pub fn rounds(mut self, rounds: u32) -> ClientBuilder {
        self.rounds = rounds;
        self
    }

    /// Where calls are recorded; as events of `tracing` under `toolgate::audit`, without contents.
    pub fn record(mut self, recorder: Arc<Recorder>) -> ClientBuilder {
        self.audit = None;
        self.duties.recorder = recorder;
        self
    }

    /// Records calls in a hash-chained log in that folder: on the disk before a call is sent and before its answer is
    /// given out. Where it cannot be written, nothing is called. `toolgate audit verify` checks it.
    pub fn audit_in(mut self, folder: impl Into<PathBuf>) -> ClientBuilder {
        self.audit = Some(folder.into());
        self
    }

    /// Sets a name in the environment of the server that [`ClientBuilder::spawn`] starts. Of our own it gets `PATH`,
    /// `HOME`, the locale and the like, and nothing else.
    pub fn env(mut self, name: &str, value: &str) -> ClientBuilder {
        self.process.set.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Passes names of our own environment on to the server that [`ClientBuilder::spawn`] starts.
    pub fn pass_env<S: Into<String>>(
        mut self,
        names: impl IntoIterator<Item = S>,
    ) -> ClientBuilder {
        self.process.pass.extend(names.into_iter().map(Into::into));
        self
    }

    /// The folder in which the server runs that [`ClientBuilder::spawn`] starts; our own.
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> ClientBuilder {
        self.process.folder = Some(folder.into());
        self
    }

    /// Hears what the server writes to its standard error, line by line, in place of our own standard error. It is no
    /// sign of a failure. The function must not block.
    pub fn on_stderr(mut self, line: impl Fn(String) + Send + Sync + 'static) -> ClientBuilder {
        self.process.stderr = Some(Arc::new(line));
        self
    }

    /// How long the server may take to end after its input was closed, and once more after it was asked to end; 2 s.
    pub fn grace(mut self, grace: Duration) -> ClientBuilder {
        self.process.grace = grace;
        self
    }

    /// How a server is reached over HTTP.
    pub fn http(mut self, http: HttpOptions) -> ClientBuilder {
        self.http = http;
        self
    }

    /// Who has tokens for a server over HTTP; see [`HttpOptions::credentials`].
    pub fn credentials(mut self, credentials: impl Credentials) -> ClientBuilder {
        self.http = self.http.credentials(credentials);
        self
    }

    /// Sends a header with every request over HTTP, for example `Authorization`.
    pub fn header(mut self, name: &str, value: &str) -> ClientBuilder {
        match std::mem::take(&mut self.http).header(name, value) {
            Ok(http) => self.http = http,
            Err(error) => self.fault(error.to_string()),
        }
        self
    }

    /// The first fault is told when the client is made.
    fn fault(&mut self, what: String) {
        self.wrong.get_or_insert(what);
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        roots::check(self.functions.roots.as_deref().unwrap_or_default())?;
        match &self.wrong {
            Some(wrong) => Err(unusable(wrong.clone())),
            None => Ok(()),
        }
    }

    pub(super) fn extensions(&self) -> Option<Json> {
        let mut o = ObjectWriter::new();
        for (id, settings) in &self.extensions {
            debug_assert_eq!(settings.kind(), Kind::Object);
            o.raw(id, settings);
        }
        (!self.extensions.is_empty()).then(|| o.finish())
    }

    pub(super) fn recorder(&self) -> Result<Arc<Recorder>, Error> {
        let Some(folder) = &self.audit else {
            return Ok(self.duties.recorder.clone());
        };
        let recorder = Recorder::in_folder(folder).map_err(|error| {
            let text = format!("the log in {} cannot be written: {error}", folder.display());
            unusable(text).because(error)
        })?;
        Ok(Arc::new(recorder))
    }

    /// The pins, for the server of that id.
    pub(super) fn pins_of(&self, server: &str, recorder: &Arc<Recorder>) -> Option<Pins> {
        let pins = self.pins.clone()?.recorded(recorder.clone()).only(server);
        Some(match self.on_pin.clone() {
            Some(told) => pins.told(move |event| told(event)),
            None => pins,
        })
    }

    /// The patterns as rules. They speak of full names, `server.tool`.
    pub(super) fn access(&self, server: &str) -> Access {
        let full = |pattern: &String| Pattern::new(format!("{server}.{pattern}"));
        let rule = |patterns: &[String], then, label: &str| AccessRule {
            tools: patterns.iter().map(full).collect(),
            callers: Vec::new(),
            except: Vec::new(),
            when: None,
            then,
            label: label.to_owned(),
        };
        let mut rules = vec![rule(&self.deny, Then::Deny, "denied by the application")];
        if self.allow.is_empty() {
            return Access::new(rules).otherwise(Then::Allow);
        }
        rules.push(rule(&self.allow, Then::Allow, "allowed by the application"));
        for kind in [Item::RESOURCE, Item::PROMPT] {
            if !self.allow.iter().any(|pattern| pattern.starts_with(kind)) {
                let all = [format!("{kind}*")];
                rules.push(rule(&all, Then::Allow, "allowed by the application"));
            }
        }
        Access::new(rules).otherwise(Then::Deny)
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
