//! Routing of requests to the gateway that has their session.

use super::{
    CheckpointCopies, FleetMembers, FleetSessions, PeerClient, PeerListener, PeerTls, SessionRoute,
    peer_client::ForwardError,
};
use crate::{config::StoreSettings, proxy::ClientConnection, responses::text_response};
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use std::{path::PathBuf, sync::Arc, time::Duration};
use toolgate::edge::http::Body;
use toolgate_policy::StateStore;

/// Header of the session id.
const SESSION_HEADER: &str = "mcp-session-id";
/// Headers of the method and the name of a request without a session (2026-07-28).
const METHOD_HEADER: &str = "mcp-method";
const NAME_HEADER: &str = "mcp-name";
/// Beginning of the methods whose name is the id of a task.
const TASK_METHODS: &str = "tasks/";
/// Parameter of the session id of HTTP with SSE.
const SESSION_PARAMETER: &str = "sessionId=";

/// Mark of a request that another gateway forwarded. It is never forwarded again.
#[derive(Clone, Copy)]
pub(crate) struct Forwarded;

/// This gateway among those that share a store.
pub(crate) struct GatewayFleet {
    pub(crate) members: Arc<FleetMembers>,
    pub(crate) sessions: Arc<FleetSessions>,
    copies: CheckpointCopies,
    client: Option<PeerClient>,
}

impl GatewayFleet {
    /// Joins the gateways of a store, and listens for them if the config says where, on the listener that was taken
    /// over if there is one.
    ///
    /// # Errors
    /// The certificates or the address cannot be used; the message says why.
    pub(crate) async fn join(
        (settings, taken): (&StoreSettings, Option<std::net::TcpListener>),
        policy: &str,
        store: Arc<dyn StateStore>,
        checkpoint_mirror: PathBuf,
        max_session_age: Duration,
    ) -> Result<(GatewayFleet, Option<PeerListener>), String> {
        let peers = settings.peers.as_ref();
        let tls = peers.map(PeerTls::read).transpose()?;
        let listener = match peers.zip(tls.clone()) {
            Some((peers, tls)) => Some(PeerListener::bind(peers, tls, taken).await?),
            None => None,
        };
        let advertise = peers.map(|peers| peers.advertise.clone());
        let members = FleetMembers::new(store.clone(), advertise.clone(), settings.gateways);
        let gateway = advertise.unwrap_or_else(|| members.tag().to_owned());
        let copies = CheckpointCopies::new(store.clone(), checkpoint_mirror, gateway);
        let members = Arc::new(members);
        members.renew(policy).await;
        let sessions = FleetSessions::new(store, members.clone(), max_session_age);
        let fleet = GatewayFleet {
            members,
            sessions: Arc::new(sessions),
            copies,
            client: tls.map(PeerClient::new),
        };
        Ok((fleet, listener))
    }

    /// Forwards a request to the home of its session. Returns the request if it has to be answered here.
    pub(crate) async fn route(
        &self,
        from: ClientConnection,
        request: Box<Request<Incoming>>,
    ) -> Result<Response<Body>, Box<Request<Incoming>>> {
        let forwarded = request.extensions().get::<Forwarded>().is_some();
        if forwarded && let Some(id) = session_id(&request).map(str::to_owned) {
            self.sessions.adopt_from_predecessor(&id).await;
        }
        let Some(client) = self.client.as_ref().filter(|_| !forwarded) else {
            return Err(request);
        };
        if let Some((tag, address)) = self.task_home(&request) {
            return match client.forward((&tag, &address), from, *request).await {
                Ok(response) => Ok(response),
                Err(ForwardError::Unreachable(request)) => Err(request),
                Err(ForwardError::Broken) => Ok(broken()),
            };
        }
        let Some(id) = session_id(&request).map(str::to_owned) else {
            return Err(request);
        };
        let SessionRoute::Forward { tag, address } = self.sessions.route(&id).await else {
            return Err(request);
        };
        match client.forward((&tag, &address), from, *request).await {
            Ok(response) => Ok(response),
            Err(ForwardError::Unreachable(request)) => {
                self.sessions.adopt(&id).await;
                Err(request)
            }
            Err(ForwardError::Broken) => Ok(broken()),
        }
    }

    /// Returns the tag and the address of another gateway that has the task of a request.
    fn task_home(&self, request: &Request<Incoming>) -> Option<(String, String)> {
        let header = |name: &str| request.headers().get(name)?.to_str().ok();
        let id = header(NAME_HEADER).filter(|_| {
            header(METHOD_HEADER).is_some_and(|method| method.starts_with(TASK_METHODS))
        })?;
        let (_, tag) = id.rsplit_once('.')?;
        let home = self
            .members
            .find(tag)
            .filter(|home| home.tag != self.members.tag() && !self.members.has_address_of(home));
        let home = home?;
        Some((home.tag, home.advertise?))
    }

    /// Keeps the membership and the sessions up to date. Never returns.
    pub(crate) async fn follow(&self, policy: impl Fn() -> String) {
        tokio::join!(
            self.members.follow(policy),
            self.sessions.sweep(),
            self.copies.follow()
        );
    }
}

/// Response if the connection to another gateway broke after the request was sent.
fn broken() -> Response<Body> {
    text_response(
        StatusCode::BAD_GATEWAY,
        "the gateway that has this session or task ended; a call may have taken effect",
    )
}

/// Returns the session id of a request: of its header, or of the messages of HTTP with SSE.
fn session_id(request: &Request<Incoming>) -> Option<&str> {
    if let Some(id) = request.headers().get(SESSION_HEADER) {
        return id.to_str().ok();
    }
    let query = request.uri().query()?;
    query
        .split('&')
        .find_map(|part| part.strip_prefix(SESSION_PARAMETER))
}
