//! A server and an authorization server on loopback that can be made to misbehave, a person who signs in at once, and
//! a transport that does what its credentials say.

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

/// What is otherwise than it should be.
#[derive(Clone, Default)]
pub(crate) struct Twist {
    /// What the server says it is.
    pub(crate) resource: Option<String>,
    /// Where a person is sent.
    pub(crate) page: Option<String>,
    /// Who the authorization server says it is.
    pub(crate) issuer: Option<String>,
    pub(crate) no_s256: bool,
    pub(crate) says_iss: bool,
    /// What comes back with the person.
    pub(crate) iss: Option<String>,
    pub(crate) state: Option<String>,
    /// Where the token endpoint redirects to.
    pub(crate) token_leads_to: Option<String>,
    /// Where tokens are given back, if anywhere, and how that answers.
    pub(crate) takes_back: Option<u16>,
    /// Whether the authorization server takes documents that describe clients.
    pub(crate) takes_documents: bool,
    /// Why it registers nobody.
    pub(crate) registers_not: Option<&'static str>,
    /// How the token endpoint refuses.
    pub(crate) refuses: Option<&'static str>,
    /// How long tokens live, in seconds.
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
    /// How clients say there who they are, and how they may sign.
    pub(crate) methods: Option<&'static [&'static str]>,
    pub(crate) algorithms: Option<&'static [&'static str]>,
    /// The path below which the authorization server lies.
    pub(crate) tenant: &'static str,
    /// What some paths answer instead: status, a line of the head, body.
    pub(crate) instead: Vec<(&'static str, u16, String, &'static str)>,
    /// Where the server's metadata is, where that is no well-known place; said in each refusal.
    pub(crate) hint: Option<&'static str>,
    /// Where the metadata of the authorization server is, where that is not the first place.
    pub(crate) metadata_at: Option<&'static str>,
    /// How renewals are refused.
    pub(crate) renews_not: Option<&'static str>,
    /// The id of who registers, and until when the secret is good that comes with it.
    pub(crate) registers_as: Option<&'static str>,
    pub(crate) secret_until: Option<u64>,
}

/// Nothing is otherwise, and tokens live for an hour.
pub(crate) const LONG: Twist = Twist {
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
pub(crate) struct World(Arc<Inner>);

struct Inner {
    address: SocketAddr,
    twist: Mutex<Twist>,
    asked: Mutex<Vec<Asked>>,
    tokens: Mutex<Tokens>,
    visits: Mutex<Vec<Url>>,
    count: AtomicUsize,
    nonce: AtomicUsize,
    /// What the server got as `Authorization`.
    shown: Mutex<Vec<String>>,
    held: Mutex<Option<oneshot::Receiver<()>>>,
}

#[derive(Default)]
struct Tokens {
    good: Option<String>,
    scope: String,
    refresh: Option<String>,
}

impl World {
    pub(crate) async fn new(twist: Twist) -> World {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let world = World(Arc::new(Inner {
            address: listener.local_addr().unwrap(),
            twist: Mutex::new(twist),
            asked: Mutex::default(),
            tokens: Mutex::default(),
            visits: Mutex::default(),
            count: AtomicUsize::new(0),
            nonce: AtomicUsize::new(0),
            shown: Mutex::default(),
            held: Mutex::default(),
        }));
        let serving = world.clone();
        #[allow(clippy::disallowed_methods, reason = "a server of a test")]
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serving.clone().answer(stream));
            }
        });
        world
    }

    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.0.address)
    }

    pub(crate) fn server(&self) -> Url {
        Url::parse(&format!("{}/mcp", self.origin())).unwrap()
    }

    pub(crate) fn twist(&self, change: impl FnOnce(&mut Twist)) {
        change(&mut self.0.twist.lock().unwrap());
    }

    /// What an endpoint was asked.
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

    /// What tokens were asked for with.
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

    /// Where the person was sent.
    pub(crate) fn visits(&self) -> Vec<Url> {
        self.0.visits.lock().unwrap().clone()
    }

    /// What the server got as `Authorization`, empty where there was none.
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
        let leaving = CredentialRequest {
            method: &Method::POST,
            uri: &uri,
            operation: Some(operation),
        };
        let mut before = 0;
        loop {
            let sent = login.headers(leaving).await?;
            let (status, headers) = self.mcp(&sent);
            if status == StatusCode::OK {
                login.on_response(&headers);
                return Ok(status);
            }
            let refusal = RejectedResponse {
                status,
                headers: &headers,
                sent_headers: &sent,
                previous_rejections: before,
            };
            match login.on_rejection(leaving, refusal).await? {
                RetryDecision::Retry => before += 1,
                RetryDecision::GiveUp => return Ok(status),
            }
        }
    }

    fn mcp(&self, sent: &HeaderMap) -> (StatusCode, HeaderMap) {
        let twist = self.0.twist.lock().unwrap().clone();
        let tokens = self.0.tokens.lock().unwrap();
        let shown = sent.get(header::AUTHORIZATION);
        let shown = shown.map_or("", |value| value.to_str().unwrap());
        self.0.shown.lock().unwrap().push(shown.to_owned());
        let scheme = if twist.bound { "DPoP" } else { "Bearer" };
        let wanted = twist
            .scope
            .map(|scope| format!(", scope=\"{scope}\""))
            .unwrap_or_default();
        let hint = self.hint(&twist);
        let no = |status, error: &str| {
            let mut headers = HeaderMap::new();
            let value = format!("{scheme} error=\"{error}\"{wanted}{hint}");
            headers.insert(header::WWW_AUTHENTICATE, value.parse().unwrap());
            headers.insert("dpop-nonce", self.nonce().parse().unwrap());
            (status, headers)
        };
        // A proof comes before the token that it is for.
        if twist.bound && !shown.is_empty() && nonce_of(sent).as_deref() != Some(&self.nonce()) {
            return no(StatusCode::UNAUTHORIZED, "use_dpop_nonce");
        }
        let good = tokens
            .good
            .as_ref()
            .map(|token| format!("{scheme} {token}"));
        if twist.deaf || good.as_deref() != Some(shown) {
            return no(StatusCode::UNAUTHORIZED, "invalid_token");
        }
        let covered = twist.scope.is_none_or(|scope| {
            scope
                .split(' ')
                .all(|one| tokens.scope.split(' ').any(|had| had == one))
        });
        if twist.insatiable || !covered {
            return no(StatusCode::FORBIDDEN, "insufficient_scope");
        }
        (StatusCode::OK, HeaderMap::new())
    }

    fn nonce(&self) -> String {
        format!("nonce-{}", self.0.nonce.load(SeqCst))
    }

    /// What a refusal says of where the metadata is.
    fn hint(&self, twist: &Twist) -> String {
        let hint = twist.hint.map(|hint| format!("{}{hint}", self.origin()));
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
        let instead = self.0.twist.lock().unwrap().instead.clone();
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
        let twist = self.0.twist.lock().unwrap().clone();
        let (origin, tenant) = (self.origin(), twist.tenant);
        let none = (404, String::new(), String::new());
        let ok = |value: serde_json::Value| (200, String::new(), value.to_string());
        let path = asked.path.as_str();
        if twist.silent && path.starts_with("/.well-known") {
            return none;
        }
        if path == "/mcp" {
            let line = "\r\nWWW-Authenticate: Bearer error=\"invalid_token\"";
            return (401, format!("{line}{}", self.hint(&twist)), String::new());
        }
        if path
            == twist
                .hint
                .unwrap_or("/.well-known/oauth-protected-resource/mcp")
        {
            return ok(serde_json::json!({
                "resource": twist.resource.unwrap_or(format!("{origin}/mcp")),
                "authorization_servers": [format!("{origin}{tenant}")],
            }));
        }
        let first = format!("/.well-known/oauth-authorization-server{tenant}");
        if path == twist.metadata_at.unwrap_or(&first) {
            let back = twist.takes_back.map(|_| format!("{origin}/back"));
            return ok(serde_json::json!({
                "revocation_endpoint": back,
                "issuer": twist.issuer.unwrap_or(format!("{origin}{tenant}")),
                "authorization_endpoint": twist.page.unwrap_or(format!("{origin}/authorize")),
                "token_endpoint": format!("{origin}/token"),
                "registration_endpoint": format!("{origin}/register"),
                "code_challenge_methods_supported": if twist.no_s256 { vec!["plain"] } else { vec!["S256"] },
                "authorization_response_iss_parameter_supported": twist.says_iss,
                "client_id_metadata_document_supported": twist.takes_documents,
                "token_endpoint_auth_methods_supported": twist.methods.unwrap_or(&["none"]),
                "token_endpoint_auth_signing_alg_values_supported": twist.algorithms,
                "dpop_signing_alg_values_supported": twist.bound.then_some(["ES256"]),
            }));
        }
        match path {
            "/register" if twist.registers_not.is_some() => (
                400,
                String::new(),
                format!("{{\"error\":\"{}\"}}", twist.registers_not.unwrap()),
            ),
            "/register" => {
                let id = format!("id-of{}", tenant.replace('/', "-"));
                let mut client =
                    serde_json::json!({"client_id": twist.registers_as.unwrap_or(&id)});
                if let Some(until) = twist.secret_until {
                    client["client_secret"] = "a-secret".into();
                    client["client_secret_expires_at"] = until.into();
                    client["token_endpoint_auth_method"] = "client_secret_post".into();
                }
                (201, String::new(), client.to_string())
            }
            "/token" => self.token(asked, &twist),
            "/back" => (
                twist.takes_back.unwrap_or(404),
                String::new(),
                String::new(),
            ),
            _ => none,
        }
    }

    fn token(&self, asked: &Asked, twist: &Twist) -> (u16, String, String) {
        if let Some(to) = &twist.token_leads_to {
            return (307, to.clone(), String::new());
        }
        let no = |code: &str| (400, String::new(), format!("{{\"error\":\"{code}\"}}"));
        if let Some((status, words)) = twist.refuses_with {
            let form = form_urlencoded::parse(asked.body.as_bytes());
            let sent: Vec<_> = form.map(|(key, value)| format!("{key}={value}")).collect();
            return (
                status,
                String::new(),
                words.replace("BODY", &sent.join(" ")),
            );
        }
        if let Some(code) = twist.refuses {
            return no(code);
        }
        let renews = asked.field("grant_type").as_deref() == Some("refresh_token");
        if let Some(code) = twist.renews_not.filter(|_| renews) {
            return no(code);
        }
        let mut tokens = self.0.tokens.lock().unwrap();
        if asked.field("grant_type").as_deref() == Some("refresh_token")
            && (tokens.refresh.is_none() || tokens.refresh != asked.field("refresh_token"))
        {
            return no("invalid_grant");
        }
        let n = self.0.count.fetch_add(1, SeqCst);
        tokens.good = Some(format!("access{}-{n}", twist.tenant.replace('/', "-")));
        tokens.refresh = Some(format!("refresh-{n}"));
        let refresh = tokens.refresh.as_ref().filter(|_| !twist.no_refresh);
        let body = serde_json::json!({
            "access_token": tokens.good, "token_type": if twist.bound { "DPoP" } else { "Bearer" },
            "expires_in": twist.life, "refresh_token": refresh, "scope": twist.granted,
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
pub(crate) struct Person(pub(crate) World);

/// Comes back elsewhere, where there is another place than that of [`Person`]; and what happens while away.
#[derive(Clone)]
pub(crate) struct Traveller {
    pub(crate) world: World,
    pub(crate) redirect: &'static str,
    pub(crate) meanwhile: fn(&mut Twist),
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
        self.world.twist(self.meanwhile);
        if !self.comes_back {
            let nobody = AuthError::new(AuthErrorKind::NeedsSignIn, "nobody came back");
            return Box::pin(async { Err(nobody) });
        }
        Box::new(Person(self.world)).open_and_wait(url)
    }
}

impl SignIn for Person {
    fn begin<'a>(
        &'a self,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Box<dyn PendingSignIn>, AuthError>> {
        Box::pin(async { Ok(Box::new(self.clone()) as Box<dyn PendingSignIn>) })
    }
}

impl PendingSignIn for Person {
    fn redirect_uri(&self) -> &str {
        "http://127.0.0.1:1/callback"
    }

    fn open_and_wait(self: Box<Self>, url: Url) -> BoxFuture<'static, Result<String, AuthError>> {
        let world = self.0;
        let twist = world.0.twist.lock().unwrap().clone();
        let query: Vec<(String, String)> = form_urlencoded::parse(url.query().unwrap().as_bytes())
            .into_owned()
            .collect();
        let get = |key: &str| {
            query
                .iter()
                .find(|(name, _)| name == key)
                .map(|(_, value)| value.clone())
        };
        world.0.tokens.lock().unwrap().scope = get("scope").unwrap_or_default();
        world.0.visits.lock().unwrap().push(url);
        let mut back = form_urlencoded::Serializer::new(String::new());
        back.append_pair("code", "the-code");
        back.append_pair("state", &twist.state.or(get("state")).unwrap());
        if let Some(iss) = &twist.iss {
            back.append_pair("iss", iss);
        }
        let back = back.finish();
        Box::pin(async move { Ok(back) })
    }
}
