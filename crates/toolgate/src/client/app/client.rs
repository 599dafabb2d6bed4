//! MCP client for applications.

use super::{
    CallEvent, CallResult, ClientBuilder, EventCallback, IntoServer, ListedItem, ToolCallBuilder,
    ToolList, call_builder::object, input_responder::InputResponder, opening::ConnectionOwner,
    roots, rounds::CallOptions, task_handle::StartedTasks,
};
use crate::{
    client::{ConnectionStatus, Discovery, RemoteServer},
    handlers::{LogLevel, ask::Root},
};
use serde::Serialize;
use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};
use toolgate_core::{
    Caller, ChangeFilter, ChangeStream, ClientCapabilities, CompleteResult, Error, ItemKind, Json,
    ListRequest, Op, Output, PromptResult, ReadResult, RequestInfo, ServerInstructions, Service,
};
use toolgate_policy::Pins;
use toolgate_protocol::{dialect, json::ObjectWriter, method::initialize::Implementation};

/// MCP client of one server, for applications, in every protocol revision. All client policies are on: arguments and
/// results are checked against their schemas, text is sanitized, size, time and rate are limited, and calls are
/// recorded.
///
/// Cheap to clone. The connection is closed with the last clone, or by [`Client::close`].
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
pub struct Client(Arc<ClientState>);

/// State that all clones share. The connection is dropped before the owner of its process.
pub(super) struct ClientState {
    pub(super) service: Arc<dyn Service>,
    pub(super) remote: Arc<RemoteServer>,
    /// Server id.
    pub(super) id: Arc<str>,
    pub(super) pins: Option<Pins>,
    pub(super) answers: InputResponder,
    pub(super) capabilities: ClientCapabilities,
    pub(super) caller: Caller,
    /// Request information that all calls share.
    pub(super) request_info: Arc<RequestInfo>,
    pub(super) max_rounds: u32,
    /// Tasks of the server that this client started.
    pub(super) tasks: StartedTasks,
    pub(super) observe: Option<EventCallback<CallEvent>>,
    /// Minimum log level, if log messages are wanted.
    pub(super) logs: Mutex<Option<LogLevel>>,
    pub(super) ending: ConnectionOwner,
}

impl Client {
    pub(super) fn new(inner: ClientState) -> Client {
        Client(Arc::new(inner))
    }

    pub(super) fn inner(&self) -> &ClientState {
        &self.0
    }

    /// Returns a builder of an MCP client, for options other than the defaults.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::new()
    }

    /// Connects to an MCP server in the same process, as the caller `in-process`; see [`ClientBuilder::in_process`].
    ///
    /// # Errors
    /// The server cannot be built or opened.
    pub async fn in_process(server: impl IntoServer) -> Result<Client, Error> {
        Client::builder().in_process(server).await
    }

    /// Lists the server's tools (`tools/list`) that the client's policies allow.
    ///
    /// # Errors
    /// The list cannot be read.
    pub async fn tools(&self) -> Result<ToolList, Error> {
        Ok(self.list(ItemKind::Tool).await?.into())
    }

    /// Lists the server's resources (`resources/list`).
    ///
    /// # Errors
    /// The list cannot be read.
    pub async fn resources(&self) -> Result<Vec<ListedItem>, Error> {
        self.list(ItemKind::Resource).await
    }

    /// Lists the server's resource templates (`resources/templates/list`).
    ///
    /// ```
    /// # async fn f(client: toolgate::Client) -> Result<(), toolgate::Error> {
    /// for resource in client.resources().await? {
    ///     println!("{}", client.read(resource.name()).await?.contents.len());
    /// }
    /// for template in client.templates().await? {
    ///     println!("{}", template.name());
    /// }
    /// let ids = client.complete_template("note:///{id}", "id", "1", &[]).await?;
    /// println!("{:?}", ids.values);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The list cannot be read.
    pub async fn templates(&self) -> Result<Vec<ListedItem>, Error> {
        self.list(ItemKind::Template).await
    }

    /// Lists the server's prompts (`prompts/list`).
    ///
    /// # Errors
    /// The list cannot be read.
    pub async fn prompts(&self) -> Result<Vec<ListedItem>, Error> {
        self.list(ItemKind::Prompt).await
    }

    /// Returns a complete list, from all pages. It is cached as long as the server allows.
    pub(super) async fn list(&self, kind: ItemKind) -> Result<Vec<ListedItem>, Error> {
        let ask = ListRequest::all(self.0.caller.clone(), kind);
        let catalog = self.0.service.list(ask).await?;
        let good = catalog.items().iter().filter(|i| i.withheld.is_none());
        Ok(good.cloned().map(ListedItem).collect())
    }

    /// Calls a tool (`tools/call`). `arguments` must serialize to a JSON object; use `()` for none. A [`Json`] is sent
    /// byte for byte: numbers of any size, and the order of members.
    ///
    /// A failure of the tool itself is a result, not an error; see [`CallResult::is_error`].
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArguments`](toolgate_core::ErrorKind::InvalidArguments): the arguments do not match the tool's schema; nothing was sent.
    /// - [`ErrorKind::Refused`](toolgate_core::ErrorKind::Refused): the application or its user denied the call, or the result was
    ///   blocked.
    /// - [`ErrorKind::TimedOut`](toolgate_core::ErrorKind::TimedOut): the call timed out.
    /// - [`ErrorKind::JsonRpc`](toolgate_core::ErrorKind::JsonRpc): the server answered with a JSON-RPC error, of this code.
    /// - Other kinds if the server fails.
    pub async fn call(&self, tool: &str, arguments: impl Serialize) -> Result<CallResult, Error> {
        self.call_with(tool, arguments).await
    }

    /// Returns a builder of a tool call with options; `.await` sends it.
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
    pub fn call_with(&self, tool: &str, arguments: impl Serialize) -> ToolCallBuilder<'_> {
        ToolCallBuilder::new(self, tool, arguments)
    }

    /// Reads a resource (`resources/read`), listed or not.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub async fn read(&self, uri: &str) -> Result<ReadResult, Error> {
        let mut o = ObjectWriter::new();
        o.str("uri", uri);
        let used = self.run(Op::Resource, uri, o.finish(), CallOptions::default());
        match used.await? {
            Output::Resource(result) => Ok(result),
            _ => Ok(ReadResult::default()),
        }
    }

    /// Fetches a prompt (`prompts/get`). The values of its arguments are strings.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub async fn prompt(
        &self,
        name: &str,
        arguments: impl Serialize,
    ) -> Result<PromptResult, Error> {
        let used = self.run(Op::Prompt, name, object(arguments)?, CallOptions::default());
        match used.await? {
            Output::Prompt(result) => Ok(result),
            _ => Ok(PromptResult::default()),
        }
    }

    /// Completes a prompt argument (`completion/complete`), of which `value` is typed so far. `known` holds the
    /// arguments that are already set. The result is empty if the server does not support completion.
    ///
    /// Specification: [completion](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/completion).
    ///
    /// ```
    /// # async fn f(client: toolgate::Client) -> Result<(), toolgate::Error> {
    /// for prompt in client.prompts().await? {
    ///     println!("{}: {}", prompt.name(), prompt.description().unwrap_or_default());
    /// }
    /// // The user has typed "Os" as the place of the prompt.
    /// let places = client.complete_prompt("travel", "place", "Os", &[("country", "Norway")]).await?;
    /// println!("{:?}", places.values);
    /// # Ok(())
    /// # }
    /// ```
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

    /// Completes a variable of a resource template (`completion/complete`); otherwise as [`Client::complete_prompt`].
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
        match self
            .run(op, name, o.finish(), CallOptions::default())
            .await?
        {
            Output::Complete(result) => Ok(result),
            _ => Ok(CompleteResult::default()),
        }
    }

    /// Subscribes to changes of the server's item lists and of the resources with these URIs. The next list or read
    /// returns the new content.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn changes<S: Into<String>>(
        &self,
        resources: impl IntoIterator<Item = S>,
    ) -> Result<ChangeStream, Error> {
        let mut want = ChangeFilter::all_lists(self.0.caller.clone());
        want.uris = resources.into_iter().map(Into::into).collect();
        self.0.service.changes(want).await
    }

    /// Checks that the server answers (`ping`, or `server/discover` since 2026-07-28).
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn ping(&self) -> Result<(), Error> {
        self.0.remote.ping().await
    }

    /// Sets the minimum level of the server's log messages (`logging/setLevel`), which go to [`ClientBuilder::on_log`].
    ///
    /// # Errors
    /// The server rejects the request, or does not answer.
    pub async fn log_level(&self, level: LogLevel) -> Result<(), Error> {
        self.0.remote.set_log_level(level.word()).await?;
        *self.0.logs.lock().unwrap_or_else(PoisonError::into_inner) = Some(level);
        Ok(())
    }

    /// Replaces the client's roots ([`ClientBuilder::roots`]), and notifies the server if they were declared.
    ///
    /// # Errors
    /// A URI is not a `file://` URI; then nothing changes.
    pub fn set_roots(&self, roots: Vec<Root>) -> Result<(), Error> {
        roots::check(&roots)?;
        self.0.answers.set_roots(roots);
        if self.0.capabilities.roots {
            self.0.remote.roots_changed();
        }
        Ok(())
    }

    /// Returns the MCP protocol revision negotiated with the server, for example `2025-11-25`.
    pub fn revision(&self) -> &'static str {
        self.0.remote.revision()
    }

    /// Returns the server's `serverInfo` (name and version), as the server claims it; not verified.
    pub fn server(&self) -> Option<Implementation> {
        self.0.remote.status().server
    }

    /// Returns the capabilities that the server declared, as JSON.
    pub fn capabilities(&self) -> &Json {
        self.0.remote.capabilities()
    }

    /// Returns the settings of a protocol extension in the server's capabilities, or `None` if it was not declared.
    pub fn extension(&self, id: &str) -> Option<Json> {
        self.capabilities().get("extensions")?.get(id)
    }

    /// Returns the server's instructions for the model, sanitized. `None` if they changed since they were pinned.
    pub fn instructions(&self) -> Option<String> {
        let words = self.0.remote.instructions()?;
        let mut about = ServerInstructions::new(words);
        about.server = Some(self.0.id.clone());
        let pins = self.0.pins.as_ref();
        let known = pins.is_none_or(|pins| pins.accepts_instructions(&about));
        known.then(|| toolgate_policy::sanitize_text(words).into_owned())
    }

    /// Returns what the client learned of its server, to store for a later run; see [`Discovery`]. It contains the lists
    /// that were read so far.
    pub fn discovery(&self) -> Discovery {
        self.0.remote.discovery()
    }

    /// Returns the status of the connection to the server, with counters of protocol errors.
    pub fn status(&self) -> ConnectionStatus {
        self.0.remote.status()
    }

    /// Waits until the connection to the server is lost, and returns the reason.
    ///
    /// ```
    /// use toolgate::{Client, Error, handlers::{LogLevel, ask::Root}};
    ///
    /// /// Adjusts a connection to what its server supports, and watches it.
    /// async fn watch(client: Client) -> Result<String, Error> {
    ///     if client.capabilities().get("logging").is_some() {
    ///         client.log_level(LogLevel::Warning).await?;
    ///     }
    ///     client.set_roots(vec![Root { uri: "file:///srv/docs".to_owned(), name: None }])?;
    ///     Ok(client.closed().await)
    /// }
    /// ```
    pub async fn closed(&self) -> String {
        self.0.remote.closed().await
    }

    /// Closes the connection to the server for all clones of the client, and waits until it is closed. An HTTP session
    /// is ended. A process gets its input closed, then SIGTERM, then SIGKILL, together with its process group.
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
