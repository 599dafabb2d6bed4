//! Client credentials go only to the authorization server that the config names. All servers are simulated.

use crate::{
    help::{Gate, Heard, SOON, Setup, toolgate, until},
    login::{get, query_value, state},
    own_grants::{Seen, answer},
};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    process::Stdio,
    sync::{Arc, Mutex},
    thread,
};

const SECRET: &str = "canary-secret-of-the-client";

/// A server, and two authorization servers: one on its port, and one elsewhere.
pub(crate) struct SimulatedServers {
    /// The one on the port of the server.
    pub(crate) good: String,
    /// The one elsewhere.
    pub(crate) evil: String,
    played: Arc<Played>,
}

#[derive(Default)]
struct Played {
    seen: Mutex<Seen>,
    /// All that was heard, by origin.
    heard: Mutex<Vec<(String, Heard)>>,
    /// The authorization server that the server names.
    named: Mutex<String>,
    /// True if both support Client ID Metadata Documents.
    documents: Mutex<bool>,
}

impl SimulatedServers {
    pub(crate) fn new() -> SimulatedServers {
        let played = Arc::<Played>::default();
        let [good, evil] = [(); 2].map(|()| listen(&played));
        let servers = SimulatedServers { good, evil, played };
        servers.name(&servers.good);
        servers
    }

    fn name(&self, issuer: &str) {
        *self.played.named.lock().unwrap() = issuer.to_owned();
    }

    /// A gateway before it, with more in the section of the server.
    pub(crate) fn setup(&self, more: &str) -> Setup {
        Setup::config(format!(
            "[limits]\nrate = \"1000000/s\"\n[server.far]\nurl = \"{}/mcp\"\ntrust_annotations = true\n{more}",
            self.good
        ))
        .env("APP_SECRET", SECRET)
    }

    /// Returns the requests to an origin.
    pub(crate) fn heard(&self, origin: &str) -> Vec<String> {
        let heard = self.played.heard.lock().unwrap();
        let own = heard.iter().filter(|(at, _)| at == origin);
        own.map(|(_, one)| format!("{}\n{}", one.head, one.body))
            .collect()
    }
}

fn listen(played: &Arc<Played>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let (played, own) = (played.clone(), origin.clone());
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (played, own) = (played.clone(), own.clone());
            thread::spawn(move || serve(stream, &own, &played));
        }
    });
    origin
}

fn serve(stream: TcpStream, origin: &str, played: &Played) -> Option<()> {
    let mut from = BufReader::new(stream.try_clone().ok()?);
    let mut to = stream;
    loop {
        let request = Heard::read(&mut from)?;
        let ok = |value: Value| (200, String::new(), value.to_string());
        let (status, more, body) = match request.target.split('?').next().unwrap_or_default() {
            "/mcp" => answer(&request, &played.seen),
            "/.well-known/oauth-protected-resource/mcp" => ok(json!({
                "resource": format!("{origin}/mcp"),
                "authorization_servers": [*played.named.lock().unwrap()],
            })),
            "/.well-known/oauth-authorization-server" => ok(json!({
                "issuer": origin, "authorization_endpoint": format!("{origin}/authorize"),
                "token_endpoint": format!("{origin}/token"), "revocation_endpoint": format!("{origin}/revoke"),
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
                "client_id_metadata_document_supported": *played.documents.lock().unwrap(),
            })),
            "/token" => ok(json!({
                "access_token": "canary-access-of-account1", "token_type": "Bearer", "expires_in": 3600,
            })),
            "/authorize" => {
                let back = query_value(&request.target, "redirect_uri");
                let state = query_value(&request.target, "state");
                let location = format!("Location: {back}?code=canary-code&state={state}\r\n");
                (302, location, String::new())
            }
            "/revoke" => (200, String::new(), String::new()),
            _ => (404, String::new(), String::new()),
        };
        let heard = (origin.to_owned(), request);
        played.heard.lock().unwrap().push(heard);
        let head = format!(
            "HTTP/1.1 {status} x\r\nContent-Type: application/json\r\n{more}Content-Length: {}\r\n\r\n",
            body.len()
        );
        to.write_all([head, body].concat().as_bytes()).ok()?;
    }
}

/// Outcome of a `toolgate login`.
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    /// Standard error output.
    pub(crate) said: String,
    pub(crate) page: Option<String>,
}

/// Types `toolgate login far`, with more, and does what a browser would; `meanwhile` before the browser comes back.
pub(crate) fn login(gate: &Gate, more: &[&str], meanwhile: impl FnOnce()) -> Done {
    login_in(gate, more, &[], meanwhile)
}

/// The same with more in its environment.
pub(crate) fn login_in(
    gate: &Gate,
    more: &[&str],
    env: &[(&str, &str)],
    meanwhile: impl FnOnce(),
) -> Done {
    let mut child = toolgate()
        .args(["login", "far", "--no-browser", "--config"])
        .arg(gate.data.file("toolgate.toml"))
        .arg("--data")
        .arg(gate.data.path().join("state"))
        .args(more)
        .env("APP_SECRET", SECRET)
        .envs(env.iter().copied())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut said, mut page, mut meanwhile) = (String::new(), None, Some(meanwhile));
    let stderr = BufReader::new(child.stderr.take().unwrap());
    for line in stderr.lines().map_while(Result::ok) {
        if line.starts_with("  http") {
            let led = get(line.trim());
            let back = led.header("location").expect("it leads back").to_owned();
            if let Some(meanwhile) = meanwhile.take() {
                meanwhile();
            }
            assert_eq!(get(&back).status, 200);
            page = Some(line.trim().to_owned());
        }
        said.push_str(&format!("{line}\n"));
    }
    let code = child.wait().unwrap().code();
    Done { code, said, page }
}

fn nothing() {}

/// Holds: AUTH-13, AUTH-43, AUTH-47, AUTH-48
#[test]
fn t35_a_known_client_is_shown_to_the_issuer_that_the_config_names_and_to_no_other() {
    let servers = SimulatedServers::new();
    let known = format!(
        "client_id = \"canary-app\"\nissuer = \"{}\"\nclient_secret = {{ env = \"APP_SECRET\" }}\n",
        servers.good
    );
    let gate = servers.setup(&known).start();
    state(&gate, "sign-in");
    servers.name(&servers.evil);
    let done = login(&gate, &[], nothing);
    assert_eq!((done.code, done.page), (Some(1), None), "{}", done.said);
    let words = format!(
        "belongs to the authorization server {}, but the server now names {}",
        servers.good, servers.evil
    );
    assert!(done.said.contains(&words), "{}", done.said);
    let console = gate.log_in("");
    let begin = || {
        let with = json!({"server": "far"}).to_string();
        let path = "/console/api/sign-in/begin";
        crate::help::send(gate.port, "POST", path, console.lines(), with.as_bytes())
    };
    let refused = begin();
    assert_eq!(refused.status, 409, "{refused:?}");
    assert!(refused.body.contains(&words), "{refused:?}");
    let heard = servers.heard(&servers.evil);
    assert!(
        !heard.is_empty() && !heard.concat().contains("canary"),
        "{heard:?}"
    );

    servers.name(&servers.good);
    let begun: Value = serde_json::from_str(&begin().body).unwrap();
    assert_eq!(begun["issuer"], json!(servers.good));
    let done = login(&gate, &[], nothing);
    assert_eq!(done.code, Some(0), "{}", done.said);
    let told = format!(
        "you will sign in at the authorization server {}\n",
        servers.good
    );
    let before = done.said.find(&told).expect("whose page it is, is told");
    assert!(
        before < done.said.find("  http").unwrap(),
        "before the page: {}",
        done.said
    );
    state(&gate, "running");
    let heard = servers.heard(&servers.evil).concat();
    assert!(!heard.contains("canary"), "{heard}");
    let token = servers.heard(&servers.good);
    assert!(
        token
            .iter()
            .any(|one| one.starts_with("POST /token") && one.contains("canary-code"))
    );
}

#[test]
fn a_way_that_was_said_signs_in_where_the_gateway_looks() {
    let far = crate::login::Far::new();
    let gate = far.near();
    let shown = state(&gate, "sign-in");
    let (_, command) = shown["error"]
        .as_str()
        .unwrap()
        .split_once("run: toolgate ")
        .unwrap();
    // The very words, in a shell somewhere else.
    let line = format!(
        "exec {:?} {command} --no-browser",
        env!("CARGO_BIN_EXE_toolgate")
    );
    let mut child = crate::help::command("sh")
        .args(["-c", &line])
        .current_dir("/")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stderr = BufReader::new(child.stderr.take().unwrap()).lines();
    let page = stderr
        .map_while(Result::ok)
        .find(|line| line.starts_with("  http"));
    let led = get(page.expect("the page is printed").trim());
    assert_eq!(get(led.header("location").unwrap()).status, 200);
    assert!(child.wait().unwrap().success());
    state(&gate, "running");
}

#[test]
fn what_a_server_names_lies_in_a_private_network_only_where_the_config_says_so() {
    let servers = SimulatedServers::new();
    let [closed, open] = ["", "danger_private_addresses = true\n"];
    for (more, issuer, private, refused) in [
        (closed, "https://10.255.255.254", true, true),
        (open, "https://10.255.255.254", false, true),
        (closed, "https://169.254.169.254", false, true),
        (open, "https://169.254.169.254", false, true),
    ] {
        servers.name(issuer);
        let gate = servers.setup(more).start();
        let done = login(&gate, &[], nothing);
        assert_eq!(done.code == Some(1), refused, "{}", done.said);
        let told = done
            .said
            .contains("leads to a private network, which the configuration does not permit");
        assert_eq!(told, private, "{more}{issuer}: {}", done.said);
        let special = issuer.contains("169") == done.said.contains("not a public unicast address");
        assert!(special, "{more}{issuer}: {}", done.said);
    }
}

/// Holds: AUTH-38, AUTH-39, AUTH-42
#[test]
fn a_document_is_our_id_where_the_authorization_server_takes_documents() {
    let servers = SimulatedServers::new();
    let document = "https://tools.example.com/client.json";
    let gate = servers
        .setup(&format!("client_document = \"{document}\"\n"))
        .start();
    state(&gate, "sign-in");
    let done = login(&gate, &[], nothing);
    assert_eq!(done.code, Some(1), "{}", done.said);
    assert!(
        done.said
            .contains("does not support dynamic client registration"),
        "{}",
        done.said
    );
    *servers.played.documents.lock().unwrap() = true;
    let done = login(&gate, &[], nothing);
    assert_eq!(done.code, Some(0), "{}", done.said);
    let page = done.page.unwrap();
    assert_eq!(query_value(&page, "client_id"), document);
    state(&gate, "running");
}

#[test]
fn a_person_comes_back_to_the_port_that_was_asked_for() {
    let servers = SimulatedServers::new();
    *servers.played.documents.lock().unwrap() = true;
    let gate = servers
        .setup("client_document = \"https://tools.example.com/client.json\"\n")
        .start();
    let held = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = held.local_addr().unwrap().port().to_string();
    let done = login(&gate, &["--port", &port], nothing);
    assert_eq!((done.code, done.page), (Some(1), None), "{}", done.said);
    let words = format!("port {port} of this machine cannot be opened for the redirect");
    assert!(done.said.contains(&words), "{}", done.said);
    drop(held);
    let done = login(&gate, &["--port", &port], nothing);
    assert_eq!(done.code, Some(0), "{}", done.said);
    let back = query_value(&done.page.unwrap(), "redirect_uri");
    assert_eq!(back, format!("http://127.0.0.1:{port}/callback"));
}

#[test]
fn what_was_taken_back_is_used_no_more_by_a_gateway_that_runs() {
    let servers = SimulatedServers::new();
    *servers.played.documents.lock().unwrap() = true;
    let more = "client_document = \"https://tools.example.com/client.json\"\n";
    let gate = servers.setup(more).start();
    assert_eq!(login(&gate, &[], nothing).code, Some(0));
    state(&gate, "running");
    let who = || {
        let params = json!({"i_am": "x"});
        crate::help::Modern::call(gate.port, &json!(1), "far_who", params).body
    };
    until("it is used", SOON, || {
        who().contains("you are account1").then_some(())
    });
    let config = gate.data.file("toolgate.toml");
    let said = gate.cli(&["logout", "far", "--config", config.to_str().unwrap()]);
    assert!(
        said.starts_with("the credentials for far are deleted"),
        "{said}"
    );
    let calls = servers.played.seen.lock().unwrap().calls.len();
    until("it says that nobody is signed in", SOON, || {
        who().contains("a user has to sign in").then_some(())
    });
    let shown = state(&gate, "sign-in");
    assert_eq!(shown["signed_in"], false, "{shown}");
    let error = shown["error"].as_str().unwrap();
    assert!(error.starts_with("a user has to sign in"), "{error}");
    // The server would have taken the token still.
    assert_eq!(servers.played.seen.lock().unwrap().calls.len(), calls);
}
