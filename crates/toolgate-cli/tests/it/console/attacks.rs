//! Pages of other origins, opened in a browser that is logged in to the console: they reach nothing.

use super::note;
use crate::help::{Script, Setup, browser, real};
use serde_json::json;
use std::{
    io::{Read, Write},
    net::TcpListener,
};

/// Attacks of the pages, as JavaScript that resolves to what it got: `null` is nothing. `C` is the console, `ID`
/// the request that waits.
const ATTACKS: [(&str, &str); 22] = [
    (
        "approve, same cookies",
        "post(C + '/console/api/approve', {id: ID}, {mode: 'cors', credentials: 'include', headers: {'Content-Type': 'application/json'}})",
    ),
    (
        "approve, guessed key",
        "post(C + '/console/api/approve', {id: ID}, {mode: 'cors', credentials: 'include', headers: {'Content-Type': 'application/json', 'X-Toolgate-Console': '1'}})",
    ),
    (
        "approve without CORS",
        "post(C + '/console/api/approve', {id: ID}, {mode: 'no-cors', credentials: 'include', headers: {'Content-Type': 'text/plain'}})",
    ),
    (
        "approve as a form of text",
        "form('POST', C + '/console/api/approve', 'text/plain', {['{\"id\":\"' + ID + '\",\"x\":\"']: '\"}'})",
    ),
    (
        "approve as a form",
        "form('POST', C + '/console/api/approve', 'application/x-www-form-urlencoded', {id: ID})",
    ),
    (
        "approve as an upload",
        "form('POST', C + '/console/api/approve', 'multipart/form-data', {id: ID})",
    ),
    ("approve by GET", "get(C + '/console/api/approve?id=' + ID)"),
    (
        "approve by an image",
        "image(C + '/console/api/approve?id=' + ID)",
    ),
    (
        "approve by a beacon",
        "Promise.resolve(navigator.sendBeacon(C + '/console/api/approve', new Blob([JSON.stringify({id: ID})], {type: 'text/plain'})) ? null : null)",
    ),
    (
        "approve by PUT",
        "post(C + '/console/api/approve', {id: ID}, {method: 'PUT', mode: 'cors', credentials: 'include'})",
    ),
    ("read the state", "get(C + '/console/api/state')"),
    ("read the events", "events(C + '/console/api/events')"),
    (
        "read the state as a script",
        "script(C + '/console/api/state')",
    ),
    (
        "read the code of the page as a module",
        "import(C + '/console/app.js').then(() => 'ran', () => null)",
    ),
    ("frame the console", "frame(C + '/')"),
    ("frame an answer", "frame(C + '/console/api/state')"),
    ("read a window of the console", "opened(C + '/#/inbox')"),
    (
        "log out",
        "form('POST', C + '/console/logout', 'text/plain', {a: 'b'})",
    ),
    (
        "log in with a guess",
        "post(C + '/console/login', {token: 'guess'}, {mode: 'cors', credentials: 'include', headers: {'Content-Type': 'application/json', 'X-Toolgate-Console': '1'}})",
    ),
    (
        "freeze everything",
        "post(C + '/console/api/freeze', {what: 'all'}, {mode: 'cors', credentials: 'include', headers: {'Content-Type': 'application/json'}})",
    ),
    (
        "create a key",
        "post(C + '/console/api/keys/create', {name: 'evil'}, {mode: 'cors', credentials: 'include', headers: {'Content-Type': 'application/json'}})",
    ),
    (
        "change the rules",
        "post(C + '/console/api/config/save', {text: ''}, {mode: 'cors', credentials: 'include', headers: {'Content-Type': 'application/json'}})",
    ),
];

const TOOLS: &str = "
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
const soon = (work) => Promise.race([work, wait(3000).then(() => null)]);
const body = async (res) => (res.type === 'opaque' ? null : `${res.status}: ${(await res.text()).slice(0, 80)}`);
const post = (url, value, how) => fetch(url, { method: 'POST', body: JSON.stringify(value), ...how }).then(body, () => null);
const get = (url) => fetch(url, { credentials: 'include' }).then(body, () => null);
const element = (tag, more) => { const node = document.createElement(tag); Object.assign(node, more); return node; };
async function form(method, action, enctype, fields) {
  const sink = element('iframe', { name: 'sink' + Math.random() });
  const form = element('form', { method, action, enctype, target: sink.name });
  for (const [name, value] of Object.entries(fields)) form.append(element('input', { name, value }));
  document.body.append(sink, form);
  form.submit();
  await wait(400);
  try { return sink.contentDocument && sink.contentDocument.body.innerText ? sink.contentDocument.body.innerText : null; } catch { return null; }
}
const image = (src) => new Promise((done) => document.body.append(element('img', { src, onload: () => done('loaded'), onerror: () => done(null) })));
const script = (src) => new Promise((done) => document.body.append(element('script', { src, onload: () => done('ran'), onerror: () => done(null) })));
const events = (url) => new Promise((done) => { const s = new EventSource(url, { withCredentials: true }); s.onmessage = s.addEventListener('state', () => done('read')); s.onerror = () => { s.close(); done(null); }; });
async function frame(src) {
  const node = element('iframe', { src });
  document.body.append(node);
  await wait(500);
  try { return node.contentDocument.body.innerText || null; } catch { return null; }
}
async function opened(url) {
  const win = window.open(url);
  await wait(500);
  try { return win && !win.closed && win.document.body.innerText ? win.document.body.innerText : null; } catch { return null; } finally { try { win?.close(); } catch { } }
}
";

/// Serves one page at an origin of its own; the address of the page.
fn serve(page: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.read(&mut [0; 8192]);
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n";
            let _ = write!(stream, "{head}Content-Length: {}\r\n\r\n{page}", page.len());
        }
    });
    address
}

#[test]
fn pages_of_other_origins_reach_nothing_in_a_browser_that_is_logged_in() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let gate = Setup::fast_demo("").start();
    let waits = note(gate.port, "the attack wants this");
    let id = gate.pending();
    let each = ATTACKS.map(|(name, code)| format!("[{}, () => {code}]", json!(name)));
    let page = format!(
        "<!doctype html><title>x</title><body><script>\nconst C = 'http://127.0.0.1:{}', ID = {};\n{TOOLS}\n(async () => {{\n\
         window.tries = {{}};\nawait Promise.all([{}].map(async ([name, run]) => {{ try {{ window.tries[name] = (await soon(run())) ?? null; }} catch {{ window.tries[name] = null; }} }}));\n\
         const done = document.createElement('i'); done.id = 'done'; document.body.append(done);\n}})();\n</script>",
        gate.port,
        json!(id),
        each.join(",\n")
    );
    let same_host = serve(page);
    let other_host = same_host.replace("127.0.0.1", "localhost");
    let steps = json!([
        {"do": "see", "at": "#link[data-link=live]"},
        {"do": "attack", "url": same_host},
        {"do": "attack", "url": other_host},
        {"do": "see", "at": "#link[data-link=live]"},
        {"do": "see", "at": format!("[data-pending={id}]")},
    ]);
    let mut page = Script::browser(&real, &gate.console(), steps);
    for _ in 0..2 {
        let tries = page.event("attack")["tries"].clone();
        let tries = tries.as_object().unwrap();
        assert_eq!(tries.len(), ATTACKS.len());
        for (name, got) in tries {
            assert!(got.is_null(), "{name} got {got}");
        }
    }
    page.event("done");
    assert_eq!(gate.inbox(), std::slice::from_ref(&id), "it still waits");
    let console = |r: &serde_json::Value| r["by"] == "console";
    assert!(
        !gate.audit().iter().any(console),
        "nobody did anything at the console"
    );
    assert_eq!(gate.cli(&["keys", "list", "--json"]).trim(), "[]");
    gate.cli(&["deny", &id, "-m", "no"]);
    waits.join().unwrap();
}
