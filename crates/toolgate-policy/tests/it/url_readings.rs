//! Rules over URIs against Node's `URL`: a `deny` holds for every text that Node takes for a denied URL.

use crate::pipeline_fixture::{item, rule};
use serde_json::{Value, json};
use std::{
    io::Write,
    process::{Command, Stdio},
};
use toolgate_core::{
    Call, Caller, Definition, Item, ItemKind, Json, MaybeReady, Op, Rule, RuleDecision,
};
use toolgate_policy::{AccessRules, ArgumentValidation, GlobPattern, RuleAction};

/// Number of generated URIs.
const GENERATED: usize = 40_000;

/// Denied URIs, as globs.
const DENIED: [&str; 9] = [
    "file:///srv/private/*",
    "file:///C:/private/*",
    "https://host.example/*",
    "https://open.example/secret/*",
    "https://open.example:8443/*",
    "http://127.0.0.1/*",
    "wss://xn--mller-kva.de/*",
    "ftp://[::1]/*",
    "demo://vault/keys/*",
];

/// URIs that are denied, beside some that are not.
const SEEDS: [&str; 14] = [
    "file:///srv/private/k.txt",
    "file:///srv/public/k.txt",
    "file:///C:/private/k.txt",
    "https://host.example/a/b",
    "https://host.example",
    "https://open.example/secret/x",
    "https://open.example/public/x",
    "https://open.example:8443/x",
    "http://127.0.0.1/x",
    "wss://xn--mller-kva.de/x",
    "wss://m\u{fc}ller.de/x",
    "ftp://[::1]/x",
    "demo://vault/keys/k",
    "demo:/vault/./keys",
];

/// Pieces that mutations insert: what URL parsers drop, map, split at or resolve.
const PIECES: [&str; 56] = [
    "\\",
    "/",
    "//",
    "/./",
    "/.",
    "/x/../",
    "/%2e/",
    "/x/%2E%2e/",
    ".",
    "..",
    "?",
    "#",
    "?a",
    "#a",
    "@",
    ":",
    ":443",
    ":0443",
    ":80",
    ":21",
    ":0",
    ":",
    "user@",
    "user:pw@",
    "@@",
    "\t",
    "\n",
    "\r",
    " ",
    "\u{0}",
    "\u{1f}",
    "\u{7f}",
    "\u{ad}",
    "\u{200b}",
    "\u{200c}",
    "\u{200d}",
    "\u{2060}",
    "\u{feff}",
    "\u{3002}",
    "\u{ff0e}",
    "\u{ff61}",
    "\u{ff0f}",
    "\u{2044}",
    "\u{ff3c}",
    "%",
    "%2f",
    "%5c",
    "%00",
    "%09",
    "%2525",
    "|",
    "^",
    "\u{fe0f}",
    "\u{301}",
    "[",
    "<",
];

/// A generator of numbers with a fixed seed (xorshift64*): the same URIs in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(number).unwrap() % most
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

/// Another character that some parser takes for the same one.
fn alike(c: char, numbers: &mut Numbers) -> String {
    let wide = |c: char| char::from_u32(c as u32 + 0xfee0).unwrap_or(c);
    match (c, numbers.below(6)) {
        ('/', 0..3) => "\\".to_owned(),
        ('/', 3) => String::new(),
        (':', 0) => "|".to_owned(),
        ('1', 0) => "0x1".to_owned(),
        ('1', 1) => "01".to_owned(),
        ('s', 0) => "\u{17f}".to_owned(),
        ('k', 0) => "\u{212a}".to_owned(),
        ('\u{fc}', 0) => "u\u{308}".to_owned(),
        ('!'..='~', 1) => wide(c).to_string(),
        (c, 2) => c.to_uppercase().to_string(),
        (c, 3 | 4) if c.is_ascii() => format!("%{:02x}", c as u32),
        (_, 5) => String::new(),
        (c, _) => c.to_string(),
    }
}

fn mutated(numbers: &mut Numbers) -> String {
    let mut uri: Vec<String> = numbers.of(&SEEDS).chars().map(String::from).collect();
    for _ in 0..1 + numbers.below(3) {
        let at = numbers.below(uri.len());
        match numbers.below(4) {
            0 => uri[at].push_str(numbers.of(&PIECES)),
            // Most of what parsers treat specially stands before the path.
            1 => {
                let slashes = numbers.below(3);
                let at = uri
                    .iter()
                    .position(|c| c == "/")
                    .map_or(at, |first| first + slashes);
                let at = at.min(uri.len() - 1);
                uri[at].push_str(numbers.of(&PIECES));
            }
            2 => uri[at] = uri[at].chars().map(|c| alike(c, numbers)).collect(),
            _ => uri.iter_mut().filter(|c| *c == "/").for_each(|c| {
                *c = alike('/', numbers);
            }),
        }
    }
    uri.concat()
}

/// Returns the reading of each URI by Node's `URL`: `null` if it throws. `None` without Node.
#[expect(
    clippy::disallowed_methods,
    reason = "Node is the implementation to compare with"
)]
fn by_node(uris: &[String]) -> Option<Vec<Option<String>>> {
    let program = "const all = JSON.parse(require('fs').readFileSync(0, 'utf8'));\
        const read = uri => { try { return new URL(uri).href } catch { return null } };\
        process.stdout.write(JSON.stringify(all.map(read)));";
    let started = Command::new("node")
        .args(["-e", program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut node) = started else {
        eprintln!("skipped: Node is not installed");
        return None;
    };
    let input = serde_json::to_vec(uris).unwrap();
    // Node reads all of it before it writes.
    node.stdin.take().unwrap().write_all(&input).unwrap();
    let output = node.wait_with_output().unwrap();
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

fn denied() -> Vec<GlobPattern> {
    DENIED.iter().map(|glob| GlobPattern::new(*glob)).collect()
}

/// A template of the server `demo` that any URI might fit.
fn template() -> Item {
    let template = json!({"uriTemplate": "{+any}", "name": "n"});
    let def = Definition::read(ItemKind::Template, Json::from_value(&template));
    let origin = item(json!({"name": "x", "inputSchema": {"type": "object"}}))
        .origin
        .clone();
    Item::new(origin, def.unwrap())
}

/// Returns whether the rules allow reading a URI.
fn passes(access: &AccessRules, item: &Item, uri: &str) -> bool {
    let args = Json::from_value(&json!({ "uri": uri }));
    let call = Call::new("c", Caller::new("a"), Op::Resource, uri, args);
    let arguments = ArgumentValidation::default();
    let rules: [&dyn Rule; 2] = [access, &arguments];
    let passes = |rule: &&dyn Rule| {
        matches!(
            rule.decide(&call, item),
            MaybeReady::Ready(RuleDecision::Allow)
        )
    };
    rules.iter().all(passes) && access.hidden_uri_reason(&call.caller, item, uri).is_none()
}

#[test]
fn no_text_that_node_takes_for_a_denied_url_passes() {
    let mut numbers = Numbers(0x7001_6a7e_2026_1122);
    let mut uris: Vec<String> = (0..GENERATED).map(|_| mutated(&mut numbers)).collect();
    uris.sort();
    uris.dedup();
    assert!(uris.len() >= 10_000, "{} different URIs", uris.len());
    let Some(read) = by_node(&uris) else { return };
    let globs = denied();
    let mut rules: Vec<_> = DENIED
        .iter()
        .map(|glob| rule(&format!("demo.resource:{glob}"), RuleAction::Deny))
        .collect();
    rules.push(rule("demo.*", RuleAction::Allow));
    let (access, item) = (AccessRules::new(rules), template());
    let hits = |uri: &str| globs.iter().any(|glob| glob.matches(uri));
    let (mut by_reading, mut by_text, mut passed, mut through) = (0, 0, 0, Vec::new());
    for (uri, read) in uris.iter().zip(&read) {
        let passing = passes(&access, &item, uri);
        passed += usize::from(passing);
        by_text += usize::from(hits(uri));
        if let Some(read) = read.as_deref().filter(|read| hits(read)) {
            by_reading += 1;
            if passing {
                through.push((uri, read));
            }
        }
    }
    println!(
        "{} URIs: {by_reading} denied as Node reads them, {by_text} by their text, {passed} passed",
        uris.len()
    );
    assert!(
        through.is_empty(),
        "{} passed: {:#?}",
        through.len(),
        &through[..through.len().min(20)]
    );
    // Without many hits beyond the text, and without many that pass, this would show nothing.
    assert!(by_reading > by_text + 1000 && passed > 1000);
}

/// Each spelling of the review that reached a server, and more: denied under the URL that Node makes of it.
#[test]
fn known_spellings_of_a_denied_url_do_not_pass() {
    let rules = vec![
        rule("demo.resource:https://host.example/*", RuleAction::Deny),
        rule("demo.resource:file:///srv/private/*", RuleAction::Deny),
        rule("demo.*", RuleAction::Allow),
    ];
    let (access, item) = (AccessRules::new(rules), template());
    for uri in [
        "file:///srv\\private\\k.txt",
        "file:///srv/private\\k.txt",
        "file:///srv\\private/k.txt",
        "file:/srv/private/k.txt",
        "file:srv/private/k.txt",
        "file:\\\\\\srv\\private\\k.txt",
        "https:host.example/x",
        "https:/host.example/x",
        "https:///host.example/x",
        "https:\\\\host.example\\x",
        "https://host.example:443/x",
        "https://host.example:0443/x",
        "https://host.example:/x",
        "https://host.example./x",
        "https://user:pw@host.example/x",
        "https://user@host.example./x",
        "https://\u{ff48}ost.example/x",
        "https://host\u{3002}example/x",
        "https://host\u{ff0e}example/x",
        "https://ho\u{ad}st.example/x",
        "https://host.example?a",
        "https://host.example#a",
        "https://host.example",
        "https://h%6fst.example/x",
        "https://HOST.example/x",
        "https://host.example/a/../x",
        "https://host.example/%2e%2e/x",
    ] {
        assert!(!passes(&access, &item, uri), "{uri:?}");
    }
    for uri in [
        "https://other.example/x",
        "https://other.example:443",
        "https://ann@other.example./x",
        "file:/srv/public/k.txt",
        "demo://any/%5C/\u{e9}",
        "data://config",
    ] {
        assert!(passes(&access, &item, uri), "{uri:?}");
    }
}

/// A condition over `args.uri` is judged on every reading: an `allow` has to hold for all, a `deny` for one.
#[test]
fn a_condition_is_judged_on_what_url_parsers_read() {
    let when = |text: &str, then| {
        let mut rule = rule("*", then);
        rule.when = Some(toolgate_policy::CelCondition::compile(text).unwrap());
        rule
    };
    let item = template();
    let decided = |rule, uri: &str| {
        let args: Value = json!({ "uri": uri });
        let args = Json::from_value(&args);
        let call = Call::new("c", Caller::new("a"), Op::Resource, uri, args);
        let access = AccessRules::new(vec![rule]).default_action(RuleAction::Ask);
        match access.decide(&call, &item) {
            MaybeReady::Ready(RuleDecision::Allow) => RuleAction::Allow,
            MaybeReady::Ready(RuleDecision::Ask(_)) => RuleAction::Ask,
            _ => RuleAction::Deny,
        }
    };
    let uri = "https://open.example\\@host.example/x";
    let denies = when(
        "args.uri.startsWith('https://open.example/@')",
        RuleAction::Deny,
    );
    assert_eq!(decided(denies, uri), RuleAction::Deny);
    let allows = when(
        "args.uri.endsWith('\\\\@host.example/x')",
        RuleAction::Allow,
    );
    assert_eq!(decided(allows, uri), RuleAction::Ask);
}
