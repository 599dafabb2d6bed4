//! Values in the keyring of the system: a real secret service, in a session of its own.

use crate::help::{
    Gate, Modern, SOON, Setup, TempDir, command, end_politely, lines, output, send, tool, until,
};
#[cfg(target_os = "linux")]
use crate::imports::Fixture;
use crate::{
    known_client::{SimulatedServers, login_in},
    login::state,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::json;
use std::process::{Child, Stdio};

/// Keyring entries: the token of the clients, and a value for a server.
const TOKEN: &str = "canary-of-the-keyring-5Tb6Rj1Y";
const VALUE: &str = "canary-of-the-server-8Jd5Ua2X";

/// A session of D-Bus with a keyring that is open. It ends with the value.
struct Session {
    child: Child,
    bus: &'static str,
    _home: TempDir,
}

impl Session {
    /// Starts one, where the programs for it are installed.
    fn start() -> Option<Session> {
        for name in ["dbus-run-session", "gnome-keyring-daemon", "secret-tool"] {
            tool(name)?;
        }
        let home = TempDir::new("keyring");
        let script = format!(
            "printf '\\n' | gnome-keyring-daemon --unlock --components=secrets >/dev/null || exit 1\n\
             printf %s {TOKEN} | secret-tool store --label=x service toolgate account gate/token || exit 1\n\
             printf %s {VALUE} | secret-tool store --label=x service toolgate account server || exit 1\n\
             echo \"bus $DBUS_SESSION_BUS_ADDRESS\"\nread -r over\n"
        );
        let mut child = command("dbus-run-session")
            .args(["--", "sh", "-c", &script])
            .env("HOME", home.path())
            .env("XDG_RUNTIME_DIR", home.path())
            .env_remove("DBUS_SESSION_BUS_ADDRESS")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let said = lines(child.stdout.take().unwrap());
        let line = said.recv_timeout(SOON).expect("the keyring is open");
        let bus = line.strip_prefix("bus ").unwrap().to_owned();
        Some(Session {
            child,
            bus: Box::leak(bus.into_boxed_str()),
            _home: home,
        })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Its script ends with its input, and the session with its script.
        drop(self.child.stdin.take());
        end_politely(&mut self.child);
    }
}

fn gate(session: &Session, value: &str) -> Setup {
    let program = env!("CARGO_BIN_EXE_toolgate");
    Setup::config(format!(
        "token = {{ keyring = \"gate/token\" }}\n\
         [server.demo]\ncommand = [{program:?}, \"demo-server\"]\ntrust_annotations = true\n\
         [server.own]\ncommand = [\"sh\", \"-c\", \"printf '%s\\\\n' $${{#VALUE}} >&2; exec sleep 99\"]\n\
         env = {{ VALUE = {{ keyring = {value:?} }} }}\n"
    ))
    .env("DBUS_SESSION_BUS_ADDRESS", session.bus)
}

fn asked_with(gate: &Gate, token: &str) -> u16 {
    let body = Modern::body(&json!(1), "tools/list", json!({})).to_string();
    let mut lines = Modern::headers("tools/list", None);
    lines.push(format!("Authorization: Bearer {token}"));
    send(gate.port, "POST", "/mcp", &lines, body.as_bytes()).status
}

#[test]
fn what_the_keyring_has_is_used_and_shown_nowhere() {
    let Some(session) = Session::start() else {
        return;
    };
    let running = gate(&session, "server").start();
    assert_eq!(asked_with(&running, TOKEN), 200);
    assert_eq!(asked_with(&running, VALUE), 401);
    // The server has it: it says how long it is.
    let length = VALUE.len().to_string();
    until("the server says how long its value is", SOON, || {
        let state = running.state();
        let stderr = state["servers"][1]["stderr"].to_string();
        stderr.contains(&length).then_some(())
    });
    let shown = running.state().to_string();
    assert!(!shown.contains(TOKEN) && !shown.contains(VALUE));

    // What is not there keeps that server from its start, and no other.
    let running = gate(&session, "nothing").start();
    let error = until("the console tells of it", SOON, || {
        let state = running.state();
        Some(state["servers"][1]["error"].as_str()?.to_owned())
    });
    assert!(
        error.contains("the keyring entry \"nothing\" cannot be read: it does not exist"),
        "{error}"
    );
    assert_eq!(asked_with(&running, TOKEN), 200);
}

#[test]
fn the_secret_of_a_client_comes_from_the_keyring() {
    let Some(session) = Session::start() else {
        return;
    };
    let servers = SimulatedServers::new();
    let client = format!(
        "client_id = \"app\"\nissuer = \"{}\"\nclient_secret = {{ keyring = \"server\" }}\n",
        servers.good
    );
    let gate = servers
        .setup(&client)
        .env("DBUS_SESSION_BUS_ADDRESS", session.bus)
        .start();
    state(&gate, "sign-in");
    let bus = [("DBUS_SESSION_BUS_ADDRESS", session.bus)];
    let done = login_in(&gate, &[], &bus, || ());
    assert_eq!(done.code, Some(0), "{}", done.said);
    assert!(!done.said.contains(VALUE));
    state(&gate, "running");
    let pair = STANDARD.encode(format!("app:{VALUE}"));
    let shown = servers.heard(&servers.good);
    let token = shown.iter().find(|one| one.starts_with("POST /token"));
    let token = token.expect("a token is asked for");
    assert!(token.contains(&pair) || token.contains(VALUE), "{token}");
}

/// An import stores secrets in the keyring, from which a start of the server reads them.
#[cfg(target_os = "linux")]
#[test]
fn an_import_stores_secrets_in_the_keyring() {
    let Some(session) = Session::start() else {
        return;
    };
    let home = Fixture::read("keyring").unpack_with("DBUS_SESSION_BUS_ADDRESS", session.bus);
    let run = home.import(&["--yes", "--no-start"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let text = std::fs::read_to_string(home.config()).unwrap();
    assert!(
        text.contains("NOTES_KEY = { keyring = \"notes/NOTES_KEY\" }"),
        "{text}"
    );
    assert!(!home.config().parent().unwrap().join("secrets").exists());
    let mut look_up = command("secret-tool");
    look_up
        .args([
            "lookup",
            "service",
            "toolgate",
            "account",
            "notes/NOTES_KEY",
        ])
        .env("DBUS_SESSION_BUS_ADDRESS", session.bus);
    assert_eq!(output(&mut look_up).stdout, b"canary-4711");
}
