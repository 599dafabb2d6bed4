//! The check is no yes-man.

use super::{Side, Talk};

/// Checks a result for a request of a revision, and whether the schema accepts it.
fn check(revision: &str, method: &str, result: &str, good: bool) {
    let mut talk = Talk::of(Side::Server);
    let meta = format!(r#"{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"{revision}"}}}}"#);
    talk.heard(&format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{meta}}}"#
    ));
    let checked = talk.check(&format!(r#"{{"jsonrpc":"2.0","id":1,{result}}}"#));
    assert_eq!(
        checked.is_ok(),
        good,
        "{revision} {method} {result}: {checked:?}"
    );
}

#[test]
fn a_reply_is_read_by_its_method_and_revision() {
    let ok = r#""result":{"resultType":"complete","content":[]}"#;
    check("2026-07-28", "tools/call", ok, true);
    check("2026-07-28", "tools/list", ok, false);
    check("2026-07-28", "resources/read", ok, false);
    let old = r#""result":{"content":[]}"#;
    check("2026-07-28", "tools/call", old, false);
    check("2025-11-25", "tools/call", old, true);
    let sound = r#""result":{"content":[{"type":"audio","data":"AA==","mimeType":"a/b"}]}"#;
    check("2024-11-05", "tools/call", sound, false);
    check("2025-03-26", "tools/call", sound, true);
    let list = r#""result":{"structuredContent":[1],"content":[]}"#;
    check("2025-06-18", "tools/call", list, false);
    check("2026-07-28", "ping", r#""result":{}"#, false);
}

#[test]
fn an_error_is_read_by_its_code() {
    let bare = r#""error":{"code":-32022,"message":"no"}"#;
    check("2026-07-28", "tools/call", bare, false);
    check("2025-11-25", "tools/call", bare, true);
    let whole = r#""error":{"code":-32022,"message":"no","data":{"requested":"x","supported":[]}}"#;
    check("2026-07-28", "tools/call", whole, true);
    let words = r#""error":{"code":"-1","message":"no"}"#;
    check("2024-11-05", "ping", words, false);
    for (code, good) in [
        (-32000, false),
        (-32002, false),
        (-32019, false),
        (-32042, false),
        (-32099, false),
        (-32768, false),
        (-32602, true),
        (403, true),
        (-32769, true),
    ] {
        let error = format!(r#""error":{{"code":{code},"message":"no"}}"#);
        check("2026-07-28", "tools/call", &error, good);
        if code != -32042 {
            check("2025-11-25", "tools/call", &error, true);
        }
    }
    for (code, good) in [(-32000, true), (-32002, false), (-32042, false)] {
        let error = format!(r#""error":{{"code":{code},"message":"the server answered: no"}}"#);
        check("2026-07-28", "tools/call", &error, good);
    }
}

/// A server of 2026-07-28 cancels a stream of notifications, and no other request.
#[test]
fn a_server_cancels_no_request_but_a_subscription() {
    for (method, good) in [
        ("subscriptions/listen", true),
        ("tools/call", false),
        ("tools/list", false),
    ] {
        let mut talk = Talk::of(Side::Server);
        let meta = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#;
        talk.heard(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{meta}}}"#
        ));
        let cancel = |id: u32| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
            )
        };
        assert_eq!(talk.check(&cancel(1)).is_ok(), good, "{method}");
        assert!(talk.check(&cancel(2)).is_err(), "nobody asked");
    }
}

/// The code of every error is named in one place; no source writes one of -32019 to -32001 beside it.
///
/// Holds: BASE-18
#[test]
fn no_source_makes_up_a_code() {
    let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut folders: Vec<_> = std::fs::read_dir(crates).unwrap().collect();
    let (mut files, mut found) = (0, Vec::new());
    while let Some(entry) = folders.pop() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("tests") {
            folders.extend(std::fs::read_dir(path).unwrap());
            continue;
        }
        let is_test = path.ends_with("tests.rs");
        if path.extension().is_none_or(|kind| kind != "rs") || is_test {
            continue;
        }
        files += 1;
        let text = std::fs::read_to_string(&path).unwrap();
        let source = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let lines = source.lines().map(|line| line.split("//").next().unwrap());
        for line in lines {
            let plain = line.replace('_', "");
            let codes = (32001..=32019).map(|code| format!("-{code}"));
            if codes.into_iter().any(|code| plain.contains(&code)) {
                found.push(line.trim().to_owned());
            }
        }
    }
    assert!(files > 200, "all sources are read: {files}");
    assert_eq!(found, ["pub const RESOURCE_NOT_FOUND: i64 = -32002;"]);
}

/// In a session an id is never free again, without one it is after its reply.
#[test]
fn no_id_of_ours_comes_twice() {
    let reply = |id: u32| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
    let mut talk = Talk::of(Side::Client);
    talk.speaks("2025-11-25");
    let ping = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;
    assert_eq!(talk.check(ping), Ok(()));
    talk.heard(&reply(7));
    let twice = talk.check(ping).unwrap_err();
    assert!(twice.contains("the id 7"), "{twice}");
    let mut talk = Talk::of(Side::Client);
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let list =
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{{"_meta":{meta}}}}}"#);
    assert_eq!(talk.check(&list), Ok(()));
    assert!(talk.check(&list).is_err());
    talk.heard(&reply(7));
    assert_eq!(talk.check(&list), Ok(()));
}

#[test]
fn we_send_what_is_ours_to_send() {
    let told = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    assert!(Talk::of(Side::Server).check(told).is_ok());
    assert!(Talk::of(Side::Client).check(told).is_err());
    let reply = r#"{"jsonrpc":"2.0","id":7,"result":{}}"#;
    let nobody = Talk::of(Side::Server).check(reply).unwrap_err();
    assert!(nobody.contains("nobody asked"), "{nobody}");
    let array = format!("[{told}]");
    assert!(Talk::of(Side::Server).check(&array).is_err());
}
