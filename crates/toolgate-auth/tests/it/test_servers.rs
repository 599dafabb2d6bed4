//! Test servers: an MCP server and an authorization server on loopback that can misbehave, a user who signs in at once,
//! and a transport that applies its credentials.

use futures_util::future::BoxFuture;
use http::{HeaderMap, Method, StatusCode, Uri, header};
use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
};
use toolgate_auth::{
    Url,
    client::{
        AuthError, AuthErrorKind, CredentialProvider, CredentialRequest, OAuthClient,
        PendingSignIn, RejectedResponse, RetryDecision, SignIn,
    },
};

/// Deviations of the servers from correct behavior.
#[derive(Clone, Default)]
pub(crate) struct ServerBehavior {
    /// Resource identifier that the MCP server claims.
    pub(crate) resource: Option<String>,
    /// Authorization page of the user.
    pub(crate) page: Option<String>,
    /// Issuer that the authorization server claims.
    pub(crate) issuer: Option<String>,
    pub(crate) no_s256: bool,
    pub(crate) says_iss: bool,
    /// `iss` of the authorization response.
    pub(crate) iss: Option<String>,
    pub(crate) state: Option<String>,
    /// Redirect target of the token endpoint.
    pub(crate) token_leads_to: Option<String>,
    /// Status of the revocation endpoint; `None` if there is none.
    pub(crate) takes_back: Option<u16>,
    /// True if the authorization server supports Client ID Metadata Documents.
    pub(crate) takes_documents: bool,
    /// Error of client registration.
    pub(crate) registers_not: Option<&'static str>,
    /// Error of the token endpoint.
    pub(crate) refuses: Option<&'static str>,
    /// Lifetime of tokens, in seconds.
    pub(crate) life: u64,
    /// The scope that the server wants, and whether it never has enough.
    pub(crate) scope: Option<&'static str>,
    pub(crate) insatiable: bool,
    /// No metadata at all.
    pub(crate) silent: bool,
    /// Its status and its words where the token endpoint refuses in its own way; `BODY` is what was sent.
    pub(crate) refuses_with: Option<(u16, &'static str)>,
    /// The scope that it says it granted.
    pub(crate) granted: Option<&'static str>,
    pub(crate) no_refresh: bool,
    /// The server takes no token at all.
    pub(crate) deaf: bool,
    /// Tokens are bound to a key, and proofs need the nonce of the day, which is another one each time that tokens are
    /// revoked.
    pub(crate) bound: bool,
    /// Supported client authentication methods.
    pub(crate) methods: Option<&'static [&'static str]>,
    pub(crate) algorithms: Option<&'static [&'static str]>,
    /// The path below which the authorization server lies.
    pub(crate) tenant: &'static str,
    /// Replaced answers by path: status, a header line, body.
    pub(crate) instead: Vec<(&'static str, u16, String, &'static str)>,
    /// URL of the server's metadata if it is no well-known one; in each rejection.
    pub(crate) hint: Option<&'static str>,
    /// Path of the authorization server metadata, if it is not the first candidate.
    pub(crate) metadata_at: Option<&'static str>,
    /// Error of token refreshes.
    pub(crate) renews_not: Option<&'static str>,
    /// The id of who registers, and until when the secret is good that comes with it.
    pub(crate) registers_as: Option<&'static str>,
    pub(crate) secret_until: Option<u64>,
}

/// Correct behavior; tokens live for an hour.
pub(crate) const CONFORMANT: ServerBehavior = ServerBehavior {
    resource: None,
    page: None,
    issuer: None,
    no_s256: false,
    says_iss: false,
    iss: None,
    state: None,
    token_leads_to: None,
    takes_back: None,
    takes_documents: false,
    registers_not: None,
    refuses: None,
    life: 3600,
    scope: None,
    insatiable: false,
    silent: false,
    refuses_with: None,
    granted: None,
    no_refresh: false,
    deaf: false,
    bound: false,
    methods: None,
    algorithms: None,
    tenant: "",
    instead: Vec::new(),
    hint: None,
    metadata_at: None,
    renews_not: None,
    registers_as: None,
    secret_until: None,
};

/// One request that an endpoint got.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Asked {
    pub(crate) fn field(&self, key: &str) -> Option<String> {
        let mut form = form_urlencoded::parse(self.body.as_bytes());
        form.find(|(name, _)| name == key)
            .map(|(_, value)| value.into_owned())
    }
}

#[derive(Clone)]
pub(crate) struct TestServers(Arc<Inner>);

struct Inner {
    address: SocketAddr,
    behavior: Mutex<ServerBehavior>,
    asked: Mutex<Vec<Asked>>,
    tokens: Mutex<Tokens>,
    visits: Mutex<Vec<Url>>,
    count: AtomicUsize,
    nonce: AtomicUsize,
    /// `Authorization` headers that the server received.
    shown: Mutex<Vec<String>>,
    held: Mutex<Option<oneshot::Receiver<()>>>,
}

#[derive(Default)]
struct Tokens {
    good: Option<String>,
    scope: String,
    refresh: Option<String>,
}

impl TestServers {
    pub(crate) async fn new(behavior: ServerBehavior) -> TestServers {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let servers = TestServers(Arc::new(Inner {
            address: listener.local_addr().unwrap(),
            behavior: Mutex::new(behavior),
            asked: Mutex::default(),
            tokens: Mutex::default(),
            visits: Mutex::default(),
            count: AtomicUsize::new(0),
            nonce: AtomicUsize::new(0),
            shown: Mutex::default(),
            held: Mutex::default(),
        }));
        let serving = servers.clone();
        #[allow(clippy::disallowed_methods, reason = "a server of a test")]
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serving.clone().answer(stream));
            }
        });
        servers
    }

    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.0.address)
    }

    pub(crate) fn server(&self) -> Url {
        Url::parse(&format!("{}/mcp", self.origin())).unwrap()
    }

    pub(crate) fn behavior(&self, change: impl FnOnce(&mut ServerBehavior)) {
        change(&mut self.0.behavior.lock().unwrap());
    }

    /// Returns the requests to an endpoint.
    pub(crate) fn asked(&self, path: &str) -> Vec<Asked> {
        let asked = self.0.asked.lock().unwrap();
        asked
            .iter()
            .filter(|one| one.path == path)
            .cloned()
            .collect()
    }

    /// All paths that were asked for.
    pub(crate) fn paths(&self) -> Vec<String> {
        let asked = self.0.asked.lock().unwrap();
        asked.iter().map(|one| one.path.clone()).collect()
    }

    /// Returns the grant types of the token requests.
    pub(crate) fn grants(&self) -> Vec<String> {
        let asked = self.asked("/token");
        asked
            .iter()
            .filter_map(|one| one.field("grant_type"))
            .collect()
    }

    /// Holds the next answer of the token endpoint back until the sender is used or dropped.
    pub(crate) fn hold(&self) -> oneshot::Sender<()> {
        let (release, held) = oneshot::channel();
        *self.0.held.lock().unwrap() = Some(held);
        release
    }

    /// Waits until a path was asked for so many times.
    pub(crate) async fn until_asked(&self, path: &str, times: usize) {
        let asked = async {
            while self.asked(path).len() < times {
                tokio::task::yield_now().await;
            }
        };
        // A bound on a hang, not a measurement.
        let asked = tokio::time::timeout(std::time::Duration::from_secs(20), asked);
        asked.await.expect("it is asked");
    }

    /// Returns the authorization URLs that the user opened.
    pub(crate) fn visits(&self) -> Vec<Url> {
        self.0.visits.lock().unwrap().clone()
    }

    /// Returns the `Authorization` headers that the server received, empty if there was none.
    pub(crate) fn shown(&self) -> Vec<String> {
        self.0.shown.lock().unwrap().clone()
    }

    pub(crate) fn revoke(&self) {
        self.0.nonce.fetch_add(1, SeqCst);
        self.0.tokens.lock().unwrap().good = None;
    }

    pub(crate) fn forget_refresh(&self) {
        self.0.tokens.lock().unwrap().refresh = None;
    }

    /// A request of a transport, until it is answered.
    pub(crate) async fn call(
        &self,
        login: &OAuthClient,
        operation: &str,
    ) -> Result<StatusCode, AuthError> {
        let uri: Uri = self.server().as_str().parse().unwrap();
        let leaving = CredentialRequest::new(&Method::POST, &uri, Some(operation));
        let mut before = 0;
        loop {
            let sent = login.headers(leaving).await?;
            let (status, headers) = self.mcp(&sent);
            if status == StatusCode::OK {
                login.on_response(&headers);
                return Ok(status);
            }
            let refusal = RejectedResponse::new(status, &headers, &sent, before);
            match login.on_rejection(leaving, refusal).await? {
                RetryDecision::Retry => before += 1,
                _ => return Ok(status),
            }
        }
    }

    fn mcp(&self, sent: &HeaderMap) -> (StatusCode, HeaderMap) {
        let behavior = self.0.behavior.lock().unwrap().clone();
        let tokens = self.0.tokens.lock().unwrap();
        let shown = sent.get(header::AUTHORIZATION);
        let shown = shown.map_or("", |value| value.to_str().unwrap());
        self.0.shown.lock().unwrap().push(shown.to_owned());
        let scheme = if behavior.bound { "DPoP" } else { "Bearer" };
        let wanted = behavior
            .scope
            .map(|scope| format!(", scope=\"{scope}\""))
            .unwrap_or_default();
        let hint = self.hint(&behavior);
        let no = |status, error: &str| {
            let mut headers = HeaderMap::new();
            let value = format!("{scheme} error=\"{error}\"{wanted}{hint}");
            headers.insert(header::WWW_AUTHENTICATE, value.parse().unwrap());
            headers.insert("dpop-nonce", self.nonce().parse().unwrap());
            (status, headers)
        };
        // A proof comes before the token that it is for.
        if behavior.bound && !shown.is_empty() && nonce_of(sent).as_deref() != Some(&self.nonce()) {
            return no(StatusCode::UNAUTHORIZED, "use_dpop_nonce");
        }
        let good = tokens
            .good
            .as_ref()
            .map(|token| format!("{scheme} {token}"));
        if behavior.deaf || good.as_deref() != Some(shown) {
            return no(StatusCode::UNAUTHORIZED, "invalid_token");
        }
        let covered = behavior.scope.is_none_or(|scope| {
            scope
                .split(' ')
                .all(|one| tokens.scope.split(' ').any(|had| had == one))
        });
        if behavior.insatiable || !covered {
            return no(StatusCode::FORBIDDEN, "insufficient_scope");
        }
        (StatusCode::OK, HeaderMap::new())
    }

    fn nonce(&self) -> String {
        format!("nonce-{}", self.0.nonce.load(SeqCst))
    }

    /// Returns the metadata hint of a rejection.
    fn hint(&self, behavior: &ServerBehavior) -> String {
        let hint = behavior.hint.map(|hint| format!("{}{hint}", self.origin()));
        hint.map(|hint| format!(", resource_metadata=\"{hint}\""))
            .unwrap_or_default()
    }

    async fn answer(self, mut stream: TcpStream) {
        let mut bytes = Vec::new();
        let asked = loop {
            let mut part = [0; 4096];
            let read = stream.read(&mut part).await.unwrap_or(0);
            bytes.extend_from_slice(&part[..read]);
            if let Some(asked) = whole(&bytes) {
                break asked;
            }
            if read == 0 {
                return;
            }
        };
        let instead = self.0.behavior.lock().unwrap().instead.clone();
        let instead = instead.into_iter().find(|(path, ..)| *path == asked.path);
        let (status, line, body) = match instead {
            Some((_, status, line, body)) if line.is_empty() => {
                (status, "X-Line: none".to_owned(), body.to_owned())
            }
            Some((_, status, line, body)) => (status, line, body.to_owned()),
            None => {
                let (status, location, body) = self.say(&asked);
                (status, format!("Location: {location}"), body)
            }
        };
        let held = (asked.path == "/token").then(|| self.0.held.lock().unwrap().take());
        self.0.asked.lock().unwrap().push(asked);
        if let Some(held) = held.flatten() {
            let _ = held.await;
        }
        let answer = format!(
            "HTTP/1.1 {status} x\r\nContent-Type: application/json\r\n{line}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        let _ = stream.write_all(answer.as_bytes()).await;
    }

    fn say(&self, asked: &Asked) -> (u16, String, String) {
        let behavior = self.0.behavior.lock().unwrap().clone();
        let (origin, tenant) = (self.origin(), behavior.tenant);
        let none = (404, String::new(), String::new());
        let ok = |value: serde_json::Value| (200, String::new(), value.to_string());
        let path = asked.path.as_str();
        if behavior.silent && path.starts_with("/.well-known") {
            return none;
        }
        if path == "/mcp" {
            let line = "\r\nWWW-Authenticate: Bearer error=\"invalid_token\"";
            return (
                401,
                format!("{line}{}", self.hint(&behavior)),
                String::new(),
            );
        }
        if path
            == behavior
                .hint
                .unwrap_or("/.well-known/oauth-protected-resource/mcp")
        {
            return ok(serde_json::json!({
                "resource": behavior.resource.unwrap_or(format!("{origin}/mcp")),
                "authorization_servers": [format!("{origin}{tenant}")],
            }));
        }
        let first = format!("/.well-known/oauth-authorization-server{tenant}");
        if path == behavior.metadata_at.unwrap_or(&first) {
            let back = behavior.takes_back.map(|_| format!("{origin}/back"));
            return ok(serde_json::json!({
                "revocation_endpoint": back,
                "issuer": behavior.issuer.unwrap_or(format!("{origin}{tenant}")),
                "authorization_endpoint": behavior.page.unwrap_or(format!("{origin}/authorize")),
                "token_endpoint": format!("{origin}/token"),
                "registration_endpoint": format!("{origin}/register"),
                "code_challenge_methods_supported": if behavior.no_s256 { vec!["plain"] } else { vec!["S256"] },
                "authorization_response_iss_parameter_supported": behavior.says_iss,
                "client_id_metadata_document_supported": behavior.takes_documents,
                "token_endpoint_auth_methods_supported": behavior.methods.unwrap_or(&["none"]),
                "token_endpoint_auth_signing_alg_values_supported": behavior.algorithms,
                "dpop_signing_alg_values_supported": behavior.bound.then_some(["ES256"]),
            }));
        }
        match path {
            "/register" if behavior.registers_not.is_some() => (
                400,
                String::new(),
                format!("{{\"error\":\"{}\"}}", behavior.registers_not.unwrap()),
            ),
            "/register" => {
                let id = format!("id-of{}", tenant.replace('/', "-"));
                let mut client =
                    serde_json::json!({"client_id": behavior.registers_as.unwrap_or(&id)});
                if let Some(until) = behavior.secret_until {
                    client["client_secret"] = "a-secret".into();
                    client["client_secret_expires_at"] = until.into();
                    client["token_endpoint_auth_method"] = "client_secret_post".into();
                }
                (201, String::new(), client.to_string())
            }
            "/token" => self.token(asked, &behavior),
            "/back" => (
                behavior.takes_back.unwrap_or(404),
                String::new(),
                String::new(),
            ),
            _ => none,
        }
    }

    fn token(&self, asked: &Asked, behavior: &ServerBehavior) -> (u16, String, String) {
        if let Some(to) = &behavior.token_leads_to {
            return (307, to.clone(), String::new());
        }
        let no = |code: &str| (400, String::new(), format!("{{\"error\":\"{code}\"}}"));
        if let Some((status, words)) = behavior.refuses_with {
            let form = form_urlencoded::parse(asked.body.as_bytes());
            let sent: Vec<_> = form.map(|(key, value)| format!("{key}={value}")).collect();
            return (
                status,
                String::new(),
                words.replace("BODY", &sent.join(" ")),
            );
        }
        if let Some(code) = behavior.refuses {
            return no(code);
        }
        let renews = asked.field("grant_type").as_deref() == Some("refresh_token");
        if let Some(code) = behavior.renews_not.filter(|_| renews) {
            return no(code);
        }
        let mut tokens = self.0.tokens.lock().unwrap();
        if asked.field("grant_type").as_deref() == Some("refresh_token")
            && (tokens.refresh.is_none() || tokens.refresh != asked.field("refresh_token"))
        {
            return no("invalid_grant");
        }
        let n = self.0.count.fetch_add(1, SeqCst);
        tokens.good = Some(format!("access{}-{n}", behavior.tenant.replace('/', "-")));
        tokens.refresh = Some(format!("refresh-{n}"));
        let refresh = tokens.refresh.as_ref().filter(|_| !behavior.no_refresh);
        let body = serde_json::json!({
            "access_token": tokens.good, "token_type": if behavior.bound { "DPoP" } else { "Bearer" },
            "expires_in": behavior.life, "refresh_token": refresh, "scope": behavior.granted,
        });
        (200, String::new(), body.to_string())
    }
}

/// The nonce in a proof.
fn nonce_of(sent: &HeaderMap) -> Option<String> {
    let proof = sent.get("dpop")?.to_str().ok()?;
    let claims = toolgate_auth::jose::decode(proof.split('.').nth(1)?)?;
    let claims: serde_json::Value = serde_json::from_slice(&claims).ok()?;
    claims["nonce"].as_str().map(str::to_owned)
}

/// A request, once all of it is there.
fn whole(bytes: &[u8]) -> Option<Asked> {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let length = head.lines().find_map(|line| {
        line.to_ascii_lowercase()
            .strip_prefix("content-length: ")?
            .parse::<usize>()
            .ok()
    });
    (body.len() >= length.unwrap_or(0)).then(|| Asked {
        path: head.split(' ').nth(1).unwrap_or_default().to_owned(),
        head: head.to_owned(),
        body: body.to_owned(),
    })
}

/// Signs in at once.
#[derive(Clone)]
pub(crate) struct TestUser(pub(crate) TestServers);

/// Comes back elsewhere, where there is another place than that of [`TestUser`]; and what happens while away.
#[derive(Clone)]
pub(crate) struct Traveller {
    pub(crate) servers: TestServers,
    pub(crate) redirect: &'static str,
    pub(crate) meanwhile: fn(&mut ServerBehavior),
    pub(crate) comes_back: bool,
}

impl SignIn for Traveller {
    fn begin<'a>(
        &'a self,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Box<dyn PendingSignIn>, AuthError>> {
        Box::pin(async { Ok(Box::new(self.clone()) as Box<dyn PendingSignIn>) })
    }
}

impl PendingSignIn for Traveller {
    fn redirect_uri(&self) -> &str {
        self.redirect
    }

    fn open_and_wait(self: Box<Self>, url: Url) -> BoxFuture<'static, Result<String, AuthError>> {
        self.servers.behavior(self.meanwhile);
        if !self.comes_back {
            let nobody = AuthError::new(AuthErrorKind::NeedsSignIn, "nobody came back");
            return Box::pin(async { Err(nobody) });
        }
        Box::new(TestUser(self.servers)).open_and_wait(url)
    }
}

impl SignIn for TestUser {
    fn begin<'a>(
        &'a self,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Box<dyn PendingSignIn>, AuthError>> {
        Box::pin(async { Ok(Box::new(self.clone()) as Box<dyn PendingSignIn>) })
    }
}

impl PendingSignIn for TestUser {
    fn redirect_uri(&self) -> &str {
        "http://127.0.0.1:1/callback"
    }

    fn open_and_wait(self: Box<Self>, url: Url) -> BoxFuture<'static, Result<String, AuthError>> {
        let servers = self.0;
        let behavior = servers.0.behavior.lock().unwrap().clone();
        let query: Vec<(String, String)> = form_urlencoded::parse(url.query().unwrap().as_bytes())
            .into_owned()
            .collect();
        let get = |key: &str| {
            query
                .iter()
                .find(|(name, _)| name == key)
                .map(|(_, value)| value.clone())
        };
        servers.0.tokens.lock().unwrap().scope = get("scope").unwrap_or_default();
        servers.0.visits.lock().unwrap().push(url);
        let mut back = form_urlencoded::Serializer::new(String::new());
        back.append_pair("code", "the-code");
        back.append_pair("state", &behavior.state.or(get("state")).unwrap());
        if let Some(iss) = &behavior.iss {
            back.append_pair("iss", iss);
        }
        let back = back.finish();
        Box::pin(async move { Ok(back) })
    }
}
