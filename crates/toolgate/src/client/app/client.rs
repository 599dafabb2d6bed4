//! What an application does with a server.

use super::{
    CallEvent, CallResult, Calling, ClientBuilder, IntoServer, Listed, Told, answers::Answers,
    calling::object, opening::Ending, roots, rounds::Wishes,
};
use crate::{
    client::{Remote, Status},
    handlers::{Level, ask::Root},
};
use serde::Serialize;
use std::{
    ffi::OsString,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};
use toolgate_core::{
    Abilities, About, Caller, Changes, CompleteResult, Error, Interest, ItemKind, Json, List, Op,
    Output, PromptResult, ReadResult, Seen, Service,
};
use toolgate_policy::Pins;
use toolgate_wire::{dialect, json::ObjectWriter, method::initialize::Implementation};

/// One server for one application, in every revision of the protocol, with the duties of a client on: arguments and
/// results are checked against their schemas, text is cleaned, sizes, time and rate are limited, and calls are recorded.
///
/// Cheap to clone. The server is closed with the last clone, or by [`Client::close`].
///
/// ```no_run
/// # use serde_json::json;
/// # async fn f() -> Result<(), toolgate::Error> {
/// use toolgate::Client;
///
/// let weather = Client::spawn(["weather-server", "--metric"]).await?;
/// for tool in weather.tools().await? {
///     println!("{}: {}", tool.title(), tool.description().unwrap_or_default());
/// }
/// let result = weather.call("forecast", json!({"place": "Oslo"})).await?;
/// println!("{}", result.text());
/// weather.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client(Arc<Inner>);

/// What all clones share. The server is let go before whatever keeps its process.
pub(super) struct Inner {
    pub(super) service: Arc<dyn Service>,
    pub(super) remote: Arc<Remote>,
    /// How the server is called.
    pub(super) id: Arc<str>,
    pub(super) pins: Option<Pins>,
    pub(super) answers: Answers,
    pub(super) abilities: Abilities,
    pub(super) caller: Caller,
    /// How all of its calls are seen.
    pub(super) seen: Arc<Seen>,
    pub(super) rounds: u32,
    pub(super) observe: Option<Told<CallEvent>>,
    /// From which level on log messages are wanted.
    pub(super) logs: Mutex<Option<Level>>,
    pub(super) ending: Ending,
}

impl Client {
    pub(super) fn new(inner: Inner) -> Client {
        Client(Arc::new(inner))
    }

    pub(super) fn inner(&self) -> &Inner {
        &self.0
    }

    /// A client with more than the defaults.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::new()
    }

    /// Starts a server as a process and opens it; see [`ClientBuilder::spawn`].
    ///
    /// # Errors
    /// It cannot be started or opened.
    pub async fn spawn<S: Into<OsString>>(
        command: impl IntoIterator<Item = S>,
    ) -> Result<Client, Error> {
        Client::builder().spawn(command).await
    }

    /// Opens a server over HTTP; see [`ClientBuilder::connect`].
    ///
    /// # Errors
    /// It cannot be reached or opened.
    pub async fn connect(url: &str) -> Result<Client, Error> {
        Client::builder().connect(url).await
    }

    /// Opens a server of this very program; see [`ClientBuilder::in_process`].
    ///
    /// # Errors
    /// It cannot be built or opened.
    pub async fn in_process(server: impl IntoServer) -> Result<Client, Error> {
        Client::builder().in_process(server).await
    }

    /// The tools, as far as the application allows them.
    ///
    /// # Errors
    /// The server does not list them.
    pub async fn tools(&self) -> Result<Vec<Listed>, Error> {
        self.list(ItemKind::Tool).await
    }

    /// The resources.
    ///
    /// # Errors
    /// The server does not list them.
    pub async fn resources(&self) -> Result<Vec<Listed>, Error> {
        self.list(ItemKind::Resource).await
    }

    /// The templates of resources.
    ///
    /// # Errors
    /// The server does not list them.
    pub async fn templates(&self) -> Result<Vec<Listed>, Error> {
        self.list(ItemKind::Template).await
    }

    /// The prompts.
    ///
    /// # Errors
    /// The server does not list them.
    pub async fn prompts(&self) -> Result<Vec<Listed>, Error> {
        self.list(ItemKind::Prompt).await
    }

    /// A whole list: pages are joined, and it is kept as long as the server says that it is good.
    pub(super) async fn list(&self, kind: ItemKind) -> Result<Vec<Listed>, Error> {
        let ask = List::all(self.0.caller.clone(), kind);
        let catalog = self.0.service.list(ask).await?;
        let good = catalog.items().iter().filter(|i| i.withheld.is_none());
        Ok(good.cloned().map(Listed).collect())
    }

    /// Calls a tool. `arguments` is what becomes a JSON object; `()` for none.
    ///
    /// # Errors
    /// Above all [`Kind::Invalid`](crate::Kind::Invalid): the arguments do not fit the tool, and nothing was sent;
    /// [`Kind::Refused`](crate::Kind::Refused): the application or its user said no, or the result was held back;
    /// [`Kind::Late`](crate::Kind::Late); [`Kind::Answered`](crate::Kind::Answered): an error of the protocol, with its
    /// code. A failure of the tool itself is a result.
    pub async fn call(&self, tool: &str, arguments: impl Serialize) -> Result<CallResult, Error> {
        self.call_with(tool, arguments).await
    }

    /// A call of a tool with more than its arguments.
    ///
    /// ```no_run
    /// # use serde_json::json;
    /// # async fn f(client: toolgate::Client) -> Result<(), toolgate::Error> {
    /// use std::time::Duration;
    ///
    /// let result = client
    ///     .call_with("index", json!({"folder": "docs"}))
    ///     .progress(|p| println!("{} of {:?}", p.progress, p.total))
    ///     .timeout(Duration::from_secs(5))
    ///     .await?;
    /// # let _ = result;
    /// # Ok(())
    /// # }
    /// ```
    pub fn call_with(&self, tool: &str, arguments: impl Serialize) -> Calling<'_> {
        Calling::new(self, tool, arguments)
    }

    /// Reads a resource, also one that no list shows.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub async fn read(&self, uri: &str) -> Result<ReadResult, Error> {
        let mut o = ObjectWriter::new();
        o.str("uri", uri);
        let used = self.used(Op::Resource, uri, o.finish(), Wishes::default());
        match used.await? {
            Output::Resource(result) => Ok(result),
            _ => Ok(ReadResult::default()),
        }
    }

    /// Fetches a prompt. Its arguments are texts.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub async fn prompt(
        &self,
        name: &str,
        arguments: impl Serialize,
    ) -> Result<PromptResult, Error> {
        let used = self.used(Op::Prompt, name, object(arguments)?, Wishes::default());
        match used.await? {
            Output::Prompt(result) => Ok(result),
            _ => Ok(PromptResult::default()),
        }
    }

    /// What an argument of a prompt may be, of which `value` is typed already; `known` are arguments that are settled.
    /// Nothing, where the server completes nothing.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub async fn complete_prompt(
        &self,
        prompt: &str,
        argument: &str,
        value: &str,
        known: &[(&str, &str)],
    ) -> Result<CompleteResult, Error> {
        let op = Op::Complete(ItemKind::Prompt);
        self.complete(op, prompt, (argument, value), known).await
    }

    /// What a variable of a template of resources may be; the rest is as in [`Client::complete_prompt`].
    ///
    /// # Errors
    /// As [`Client::call`].
    pub async fn complete_template(
        &self,
        template: &str,
        variable: &str,
        value: &str,
        known: &[(&str, &str)],
    ) -> Result<CompleteResult, Error> {
        let op = Op::Complete(ItemKind::Template);
        self.complete(op, template, (variable, value), known).await
    }

    async fn complete(
        &self,
        op: Op,
        name: &str,
        (argument, value): (&str, &str),
        known: &[(&str, &str)],
    ) -> Result<CompleteResult, Error> {
        let declares = dialect::find(self.revision()).is_some_and(|d| d.completions);
        if declares && self.capabilities().get("completions").is_none() {
            return Ok(CompleteResult::default());
        }
        let mut o = ObjectWriter::new();
        o.object("argument", |a| {
            a.str("name", argument);
            a.str("value", value);
        });
        if !known.is_empty() {
            o.object("context", |c| {
                c.object("arguments", |a| {
                    known.iter().for_each(|(name, value)| a.str(name, value))
                });
            });
        }
        match self.used(op, name, o.finish(), Wishes::default()).await? {
            Output::Complete(result) => Ok(result),
            _ => Ok(CompleteResult::default()),
        }
    }

    /// Tells when a list goes stale, or one of these resources. The next list or read brings the new content.
    ///
    /// # Errors
    /// The server is gone.
    pub async fn changes<S: Into<String>>(
        &self,
        resources: impl IntoIterator<Item = S>,
    ) -> Result<Changes, Error> {
        let want = Interest {
            uris: resources.into_iter().map(Into::into).collect(),
            ..Interest::lists(self.0.caller.clone())
        };
        self.0.service.changes(want).await
    }

    /// Whether the server answers.
    ///
    /// # Errors
    /// It does not.
    pub async fn ping(&self) -> Result<(), Error> {
        self.0.remote.ping().await
    }

    /// From which level on log messages are wanted. They go to [`ClientBuilder::on_log`].
    ///
    /// # Errors
    /// The server refuses, or does not answer.
    pub async fn log_level(&self, level: Level) -> Result<(), Error> {
        self.0.remote.set_log_level(level.word()).await?;
        *self.0.logs.lock().unwrap_or_else(PoisonError::into_inner) = Some(level);
        Ok(())
    }

    /// Puts other roots in the place of those of [`ClientBuilder::roots`], and tells the server where it wants to know.
    ///
    /// # Errors
    /// One is no `file://` address; then nothing changed.
    pub fn set_roots(&self, roots: Vec<Root>) -> Result<(), Error> {
        roots::check(&roots)?;
        self.0.answers.set_roots(roots);
        if self.0.abilities.roots {
            self.0.remote.roots_changed();
        }
        Ok(())
    }

    /// The revision of the protocol that is spoken.
    pub fn revision(&self) -> &'static str {
        self.0.remote.revision()
    }

    /// Who the server says it is; not verified.
    pub fn server(&self) -> Option<Implementation> {
        self.0.remote.status().server
    }

    /// What the server said that it can do.
    pub fn capabilities(&self) -> &Json {
        self.0.remote.capabilities()
    }

    /// The settings of an extension that the server declared.
    pub fn extension(&self, id: &str) -> Option<Json> {
        self.capabilities().get("extensions")?.get(id)
    }

    /// How a model should use the server, in the server's own words, cleaned. Words that changed since the server was
    /// opened first are held back.
    pub fn instructions(&self) -> Option<String> {
        let words = self.0.remote.instructions()?;
        let about = About {
            server: Some(self.0.id.clone()),
            text: words.to_owned(),
        };
        let pins = self.0.pins.as_ref();
        let known = pins.is_none_or(|pins| pins.knows_words(&about));
        known.then(|| toolgate_policy::clean(words).into_owned())
    }

    /// What is known of the server, and what went wrong on the way to it.
    pub fn status(&self) -> Status {
        self.0.remote.status()
    }

    /// Waits until the server is gone, and says why.
    pub async fn closed(&self) -> String {
        self.0.remote.closed().await
    }

    /// Closes the server, for all clones: ends its session; where it is a process, closes its input, waits, asks it to
    /// end, and ends it with all that it started. Returns when it is gone.
    pub async fn close(&self) {
        self.0.remote.close();
        self.0.ending.close().await;
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({:?})", self.0.answers)
    }
}
