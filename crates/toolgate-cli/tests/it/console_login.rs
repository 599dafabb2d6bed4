//! Console login for a browser: the cookie and the key.

use crate::help::{Gate, Response, Setup, send};
use serde_json::{Value, json};

struct Login {
    cookie: String,
    key: String,
}

impl Login {
    fn open(gate: &Gate) -> Login {
        let link = gate.console();
        let token = link.split_once("#token=").unwrap().1.trim().to_owned();
        let entered = enter(gate, &token);
        assert_eq!(entered.status, 200, "{entered:?}");
        assert_eq!(enter(gate, &token).status, 401, "a link is good once");
        let cookie = entered.header("set-cookie").unwrap();
        assert!(
            cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"),
            "{cookie}"
        );
        assert_eq!(entered.header("cache-control"), Some("no-store"));
        let body: Value = serde_json::from_str(&entered.body).unwrap();
        Login {
            cookie: cookie.split(';').next().unwrap().to_owned(),
            key: body["key"].as_str().unwrap().to_owned(),
        }
    }
}

fn enter(gate: &Gate, token: &str) -> Response {
    let body = json!({"token": token}).to_string();
    let lines = ["Content-Type: application/json", "X-Toolgate-Console: 1"].map(str::to_owned);
    send(gate.port, "POST", "/console/login", &lines, body.as_bytes())
}

#[test]
fn the_cookie_alone_opens_nothing() {
    let gate = Setup::demo().start();
    let (mine, other) = (Login::open(&gate), Login::open(&gate));
    let ask = |method: &str, path: &str, cookie: Option<&str>, keys: &[&str]| {
        let mut lines = vec!["Content-Type: application/json".to_owned()];
        lines.extend(cookie.map(|cookie| format!("Cookie: {cookie}")));
        lines.extend(keys.iter().map(|key| format!("X-Toolgate-Console: {key}")));
        let body: &[u8] = if method == "POST" { b"{}" } else { b"" };
        send(gate.port, method, path, &lines, body).status
    };
    let wrong: [(Option<&str>, &[&str]); 7] = [
        (Some(&mine.cookie), &[]),
        (Some(&mine.cookie), &["1"]),
        (Some(&mine.cookie), &[""]),
        (Some(&mine.cookie), &[&other.key]),
        (Some(&mine.cookie), &[&mine.key, &mine.key]),
        (None, &[&mine.key]),
        (None, &[]),
    ];
    for (method, path) in [
        ("GET", "/console/api/state"),
        ("GET", "/console/api/events"),
        ("POST", "/console/api/approve"),
        ("POST", "/console/api/try"),
    ] {
        for (cookie, keys) in wrong {
            let status = ask(method, path, cookie, keys);
            assert_eq!(status, 401, "{method} {path} {cookie:?} {keys:?}");
        }
    }
    for login in [&mine, &other] {
        let status = ask(
            "GET",
            "/console/api/state",
            Some(&login.cookie),
            &[&login.key],
        );
        assert_eq!(status, 200);
    }
}
