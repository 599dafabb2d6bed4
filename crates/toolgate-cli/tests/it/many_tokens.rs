//! T31: a token of its own for each of many calls, and none of them anywhere else.

use crate::help::{Gate, Heard, Reply, SOON, Setup, Signer, sayer, until};
use crate::oauth::{RESOURCE, bearer, call, files, tap};
use serde_json::{Value, json};
use std::io::{BufReader, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use toolgate_testkit::canary::CanarySet;

/// Calls of every day; `cargo xtask long` makes 10,000.
const CALLS: usize = 300;

/// An issuer of signed tokens: two documents, and a key that signs as fast as one likes.
pub(crate) struct Issuer {
    pub(crate) url: String,
    key: Signer,
    /// Number of introspections of opaque tokens; those that begin with `good` are active.
    pub(crate) asked: Arc<AtomicUsize>,
}

impl Issuer {
    pub(crate) fn start() -> Issuer {
        let key = Signer::new();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let mut jwk = key.jwk();
        jwk["kid"] = json!("k");
        let keys = json!({"keys": [jwk]}).to_string();
        let metadata = json!({"issuer": url, "jwks_uri": format!("{url}/keys"),
            "introspection_endpoint": format!("{url}/introspect")});
        let metadata = metadata.to_string();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let heard = Heard::read(&mut BufReader::new(stream.try_clone().unwrap()));
                let Some(heard) = heard else { continue };
                let body = match heard.target.as_str() {
                    "/keys" => keys.clone(),
                    "/introspect" => {
                        count.fetch_add(1, Relaxed);
                        let good = heard.body.contains("token=good");
                        json!({"active": good, "sub": "bob", "aud": RESOURCE}).to_string()
                    }
                    _ => metadata.clone(),
                };
                let length = body.len();
                let _ = write!(
                    stream,
                    "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
                );
            }
        });
        Issuer { url, key, asked }
    }

    pub(crate) fn token(&self, n: usize) -> String {
        self.token_until(n, SystemTime::now() + Duration::from_secs(3600))
    }

    /// One that ends then.
    pub(crate) fn token_until(&self, n: usize, end: SystemTime) -> String {
        let end = end.duration_since(UNIX_EPOCH).unwrap();
        let head = json!({"alg": "ES256", "typ": "at+jwt", "kid": "k"});
        let claims = json!({"iss": self.url, "sub": format!("caller-{}", n % 7), "aud": RESOURCE,
            "exp": end.as_secs(), "jti": n.to_string()});
        self.key.sign(&head, &claims)
    }
}

/// A server that answers, fails and leads elsewhere in turn.
fn far() -> String {
    let calls = AtomicUsize::new(0);
    sayer(move |message| {
        let answer = |result: Value| Reply::result(message, result);
        match calls.fetch_add(1, Relaxed) % 6 {
            0 => Reply::Status(401, "text/plain", "who are you".to_owned()),
            1 => Reply::Status(500, "text/plain", "no".to_owned()),
            2 => Reply::Status(307, "text/plain", "elsewhere".to_owned()),
            3 => Reply::Events(vec![
                json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32000, "message": "no"}}),
            ]),
            4 => Reply::Status(200, "application/json", "{\"half".to_owned()),
            _ => answer(json!({"content": [{"type": "text", "text": "said"}]})),
        }
    })
}

fn gate(issuer: &Issuer, far: &str) -> Gate {
    Setup::fast_demo(&format!(
        "[auth]\nresource = \"{RESOURCE}\"\n[auth.issuer.corp]\nurl = \"{}\"\n\
         [server.far]\nurl = \"{far}\"\ntrust_annotations = true\n[[rule]]\ntools = [\"*.*\"]\naction = \"allow\"\n",
        issuer.url
    ))
    .start()
}

/// The name of the issuer leads nowhere here, and its keys are where the operator says.
#[test]
fn keys_are_fetched_where_the_operator_says_wherever_that_is() {
    let mut issuer = Issuer::start();
    let keys = format!("{}/keys", issuer.url);
    issuer.url = "https://login.example.com".to_owned();
    let gate = Setup::fast_demo(&format!(
        "[auth]\nresource = \"{RESOURCE}\"\n[auth.issuer.corp]\nurl = \"{}\"\nkeys_url = \"{keys}\"\n",
        issuer.url
    ))
    .start();
    let sum = json!({"a": 1, "b": 2});
    let response = call(gate.port, &bearer(&issuer.token(1)), "demo_add", sum);
    assert_eq!(response.status, 200, "{response:?}");
}

#[test]
fn t31_no_token_of_many_calls_leaves_or_stays() {
    let calls: usize = std::env::var("TOOLGATE_T31").map_or(CALLS, |n| n.parse().unwrap());
    let issuer = Arc::new(Issuer::start());
    let (far, to_server) = tap(&far());
    let gate = gate(&issuer, &far);
    let port = gate.port;
    until("the far server is there", SOON, || {
        gate.cli(&["tools"]).contains("far.say").then_some(())
    });
    let hands: Vec<_> = (0..4)
        .map(|hand| {
            let issuer = issuer.clone();
            std::thread::spawn(move || {
                let mut shown = Vec::new();
                for n in (hand..calls).step_by(4) {
                    let mut token = issuer.token(n);
                    let good = n % 20 != 7;
                    if !good {
                        // Its signature is another one's; at most 60 of these are told one by one.
                        let at = token.rfind('.').unwrap() + 5;
                        token
                            .replace_range(at..=at, if &token[at..=at] == "x" { "y" } else { "x" });
                    }
                    let (tool, arguments) = match n % 3 {
                        0 => ("demo_add", json!({"a": 1, "b": 2})),
                        1 => ("demo_add", json!({"a": "no number"})),
                        _ => ("far_say", json!({})),
                    };
                    let status = call(port, &bearer(&token), tool, arguments).status;
                    assert_eq!(status == 200, good, "{status}");
                    shown.push(token);
                }
                shown
            })
        })
        .collect();
    let shown: Vec<String> = hands.into_iter().flat_map(|h| h.join().unwrap()).collect();
    assert_eq!(shown.len(), calls);
    let to_server = to_server.lock().unwrap().clone();
    let arrived = to_server.windows(10).filter(|w| w == b"tools/call").count();
    assert!(arrived >= calls / 5, "{arrived} calls arrived");
    let mut all = vec![
        ("upstream".to_owned(), to_server),
        ("console".to_owned(), gate.state().to_string().into_bytes()),
    ];
    // Of many records the files are looked through, and of what is printed of them a part: a debug build is slow.
    let printed: &[&[&str]] = match calls {
        0..=1000 => &[
            &["calls"],
            &["status"],
            &["audit", "tail", "--json", "-n", "100000"],
            &["audit", "export", "--format", "otlp"],
        ],
        _ => &[
            &["calls"],
            &["status"],
            &["audit", "tail", "--json", "-n", "2000"],
        ],
    };
    for args in printed {
        let out = gate.run(args);
        all.push((args.join(" "), [out.stdout, out.stderr].concat()));
    }
    let said = gate.said().join("\n");
    assert!(!said.contains("panic"), "{said}");
    all.push(("stderr".to_owned(), said.into_bytes()));
    let data = gate.stop();
    files(&data.path().join("state"), &mut all);
    // Of a signed token the signature: what stands before it is no secret by itself.
    let found = CanarySet::new(shown.iter().map(|one| one.rsplit('.').next().unwrap()));
    let bytes: usize = all.iter().map(|(_, bytes)| bytes.len()).sum();
    for (place, bytes) in &all {
        assert!(found.in_bytes(bytes).is_none(), "{place} has a token");
    }
    println!(
        "T31: {calls} calls, each with a token of its own, {arrived} of them arrived at a server; {} outputs and files with {bytes} bytes, 0 found",
        all.len()
    );
}
