//! T12: texts that two readers could take for two messages. Each is refused, or means the one thing that every reader
//! sees in it.

use super::read;
use toolgate_protocol::{
    json::{Json, JsonLimits, ReadErrorKind as K},
    message::JsonRpcMessage,
};

fn call(inside: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{{inside}}}}}"#)
}

/// Texts that no part of the program gets to see.
fn refused() -> Vec<(String, K)> {
    let mut all = Vec::new();
    for depth in 1..=20 {
        let (open, close) = ("{\"x\":".repeat(depth), "}".repeat(depth));
        for twice in [
            r#"{"name":"a","name":"b"}"#,
            r#"{"name":"a","n\u0061me":"b"}"#,
            r#"{"n\u0061me":"a","name":"b"}"#,
            r#"{"name":"a","x":1,"y":2,"na\u006De":"b"}"#,
            r#"{"name":"a","name\u0000":"b"}"#,
        ] {
            let text = call(&format!(r#""name":"a","arguments":{open}{twice}{close}"#));
            all.push((text, K::DuplicateKey));
        }
    }
    for key in ["jsonrpc", "id", "method", "params"] {
        let text = r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}"#;
        all.push((
            text.replacen('{', &format!("{{\"{key}\":null,"), 1),
            K::DuplicateKey,
        ));
        let nul = text.replace(&format!("\"{key}\""), &format!("\"{key}\\u0000\""));
        all.push((nul, K::DuplicateKey));
    }
    all.push((
        format!("\u{feff}{}", call(r#""name":"a""#)),
        K::ByteOrderMark,
    ));
    for lone in [r"\ud800", r"\udc00", r"\ud800\ud800", r"\uDFFF", r"\ud83dx"] {
        all.push((call(&format!(r#""name":"a{lone}""#)), K::LoneSurrogate));
        all.push((call(&format!(r#""a{lone}":1"#)), K::LoneSurrogate));
    }
    for depth in [65, 66, 1_000, 1_000_000] {
        let depth = depth - 3;
        let deep = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        all.push((call(&format!(r#""arguments":{{"a":{deep}}}"#)), K::TooDeep));
    }
    for two in ["{}{}", "{} {}", "{}\n{}", "{}\u{0}", "{},"] {
        all.push((two.replace("{}", &call(r#""name":"a""#)), K::TrailingBytes));
    }
    for loose in [
        r#""name":"a",}"#,
        r#"'name':"a""#,
        r#"name:"a""#,
        r#""name":"a"/**/"#,
        r#""name":+1"#,
        r#""name":.5"#,
        r#""name":NaN"#,
        "\"name\":\"a\tb\"",
    ] {
        all.push((call(loose), K::Syntax));
    }
    all
}

#[test]
fn t12_what_two_readers_could_take_for_two_things_is_refused() {
    let all = refused();
    for (text, kind) in &all {
        let shown = &text[..text.len().min(200)];
        let error = read(text).expect_err(shown);
        assert_eq!(error.kind(), *kind, "{shown}: {error}");
    }
    for bad in [
        &b"\xff"[..],
        b"\xc0\xaf",
        b"\xed\xa0\x80",
        b"\xf5\x80\x80\x80",
    ] {
        let mut bytes = br#"{"jsonrpc":"2.0","id":1,"method":"a"#.to_vec();
        bytes.extend(bad);
        bytes.extend(br#""}"#);
        let error = Json::read(bytes, &JsonLimits::default()).expect_err("no UTF-8");
        assert_eq!(error.kind(), K::Utf8);
    }
    println!("T12: {} texts refused by the reader", all.len() + 4);
}

/// A key in another case, or with signs that some readers fold, is another key: the message lacks the real one.
#[test]
fn t12_a_key_that_looks_alike_is_another_key() {
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let alike = [
        ("\"jsonrpc\"", "\"JSONRPC\""),
        ("\"jsonrpc\"", "\"jsonRpc\""),
        ("\"jsonrpc\"", "\"j\u{17f}onrpc\""),
        ("\"jsonrpc\"", "\" jsonrpc\""),
        ("\"method\"", "\"Method\""),
        ("\"method\"", "\"METHOD\""),
        ("\"method\"", "\"method \""),
        ("\"method\"", "\"me\u{2c0}hod\""),
    ];
    for (key, other) in alike {
        let json = read(&text.replace(key, other)).expect("JSON");
        let malformed = JsonRpcMessage::read(&json).expect_err(other);
        assert!(malformed.reason.len() < 100, "{other}");
    }
    // One in another case beside the real one changes nothing: there is no folding.
    for beside in ["Method", "METHOD", "metho\u{212a}", "me\u{fe00}thod"] {
        let text = text.replacen('{', &format!("{{\"{beside}\":\"tools/call\","), 1);
        match JsonRpcMessage::read(&read(&text).expect("JSON")) {
            Ok(JsonRpcMessage::Request { method, .. }) => assert_eq!(method, "ping", "{beside}"),
            other => panic!("{beside}: {other:?}"),
        }
    }
    // An id in another case is none, so it is a notification that calls nothing.
    let json = read(&text.replace("\"id\"", "\"Id\"")).expect("JSON");
    assert!(matches!(
        JsonRpcMessage::read(&json),
        Ok(JsonRpcMessage::Notification { .. })
    ));
    println!(
        "T12: {} keys that look alike are other keys",
        alike.len() + 5
    );
}

/// The deepest that is taken, and one more.
#[test]
fn t12_the_limit_of_depth_is_where_it_is_said_to_be() {
    for (depth, good) in [(63, true), (64, true), (65, false)] {
        let text = format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        assert_eq!(read(&text).is_ok(), good, "{depth}");
    }
}
