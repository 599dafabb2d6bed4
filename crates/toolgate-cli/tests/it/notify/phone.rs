//! An approver with a phone: from the notification to the decision, over TLS at an address of the network.

use super::Receivers;
use crate::help::{
    Modern, Script, Setup, TempDir, TestAuthority, browser, free_port, message_of, real, request,
    shot,
};
use serde_json::{Value, json};
use std::{
    net::{IpAddr, Ipv4Addr, UdpSocket},
    sync::Arc,
    thread,
};

const TOKEN: &str = "correct-horse-battery-staple";
/// Width of the phone's screen in CSS pixels.
const WIDTH: u64 = 390;

/// Returns the address of this machine in its network, or another one than 127.0.0.1 if it has no network.
fn network_address() -> IpAddr {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    // This chooses a route and sends nothing.
    let routed = socket.connect((Ipv4Addr::new(198, 51, 100, 1), 9));
    let address = routed.and_then(|()| socket.local_addr());
    let address = address.map(|address| address.ip()).ok();
    address
        .filter(|ip| !ip.is_loopback() && !ip.is_unspecified())
        .unwrap_or(Ipv4Addr::new(127, 0, 0, 2).into())
}

/// Checks that a page fits on the screen and that axe-core finds nothing.
fn check_page(page: &Value) {
    assert_eq!(page["violations"], json!([]), "{page}");
    assert!(page["wide"].as_u64().unwrap() <= WIDTH, "{page}");
}

#[test]
fn a_phone_gets_from_the_notification_to_the_decision_over_tls_on_the_network() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let Some(mut receivers) = Receivers::start(json!({})) else {
        return;
    };
    let (authority, data) = (TestAuthority::new(), Arc::new(TempDir::new("phone")));
    let (port, host) = (free_port(), network_address().to_string());
    let (certificate, _) = authority
        .issue(&[&host, "127.0.0.1", "localhost"])
        .write(data.path());
    let base = format!("https://{host}:{port}");
    let gate = Setup::fast_demo(&format!(
        "[tls]\ncert = \"cert.pem\"\nkey = \"key.pem\"\n\
         [[notify]]\nchannel = \"web_push\"\ncontact = \"mailto:ops@example.com\"\npush_origins = [\"{}\"]\n",
        receivers.http
    ))
    .top(&format!("console_url = {base:?}"))
    .top("token = { env = \"TOOLGATE_TEST_TOKEN\" }")
    .env("TOOLGATE_TEST_TOKEN", TOKEN)
    .on("0.0.0.0")
    .at(port)
    .start_in(data.clone());

    // The camera of the phone reads the code; the same link is below it.
    let printed = gate.cli(&["console", "--as", "ann", "--qr"]);
    let link = printed.lines().last().unwrap().to_owned();
    assert!(link.starts_with(&format!("{base}/#token=")), "{printed}");
    let job = json!({
        "link": link, "certificate": certificate, "endpoint": format!("{}/push/phone", receivers.http),
        "keys": receivers.keys, "data": data.file("profile"), "shots": shot("phone"),
    });
    let mut phone = Script::start(&real, "phone.mjs", &job);
    let subscribed = phone.event("subscribed");
    assert_eq!(subscribed["secure"], true);
    check_page(&subscribed);

    let client = authority.client();
    let call = thread::spawn(move || {
        let arguments = json!({"name": "shopping", "text": "bread"});
        let body = Modern::body(
            &json!(1),
            "tools/call",
            json!({"name": "demo_note", "arguments": arguments}),
        );
        let mut headers = Modern::headers("tools/call", Some("demo_note"));
        headers.push(format!("Authorization: Bearer {TOKEN}"));
        let bytes = request(port, "POST", "/mcp", &headers, body.to_string().as_bytes());
        client.send(port, &bytes).unwrap()
    });
    let id = gate.pending();
    let message = receivers.got("web_push", &id)["message"].clone();
    let link = format!("{base}/#/inbox/{id}");
    assert_eq!(message["url"], link.as_str());
    phone.send_line(&json!({"message": message}).to_string());
    let shown = phone.event("shown")["notification"].clone();
    assert_eq!(shown["url"], link.as_str());
    assert!(!shown.to_string().contains("bread"), "{shown}");
    let opened = phone.event("opened");
    assert_eq!(opened["address"], link.as_str());
    check_page(&opened);
    let linked = phone.event("linked");
    assert!(linked["text"].to_string().contains("bread"), "{linked}");
    check_page(&linked);
    check_page(&phone.event("decided"));
    let answer = call.join().unwrap();
    let answer = message_of(&answer, &json!(1)).unwrap();
    assert!(answer.to_string().contains("is written"), "{answer}");
    phone.assert_no_page_error();
    let records = gate.audit();
    let approved = |record: &&Value| record["ev"] == "approval" && record["state"] == "approved";
    let approved = records.iter().find(approved).unwrap();
    assert_eq!(
        (&approved["by"], &approved["who"]),
        (&json!("console"), &json!("ann"))
    );
}
