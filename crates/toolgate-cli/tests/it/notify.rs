//! Notifications of approval requests, at real receivers.

mod phone;

use crate::help::{
    Gate, LONG, Modern, Response, SOON, Script, Setup, TempDir, browser, message_of, raw, real,
    request, send, shot, until,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use ring::hmac;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt,
    time::{SystemTime, UNIX_EPOCH},
};
use toolgate_protocol::hex;

/// A secret in the format of Standard Webhooks.
const WEBHOOK_SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const SLACK_SECRET: &str = "slack-signing-secret-0123456789";

pub(crate) struct Receivers {
    script: Script,
    pub(crate) http: String,
    smtp: String,
    pub(crate) keys: Value,
}

impl Receivers {
    pub(crate) fn start(more: Value) -> Option<Receivers> {
        let mut job = json!({"secret": WEBHOOK_SECRET});
        job.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let mut script = Script::start(&real()?, "servers/receivers.mjs", &job);
        let ready = script.event("ready");
        Some(Receivers {
            http: ready["http"].as_str().unwrap().to_owned(),
            smtp: ready["smtp"].as_str().unwrap().to_owned(),
            keys: ready["keys"].clone(),
            script,
        })
    }

    /// Waits for a message on a channel that contains a text.
    pub(crate) fn got(&mut self, channel: &str, holds: &str) -> Value {
        self.got_where(|got| {
            got["channel"] == channel && got["message"].to_string().contains(holds)
        })
    }

    /// Waits for a message to a topic of ntfy that contains a text.
    fn got_topic(&mut self, topic: &str, holds: &str) -> Value {
        self.got_where(|got| {
            got["message"]["topic"] == topic && got["message"].to_string().contains(holds)
        })
    }

    /// Returns how many messages came on a channel so far.
    pub(crate) fn count(&self, channel: &str) -> usize {
        let seen = self.script.seen("got").into_iter();
        seen.filter(|got| got["channel"] == channel).count()
    }

    fn got_where(&mut self, pick: impl Fn(&Value) -> bool) -> Value {
        let seen = self
            .script
            .seen("got")
            .into_iter()
            .find(|got| pick(got))
            .cloned();
        seen.unwrap_or_else(|| self.script.event_where("got", pick))
    }

    /// Entry `phones`, for push messages to browsers.
    pub(crate) fn push_entry(&self) -> String {
        format!(
            "[[notify]]\nname = \"phones\"\nchannel = \"web_push\"\ncontact = \"mailto:ops@example.com\"\npush_origins = [\"{}\"]\n",
            self.http
        )
    }

    /// Entries for all channels that go over the network.
    fn entries(&self, more: &str) -> String {
        let http = &self.http;
        [
            format!("channel = \"web_push\"\ncontact = \"mailto:ops@example.com\"\npush_origins = [\"{http}\"]"),
            format!("channel = \"webhook\"\nurl = \"{http}/webhook\"\nsecret = {{ env = \"WEBHOOK\" }}"),
            format!("channel = \"ntfy\"\nurl = \"{http}/alerts\"\ntoken = {{ env = \"NTFY\" }}"),
            "channel = \"slack\"\nsecret_url = { env = \"SLACK\" }".to_owned(),
            "channel = \"teams\"\nsecret_url = { env = \"TEAMS\" }".to_owned(),
            format!(
                "channel = \"email\"\nsmtp = \"{}\"\nuser = \"toolgate\"\npassword = {{ env = \"MAIL\" }}\nfrom = \"Gate <gate@example.com>\"\nto = [\"a@example.com\", \"Bo <b@example.com>\"]",
                self.smtp
            ),
        ]
        .map(|entry| format!("[[notify]]\n{entry}\n{more}\n"))
        .concat()
    }

    fn gate(&self, config: &str) -> Gate {
        let set = |setup: Setup, name: &'static str, value: String| {
            setup.env(name, Box::leak(value.into_boxed_str()))
        };
        let setup = Setup::fast_demo(config);
        let setup = set(setup, "WEBHOOK", WEBHOOK_SECRET.to_owned());
        let setup = set(setup, "NTFY", "tk_0123456789".to_owned());
        let setup = set(setup, "SLACK", format!("{}/slack", self.http));
        let setup = set(setup, "SLACK_SIGNS", SLACK_SECRET.to_owned());
        let setup = set(setup, "TEAMS", format!("{}/teams", self.http));
        set(setup, "MAIL", "mail-password".to_owned()).start()
    }

    /// Subscribes as a browser would.
    fn subscribe(&self, gate: &Gate, path: &str) {
        let login = gate.log_in("ann");
        let key = login.post("push/key", &json!({}));
        assert!(key["key"].as_str().unwrap().len() > 80, "{key}");
        let endpoint = format!("{}/push/{path}", self.http);
        let done = login.post(
            "push/subscribe",
            &json!({"endpoint": endpoint, "keys": self.keys}),
        );
        assert_eq!(done["ok"], true, "{done}");
    }
}

/// A call that waits for a person.
fn begin(gate: &Gate, name: &'static str) -> std::thread::JoinHandle<Response> {
    begin_with(gate, json!({"name": name, "text": "canary-argument"}))
}

fn begin_with(gate: &Gate, arguments: Value) -> std::thread::JoinHandle<Response> {
    let port = gate.port;
    std::thread::spawn(move || Modern::call(port, &json!(1), "demo_note", arguments))
}

/// Prints and checks the times from a request to its notification, in milliseconds.
fn report_delays(channel: &str, mut took: Vec<u64>) {
    took.sort_unstable();
    let (p95, max) = (took[took.len() * 95 / 100], took[took.len() - 1]);
    println!("{channel}: request to notification, p95 {p95} ms, max {max} ms");
    assert!(p95 < 10_000, "{channel}: {took:?}");
}

fn now_millis() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(now.as_millis()).unwrap()
}

const CHANNELS: [&str; 6] = ["web_push", "webhook", "ntfy", "slack", "teams", "email"];

#[test]
fn each_channel_says_who_asks_without_arguments() {
    let Some(mut receivers) = Receivers::start(json!({})) else {
        return;
    };
    let config = receivers.entries("");
    let gate = receivers.gate(&config);
    receivers.subscribe(&gate, "one");
    receivers.subscribe(&gate, "gone");
    let mut times = BTreeMap::<&str, Vec<u64>>::new();
    for _ in 0..20 {
        let asked = now_millis();
        let call = begin(&gate, "shopping");
        let id = gate.pending();
        for channel in CHANNELS {
            let got = receivers.got(channel, &id);
            let took = got["at"].as_u64().unwrap().saturating_sub(asked);
            times.entry(channel).or_default().push(took);
            let message = got["message"].to_string();
            assert!(message.contains("demo.note"), "{channel}: {message}");
            assert!(!message.contains("canary-argument"), "{channel}: {message}");
            let link = format!("http://127.0.0.1:{}/#/inbox/{id}", gate.port);
            assert!(message.contains(&link), "{channel}: {message}");
        }
        gate.cli(&["deny", &id, "-m", "no"]);
        call.join().unwrap();
    }
    for (channel, took) in times {
        report_delays(channel, took);
    }
    let mail = receivers
        .script
        .seen("got")
        .into_iter()
        .find(|got| got["channel"] == "email");
    let mail = &mail.unwrap()["message"];
    assert_eq!(mail["user"], "toolgate");
    assert_eq!(
        mail["recipients"],
        json!(["a@example.com", "b@example.com"])
    );
    let bad = receivers.script.seen("bad");
    assert!(bad.is_empty(), "{bad:?}");
    let records = gate.audit();
    let sent = |channel: &str| {
        let of = |record: &&Value| {
            record["ev"] == "notify" && record["channel"] == channel && record["state"] == "sent"
        };
        records.iter().filter(of).count()
    };
    for channel in CHANNELS {
        assert_eq!(sent(channel), 20, "{channel}");
    }
}

#[test]
fn conditions_and_escalation_choose_the_requests() {
    let Some(mut receivers) = Receivers::start(json!({})) else {
        return;
    };
    let http = receivers.http.clone();
    let entry = |name: &str, more: &str| {
        format!(
            "[[notify]]\nname = \"{name}\"\nchannel = \"ntfy\"\nurl = \"{http}/{name}\"\n{more}\n"
        )
    };
    let config = [
        entry("destructive", "risk = \"destructive\""),
        entry("mine", "callers = [\"key:ci\"]"),
        entry(
            "group",
            "callers = [\"group:build\"]\ntools = [\"demo.note\"]",
        ),
        entry("not-notes", "except = [\"demo.note\"]"),
        entry("late", "after_seconds = 1\narguments = true"),
    ]
    .concat();
    let gate = receivers.gate(&config);
    let key = gate.cli(&["keys", "create", "build", "--group", "build"]);
    let call = |tool: &'static str| {
        let (port, key) = (gate.port, key.trim().to_owned());
        std::thread::spawn(move || {
            let body = Modern::body(
                &json!(1),
                "tools/call",
                json!({"name": tool, "arguments": {"name": "n", "text": "shown-argument"}}),
            );
            let mut body = body;
            if tool == "demo_delete_note" {
                body["params"]["arguments"] = json!({"name": "n"});
            }
            let mut head = Modern::headers("tools/call", Some(tool));
            head.push(format!("Authorization: Bearer {key}"));
            raw(
                port,
                &request(port, "POST", "/mcp", &head, body.to_string().as_bytes()),
            )
        })
    };
    let note = call("demo_note");
    let id = gate.pending();
    receivers.got_topic("group", &id);
    let late = receivers.got_topic("late", &id);
    let topics = |receivers: &Receivers, id: &str| {
        let mut topics: Vec<String> = receivers
            .script
            .seen("got")
            .iter()
            .filter(|got| got["message"].to_string().contains(id))
            .map(|got| got["message"]["topic"].as_str().unwrap().to_owned())
            .collect();
        topics.sort();
        topics
    };
    assert!(
        late["message"]["message"]
            .to_string()
            .contains("shown-argument"),
        "{late}"
    );
    assert_eq!(topics(&receivers, &id), ["group", "late"]);
    gate.cli(&["deny", &id, "-m", "no"]);
    note.join().unwrap();

    let delete = call("demo_delete_note");
    let id = gate.pending();
    for topic in ["destructive", "not-notes", "late"] {
        receivers.got_topic(topic, &id);
    }
    assert_eq!(
        topics(&receivers, &id),
        ["destructive", "late", "not-notes"]
    );
    gate.cli(&["deny", &id, "-m", "no"]);
    delete.join().unwrap();

    // A request that is decided in time is not escalated.
    let note = call("demo_note");
    let id = gate.pending();
    gate.cli(&["deny", &id, "-m", "no"]);
    note.join().unwrap();
    let other = call("demo_note");
    let next = gate.pending();
    receivers.got_topic("late", &next);
    assert!(!topics(&receivers, &id).contains(&"late".to_owned()));
    gate.cli(&["deny", &next, "-m", "no"]);
    other.join().unwrap();
}

#[test]
fn a_channel_that_fails_is_tried_again_and_delays_no_call() {
    let Some(mut receivers) = Receivers::start(json!({"fail": 1})) else {
        return;
    };
    let http = &receivers.http;
    let config = format!(
        "[[notify]]\nchannel = \"webhook\"\nurl = \"{http}/webhook\"\nsecret = {{ env = \"WEBHOOK\" }}\n\
         [[notify]]\nchannel = \"email\"\nsmtp = \"{}\"\nfrom = \"gate@example.com\"\nto = [\"a@example.com\"]\n\
         [[notify]]\nchannel = \"ntfy\"\nname = \"down\"\nurl = \"http://127.0.0.1:9/topic\"\n",
        receivers.smtp
    );
    let gate = receivers.gate(&config);
    let call = begin(&gate, "shopping");
    let id = gate.pending();
    receivers.got("webhook", &id);
    receivers.got("email", &id);
    gate.cli(&["approve", &id]);
    let answer = call.join().unwrap();
    assert!(answer.body.contains("is written"), "{answer:?}");
    let failed = until("the failure is recorded", LONG, || {
        let records = gate.audit();
        let failed = |record: &&Value| record["ev"] == "notify" && record["state"] == "failed";
        records.iter().find(failed).cloned()
    });
    assert_eq!(failed["name"], "down");
    assert!(
        gate.said()
            .iter()
            .any(|line| line.contains("the notification down was not sent"))
    );
}

#[test]
fn the_desktop_shows_a_request_by_its_own_tool() {
    let folder = TempDir::new("desktop");
    let shown = folder.file("shown");
    let tool = folder.write(
        "notify-send",
        &format!("#!/bin/sh\ndate +%s%3N > {shown:?}.new\nprintf '%s\\n' \"$@\" >> {shown:?}.new\nmv {shown:?}.new {shown:?}\n"),
    );
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!(
        "{}:{}",
        folder.path().display(),
        std::env::var("PATH").unwrap()
    );
    let path: &'static str = Box::leak(path.into_boxed_str());
    let gate = Setup::fast_demo("[[notify]]\nchannel = \"desktop\"\n")
        .env("PATH", path)
        .start();
    let mut took = Vec::new();
    for _ in 0..20 {
        let asked = now_millis();
        let call = begin(&gate, "shopping");
        let id = gate.pending();
        let text = until("the tool is called", SOON, || {
            let text = fs::read_to_string(&shown).ok();
            text.filter(|text| text.contains(&id))
        });
        assert!(text.contains("anonymous@http asks for approval"), "{text}");
        assert!(text.contains("--\n"), "no name is an option: {text}");
        let at: u64 = text.lines().next().unwrap().parse().unwrap();
        took.push(at.saturating_sub(asked));
        gate.cli(&["deny", &id, "-m", "no"]);
        call.join().unwrap();
    }
    report_delays("desktop", took);
}

/// A decision of a webhook's receiver, with the headers of its signature.
fn signed(secret: &str, time: u64, body: &str) -> Vec<String> {
    let key = STANDARD
        .decode(secret.strip_prefix("whsec_").unwrap())
        .unwrap();
    let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
    let tag = hmac::sign(&key, format!("msg_1.{time}.{body}").as_bytes());
    vec![
        "Content-Type: application/json".to_owned(),
        "webhook-id: msg_1".to_owned(),
        format!("webhook-timestamp: {time}"),
        format!("webhook-signature: v1,{}", STANDARD.encode(tag.as_ref())),
    ]
}

#[test]
fn only_signed_decisions_of_known_people_about_the_exact_call_count() {
    let Some(mut receivers) = Receivers::start(json!({})) else {
        return;
    };
    let config = format!(
        "[[notify]]\nname = \"bot\"\nchannel = \"webhook\"\nurl = \"{}/webhook\"\nsecret = {{ env = \"WEBHOOK\" }}\narguments = true\npeople = {{ U1 = \"ann\" }}\n\
         [[notify]]\nname = \"other\"\nchannel = \"webhook\"\nurl = \"{}/webhook\"\nsecret = {{ env = \"SLACK_SIGNS\" }}\n",
        receivers.http, receivers.http
    );
    let gate = receivers.gate(&config);
    let call = begin(&gate, "shopping");
    let id = gate.pending();
    let data = receivers.got("webhook", &id)["message"]["data"].clone();
    let digest = data["digest"].as_str().unwrap();
    let url = format!("http://127.0.0.1:{}/notify/bot", gate.port);
    assert_eq!(data["decide_url"], url);
    let port = gate.port;
    let seconds = now_millis() / 1000;
    let decision = |user: &str, digest: &str| {
        json!({"approval": id, "digest": digest, "decision": "approve", "user": user}).to_string()
    };
    let post = |path: &str, head: &[String], body: &str| {
        send(port, "POST", path, head, body.as_bytes()).status
    };
    let good = decision("U1", digest);
    let head = signed(WEBHOOK_SECRET, seconds, &good);
    let other_secret = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    for (status, path, head, body) in [
        (
            401,
            "/notify/bot",
            vec!["Content-Type: application/json".to_owned()],
            good.clone(),
        ),
        (
            401,
            "/notify/bot",
            head.clone(),
            good.replace("approve", "deny"),
        ),
        (
            401,
            "/notify/bot",
            signed(other_secret, seconds, &good),
            good.clone(),
        ),
        (
            401,
            "/notify/bot",
            signed(WEBHOOK_SECRET, seconds - 400, &good),
            good.clone(),
        ),
        (404, "/notify/other", head.clone(), good.clone()),
        (404, "/notify/", head.clone(), good.clone()),
        (
            403,
            "/notify/bot",
            signed(WEBHOOK_SECRET, seconds, &decision("U2", digest)),
            decision("U2", digest),
        ),
        (
            409,
            "/notify/bot",
            signed(WEBHOOK_SECRET, seconds, &decision("U1", "other")),
            decision("U1", "other"),
        ),
        (
            400,
            "/notify/bot",
            signed(WEBHOOK_SECRET, seconds, "{}"),
            "{}".to_owned(),
        ),
    ] {
        assert_eq!(post(path, &head, &body), status, "{path} {head:?} {body}");
    }
    // Opening a link decides nothing.
    for path in [
        "/",
        "/notify/bot",
        &format!("/#/inbox/{id}"),
        &format!("/console/api/approve?id={id}"),
    ] {
        assert_ne!(send(port, "GET", path, &[], b"").status, 500);
    }
    assert_eq!(gate.inbox(), std::slice::from_ref(&id));
    assert_eq!(post("/notify/bot", &head, &good), 200);
    let answer = call.join().unwrap();
    assert!(
        message_of(&answer, &json!(1))
            .unwrap()
            .to_string()
            .contains("is written")
    );
    assert_eq!(post("/notify/bot", &head, &good), 409, "a replay");
    let records = gate.audit();
    let approved = |record: &&Value| record["ev"] == "approval" && record["state"] == "approved";
    let approved = records.iter().find(approved).unwrap();
    assert_eq!(
        (&approved["by"], &approved["who"]),
        (&json!("chat"), &json!("ann"))
    );
    let refused = records
        .iter()
        .filter(|record| record.to_string().contains("was not accepted"));
    assert!(refused.count() >= 6, "{records:?}");
}

#[test]
fn nobody_approves_in_a_chat_what_its_message_does_not_show() {
    let Some(mut receivers) = Receivers::start(json!({})) else {
        return;
    };
    let config = format!(
        "[[notify]]\nname = \"bot\"\nchannel = \"webhook\"\nurl = \"{}/webhook\"\nsecret = {{ env = \"WEBHOOK\" }}\narguments = true\npeople = {{ U1 = \"ann\" }}\n\
         [[rule]]\ntools = [\"demo.note\"]\nwhen = \"args.name == 'two'\"\naction = \"ask\"\napprovals = 2\n",
        receivers.http
    );
    let gate = receivers.gate(&config);
    // Each of these characters takes several places in a message.
    let long = "\u{202e}".repeat(200);
    for (arguments, holds) in [
        (
            json!({"name": long, "text": long}),
            "open the request to see all",
        ),
        (json!({"name": "two", "text": "short"}), "short"),
    ] {
        let call = begin_with(&gate, arguments);
        let id = gate.pending();
        let data = receivers.got("webhook", &id)["message"]["data"].clone();
        assert!(
            data["arguments"].as_str().unwrap().contains(holds),
            "{data}"
        );
        assert_eq!(data["decide_url"], Value::Null, "{data}");
        // Its receiver knows the address of other messages, and signs.
        let decide = |decision: &str| {
            let body = json!({"approval": id, "digest": data["digest"], "decision": decision, "user": "U1", "reason": "no"});
            let body = body.to_string();
            let head = signed(WEBHOOK_SECRET, now_millis() / 1000, &body);
            send(gate.port, "POST", "/notify/bot", &head, body.as_bytes()).status
        };
        assert_eq!(decide("approve"), 409, "{data}");
        assert_eq!(gate.inbox(), std::slice::from_ref(&id));
        assert_eq!(decide("deny"), 200, "{data}");
        call.join().unwrap();
    }
}

#[test]
fn buttons_of_slack_decide_with_its_signature_and_its_message_says_so() {
    let Some(mut receivers) = Receivers::start(json!({})) else {
        return;
    };
    let config = "[[notify]]\nchannel = \"slack\"\nsecret_url = { env = \"SLACK\" }\nsecret = { env = \"SLACK_SIGNS\" }\narguments = true\npeople = { U1 = \"ann\" }\n";
    let gate = receivers.gate(config);
    let call = begin(&gate, "shopping");
    let id = gate.pending();
    let message = receivers.got("slack", &id)["message"].clone();
    let elements = message["blocks"][1]["elements"].as_array().unwrap().clone();
    let deny = elements
        .iter()
        .find(|one| one["action_id"] == "toolgate_deny")
        .unwrap();
    let reply = format!("{}/reply", receivers.http);
    let payload = json!({
        "type": "block_actions", "user": {"id": "U1", "username": "someone"}, "response_url": reply,
        "actions": [{"action_id": "toolgate_deny", "value": deny["value"]}],
    });
    let body: String = form_urlencoded::Serializer::new(String::new())
        .append_pair("payload", &payload.to_string())
        .finish();
    let time = now_millis() / 1000;
    let key = hmac::Key::new(hmac::HMAC_SHA256, SLACK_SECRET.as_bytes());
    let tag = hmac::sign(&key, format!("v0:{time}:{body}").as_bytes());
    let head = |tag: &str| {
        vec![
            "Content-Type: application/x-www-form-urlencoded".to_owned(),
            format!("X-Slack-Request-Timestamp: {time}"),
            format!("X-Slack-Signature: v0={tag}"),
        ]
    };
    let post = |tag: &str| {
        send(
            gate.port,
            "POST",
            "/notify/slack",
            &head(tag),
            body.as_bytes(),
        )
        .status
    };
    let tag = hex::encode(tag.as_ref());
    assert_eq!(post(&tag.replace(&tag[..2], "zz")), 401);
    assert_eq!(gate.inbox(), std::slice::from_ref(&id));
    assert_eq!(post(&tag), 200);
    let answer = call.join().unwrap();
    assert!(answer.body.contains("denied in the chat"), "{answer:?}");
    let reply = receivers.got("reply", "denied by ann (chat)");
    assert_eq!(reply["message"]["replace_original"], true);
}

#[test]
fn a_browser_gets_a_push_message_whose_click_opens_the_request_and_decides_nothing() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let Some(mut receivers) = Receivers::start(json!({})) else {
        return;
    };
    let gate = receivers.gate(&receivers.push_entry());
    let endpoint = format!("{}/push/phone", receivers.http);
    let job = json!({"url": gate.console(), "endpoint": endpoint, "keys": receivers.keys});
    let mut page = Script::start(&real, "push.mjs", &job);
    page.event("subscribed");
    page.event("waiting");
    let call = begin(&gate, "shopping");
    let id = gate.pending();
    // The push service decrypts the message with the keys of the browser, and the browser gets exactly that.
    let message = receivers.got("web_push", &id)["message"].clone();
    assert_eq!(message["vapid"]["sub"], "mailto:ops@example.com");
    page.send_line(&json!({"message": message}).to_string());
    let shown = page.event("shown")["notification"].clone();
    assert_eq!(shown["title"], "anonymous@http asks for approval");
    assert_eq!(shown["tag"], id.as_str());
    let opened = page.event("opened");
    assert!(
        opened["address"]
            .as_str()
            .unwrap()
            .ends_with(&format!("#/inbox/{id}")),
        "{opened}"
    );
    assert_eq!(opened["left"], 0);
    page.assert_no_page_error();
    assert_eq!(gate.inbox(), std::slice::from_ref(&id), "still undecided");
    gate.cli(&["deny", &id, "-m", "no"]);
    call.join().unwrap();
}

#[test]
fn a_person_sends_test_messages_and_removes_a_subscribed_browser_on_the_page() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let Some(mut receivers) = Receivers::start(json!({})) else {
        return;
    };
    let http = receivers.http.clone();
    let gate = receivers.gate(&format!(
        "[[notify]]\nname = \"hook\"\nchannel = \"webhook\"\nurl = \"{http}/webhook\"\nsecret = {{ env = \"WEBHOOK\" }}\n\
         [[notify]]\nname = \"closed\"\nchannel = \"ntfy\"\nurl = \"http://127.0.0.1:9/alerts\"\n{}",
        receivers.push_entry()
    ));
    receivers.subscribe(&gate, "phone");
    let see = |at: &str, holds: &str| json!({"do": "see", "at": at, "holds": holds});
    let click = |at: &str| json!({"do": "click", "at": at});
    let steps = json!([
        {"do": "go", "to": "#/notifications"},
        see("[data-notification=hook][data-last=none]", "none since the gateway started"),
        click("[data-notification=hook] [data-act=test-notification]"),
        see("[data-notification=hook][data-last=sent]", "sent"),
        click("[data-notification=phones] [data-act=test-notification]"),
        see("[data-notification=phones][data-last=sent]", "sent"),
        click("[data-notification=closed] [data-act=test-notification]"),
        see("[data-notification=closed][data-last=failed]", "failed"),
        see("#view-notifications [role=alert]", "The test message of closed was not sent"),
        see("[data-subscription]", "ann"),
        {"do": "shot", "path": shot("notifications.png")},
        click("[data-act=remove-subscription]"),
        {"do": "hidden", "at": "[data-subscription]"},
        see("[data-subscriptions]", "No browser is subscribed"),
        click("[data-notification=phones] [data-act=test-notification]"),
        see("[data-notification=phones][data-last=failed]", "no browser is subscribed"),
    ]);
    let mut page = Script::browser(&real, &gate.console(), steps);
    page.event("done");
    // The browser reports the two test messages that were not sent, and nothing else.
    let errors = page.seen("page_error");
    let conflict = |error: &&Value| error["text"].as_str().unwrap().contains("409");
    assert!(
        errors.len() == 2 && errors.iter().all(conflict),
        "{errors:?}"
    );
    let hook = receivers.got("webhook", "notification.test");
    assert_eq!(hook["message"]["data"]["name"], "hook", "{hook}");
    receivers.got(
        "web_push",
        "Messages of the notification phones arrive here",
    );
    // No request is decided or invented by a test, and the audit log has each.
    assert!(gate.inbox().is_empty());
    let records = gate.audit();
    let tests = records
        .iter()
        .filter(|r| r["ev"] == "notify" && r["test"] == true);
    assert_eq!(
        tests
            .map(|r| r["state"].as_str().unwrap())
            .collect::<Vec<_>>(),
        ["sent", "sent", "failed", "failed"]
    );
}
