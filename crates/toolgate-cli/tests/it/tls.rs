//! TLS of the gateway's own listener.

use crate::help::{
    Gate, Issued, Modern, SOON, Setup, TempDir, TestAuthority, answer_of, output, raw, request,
    tls_send, toolgate, until,
};
use rustls::ProtocolVersion;
use serde_json::{Value, json};
use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

/// A gateway with TLS, and the directory of its certificate.
struct TlsGate {
    gate: Gate,
    authority: TestAuthority,
}

fn setup(more: &str) -> Setup {
    Setup::fast_demo(&format!(
        "[tls]\ncert = \"cert.pem\"\nkey = \"key.pem\"\n{more}"
    ))
}

/// Starts a gateway with a certificate of a new authority for the loopback address.
fn start(setup: Setup) -> TlsGate {
    let (authority, data) = (TestAuthority::new(), Arc::new(TempDir::new("tls")));
    authority
        .issue(&["127.0.0.1", "localhost"])
        .write(data.path());
    authority.write_root(&data.file("ca.pem"));
    let gate = setup.start_in(data);
    TlsGate { gate, authority }
}

impl TlsGate {
    fn sum(&self) -> Value {
        let bytes = add(self.gate.port);
        let answer = self.authority.client().send(self.gate.port, &bytes);
        let answer = answer.unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        answer_of(&answer, &json!(1))["result"]["structuredContent"]["sum"].clone()
    }

    /// The certificate that a new connection gets.
    fn presented(&self) -> Vec<u8> {
        let stream = self.authority.client().connect(self.gate.port, "127.0.0.1");
        let stream = stream.unwrap();
        let all = stream.conn.peer_certificates().unwrap();
        all[0].to_vec()
    }

    fn replace(&self, issued: &Issued) {
        issued.write(self.gate.data.path());
    }

    /// Reloads, which must fail; what the command said.
    fn refused_reload(&self) -> String {
        let out = self.gate.run(&["reload"]);
        assert_eq!(out.status.code(), Some(1));
        String::from_utf8(out.stderr).unwrap()
    }
}

fn add(port: u16) -> Vec<u8> {
    Modern::request(port, &json!(1), "demo_add", json!({"a": 1, "b": 2}))
}

#[test]
fn serves_calls_over_tls_and_prints_https_urls() {
    let mut tls = start(setup("").top("allowed_hosts = [\"localhost\"]"));
    let port = tls.gate.port;
    assert_eq!(tls.gate.endpoint, format!("https://localhost:{port}/mcp"));
    let console = tls.gate.announced("console");
    assert!(
        console.starts_with(&format!("https://localhost:{port}/#token=")),
        "{console}"
    );
    assert_eq!(tls.sum(), json!(3));
    let stream = tls.authority.client().connect(port, "localhost").unwrap();
    assert_eq!(
        stream.conn.protocol_version(),
        Some(ProtocolVersion::TLSv1_3)
    );
    assert_eq!(stream.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
    let older = tls.authority.client().tls12().connect(port, "localhost");
    let mut older = older.unwrap();
    assert_eq!(
        older.conn.protocol_version(),
        Some(ProtocolVersion::TLSv1_2)
    );
    assert_eq!(tls_send(&mut older, &add(port)).unwrap().status, 200);
    let status = tls.gate.cli(&["status", "--json"]);
    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status[0]["listen"], json!(format!("127.0.0.1:{port}")));
    assert_eq!(
        status[0]["certificate"]["names"],
        json!(["127.0.0.1", "localhost"])
    );
    assert_eq!(status[0]["certificate"]["warning"], Value::Null);
}

#[test]
fn the_console_works_on_its_https_origin_only() {
    let tls = start(setup(""));
    let port = tls.gate.port;
    let token = tls.gate.cli(&["console"]);
    let token = token.trim().split_once("#token=").unwrap().1;
    let login = |origin: &str| {
        let lines = [
            "Content-Type: application/json",
            "X-Toolgate-Console: 1",
            origin,
        ];
        let body = json!({"token": token}).to_string();
        let bytes = request(
            port,
            "POST",
            "/console/login",
            &lines.map(str::to_owned),
            body.as_bytes(),
        );
        tls.authority.client().send(port, &bytes).unwrap()
    };
    let http = login(&format!("Origin: http://127.0.0.1:{port}"));
    assert_eq!(http.status, 403, "{http:?}");
    let https = login(&format!("Origin: https://127.0.0.1:{port}"));
    assert_eq!(https.status, 200, "{https:?}");
    let cookie = https.header("set-cookie").unwrap();
    assert!(cookie.ends_with("; Secure"), "{cookie}");
}

#[test]
fn a_client_without_tls_learns_that_the_port_speaks_tls() {
    let tls = start(setup(""));
    let answer = raw(tls.gate.port, &add(tls.gate.port));
    assert_eq!(answer.status, 400);
    assert!(answer.body.contains("https://"), "{answer:?}");
}

#[test]
fn a_changed_certificate_is_in_force_for_new_connections() {
    let tls = start(setup(""));
    let port = tls.gate.port;
    let mut old = tls.authority.client().connect(port, "127.0.0.1").unwrap();
    let new = tls.authority.issue(&["127.0.0.1"]);
    tls.replace(&new);
    until("the new certificate is in force", SOON, || {
        (tls.presented() == *new.certificate).then_some(())
    });
    assert_eq!(
        tls_send(&mut old, &add(port)).unwrap().status,
        200,
        "an open connection goes on"
    );
    assert!(
        tls.gate
            .said()
            .iter()
            .any(|line| line.contains("the certificate was reloaded: 127.0.0.1, valid for 29 days")),
        "{:#?}",
        tls.gate.said()
    );
    let third = tls.authority.issue(&["127.0.0.1"]);
    tls.replace(&third);
    tls.gate.cli(&["reload"]);
    assert_eq!(tls.presented(), *third.certificate, "at once by a command");
    let records = tls.gate.audit();
    let changes: Vec<&Value> = records
        .iter()
        .filter(|record| record["ev"] == "tls.certificate")
        .map(|record| &record["verdict"])
        .collect();
    assert_eq!(changes, ["taken", "taken"]);
}

#[test]
fn a_bad_certificate_is_refused_and_the_old_one_stays_in_force() {
    let tls = start(setup(""));
    let before = tls.presented();
    let directory = tls.gate.data.path().to_owned();
    tls.authority
        .issue(&["127.0.0.1"])
        .write_key(&directory.join("key.pem"));
    let said = tls.refused_reload();
    assert!(
        said.contains("key.pem is not the private key of the certificate in"),
        "{said}"
    );
    until("the watch refuses it as well", SOON, || {
        let said = tls.gate.said();
        said.iter()
            .any(|line| line.contains("the new certificate was rejected"))
            .then_some(())
    });
    let past = SystemTime::now() - Duration::from_secs(3 * 24 * 3600);
    tls.replace(&tls.authority.issue_until(&["127.0.0.1"], past));
    let said = tls.refused_reload();
    assert!(said.contains("expired 3 days ago"), "{said}");
    fs::remove_file(directory.join("cert.pem")).unwrap();
    assert!(tls.refused_reload().contains("cert.pem cannot be read"));
    assert_eq!(tls.presented(), before);
    assert_eq!(tls.sum(), json!(3));
}

#[test]
fn only_clients_with_a_certificate_of_the_authority_connect() {
    let tls = start(setup("client_ca = \"ca.pem\"\n"));
    let port = tls.gate.port;
    let send = |client: crate::help::TlsClient| client.send(port, &add(port)).map(|a| a.status);
    assert!(send(tls.authority.client()).is_err(), "no certificate");
    let foreign = TestAuthority::new().issue(&["client"]);
    assert!(send(tls.authority.client().with_identity(&foreign)).is_err());
    let own = tls.authority.issue(&["client"]);
    let sent = send(tls.authority.client().with_identity(&own));
    assert_eq!(sent.unwrap(), 200);
}

#[test]
fn handshakes_are_bounded_in_number_and_time() {
    let program = env!("CARGO_BIN_EXE_toolgate");
    let tls = start(Setup::config(format!(
        "[limits]\ntls_handshakes = 1\ntls_handshake_seconds = 1\n\
         [tls]\ncert = \"cert.pem\"\nkey = \"key.pem\"\n[server.demo]\ncommand = [{program:?}, \"demo-server\"]\n"
    )));
    let port = tls.gate.port;
    let mut silent = TcpStream::connect(("127.0.0.1", port)).unwrap();
    silent.set_read_timeout(Some(SOON)).unwrap();
    // A half of a record header: the handshake has begun, and does not end.
    silent.write_all(&[22, 3]).unwrap();
    assert!(
        tls.authority.client().connect(port, "127.0.0.1").is_err(),
        "one handshake too many"
    );
    let mut rest = Vec::new();
    silent.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, [0; 0], "closed when its time is over");
    until("the next handshake has a permit", SOON, || {
        tls.authority.client().connect(port, "127.0.0.1").ok()
    });
}

/// Starts a gateway that must not start; its exit code, and what it said.
fn failed_start(data: &TempDir) -> (i32, String) {
    let program = env!("CARGO_BIN_EXE_toolgate");
    let config = data.write(
        "toolgate.toml",
        &format!("[tls]\ncert = \"cert.pem\"\nkey = \"key.pem\"\n[server.demo]\ncommand = [{program:?}, \"demo-server\"]\n"),
    );
    let mut start = toolgate();
    start
        .args(["serve", "--listen", "127.0.0.1:0", "--data"])
        .arg(data.file("state"))
        .arg("--config")
        .arg(config);
    let out = output(&mut start);
    let said = String::from_utf8(out.stderr).unwrap();
    (out.status.code().unwrap(), said)
}

#[test]
fn a_certificate_that_cannot_be_used_prevents_the_start() {
    let (authority, data) = (TestAuthority::new(), TempDir::new("tls-bad"));
    let mode = |file: &Path, mode| {
        fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
    };
    let (cert, key) = (data.file("cert.pem"), data.file("key.pem"));
    let says = |text: &str| {
        let (code, said) = failed_start(&data);
        assert_eq!(code, 1, "{said}");
        assert!(said.contains(text), "{text}: {said}");
        assert!(said.contains("in [tls]: "), "{said}");
    };
    says("cert.pem cannot be read");
    authority.issue(&["127.0.0.1"]).write(data.path());
    mode(&key, 0o644);
    says(
        "key.pem is refused: its mode 0644 lets others use the private key in it; run chmod 600 on it",
    );
    mode(&key, 0o600);
    mode(&cert, 0o666);
    says("cert.pem is refused: its mode 0666 lets others write");
    mode(&cert, 0o644);
    let good = fs::read_to_string(&cert).unwrap();
    fs::write(&cert, "nothing\n").unwrap();
    says("cert.pem has no certificate; write it in PEM");
    fs::write(&cert, good).unwrap();
    fs::write(
        &key,
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
    )
    .unwrap();
    says("key.pem is encrypted with a passphrase; store it without one");
    authority.issue(&["127.0.0.1"]).write_key(&key);
    says("key.pem is not the private key of the certificate in");
}

#[test]
fn doctor_and_check_name_what_clients_would_reject() {
    let (authority, data) = (TestAuthority::new(), TempDir::new("tls-doctor"));
    let program = env!("CARGO_BIN_EXE_toolgate");
    let config = data.write(
        "toolgate.toml",
        &format!(
            "listen = \"127.0.0.1:0\"\nallowed_hosts = [\"a.example.com:8443\", \"b.example.org\"]\n\
             [tls]\ncert = \"cert.pem\"\nkey = \"key.pem\"\n[server.demo]\ncommand = [{program:?}, \"demo-server\"]\n"
        ),
    );
    let run = |command: &[&str]| {
        let mut run = toolgate();
        run.args(command).arg("--config").arg(&config);
        let out = output(run.arg("--data").arg(data.file("state")));
        let text = [out.stdout, out.stderr].concat();
        (out.status.code().unwrap(), String::from_utf8(text).unwrap())
    };
    let doctor = || run(&["doctor", "--no-start"]);
    let after = |days: u64| SystemTime::now() + Duration::from_secs(days * 24 * 3600 + 60);
    authority
        .issue(&["*.example.com", "b.example.org"])
        .write(data.path());
    let (code, said) = doctor();
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("tls      the certificate for *.example.com, b.example.org is valid"),
        "{said}"
    );
    authority
        .issue_until(&["*.example.com"], after(3))
        .write(data.path());
    let (code, said) = doctor();
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("warning  tls") && said.contains("expires in 3 days"),
        "{said}"
    );
    assert!(said.contains("is not valid for b.example.org"), "{said}");
    assert!(!said.contains("not valid for a.example.com"), "{said}");
    let (code, said) = run(&["check"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("expires in 3 days"), "{said}");
    assert!(said.contains("is not valid for b.example.org"), "{said}");
    let past = SystemTime::now() - Duration::from_secs(3600 + 60);
    authority
        .issue_until(&["*.example.com"], past)
        .write(data.path());
    let (code, said) = doctor();
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("problem  tls") && said.contains("expired 1 h ago"),
        "{said}"
    );
    fs::remove_file(data.file("key.pem")).unwrap();
    let (code, said) = run(&["check"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("key.pem cannot be read"), "{said}");
}
