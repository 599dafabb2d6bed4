//! The examples about authorization, with an authorization server on this machine and a person who does what the page
//! that is printed would have him do.

use crate::examples::program;
use serde_json::{Value, json};
use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::Stdio,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};
use toolgate::auth::jose::SigningKey;

/// A bound on a hang, not a measurement.
const HANG: Duration = Duration::from_secs(30);

/// An authorization server that asks nobody, and what it grants.
#[derive(Clone)]
struct Issuer(Arc<Inner>);

struct Inner {
    url: String,
    key: SigningKey,
    granted: Mutex<String>,
    asked: Mutex<Vec<String>>,
}

impl Issuer {
    fn new() -> Issuer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let issuer = Issuer(Arc::new(Inner {
            url: format!("http://{}", listener.local_addr().unwrap()),
            key: SigningKey::generate().unwrap().0,
            granted: Mutex::default(),
            asked: Mutex::default(),
        }));
        let serving = issuer.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                serving.answer(stream);
            }
        });
        issuer
    }

    fn answer(&self, mut stream: TcpStream) {
        let mut bytes = Vec::new();
        let (path, body) = loop {
            let mut part = [0; 4096];
            let read = stream.read(&mut part).unwrap_or(0);
            bytes.extend_from_slice(&part[..read]);
            let text = String::from_utf8_lossy(&bytes).into_owned();
            if let Some(whole) = whole(&text) {
                break whole;
            }
            if read == 0 {
                return;
            }
        };
        let body = self.say(&path, &body).to_string();
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
        let _ = write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len());
        self.0.asked.lock().unwrap().push(path);
    }

    fn say(&self, path: &str, body: &str) -> Value {
        let url = &self.0.url;
        match path {
            "/keys" => {
                let mut key = self.0.key.public_jwk().unwrap();
                (key["kid"], key["alg"]) = (json!("1"), json!("ES256"));
                json!({ "keys": [key] })
            }
            "/register" => json!({"client_id": "example"}),
            "/token" => {
                let resource = field(body, "resource").unwrap();
                json!({"access_token": self.token(&resource), "token_type": "Bearer", "expires_in": 3600,
                    "scope": *self.0.granted.lock().unwrap()})
            }
            _ => json!({"issuer": url, "jwks_uri": format!("{url}/keys"),
                "authorization_endpoint": format!("{url}/authorize"), "token_endpoint": format!("{url}/token"),
                "registration_endpoint": format!("{url}/register"), "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"]}),
        }
    }

    fn token(&self, resource: &str) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let claims = json!({"iss": self.0.url, "sub": "ann", "aud": resource, "exp": now.as_secs() + 3600,
            "scope": *self.0.granted.lock().unwrap()});
        self.0.key.sign(json!({"kid": "1"}), &claims).unwrap()
    }

    /// The page in the browser: the person allows some of what is asked for, and comes back.
    fn allow(&self, page: &str, scopes: &str) {
        let (at, query) = page.split_once('?').unwrap();
        assert_eq!(at, format!("{}/authorize", self.0.url));
        scopes.clone_into(&mut self.0.granted.lock().unwrap());
        let back = field(query, "redirect_uri").unwrap();
        let host = back.strip_prefix("http://").unwrap();
        let (host, path) = host.split_at(host.find('/').unwrap());
        let state = field(query, "state").unwrap();
        let mut stream = TcpStream::connect(host).unwrap();
        write!(
            stream,
            "GET {path}?code=c&state={state} HTTP/1.1\r\nHost: {host}\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("200 OK"), "{answer}");
    }

    fn tokens(&self) -> usize {
        let asked = self.0.asked.lock().unwrap();
        asked.iter().filter(|path| *path == "/token").count()
    }
}

/// The path and the body of a request, once all of it is there.
fn whole(text: &str) -> Option<(String, String)> {
    let (head, body) = text.split_once("\r\n\r\n")?;
    let length = head.lines().find_map(|line| {
        let line = line.to_ascii_lowercase();
        line.strip_prefix("content-length: ")?.parse::<usize>().ok()
    });
    let path = head.split(' ').nth(1)?.to_owned();
    (body.len() >= length.unwrap_or(0)).then(|| (path, body.to_owned()))
}

/// A value of a form, as far as addresses and words need it.
fn field(form: &str, key: &str) -> Option<String> {
    let mut pairs = form.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(name, _)| *name == key)?;
    let signs = [("%3A", ":"), ("%2F", "/"), ("+", " ")];
    Some(signs.iter().fold(value.to_owned(), |value, (code, sign)| {
        value.replace(code, sign)
    }))
}

fn start(name: &str, arguments: &[&str]) -> Child {
    #[allow(clippy::disallowed_methods, reason = "the examples are programs")]
    let child = Command::new(program(name))
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn();
    child.unwrap()
}

/// Runs the client to its end, and allows what it asks for. What it printed but for the pages, and how many these were.
async fn run(issuer: &Issuer, allows: &str, arguments: &[&str]) -> (Vec<String>, usize) {
    let mut child = start("sign_in", arguments);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (mut said, mut pages) = (Vec::new(), 0);
    let all = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            let Some(page) = line.strip_prefix("to sign in, open ") else {
                said.push(line);
                continue;
            };
            pages += 1;
            let (issuer, page, allows) = (issuer.clone(), page.to_owned(), allows.to_owned());
            let person = tokio::task::spawn_blocking(move || issuer.allow(&page, &allows));
            person.await.unwrap();
        }
        child.wait().await.unwrap()
    };
    let done = tokio::time::timeout(HANG, all).await.expect("it ends");
    assert!(done.success(), "{said:?}");
    (said, pages)
}

fn folder(name: &str) -> PathBuf {
    let name = format!("toolgate-example-{name}-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

/// One grant is enough for all runs, and who allows less sees less.
#[tokio::test]
async fn a_client_signs_in_at_a_server_that_takes_tokens() {
    let issuer = Issuer::new();
    let mut server = start("protected", &[&issuer.0.url]);
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let line = lines.next_line().await.unwrap().unwrap();
    let address = line.strip_prefix("serves at ").unwrap();
    let folder = folder("grants");
    let grants = folder.to_str().unwrap();

    let all = "notes:read notes:write";
    let (said, pages) = run(&issuer, all, &[grants, address]).await;
    let granted = format!("{} granted: {all}", issuer.0.url);
    assert_eq!(
        (said, pages),
        (vec![granted, "read".to_owned(), "write".to_owned()], 1)
    );
    let note = [grants, address, "write", r#"{"text": "milk"}"#];
    let (said, pages) = run(&issuer, all, &note).await;
    assert_eq!((said, pages), (vec!["kept for demo:ann".to_owned()], 0));
    let (said, pages) = run(&issuer, all, &[grants, address, "read", "{}"]).await;
    assert_eq!(
        (said, pages, issuer.tokens()),
        (vec!["milk".to_owned()], 0, 1)
    );

    std::fs::remove_dir_all(&folder).unwrap();
    let (said, pages) = run(&issuer, "notes:read", &[grants, address]).await;
    assert_eq!(
        (said.last().unwrap().as_str(), said.len(), pages),
        ("read", 2, 1)
    );
    std::fs::remove_dir_all(&folder).unwrap();
}
