//! Passkeys of approvers: enrolled and used in a real browser, every other way refused, and signatures in the audit log.

use crate::authenticator::{Signing, SoftPasskey, hex, unhex};
use crate::help::{
    Gate, Login, Modern, SOON, Script, Setup, TempDir, answer_of, browser, real, until,
};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Write},
    os::unix::net::UnixStream,
    path::Path,
    sync::Arc,
    thread::JoinHandle,
};
use toolgate_journal::{AuditEntry, AuditEvent, AuditJournal, JournalOptions};
use toolgate_verify::{LogResult, VerifyOptions, verify};

/// The config with passkeys, an anchor and a rule that needs `count` of them.
fn config(anchor: &str, count: u32) -> String {
    let program = env!("CARGO_BIN_EXE_toolgate");
    format!(
        "[passkeys]\nanchor = \"{anchor}\"\n\
         [[rule]]\ntools = [\"demo.note\"]\naction = \"ask\"\napprovals = {{ count = {count}, passkey = true }}\n\
         [server.demo]\ncommand = [{program:?}, \"demo-server\"]\ntrust_annotations = true\n"
    )
}

/// Asks for a call that a passkey has to sign; gives the id of its approval.
fn ask(gate: &Gate, text: &str) -> (JoinHandle<Value>, String) {
    let (port, text) = (gate.port, text.to_owned());
    let call = std::thread::spawn(move || {
        let id = json!(format!("note-{text}"));
        let arguments = json!({"name": "n", "text": text});
        answer_of(&Modern::call(port, &id, "demo_note", arguments), &id)
    });
    (call, gate.pending())
}

fn ran(answer: &Value) -> bool {
    answer["result"]["isError"] == false || answer["result"]["isError"].is_null()
}

#[test]
fn a_virtual_authenticator_enrolls_and_approves_in_a_browser() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let gate = Setup::fast_demo("[passkeys]\n").start();
    let link = |name: &str| gate.cli(&["console", "--as", name]).trim().to_owned();
    let origin = format!("http://localhost:{}", gate.port);
    assert!(link("ann").starts_with(&format!("{origin}/#token=")));
    let mut script = Script::start(&real, "passkeys.mjs", &json!({}));
    script.event("ready");
    let mut tell = |command: Value| {
        script.send_line(&command.to_string());
        script.event(command["do"].as_str().unwrap())
    };
    for who in ["ann", "ben"] {
        let opened = tell(json!({"do": "open", "who": who, "link": link(who)}));
        assert_eq!(opened["address"], origin);
    }
    let first = tell(json!({"do": "enroll", "who": "ann", "label": "laptop"}));
    assert_eq!(first["error"], Value::Null, "{first}");
    let shown = first["text"].as_str().unwrap();
    assert!(shown.contains("No passkey counts yet"), "{shown}");
    let waits = tell(json!({"do": "enroll", "who": "ben", "label": "phone"}));
    assert_eq!(waits["error"], Value::Null, "{waits}");
    let waiting: Value = serde_json::from_str(&gate.cli(&["passkeys", "list", "--json"])).unwrap();
    let credential = waiting["waiting"][0]["credential"].as_str().unwrap();
    assert_eq!(waiting["waiting"][0]["person"], "ben");
    assert!(!credential.is_empty());
    let request = waits["request"].as_str().unwrap();
    assert_eq!(request.len(), 12, "{waits}");
    let signed = tell(json!({"do": "sign", "who": "ann"}));
    assert_eq!(signed["error"], Value::Null, "{signed}");
    let list = gate.cli(&["passkeys", "list"]);
    assert!(list.contains("laptop") && list.contains("phone"), "{list}");
    let last = list
        .lines()
        .find_map(|line| line.strip_prefix("last change:"));
    let anchor = last.unwrap().trim();
    gate.configure(&config(anchor, 1));
    gate.cli(&["reload"]);

    let (call, id) = ask(&gate, "one");
    tell(json!({"do": "verified", "who": "ben", "yes": false}));
    let unverified = tell(json!({"do": "approve", "who": "ben", "id": id}));
    let error = unverified["error"].as_str().unwrap();
    assert!(error.contains("no passkey signed"), "{error}");
    tell(json!({"do": "verified", "who": "ben", "yes": true}));
    let approved = tell(json!({"do": "approve", "who": "ben", "id": id}));
    assert_eq!(approved["error"], Value::Null, "{approved}");
    assert_eq!(approved["label"], "Approve once with a passkey");
    assert!(ran(&call.join().unwrap()));

    let removed = tell(json!({"do": "remove", "who": "ann", "person": "ben", "label": "phone"}));
    assert_eq!(removed["error"], Value::Null, "{removed}");
    let (call, id) = ask(&gate, "two");
    let refused = tell(json!({"do": "approve", "who": "ben", "id": id}));
    let error = refused["error"].as_str().unwrap();
    assert!(error.contains("no passkey is enrolled for ben"), "{error}");
    tell(json!({"do": "deny", "who": "ben", "id": id}));
    assert!(!ran(&call.join().unwrap()));
    script.send_line("{\"do\":\"end\"}");
    script.assert_no_page_error();

    let records = gate.audit();
    let states: Vec<&str> = records
        .iter()
        .filter(|record| record["ev"] == "passkey")
        .map(|record| record["state"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["enrolled", "enrolled", "removed"]);
    let passkeys = gate
        .data
        .write("passkeys.jsonl", &gate.cli(&["passkeys", "export"]));
    let data = gate.stop();
    let found = verify(
        &data.path().join("state/audit"),
        &options(&passkeys, anchor),
    )
    .unwrap();
    assert_eq!(found.exit_code(), 0, "{found:?}");
    assert_eq!(
        (found.passkey_signatures, found.passkeys_verified),
        (1, true)
    );
}

fn options(passkeys: &Path, anchor: &str) -> VerifyOptions {
    VerifyOptions {
        passkeys: Some(passkeys.to_owned()),
        passkey_anchor: Some(anchor.to_owned()),
        passkey_tools: vec!["demo.no*".to_owned()],
        ..VerifyOptions::default()
    }
}

/// A gateway at which ann and ben have passkeys.
struct Scene {
    gate: Gate,
    ann: SoftPasskey,
    ben: SoftPasskey,
    anchor: String,
}

impl Scene {
    fn new(count: u32) -> Scene {
        // The socket of a data directory with a long path is elsewhere.
        let gate = Setup::fast_demo("[passkeys]\n").start_in(Arc::new(TempDir::short()));
        let [ann, ben] = ["ann", "ben"].map(SoftPasskey::new);
        let mut scene = Scene {
            gate,
            ann,
            ben,
            anchor: String::new(),
        };
        let first = scene.request(&scene.ann, "ann");
        scene.anchor = first["first"].as_str().unwrap().to_owned();
        let second = scene.request(&scene.ben, "ben");
        let change = scene.change("ann", &json!({"request": second["id"]}), &scene.ann);
        assert!(change["change"].is_string(), "{change}");
        scene.gate.configure(&config(&scene.anchor, count));
        scene.gate.cli(&["reload"]);
        scene
    }

    fn sign(&self, key: &SoftPasskey, to_sign: &Value) -> Value {
        let challenge = unhex(to_sign["challenge"].as_str().unwrap());
        let origin = format!("http://localhost:{}", self.gate.port);
        key.sign(&Signing::new("localhost", &origin, &challenge))
    }

    fn request(&self, key: &SoftPasskey, name: &str) -> Value {
        let person = self.gate.log_in(name);
        let new = json!({"credential": hex(&key.credential), "key": hex(&key.spki()), "host": "localhost", "label": "key"});
        let prepared = person.post("passkeys/prepare", &new);
        let proof = self.sign(key, &prepared);
        person.post(
            "passkeys/request",
            &json!({"text": prepared["text"], "proof": proof}),
        )
    }

    fn change(&self, name: &str, wanted: &Value, key: &SoftPasskey) -> Value {
        let person = self.gate.log_in(name);
        let mut wanted = wanted.clone();
        wanted["host"] = "localhost".into();
        let to_sign = person.post("passkeys/sign", &wanted);
        let by = self.sign(key, &to_sign);
        person.post(
            "passkeys/change",
            &json!({"text": to_sign["text"], "by": by}),
        )
    }

    /// Body with which the page approves a request.
    fn signed(&self, person: &Login, key: &SoftPasskey, id: &str) -> Value {
        let to_sign = person.post("approve/text", &json!({"id": id, "host": "localhost"}));
        json!({"id": id, "passkey": self.sign(key, &to_sign)})
    }

    fn approve(&self, name: &str, key: &SoftPasskey, id: &str) -> Value {
        let person = self.gate.log_in(name);
        let body = self.signed(&person, key, id);
        person.post("approve", &body)
    }
}

#[test]
fn every_other_way_is_refused_with_what_to_do() {
    let scene = Scene::new(2);
    let (gate, origin) = (&scene.gate, format!("http://localhost:{}", scene.gate.port));
    let (call, id) = ask(gate, "t");
    until("the gateway says where to approve", SOON, || {
        let says = |line: &String| line.contains("approve it with a passkey at the console");
        gate.said().iter().any(says).then_some(())
    });
    let (ann, mallory) = (gate.log_in("ann"), gate.log_in("mallory"));
    let shown = ann.post("config/get", &json!({}));
    let good = scene.signed(&ann, &scene.ann, &id);
    let mut refused = Vec::new();
    let mut attack = |name: &str, answer: String, expected: &str| {
        assert!(answer.contains(expected), "{name}: {answer}");
        assert_eq!(gate.inbox(), [id.as_str()], "{name}");
        refused.push(name.to_owned());
    };
    for words in [
        &["approve", &id][..],
        &["approve", &id, "--remember", "--when", "args.name == \"n\""],
    ] {
        let out = gate.run(words);
        let error = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(!out.status.success());
        attack(
            &words.join(" "),
            error,
            &format!("open the console at {origin}"),
        );
    }
    let run = gate
        .data
        .path()
        .join(format!("state/run/{}.sock", gate.pid()));
    let socket = |action: &str, with: &Value| {
        let mut stream = UnixStream::connect(&run).unwrap();
        writeln!(stream, "{}", json!({"do": action, "with": with})).unwrap();
        let lines = BufReader::new(stream).lines();
        lines.map_while(Result::ok).collect::<Vec<_>>().join("\n")
    };
    attack("the socket", socket("approve", &good), &origin);
    attack(
        "the socket as the page",
        socket("approve/text", &json!({"id": id, "host": "localhost"})),
        &origin,
    );
    let posts: [(&str, &Login, &str, Value, &str); 16] = [
        ("no signature", &ann, "approve", json!({"id": id}), &origin),
        (
            "no signature, remembered",
            &ann,
            "approve",
            json!({"id": id, "remember": true}),
            &origin,
        ),
        (
            "another person",
            &mallory,
            "approve",
            good.clone(),
            "signed in as mallory",
        ),
        (
            "an unknown person",
            &mallory,
            "approve/text",
            json!({"id": id, "host": "localhost"}),
            "no passkey is enrolled for mallory",
        ),
        (
            "an address without passkeys",
            &ann,
            "approve/text",
            json!({"id": id, "host": "127.0.0.1"}),
            &origin,
        ),
        (
            "an address of another site",
            &ann,
            "approve/text",
            json!({"id": id, "host": "evil.test"}),
            &origin,
        ),
        (
            "an edited call",
            &ann,
            "approve",
            json!({"id": id, "passkey": good["passkey"], "edit": "{\"name\":\"n\",\"text\":\"x\"}"}),
            "not signed as it has to be",
        ),
        (
            "an unsigned change",
            &ann,
            "passkeys/change",
            json!({"text": "{}", "by": good["passkey"]}),
            "malformed",
        ),
        (
            "a change with no signature",
            &ann,
            "passkeys/change",
            json!({"text": "{}"}),
            "malformed",
        ),
        (
            "a passkey for another person",
            &mallory,
            "passkeys/request",
            json!({"text": request_of(&scene, "ann"), "proof": good["passkey"]}),
            "for yourself only",
        ),
        (
            "a passkey without its signature",
            &mallory,
            "passkeys/request",
            json!({"text": request_of(&scene, "mallory"), "proof": good["passkey"]}),
            "did not sign",
        ),
        (
            "a signature for no request",
            &ann,
            "passkeys/sign",
            json!({"request": "0", "host": "localhost"}),
            "no such request",
        ),
        (
            "a rule without passkeys",
            &ann,
            "config/save",
            json!({"text": plain_config(), "digest": shown["digest"]}),
            "edit the file",
        ),
        (
            "a check of it",
            &ann,
            "config/check",
            json!({"text": plain_config()}),
            "edit the file",
        ),
        (
            "an unknown algorithm",
            &mallory,
            "passkeys/prepare",
            json!({"credential": "00", "key": "3030", "host": "localhost", "label": "k"}),
            "unknown algorithm",
        ),
        (
            "a grant",
            &ann,
            "approve",
            json!({"id": id, "passkey": good["passkey"], "remember": {"uses": 9, "when": "args.name == \"n\""}}),
            "cannot be remembered",
        ),
    ];
    for (name, person, action, body, expected) in posts {
        attack(name, person.post(action, &body).to_string(), expected);
    }
    // A new passkey of mallory waits; neither it nor ben's, who may not sign for others, can enroll it.
    let forged = SoftPasskey::new("mallory");
    let request = scene.request(&forged, "mallory");
    let wanted = json!({"request": request["id"]});
    attack(
        "a key that signs for itself",
        scene.change("mallory", &wanted, &forged).to_string(),
        "not enrolled",
    );
    attack(
        "a key that may not sign for others",
        scene.change("ben", &wanted, &scene.ben).to_string(),
        "own person only",
    );
    let remove = json!({"remove": hex(&scene.ann.credential)});
    attack(
        "a removal by another person",
        scene.change("ben", &remove, &scene.ben).to_string(),
        "own person only",
    );
    attack(
        "a removal by nobody",
        scene.change("ben", &remove, &forged).to_string(),
        "not enrolled",
    );
    let waiting = scene.signed(&ann, &forged, &id);
    attack(
        "a waiting key",
        mallory.post("approve", &waiting).to_string(),
        "not enrolled",
    );
    assert_eq!(
        gate.cli(&["passkeys", "list"]).matches("localhost").count(),
        2
    );

    // Two people with their passkeys; one of them twice does not count.
    assert_eq!(
        ann.post("approve", &good),
        json!({"ok": true, "more": true})
    );
    attack(
        "the same person again",
        ann.post("approve", &good).to_string(),
        "already approved",
    );
    attack(
        "the same passkey for another",
        gate.log_in("ben").post("approve", &good).to_string(),
        "signed in as ben",
    );
    println!("{} ways: 0 accepted", refused.len());
    assert_eq!(scene.approve("ben", &scene.ben, &id), json!({"ok": true}));
    assert!(ran(&call.join().unwrap()));
    // A restart keeps the passkeys; a gateway whose config has another anchor accepts none.
    let data = scene.gate.stop();
    let gate = Setup::config(config(&"0".repeat(64), 1)).start_in(data);
    let out = gate.run(&["passkeys", "list"]);
    let error = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(
        !out.status.success() && error.contains("lacks the change"),
        "{error}"
    );
}

/// The text of a request for a passkey, as the gateway would make it.
fn request_of(scene: &Scene, person: &str) -> String {
    let key = SoftPasskey::new("posing");
    let new = json!({"credential": hex(&key.credential), "key": hex(&key.spki()), "host": "localhost", "label": "key"});
    let prepared = scene.gate.log_in(person).post("passkeys/prepare", &new);
    prepared["text"].as_str().unwrap().to_owned()
}

fn plain_config() -> String {
    let program = env!("CARGO_BIN_EXE_toolgate");
    format!("[server.demo]\ncommand = [{program:?}, \"demo-server\"]\n")
}

/// Writes records into a new log, whose chain and signatures are right: what a forger with all keys of the log makes.
fn rewritten(records: &[Value]) -> TempDir {
    let folder = TempDir::new("rewritten");
    let journal = AuditJournal::open(JournalOptions::new(folder.path().join("audit"))).unwrap();
    for record in records {
        let event = match record["ev"].as_str().unwrap() {
            "approval" => AuditEvent::APPROVAL,
            "call.begin" => AuditEvent::CALL_BEGIN,
            "call.end" => AuditEvent::CALL_END,
            _ => continue,
        };
        let own = [
            "ev", "v", "h", "prev", "seq", "seg", "chain", "ts", "mono", "boot",
        ];
        let members = record.as_object().unwrap().iter();
        let members = members.filter(|(name, _)| !own.contains(&name.as_str()));
        let entry = members.fold(AuditEntry::new(event), |entry, (name, value)| {
            entry.with(name.clone(), value.clone())
        });
        journal.enqueue(entry).unwrap();
    }
    drop(journal);
    folder
}

/// Change of the records of a log.
type Forge<'a> = Box<dyn Fn(&mut Vec<Value>) + 'a>;

/// Changes each record.
fn each<'a>(change: impl Fn(&mut Value) + 'a) -> Forge<'a> {
    Box::new(move |all: &mut Vec<Value>| all.iter_mut().for_each(&change))
}

#[test]
fn a_forged_approval_in_the_audit_log_is_found() {
    let scene = Scene::new(2);
    let approved = |text: &str| {
        let (call, id) = ask(&scene.gate, text);
        scene.approve("ann", &scene.ann, &id);
        assert_eq!(scene.approve("ben", &scene.ben, &id), json!({"ok": true}));
        assert!(ran(&call.join().unwrap()));
        id
    };
    let (one, two) = (approved("one"), approved("two"));
    let records = scene.gate.audit();
    let export = scene.gate.cli(&["passkeys", "export"]);
    let passkeys = scene.gate.data.write("passkeys.jsonl", &export);
    let check = |records: &[Value], options: &VerifyOptions| -> LogResult {
        let log = rewritten(records);
        verify(&log.path().join("audit"), options).unwrap()
    };
    let with = options(&passkeys, &scene.anchor);
    let found = check(&records, &with);
    assert_eq!(
        (found.exit_code(), found.passkey_signatures),
        (0, 4),
        "{found:?}"
    );
    // The log of the gateway itself.
    let data: Arc<TempDir> = scene.gate.data.clone();
    let live = VerifyOptions {
        live: true,
        ..with.clone()
    };
    let found = verify(&data.path().join("state/audit"), &live).unwrap();
    assert_eq!(found.exit_code(), 0, "{found:?}");

    let is = |record: &Value, state: &str, id: &str| {
        record["state"] == state && record["approval"] == id
    };
    let signature_of = |state: &str, id: &str| {
        let found = records.iter().find(|record| is(record, state, id));
        found.unwrap()["passkey"].clone()
    };
    let forgeries: Vec<(&str, Forge<'_>)> = vec![
        (
            "an approval without its signature",
            each(|record| {
                if is(record, "approved", &one) {
                    record.as_object_mut().unwrap().remove("passkey");
                }
            }),
        ),
        (
            "the signature of another approval",
            each(|record| {
                if is(record, "approved", &one) {
                    record["passkey"] = signature_of("approved", &two);
                }
            }),
        ),
        (
            "the signature of another person",
            each(|record| {
                if is(record, "approved", &one) {
                    record["passkey"] = signature_of("seconded", &one);
                }
            }),
        ),
        (
            "one person twice",
            each(|record| {
                if is(record, "approved", &one) {
                    record["passkey"] = signature_of("seconded", &one);
                    record["who"] = "ann".into();
                }
            }),
        ),
        (
            "another name",
            each(|record| {
                if is(record, "approved", &one) {
                    record["who"] = "mallory".into();
                }
            }),
        ),
        (
            "another tool",
            each(|record| {
                if record["approval"] == one {
                    record["tool"] = "demo.add".into();
                }
            }),
        ),
        (
            "another caller",
            each(|record| {
                if record["approval"] == one {
                    record["caller"] = "key:mallory".into();
                }
            }),
        ),
        (
            "other arguments of the call",
            each(|record| {
                if record["ev"] == "call.begin" && record["approval"] == one {
                    record["args_mac"] = "0".repeat(64).into();
                }
            }),
        ),
        (
            "too few signatures",
            Box::new(|all| all.retain(|record| !is(record, "seconded", &one))),
        ),
        (
            "a smaller requirement",
            Box::new(|all| {
                all.retain(|record| !is(record, "seconded", &one));
                all.iter_mut()
                    .filter(|record| is(record, "asked", &one))
                    .for_each(|record| record["needs"] = 1.into());
            }),
        ),
        (
            "no signatures at all",
            Box::new(|all| {
                all.retain(|record| !is(record, "seconded", &one) && !is(record, "approved", &one));
            }),
        ),
        (
            "an approval that needed no passkey",
            each(|record| {
                if record["approval"] == one {
                    let record = record.as_object_mut().unwrap();
                    record.remove("passkey");
                    record.remove("passkey_required");
                }
            }),
        ),
        (
            "no approval",
            Box::new(|all| {
                all.retain(|record| record["ev"] != "approval" || record["approval"] != one)
            }),
        ),
        (
            "a second use",
            Box::new(|all| {
                let mut more: Vec<Value> = all
                    .iter()
                    .filter(|record| {
                        is(record, "spent", &one)
                            || (record["ev"] == "call.begin" && record["approval"] == one)
                    })
                    .cloned()
                    .collect();
                more.iter_mut()
                    .for_each(|record| record["call"] = "c-forged".into());
                all.extend(more);
            }),
        ),
        (
            "an altered signature",
            each(|record| {
                if is(record, "approved", &one) {
                    let text = record["passkey"]["signature"].as_str().unwrap();
                    let end = if text.ends_with('0') { "1" } else { "0" };
                    let text = format!("{}{end}", &text[..text.len() - 1]);
                    record["passkey"]["signature"] = text.into();
                }
            }),
        ),
        (
            "an unknown list",
            each(|record| {
                if is(record, "approved", &one) {
                    record["passkey"]["list"] = "0".repeat(64).into();
                }
            }),
        ),
        (
            "an older list",
            each(|record| {
                if is(record, "approved", &one) {
                    record["passkey"]["list"] = scene.anchor.clone().into();
                }
            }),
        ),
    ];
    for (name, forge) in &forgeries {
        let mut forged = records.clone();
        forge(&mut forged);
        assert!(forged != records, "{name}");
        let found = check(&forged, &with);
        assert_eq!(found.exit_code(), 1, "{name}: {found:?}");
    }
    println!("{} forged logs: all found", forgeries.len());
    // A forged list of passkeys.
    let lines: Vec<&str> = export.lines().collect();
    for (name, text) in [
        ("cut off", String::new()),
        ("without the first", format!("{}\n", lines[1])),
        (
            "with another person",
            export.replace(
                "\\\"person\\\\\\\":\\\\\\\"ben",
                "\\\"person\\\\\\\":\\\\\\\"eve",
            ),
        ),
        ("with a change twice", format!("{export}{}\n", lines[1])),
        ("malformed", format!("{export}{{\n")),
    ] {
        assert_ne!(text, export, "{name}");
        let path = scene.gate.data.write("forged.jsonl", &text);
        let found = check(&records, &options(&path, &scene.anchor));
        assert_eq!(found.exit_code(), 1, "{name}: {found:?}");
    }
    let found = check(&records, &options(&passkeys, &"0".repeat(64)));
    assert_eq!(found.exit_code(), 1, "{found:?}");
    // Without a list, the signatures are counted only.
    let found = check(&records, &VerifyOptions::default());
    assert_eq!((found.exit_code(), found.passkeys_verified), (0, false));
}
