//! Real Prometheus: it scrapes gateways, each query of the dashboard returns data, and alerts fire on staged incidents.
//! The incidents that are not staged here are in the unit tests of the rules.

use crate::help::{
    Gate, LONG, Modern, Reply, Setup, TempDir, command, kill_hard, output, sayer, send, tool, until,
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    sync::Arc,
    thread,
    time::Duration,
};

/// Time that the windows of the rules and of the queries cover here, instead of minutes.
const WINDOW: &str = "10s";

fn operations(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../operations")
        .join(file)
}

/// A running Prometheus. Dropping it ends the process.
struct Prometheus {
    child: Child,
    port: u16,
    _folder: TempDir,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        kill_hard(&mut self.child);
    }
}

impl Prometheus {
    /// Starts Prometheus for gateways by name, with alert rules. `None` if it is not installed.
    fn start(gates: &[(&str, u16)], rules: &str) -> Option<Prometheus> {
        let program = tool("prometheus")?;
        let folder = TempDir::new("prometheus");
        folder.write("rules.yml", rules);
        let targets: String = gates
            .iter()
            .map(|(name, port)| {
                format!(
                    "      - targets: [\"127.0.0.1:{port}\"]\n        labels:\n          instance: {name}\n"
                )
            })
            .collect();
        let config = format!(
            "global:\n  scrape_interval: 200ms\n  scrape_timeout: 200ms\n  evaluation_interval: 200ms\nrule_files: [rules.yml]\nscrape_configs:\n  - job_name: toolgate\n    authorization:\n      credentials: metrics-token-of-the-test\n    static_configs:\n{targets}"
        );
        let config = folder.write("prometheus.yml", &config);
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let child = command(program)
            .arg(format!("--config.file={}", config.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                folder.file("data").display()
            ))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .arg("--log.level=error")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let prometheus = Prometheus {
            child,
            port,
            _folder: folder,
        };
        until("Prometheus is ready", LONG, || {
            std::net::TcpStream::connect(("127.0.0.1", port)).ok()?;
            (send(port, "GET", "/-/ready", &[], b"").status == 200).then_some(())
        });
        Some(prometheus)
    }

    fn get(&self, path: &str) -> Value {
        let response = send(self.port, "GET", path, &[], b"");
        serde_json::from_str(&response.body).unwrap()
    }

    /// Results of a query.
    fn query(&self, expression: &str) -> Vec<Value> {
        let encoded: String = expression
            .bytes()
            .map(|byte| match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
                _ => format!("%{byte:02X}"),
            })
            .collect();
        let answer = self.get(&format!("/api/v1/query?query={encoded}"));
        assert_eq!(answer["status"], "success", "{expression}: {answer}");
        answer["data"]["result"].as_array().unwrap().clone()
    }

    /// Firing alerts by gateway.
    fn firing(&self) -> BTreeMap<String, BTreeSet<String>> {
        let answer = self.get("/api/v1/alerts");
        let mut all = BTreeMap::<String, BTreeSet<String>>::new();
        for alert in answer["data"]["alerts"].as_array().unwrap() {
            if alert["state"] == "firing" {
                let label = |name: &str| alert["labels"][name].as_str().unwrap().to_owned();
                all.entry(label("instance"))
                    .or_default()
                    .insert(label("alertname"));
            }
        }
        all
    }
}

/// The alert rules, with windows of seconds, without pauses, and with limits that a test reaches.
fn quick_rules() -> String {
    let rules = std::fs::read_to_string(operations("prometheus/toolgate-alerts.yml")).unwrap();
    let mut text: String = rules
        .lines()
        .filter(|line| !line.trim_start().starts_with("for:"))
        .map(|line| format!("{line}\n"))
        .collect();
    for (from, to) in [
        ("[5m]", format!("[{WINDOW}]")),
        ("[10m]", format!("[{WINDOW}]")),
        ("[15m]", format!("[{WINDOW}]")),
        // Calls of this server take longer than 0.5 s.
        ("[10s]))) > 10\n", "[10s]))) > 0.3\n".to_owned()),
        // One caller can use half of the budget.
        ("0.8 * toolgate_memory", "0.3 * toolgate_memory".to_owned()),
    ] {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, &to);
    }
    text
}

/// A server whose tool `say` takes a while, or fails if its argument says so.
fn slow_server(seconds: f64) -> String {
    sayer(move |message| {
        thread::sleep(Duration::from_secs_f64(seconds));
        if message["params"]["arguments"]["fail"] == true {
            let error = json!({"code": -32603, "message": "broken"});
            return Reply::Events(vec![
                json!({"jsonrpc": "2.0", "id": message["id"], "error": error}),
            ]);
        }
        Reply::result(
            message,
            json!({"content": [{"type": "text", "text": "said"}]}),
        )
    })
}

fn allow_all() -> &'static str {
    "[[rule]]\ntools = [\"*\"]\naction = \"allow\"\n"
}

#[test]
fn promtool_accepts_the_alert_rules_and_their_unit_tests() {
    let Some(promtool) = tool("promtool") else {
        return;
    };
    let run = |args: &[&str]| {
        let done = output(
            command(&promtool)
                .args(args)
                .current_dir(operations("prometheus")),
        );
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(
            done.status.success(),
            "{said}{}",
            String::from_utf8_lossy(&done.stderr)
        );
    };
    run(&["check", "rules", "toolgate-alerts.yml"]);
    run(&["test", "rules", "toolgate-alerts.test.yml"]);
}

#[test]
fn each_query_of_the_dashboard_returns_data_of_every_gateway() {
    let url = slow_server(0.0);
    let config = format!(
        "[server.far]\nurl = {url:?}\ntrust_annotations = true\n{}",
        allow_all()
    );
    let (one, two) = (
        Setup::config(&*config).start(),
        Setup::config(&*config).start(),
    );
    let gates = [("one", one.port), ("two", two.port)];
    let Some(prometheus) = Prometheus::start(&gates, "groups: []\n") else {
        return;
    };
    let dashboard = std::fs::read_to_string(operations("grafana/toolgate.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&dashboard).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels
        .iter()
        .flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let mut missing: Vec<String> = targets
        .map(|target| {
            let query = target["expr"].as_str().unwrap();
            query
                .replace("$job", ".*")
                .replace("$instance", ".*")
                .replace("$__rate_interval", WINDOW)
        })
        .collect();
    assert!(missing.len() > 40, "{}", missing.len());
    let mut number = 0;
    until("each query returns data", LONG, || {
        number += 1;
        for (_, port) in gates {
            for arguments in [json!({}), json!({"fail": true})] {
                Modern::call(port, &json!(number), "far_say", arguments);
            }
            Modern::call(port, &json!(number), "unknown", json!({}));
            // A rejected message, and a host that is not allowed.
            let headers = Modern::headers("tools/list", None);
            send(
                port,
                "POST",
                "/mcp",
                &headers,
                b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\"}",
            );
            let strange =
                b"GET /metrics HTTP/1.1\r\nHost: strange.example\r\nConnection: close\r\n\r\n";
            assert_eq!(crate::help::raw(port, strange).status, 403);
        }
        missing.retain(|query| prometheus.query(query).is_empty());
        thread::sleep(Duration::from_millis(100));
        missing.is_empty().then_some(())
    });
    let ready = prometheus.query("toolgate_ready == 1");
    assert_eq!(ready.len(), 2, "{ready:?}");
}

/// A gateway on which something goes wrong, and the alerts that are expected and allowed.
struct Incident {
    name: &'static str,
    gate: Option<Gate>,
    port: u16,
    expected: &'static [&'static str],
    allowed: &'static [&'static str],
}

impl Incident {
    fn new(name: &'static str, gate: Gate, expected: &'static [&'static str]) -> Incident {
        Incident {
            name,
            port: gate.port,
            gate: Some(gate),
            expected,
            allowed: &[],
        }
    }
}

/// A gateway whose data directory is on a small file system of its own, if namespaces are allowed here.
fn on_a_small_disk() -> Option<(Gate, PathBuf)> {
    let unshare = tool("unshare")?;
    let data = Arc::new(TempDir::new("small"));
    let state = data.path().join("state");
    std::fs::create_dir(&state).unwrap();
    let script = "mount -t tmpfs -o size=16m,mode=700 tmpfs \"$0\" && exec \"$@\"";
    let unshare = unshare.to_string_lossy().into_owned();
    let folder = state.to_string_lossy().into_owned();
    let trial = output(command(&unshare).args(["-Urm", "sh", "-c", script, &folder, "true"]));
    if !trial.status.success() {
        crate::help::skip("a small file system: namespaces are not allowed here");
        return None;
    }
    let gate = Setup::fast_demo("")
        .wrapped(&[&unshare, "-Urm", "sh", "-c", script, &folder])
        .start_in(data);
    // The file system is visible below the root of the process.
    let seen = PathBuf::from(format!("/proc/{}/root{folder}", gate.pid()));
    Some((gate, seen))
}

#[test]
fn alerts_fire_on_staged_incidents_and_stay_silent_over_benign_calls() {
    if tool("prometheus").is_none() {
        return;
    }
    let mut incidents = Vec::new();
    let benign = Incident::new("benign", Setup::fast_demo("").start(), &[]);
    incidents.push(Incident::new(
        "down",
        Setup::fast_demo("").start(),
        &["ToolgateDown"],
    ));
    incidents.push(Incident::new(
        "store",
        Setup::fast_demo("").start(),
        &["ToolgateStoreAway"],
    ));
    let small = on_a_small_disk().map(|(gate, folder)| {
        let mut incident = Incident::new("disk", gate, &["ToolgateAuditDiskFull"]);
        incident.allowed = &["ToolgateAuditDown", "ToolgateStoreAway"];
        incidents.push(incident);
        folder
    });
    let program = env!("CARGO_BIN_EXE_toolgate");
    let people = format!(
        "token = {{ env = \"TOOLGATE_TEST_TOKEN\" }}\n[admin]\ntoken = {{ env = \"TOOLGATE_TEST_ADMIN\" }}\n[limits]\napprovals_per_caller = 100\n[server.demo]\ncommand = [{program:?}, \"demo-server\"]\ntrust_annotations = true\n[[rule]]\ntools = [\"demo.note\"]\naction = \"ask\"\n[[rule]]\ntools = [\"demo.add\"]\naction = \"allow\"\nrate = \"1/h\"\n"
    );
    let gate = Setup::config(people)
        .env("TOOLGATE_TEST_TOKEN", "correct-horse-battery-staple")
        .env("TOOLGATE_TEST_ADMIN", "metrics-token-of-the-test")
        .start();
    let mut crowded = Incident::new("people", gate, &["ToolgateApprovalsPileUp"]);
    crowded.allowed = &["ToolgateRateLimitHit", "ToolgateRejectedCredentials"];
    incidents.push(crowded);
    if cfg!(debug_assertions) {
        let data = Arc::new(TempDir::new("clock"));
        let gate = Setup::fast_demo("")
            .env("TOOLGATE_TEST_CLOCK_AHEAD_SECONDS", "86400")
            .start_in(data.clone());
        gate.cli(&["keys", "create", "ci"]);
        gate.stop();
        let gate = Setup::fast_demo("").start_in(data);
        incidents.push(Incident::new("clock", gate, &["ToolgateClockJump"]));
    }
    let mut targets: Vec<(&str, u16)> = incidents
        .iter()
        .map(|incident| (incident.name, incident.port))
        .collect();
    targets.push((benign.name, benign.port));
    let prometheus = Prometheus::start(&targets, &quick_rules()).unwrap();
    until("every gateway is scraped, and no alert fires", LONG, || {
        let up = prometheus.query("up == 1").len() == targets.len();
        up.then_some(())
    });
    let before = prometheus.firing();

    let gate_of = |incidents: &[Incident], name: &str| {
        incidents.iter().position(|incident| incident.name == name)
    };
    let down = gate_of(&incidents, "down").unwrap();
    incidents[down].gate.take().unwrap().kill();
    let store = gate_of(&incidents, "store").unwrap();
    let gate = incidents[store].gate.as_ref().unwrap();
    let database = gate.data.file("state/state/state.sqlite");
    let copy = std::fs::read(&database).unwrap();
    std::fs::remove_file(&database).unwrap();
    std::fs::write(&database, copy).unwrap();
    // The write that notices that the file was replaced.
    gate.run(&["keys", "create", "ci"]);
    if let Some(folder) = &small {
        let _ = std::fs::write(folder.join("fill"), vec![0; 32 << 20]);
    }
    let people = incidents[gate_of(&incidents, "people").unwrap()].port;
    let auth = "Authorization: Bearer correct-horse-battery-staple".to_owned();
    let called = move |tool: &str, arguments: Value, auth: &str| {
        let body = Modern::body(
            &json!(1),
            "tools/call",
            json!({"name": tool, "arguments": arguments}),
        );
        let mut headers = Modern::headers("tools/call", Some(tool));
        headers.push(auth.to_owned());
        crate::help::try_raw(
            people,
            &crate::help::request(
                people,
                "POST",
                "/mcp",
                &headers,
                body.to_string().as_bytes(),
            ),
        )
    };
    for number in 0..25 {
        let auth = auth.clone();
        let arguments = json!({"name": format!("n{number}"), "text": "t"});
        thread::spawn(move || called("demo_note", arguments, &auth));
    }
    for _ in 0..30 {
        called("demo_add", json!({"a": 1, "b": 2}), &auth);
    }
    for _ in 0..60 {
        called(
            "demo_add",
            json!({"a": 1, "b": 2}),
            "Authorization: Bearer wrong-wrong-wrong-wrong",
        );
    }
    for number in 0..1000 {
        let call = Modern::call(
            benign.port,
            &json!(number),
            "demo_add",
            json!({"a": 1, "b": 2}),
        );
        assert_eq!(call.status, 200);
    }
    let mut fired = before;
    until("every alert fires", LONG, || {
        for (name, alerts) in prometheus.firing() {
            fired.entry(name).or_default().extend(alerts);
        }
        let complete = incidents.iter().all(|incident| {
            let of_this = fired.get(incident.name);
            incident
                .expected
                .iter()
                .all(|alert| of_this.is_some_and(|all| all.contains(*alert)))
        });
        let missing: Vec<_> = incidents
            .iter()
            .filter(|one| {
                !one.expected
                    .iter()
                    .all(|alert| fired.get(one.name).is_some_and(|all| all.contains(*alert)))
            })
            .map(|one| one.name)
            .collect();
        if !complete && std::env::var_os("TOOLGATE_TEST_VERBOSE").is_some() {
            println!("missing: {missing:?}");
        }
        complete.then_some(())
    });
    let of_benign = fired.get("benign").into_iter().flatten();
    let of_benign: Vec<_> = of_benign
        .filter(|alert| *alert != "ToolgateAuditDiskFull")
        .collect();
    assert!(of_benign.is_empty(), "{fired:?}");
    for incident in &incidents {
        let known = |alert: &&String| {
            // The disk of the machine that runs the test may be nearly full.
            *alert == "ToolgateAuditDiskFull"
                || incident.expected.contains(&alert.as_str())
                || incident.allowed.contains(&alert.as_str())
        };
        let others: Vec<_> = fired[incident.name]
            .iter()
            .filter(|alert| !known(alert))
            .collect();
        assert!(others.is_empty(), "{}: {others:?}", incident.name);
    }
}
