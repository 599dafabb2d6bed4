//! Revision negotiation with a server: the probe, and the handshake of a legacy revision.
//!
//! Source: the pages on versioning and stdio of 2026-07-28.

use super::{
    connection::{RequestFailure, RequestPurpose, ServerConnection},
    era::{AllowedRevisions, EraPreference, suits_session},
    options::RemoteOptions,
    request_meta::ClientRequestMeta,
    status::{sanitize_line, truncate},
    tasks,
};
use std::{borrow::Cow, fmt, future::pending};
use tokio::time::{Duration, timeout};
use toolgate_core::ClientCapabilities;
use toolgate_protocol::{
    dialect::{self, Dialect},
    json::{Json, JsonKind, ObjectWriter},
    message::{RpcError, code},
    method::{
        definition::ItemKind,
        discover,
        initialize::{self, Implementation},
        meta, skills,
        tasks::TaskForm,
    },
};

/// Time for a slow answer to the probe after the server rejected the handshake.
const LATE_PROBE_WAIT: Duration = Duration::from_secs(1);

/// Error of connecting to an MCP server: the transport, the handshake (`initialize`) or the protocol revision failed.
///
/// Specification: [versioning](https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum OpenError {
    /// The connection closed after the first request, the probe for the stateless revision. Old servers exit on any
    /// request before `initialize`: restart the server and open it with [`RemoteOptions::probe`] off. If the handshake
    /// went first ([`EraPreference::Session`]), open it with [`EraPreference::Newest`].
    ClosedDuringProbe,
    /// The connection closed before the MCP handshake completed, with the reason.
    Closed(String),
    /// The server did not answer the handshake within this time.
    Late(Duration),
    /// The server answered the handshake with a JSON-RPC error, with its message.
    Refused(String),
    /// The server cannot be reached, does not speak HTTP, or denies access, with the reason. The text has the server as
    /// its subject.
    Unreachable(String),
    /// The server's URL is invalid or not supported, with the reason.
    Unusable(String),
    /// The server supports no protocol revision that is allowed here, with the revisions that it offered.
    NoRevision(Vec<String>),
    /// The server supports no allowed stateless revision, and no revision with `initialize` is allowed here.
    NoHandshake,
    /// The server's response to the handshake is malformed or cannot be read.
    Malformed(Cow<'static, str>),
    /// The server's output was not JSON-RPC during the handshake, with the expected format and a quotation.
    NotJson(String),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::ClosedDuringProbe => f.write_str("it closed the connection after the first request"),
            OpenError::Closed(reason) => {
                write!(f, "it ended before the handshake was complete: {reason}")
            }
            OpenError::Late(limit) => write!(f, "it did not answer the handshake within {limit:?}"),
            OpenError::Unreachable(words) => {
                write!(f, "it {words}")
            },
            OpenError::Unusable(reason) => f.write_str(reason),
            OpenError::Refused(words) => write!(f, "it rejected the handshake: {words}"),
            OpenError::NoRevision(offered) => {
                write!(
                    f,
                    "it supports none of the allowed protocol revisions; it offers {}; allow one of them, or update the server",
                    offered.join(", ")
                )
            }
            OpenError::NoHandshake => f.write_str(
                "it supports only protocol revisions with an initialize handshake, and the allowed revisions have none; allow an older revision, or update the server",
            ),
            OpenError::Malformed(reason) => {
                write!(f, "its answer to the handshake cannot be used: {reason}")
            }
            OpenError::NotJson(words) => write!(f, "it did not answer the handshake: {words}"),
        }
    }
}

impl std::error::Error for OpenError {}

/// Server as negotiated: revision, capabilities and description.
pub(super) struct NegotiatedServer {
    pub(super) dialect: &'static Dialect,
    pub(super) capabilities: Json,
    /// Protocol of tasks with which the server may answer tool calls.
    pub(super) task_protocol: TaskForm,
    pub(super) server: Option<Implementation>,
    pub(super) instructions: Option<String>,
    /// `_meta` of our requests in the stateless revision, which has no handshake.
    pub(super) request_meta: ClientRequestMeta,
    /// True if the server is known not to support a stateless revision.
    pub(super) sessions_only: bool,
}

/// Maximum size of a server's capabilities, in bytes.
const MAX_CAPABILITIES_BYTES: usize = 256 << 10;
/// Maximum length of each text of a server's `serverInfo`, in bytes; longer text is cut.
const MAX_INFO_BYTES: usize = 4 << 10;
/// Maximum size of a server's icons, in bytes; larger ones are dropped.
const MAX_ICONS_BYTES: usize = 64 << 10;

/// A server's description of itself: capabilities, `serverInfo` and instructions.
type PeerDescription = (Json, Option<Implementation>, Option<String>);

impl NegotiatedServer {
    /// Returns the peer with copies of its own, so that the memory of the server's answer is freed.
    fn new(
        dialect: &'static Dialect,
        (capabilities, server, instructions): PeerDescription,
        options: &RemoteOptions,
    ) -> Result<NegotiatedServer, OpenError> {
        if capabilities.as_str().len() > MAX_CAPABILITIES_BYTES {
            let words = format!("its capabilities are larger than {MAX_CAPABILITIES_BYTES} bytes");
            return Err(OpenError::Malformed(words.into()));
        }
        let capabilities = capabilities.detached();
        Ok(NegotiatedServer {
            dialect,
            task_protocol: tasks::task_protocol(dialect, &capabilities),
            capabilities,
            server: server.map(within_limits),
            instructions: instructions.filter(|text| !text.is_empty()),
            request_meta: ClientRequestMeta::of(&options.client),
            sessions_only: false,
        })
    }

    /// Returns whether the server declares `listChanged` for that kind.
    pub(super) fn reports_list_changes(&self, kind: ItemKind) -> bool {
        let capability = self.capabilities.get(kind.capability());
        capability
            .and_then(|t| t.get("listChanged"))
            .and_then(|c| c.bool())
            .unwrap_or(false)
    }

    /// Returns whether the server declares resource subscriptions.
    pub(super) fn supports_subscriptions(&self) -> bool {
        let resources = self.capabilities.get("resources");
        resources
            .and_then(|r| r.get("subscribe"))
            .and_then(|s| s.bool())
            .unwrap_or(false)
    }

    /// Returns whether the server supports completion. 2024-11-05 has no capability for it.
    pub(super) fn supports_completion(&self) -> bool {
        !self.dialect.completions || self.capabilities.get("completions").is_some()
    }

    /// Returns whether the server declares the capability for that kind.
    pub(super) fn has_capability_for(&self, kind: ItemKind) -> bool {
        match kind {
            ItemKind::Skill => self.dialect.extensions && self.skills().is_some(),
            _ => self.capabilities.get(kind.capability()).is_some(),
        }
    }

    fn skills(&self) -> Option<Json> {
        let settings = self
            .capabilities
            .get("extensions")?
            .get(skills::EXTENSION)?;
        (settings.kind() == JsonKind::Object).then_some(settings)
    }
}

fn within_limits(mut info: Implementation) -> Implementation {
    let texts = [
        &mut info.title,
        &mut info.description,
        &mut info.website_url,
    ];
    let texts = texts.into_iter().flatten();
    for text in texts.chain([&mut info.name, &mut info.version]) {
        truncate(text, MAX_INFO_BYTES);
    }
    let icons = info.icons.take();
    let short = icons.filter(|icons| icons.as_str().len() <= MAX_ICONS_BYTES);
    info.icons = short.map(|icons| icons.detached());
    info
}

/// Negotiates the revision within [`RemoteOptions::open_timeout`].
pub(super) async fn open(
    link: &ServerConnection,
    options: &RemoteOptions,
) -> Result<NegotiatedServer, OpenError> {
    let peer = timeout(options.open_timeout, negotiate_revision(link, options)).await;
    let peer = peer.unwrap_or(Err(OpenError::Late(options.open_timeout)));
    let peer = peer.map_err(|error| match error {
        OpenError::Late(_) | OpenError::Closed(_) => match link.notes.first_noise() {
            Some(words) => OpenError::NotJson(words),
            None => error,
        },
        error => error,
    })?;
    let _ = link.dialect.set(peer.dialect);
    Ok(peer)
}

/// Performs the revision negotiation: the probe, the handshake, or both, as the options and the server require.
async fn negotiate_revision(
    link: &ServerConnection,
    options: &RemoteOptions,
) -> Result<NegotiatedServer, OpenError> {
    if let Some(peer) = negotiate_known(link, options).await {
        return Ok(peer);
    }
    let allowed = AllowedRevisions::of(options);
    let newest = allowed.stateless.first().copied();
    let Some(newest) = newest.filter(|_| options.probe) else {
        return initialize(link, options, None)
            .await
            .map_err(|failure| open_error(link, failure, false));
    };
    let handshake = !allowed.handshake.is_empty();
    if options.era == EraPreference::Session && handshake {
        return session_first(link, options, newest).await;
    }
    let probe = probe(link, newest, options);
    tokio::pin!(probe);
    let early = match handshake {
        true => {
            timeout(
                options.probe_timeout.min(options.open_timeout / 2),
                &mut probe,
            )
            .await
        }
        // Nothing else is tried, so a slow server has all of the time.
        false => Ok((&mut probe).await),
    };
    let slow = early.is_err();
    let refused = matches!(early, Ok(Err(RequestFailure::Rpc(_))));
    match early.map(|answer| classify_probe(answer, options)) {
        Ok(ProbeResult::Stateless(peer)) if refused => {
            return Ok(probe_again(link, options, *peer).await);
        }
        Ok(ProbeResult::Stateless(peer)) => return Ok(*peer),
        Ok(ProbeResult::Failed(error)) => return Err(error),
        Ok(ProbeResult::Legacy) | Err(_) => {}
    }
    let error = match initialize(link, options, None).await {
        Ok(peer) => return Ok(peer),
        Err(failure) => open_error(link, failure, true),
    };
    // A stateless server that is slow to start rejects the handshake and then answers the probe.
    if slow && matches!(error, OpenError::Refused(_)) {
        let late = timeout(LATE_PROBE_WAIT, probe).await;
        if let Ok(ProbeResult::Stateless(peer)) = late.map(|answer| classify_probe(answer, options))
        {
            return Ok(*peer);
        }
    }
    Err(error)
}

/// Opens the server in the revision of an earlier connection: without a request if each request describes the client,
/// else with the handshake alone. `None` if nothing is known, or it does not apply any more.
async fn negotiate_known(
    link: &ServerConnection,
    options: &RemoteOptions,
) -> Option<NegotiatedServer> {
    let known = options.discovery.as_ref()?;
    let dialect = known.dialect(options)?;
    match dialect.request_meta {
        true => NegotiatedServer::new(dialect, known.description(), options).ok(),
        false => initialize(link, options, None).await.ok(),
    }
}

/// Opens a session. Falls back to the newest revision if the server refuses or keeps no session.
///
/// The handshake goes first because a server over stdio keeps the era of the first request until it exits: after the
/// probe it would reject the handshake.
async fn session_first(
    link: &ServerConnection,
    options: &RemoteOptions,
    newest: &'static Dialect,
) -> Result<NegotiatedServer, OpenError> {
    // A server that is slow to start answers late; a 2026-07-28 server that ignores the handshake is rare.
    let wait = options.open_timeout.saturating_sub(options.probe_timeout);
    let shaking = initialize(link, options, Some(newest));
    tokio::pin!(shaking);
    let failure = match timeout(wait.max(options.open_timeout / 2), &mut shaking).await {
        Ok(Ok(peer)) => return Ok(peer),
        Ok(Err(failure)) => failure,
        Err(_) => {
            let found = async {
                match probe_newest(link, options, newest).await {
                    Some(peer) => peer,
                    None => pending().await,
                }
            };
            tokio::select! {
                peer = found => return Ok(peer),
                done = shaking => return done.map_err(|failure| open_error(link, failure, true)),
            }
        }
    };
    if is_final(&failure) {
        return Err(open_error(link, failure, true));
    }
    match probe_newest(link, options, newest).await {
        Some(peer) => Ok(peer),
        // A server that has no sessions may end after it refused one.
        None if names_newest(&failure, options) && link.lost_reason().borrow().is_some() => {
            Err(OpenError::ClosedDuringProbe)
        }
        None => Err(open_error(link, failure, true)),
    }
}

/// Returns whether a refused handshake names a revision without sessions that is allowed here.
fn names_newest(failure: &HandshakeFailure, options: &RemoteOptions) -> bool {
    let HandshakeFailure::Failed(RequestFailure::Rpc(error)) = failure else {
        return false;
    };
    let newer = |version: &String| {
        let allowed = AllowedRevisions::of(options).stateless;
        allowed.iter().any(|d| d.revision == version)
    };
    supported_revisions(error).is_some_and(|versions| versions.iter().any(newer))
}

/// Returns whether another request would fail as well.
fn is_final(failure: &HandshakeFailure) -> bool {
    matches!(
        failure,
        HandshakeFailure::Failed(
            RequestFailure::ConnectionLost { .. }
                | RequestFailure::BudgetExceeded
                | RequestFailure::Http {
                    status: None | Some(401 | 403 | 407 | 429),
                    ..
                }
        )
    )
}

/// Returns the server in the newest revision, if it supports that.
async fn probe_newest(
    link: &ServerConnection,
    options: &RemoteOptions,
    newest: &'static Dialect,
) -> Option<NegotiatedServer> {
    let answer = timeout(options.probe_timeout, probe(link, newest, options)).await;
    let answer = answer.ok()?;
    let refused = answer.is_err();
    match classify_probe(answer, options) {
        ProbeResult::Stateless(peer) if refused => Some(probe_again(link, options, *peer).await),
        ProbeResult::Stateless(peer) => Some(*peer),
        ProbeResult::Legacy | ProbeResult::Failed(_) => None,
    }
}

async fn probe(
    link: &ServerConnection,
    dialect: &'static Dialect,
    options: &RemoteOptions,
) -> Result<Json, RequestFailure> {
    let params = |_: &_| {
        let mut o = ObjectWriter::new();
        o.object("_meta", |m| {
            write_client_meta(
                m,
                dialect,
                &options.client,
                &options.standing_capabilities(),
            )
        });
        o.finish()
    };
    link.request(discover::NAME, RequestPurpose::Open, params)
        .await
}

/// Returns whether a server that was opened without a handshake requires one now. False if the probe fails or gets no
/// answer.
pub(super) async fn wants_handshake(
    link: &ServerConnection,
    spoken: &'static Dialect,
    options: &RemoteOptions,
) -> bool {
    let answer = timeout(options.probe_timeout, probe(link, spoken, options)).await;
    let Ok(
        answer @ (Ok(_)
        | Err(
            RequestFailure::Rpc(_)
            | RequestFailure::Http {
                status: Some(400..=499),
                ..
            },
        )),
    ) = answer
    else {
        return false;
    };
    matches!(
        classify_probe(answer, options),
        ProbeResult::Legacy | ProbeResult::Failed(OpenError::NoRevision(_))
    )
}

/// Asks once more, in a revision that the refusal named. A server that refuses again has no capabilities to tell.
async fn probe_again(
    link: &ServerConnection,
    options: &RemoteOptions,
    named: NegotiatedServer,
) -> NegotiatedServer {
    let again = probe(link, named.dialect, options);
    let again = timeout(options.probe_timeout.min(options.open_timeout / 2), again).await;
    match again.map(|answer| classify_probe(answer, options)) {
        Ok(ProbeResult::Stateless(peer)) => *peer,
        _ => named,
    }
}

/// Result of the probe.
enum ProbeResult {
    Stateless(Box<NegotiatedServer>),
    Legacy,
    Failed(OpenError),
}

fn classify_probe(answer: Result<Json, RequestFailure>, options: &RemoteOptions) -> ProbeResult {
    match answer {
        Ok(result) => {
            let read =
                discover::DiscoverResult::read_within(&result, 2 * options.max_instructions_bytes);
            match read.filter(|answer| !answer.versions.is_empty()) {
                Some(answer) => choose_revision(answer, options),
                None => ProbeResult::Legacy,
            }
        }
        Err(RequestFailure::Rpc(error)) => match supported_revisions(&error) {
            Some(versions) => choose_revision(revisions_only(versions), options),
            None if matches!(error.code, code::HEADER_MISMATCH | code::MISSING_CAPABILITY) => {
                choose_revision(
                    revisions_only(vec![dialect::MODERN.revision.to_owned()]),
                    options,
                )
            }
            None => ProbeResult::Legacy,
        },
        // If the server cannot be reached or denies access, a handshake would fail as well.
        Err(RequestFailure::Http {
            words,
            status: None | Some(401 | 403 | 407 | 429),
            ..
        }) => ProbeResult::Failed(OpenError::Unreachable(words)),
        Err(
            RequestFailure::Malformed(_)
            | RequestFailure::ConnectionLost { .. }
            | RequestFailure::Http { .. }
            | RequestFailure::BudgetExceeded
            | RequestFailure::Unusable(_)
            | RequestFailure::Rejected(_),
        ) => ProbeResult::Legacy,
    }
}

/// Returns the revisions that an "unsupported version" error lists.
fn supported_revisions(error: &RpcError) -> Option<Vec<String>> {
    let data = error
        .data
        .as_ref()
        .filter(|_| error.code == code::UNSUPPORTED_VERSION)?;
    let list = data
        .get("supported")
        .filter(|list| list.kind() == JsonKind::Array)?;
    Some(list.items().filter_map(|v| v.string()).collect())
}

/// Returns an answer with only the revisions known.
fn revisions_only(versions: Vec<String>) -> discover::DiscoverResult {
    discover::DiscoverResult {
        versions,
        capabilities: ObjectWriter::new().finish(),
        server: None,
        instructions: None,
    }
}

/// Chooses the best common revision. A server that supports only legacy revisions gets the handshake.
fn choose_revision(answer: discover::DiscoverResult, options: &RemoteOptions) -> ProbeResult {
    let spoken = |d: &&&'static Dialect| answer.versions.iter().any(|v| v == d.revision);
    match options.revisions.iter().find(spoken) {
        Some(dialect) if dialect.stateless => {
            let about = (answer.capabilities, answer.server, answer.instructions);
            match NegotiatedServer::new(dialect, about, options) {
                Ok(peer) => ProbeResult::Stateless(Box::new(peer)),
                Err(error) => ProbeResult::Failed(error),
            }
        }
        Some(_) => ProbeResult::Legacy,
        None => ProbeResult::Failed(OpenError::NoRevision(sanitize_revisions(&answer.versions))),
    }
}

/// Repeats the handshake after the server ended a session.
pub(super) async fn repeat_handshake(
    link: &ServerConnection,
    options: &RemoteOptions,
) -> Result<(), OpenError> {
    timeout(options.open_timeout, initialize(link, options, None))
        .await
        .map_err(|_| OpenError::Late(options.open_timeout))?
        .map_err(|failure| open_error(link, failure, false))?;
    Ok(())
}

/// Failure of the handshake.
enum HandshakeFailure {
    Failed(RequestFailure),
    Invalid(OpenError),
}

/// Performs the handshake. With `instead`, a server that answers but does not suit a session is opened in that
/// revision, if it supports it.
async fn initialize(
    link: &ServerConnection,
    options: &RemoteOptions,
    instead: Option<&'static Dialect>,
) -> Result<NegotiatedServer, HandshakeFailure> {
    let allowed = AllowedRevisions::of(options).handshake;
    let Some(best) = allowed.first() else {
        return Err(HandshakeFailure::Invalid(OpenError::NoHandshake));
    };
    let params = initialize::InitializeParams {
        version: best.revision.to_owned(),
        capabilities: handshake_capabilities(best, options),
        client: Some(options.client.clone()),
    };
    let answer = link
        .request(initialize::NAME, RequestPurpose::Open, |_| params.json())
        .await
        .map_err(HandshakeFailure::Failed)?;
    let wrong = |error| Err(HandshakeFailure::Invalid(error));
    let read =
        initialize::InitializeResult::read_within(&answer, 2 * options.max_instructions_bytes);
    let Some(answer) = read else {
        return wrong(OpenError::Malformed(
            "protocolVersion, capabilities or serverInfo is missing or invalid".into(),
        ));
    };
    let agreed = allowed.iter().find(|d| d.revision == answer.version);
    // A second handshake must agree on the revision of the first: the cached data was read by its rules.
    let same = |d: &&'static Dialect| {
        let spoken = link.dialect.get();
        spoken.is_none_or(|spoken| spoken.revision == d.revision)
    };
    let Some(dialect) = agreed.copied().filter(same) else {
        return wrong(OpenError::NoRevision(sanitize_revisions(&[answer.version])));
    };
    let suits = suits_session(link.keeps_session(), &answer.capabilities);
    let instead = instead.filter(|_| !suits);
    if let Some(newest) = instead
        && let Some(peer) = probe_newest(link, options, newest).await
    {
        return Ok(peer);
    }
    // `notifications/initialized` already carries the revision in the `MCP-Protocol-Version` header over HTTP.
    let _ = link.dialect.set(dialect);
    link.send_initialized(initialize::INITIALIZED).await;
    let about = (
        answer.capabilities,
        Some(answer.server),
        answer.instructions,
    );
    let peer = NegotiatedServer::new(dialect, about, options).map_err(HandshakeFailure::Invalid)?;
    Ok(NegotiatedServer {
        sessions_only: instead.is_some(),
        ..peer
    })
}

fn open_error(link: &ServerConnection, failure: HandshakeFailure, probed: bool) -> OpenError {
    match failure {
        HandshakeFailure::Invalid(error) => error,
        HandshakeFailure::Failed(RequestFailure::Rpc(error)) => {
            OpenError::Refused(sanitize_line(&error.message, 200))
        }
        HandshakeFailure::Failed(RequestFailure::Malformed(reason)) => {
            OpenError::Malformed(reason.into())
        }
        HandshakeFailure::Failed(RequestFailure::Unusable(reason)) => {
            let noise = link.notes.first_noise();
            let noise = noise.map_or_else(String::new, |words| format!("; {words}"));
            OpenError::Malformed(format!("it {reason}{noise}").into())
        }
        HandshakeFailure::Failed(RequestFailure::Rejected(error)) => {
            OpenError::Refused(error.public_message().to_owned())
        }
        HandshakeFailure::Failed(RequestFailure::BudgetExceeded) => {
            OpenError::Malformed("the memory budget for messages in flight is exhausted; try again when other calls have ended".into())
        }
        HandshakeFailure::Failed(RequestFailure::Http {
            words,
            status: Some(_),
            ..
        }) => OpenError::Refused(format!("it {words}")),
        HandshakeFailure::Failed(RequestFailure::Http { words, .. }) => {
            OpenError::Unreachable(words)
        }
        HandshakeFailure::Failed(RequestFailure::ConnectionLost { .. }) if link.is_http() => {
            OpenError::Unreachable("broke the connection during the handshake; check its URL".to_owned())
        }
        HandshakeFailure::Failed(RequestFailure::ConnectionLost { .. }) if probed => {
            OpenError::ClosedDuringProbe
        }
        HandshakeFailure::Failed(RequestFailure::ConnectionLost { .. }) => OpenError::Closed(
            link.lost_reason()
                .borrow()
                .clone()
                .unwrap_or_else(|| "the connection is closed".to_owned()),
        ),
    }
}

fn sanitize_revisions(versions: &[String]) -> Vec<String> {
    versions
        .iter()
        .take(8)
        .map(|version| sanitize_line(version, 32))
        .collect()
}

/// Writes the `_meta` that every stateless request carries.
pub(super) fn write_client_meta(
    m: &mut ObjectWriter,
    dialect: &Dialect,
    client: &Implementation,
    abilities: &ClientCapabilities,
) {
    m.str(meta::VERSION, dialect.revision);
    m.raw(meta::CLIENT, &client.json());
    m.raw(meta::CAPABILITIES, &capabilities_json(abilities));
}

/// Returns the capabilities that the handshake declares.
fn handshake_capabilities(dialect: &Dialect, options: &RemoteOptions) -> Json {
    let mut abilities = options.session_capabilities();
    abilities.elicitation &= dialect.elicitation;
    abilities.elicitation_url &= dialect.elicitation_url;
    let capabilities = capabilities_json(&abilities);
    match abilities.roots {
        true => capabilities.with(
            "roots",
            &Json::from_value(&serde_json::json!({"listChanged": true})),
        ),
        false => capabilities,
    }
}

pub(super) fn capabilities_json(abilities: &ClientCapabilities) -> Json {
    let mut o = ObjectWriter::new();
    if abilities.elicitation || abilities.elicitation_url {
        o.object("elicitation", |e| {
            if abilities.elicitation {
                e.object("form", |_| {});
            }
            if abilities.elicitation_url {
                e.object("url", |_| {});
            }
        });
    }
    if abilities.sampling {
        o.object("sampling", |s| {
            if abilities.sampling_tools {
                s.object("tools", |_| {});
            }
            if abilities.sampling_context {
                s.object("context", |_| {});
            }
        });
    }
    if abilities.roots {
        o.object("roots", |_| {});
    }
    if let Some(extensions) = &abilities.extensions {
        o.raw("extensions", extensions);
    }
    o.finish()
}
