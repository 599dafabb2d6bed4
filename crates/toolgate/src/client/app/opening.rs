//! Opening of a server: in process or byte streams, and the steps that all transports share.

#[cfg(feature = "spawn")]
use super::server_process::SpawnedProcess;
use super::{
    Client, ClientBuilder, InputKind, IntoServer,
    client::ClientState,
    confirmation::EveryTool,
    errors::{open_failure, unusable_setting},
    in_process,
    input_responder::InputResponder,
    task_handle::StartedTasks,
    unlisted_resources::UnlistedResources,
};
use crate::client::{Discovery, RemoteOptions, RemoteServer};
use std::sync::{Arc, Mutex};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::AbortHandle,
};
use toolgate_core::{
    Caller, ClientCapabilities, Error, Origin, RequestInfo, Rule, ServerInstructions,
};
use toolgate_policy::ProgramApproval;

/// Owner of what must end with the client.
pub(super) enum ConnectionOwner {
    /// Nothing: the connection ends by itself.
    Nothing,
    /// The task that serves an in-process server.
    Task(AbortHandle),
    /// The server process.
    #[cfg(feature = "spawn")]
    Process(SpawnedProcess),
}

impl ConnectionOwner {
    pub(super) async fn close(&self) {
        match self {
            ConnectionOwner::Nothing => {}
            ConnectionOwner::Task(task) => task.abort(),
            #[cfg(feature = "spawn")]
            ConnectionOwner::Process(process) => process.close().await,
        }
    }
}

impl Drop for ConnectionOwner {
    fn drop(&mut self) {
        if let ConnectionOwner::Task(task) = self {
            task.abort();
        }
    }
}

/// Prepared options for opening a server.
pub(super) struct OpenPlan {
    pub(super) options: RemoteOptions,
    answers: InputResponder,
    abilities: ClientCapabilities,
}

impl ClientBuilder {
    /// Connects to a server in the same process. All messages are serialized and parsed as on a wire, so a test sees
    /// what a remote client would see. The caller is named `in-process`. The [client guide](crate::guide::client#tests)
    /// shows a test with another caller.
    ///
    /// ```
    /// # use toolgate::{Client, Cx, Server, HandlerExit, Tool};
    /// # use serde_json::json;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), toolgate::Error> {
    /// let now = Tool::dynamic("now", json!({"type": "object"}), |_, _: Cx| async {
    ///     Ok::<_, HandlerExit>("noon")
    /// });
    /// let clock = Client::in_process(Server::new("clock", "1.0.0").tool(now)).await?;
    /// assert_eq!(clock.call("now", ()).await?.text(), "noon");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The server cannot be built or opened.
    pub async fn in_process(self, server: impl IntoServer) -> Result<Client, Error> {
        let server = server.into_server()?;
        let id = self.id_or(|| server.info.name.clone());
        let plan = self.prepare(&id)?;
        let (reader, writer, task) = in_process::serve(server);
        let ending = ConnectionOwner::Task(task);
        let remote = RemoteServer::open(reader, writer, plan.options.clone())
            .await
            .map_err(|error| open_failure(&id, error))?;
        self.finish(remote, plan, "in-process", ending).await
    }

    /// Connects to a server over a pair of byte streams, one JSON-RPC message per line, as over stdio.
    ///
    /// # Errors
    /// The server cannot be opened.
    pub async fn open(
        self,
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Result<Client, Error> {
        let id = self.id_or(String::new);
        let plan = self.prepare(&id)?;
        let remote = RemoteServer::open(reader, writer, plan.options.clone())
            .await
            .map_err(|error| open_failure(&id, error))?;
        self.finish(remote, plan, "stream", ConnectionOwner::Nothing)
            .await
    }

    /// Connects to a server over a connection that carries whole messages, such as WebSocket; see [`crate::transport`].
    ///
    /// ```
    /// # use toolgate::{Client, Error, transport::MessageTransport};
    /// # async fn f(socket: impl MessageTransport) -> Result<(), Error> {
    /// let client = Client::builder().id("maps").open_transport(socket).await?;
    /// # drop(client);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The server cannot be opened.
    pub async fn open_transport(
        self,
        transport: impl crate::transport::MessageTransport,
    ) -> Result<Client, Error> {
        let id = self.id_or(String::new);
        let plan = self.prepare(&id)?;
        let remote = RemoteServer::open_transport(transport, plan.options.clone())
            .await
            .map_err(|error| open_failure(&id, error))?;
        self.finish(remote, plan, "stream", ConnectionOwner::Nothing)
            .await
    }

    /// Returns the server id for rules and the audit log. Other characters than letters, digits, `-`, `_` and `.` are
    /// replaced, so that no pattern can mistake it.
    pub(super) fn id_or(&self, other: impl FnOnce() -> String) -> String {
        let id = self.id.clone().unwrap_or_else(other);
        let plain = |c: char| match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '.' => c,
            _ => '-',
        };
        match id.is_empty() {
            true => "server".to_owned(),
            false => id.chars().take(64).map(plain).collect(),
        }
    }

    pub(super) fn prepare(&self, id: &str) -> Result<OpenPlan, Error> {
        self.check_faults()?;
        let answers = InputResponder::new(id, self.functions.clone(), &self.policy);
        let abilities = answers.capabilities(self.extensions());
        let abilities = self
            .policy
            .input_requests
            .offered_capabilities(id, &abilities);
        let mut options = RemoteOptions::new(Origin {
            server: id.into(),
            trusted: self.trusted,
        });
        if let Some(client) = &self.client {
            options.client = client.clone();
        }
        if !self.revisions.is_empty() {
            options.revisions = self.revisions.clone();
        }
        options.era = self.era;
        options.open_timeout = self.open_timeout;
        options.capabilities = abilities.clone();
        options.discovery = self.known(id)?;
        options.client_handler = Some(Arc::new(answers.clone()));
        Ok(OpenPlan {
            options,
            answers,
            abilities,
        })
    }

    /// Returns the discovery of an earlier client.
    ///
    /// # Errors
    /// The discovery belongs to a server with another id.
    fn known(&self, id: &str) -> Result<Option<Arc<Discovery>>, Error> {
        match &self.discovery {
            Some(known) if known.server_id() != id => Err(unusable_setting(format!(
                "the discovery belongs to the server {:?}, but the id of this client's server is {id:?}; use a discovery of {id:?}, or connect without one",
                known.server_id()
            ))),
            known => Ok(known.clone().map(Arc::new)),
        }
    }

    pub(super) async fn finish(
        mut self,
        remote: RemoteServer,
        plan: OpenPlan,
        transport: &'static str,
        ending: ConnectionOwner,
    ) -> Result<Client, Error> {
        let origin = plan.options.origin.clone();
        self.policy.recorder = self.recorder()?;
        plan.answers.set_recorder(self.policy.recorder.clone());
        self.policy.pins = self.pins_of(&origin.server, &self.policy.recorder);
        self.policy.access = self.access(&origin.server);
        self.policy.deadline.open_input_requests = Some(plan.answers.open_requests());
        let by_hand = self.functions.manual.contains(&InputKind::Confirm);
        if self.functions.confirm.is_some() || by_hand {
            self.policy.approval = ProgramApproval::Program;
            if self.confirms_every_call {
                let rule: Arc<dyn Rule> = Arc::new(EveryTool);
                self.policy.rules.push(rule);
            }
        }
        let remote = Arc::new(remote);
        let (id, pins) = (origin.server.clone(), self.policy.pins.clone());
        if let (Some(pins), Some(text)) = (&pins, remote.instructions()) {
            let server = Some(id.clone());
            let mut instructions = ServerInstructions::new(text);
            instructions.server = server;
            pins.observe_instructions(&instructions).await?;
        }
        let server = Arc::new(UnlistedResources {
            server: remote.clone(),
            origin,
        });
        let mut info = RequestInfo::default();
        info.revision = remote.revision().into();
        info.transport = transport;
        let seen = Arc::new(info);
        let client = Client::new(ClientState {
            service: Arc::new(self.policy.over(server)),
            remote,
            id,
            pins,
            answers: plan.answers,
            capabilities: plan.abilities,
            caller: Caller::new("application"),
            request_info: seen,
            max_rounds: self.max_rounds,
            tasks: StartedTasks::default(),
            observe: self.observe,
            logs: Mutex::default(),
            ending,
        });
        if let Some(level) = self.log_level {
            client.log_level(level).await?;
        }
        Ok(client)
    }
}
