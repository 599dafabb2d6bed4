//! Texts that two readers could take for two things, and what an error may tell.

use super::{json, read};
use serde_json::Value;
use std::fmt::Write;
use toolgate_protocol::json::{
    ArrayWriter, Json, JsonKind, JsonLimits, ObjectWriter, ReadErrorKind as K,
};

/// `serde_json` takes what stands under keys of its own for more JSON. Then a rule would judge another value than the
/// one that is sent on.
#[test]
fn no_key_is_magic() {
    for key in [
        "$serde_json::private::RawValue",
        "$serde_json::private::Number",
    ] {
        for spelling in [key.to_owned(), key.replace('$', "\\u0024")] {
            let text = format!(r#"{{"{spelling}":"{{\"path\":\"/tmp\"}}"}}"#);
            let value = json(&text).to_value();
            assert_eq!(value.as_object().unwrap().len(), 1, "{text}");
            assert_eq!(value[key], Value::from(r#"{"path":"/tmp"}"#), "{text}");
            let inside = json(&format!("[{text}]")).to_value();
            assert_eq!(inside[0], value, "{text}");
        }
    }
}

/// A tree holds the `f64` that everyone else reads, to the last bit.
#[test]
fn a_tree_rounds_like_everyone() {
    for text in [
        "5.4536253234534675e-150",
        "2.2250738585072011e-308",
        "123456789012345678901234567890",
        "0.1000000000000000055511151231257827",
        "-0",
    ] {
        let expected: f64 = text.parse().unwrap();
        let found = json(text).to_value().as_f64().unwrap();
        assert_eq!(found.to_bits(), expected.to_bits(), "{text}");
        assert_eq!(json(text).f64(), Some(expected), "{text}");
    }
    assert_eq!(json("1e400").to_value(), Value::from("1e400"));
    assert_eq!(json("1e400").f64(), None);
    assert_eq!(json("18446744073709551615").to_value(), u64::MAX);
    // What a tree would change is told beforehand.
    assert!(json("[1,{\"a\":9007199254740993.0}]").is_lossy());
    assert!(!json("[1,{\"1e400\":\"1e400\"},true,null]").is_lossy());
}

#[test]
fn an_error_says_where() {
    for (text, kind, offset) in [
        ("  ", K::Empty, 2),
        ("[1,}", K::Syntax, 3),
        ("[1] x", K::TrailingBytes, 4),
        (r#"{"a":1,"b":2,"a":3}"#, K::DuplicateKey, 16),
        (r#"{"a":{"b\u0000":1}}"#, K::DuplicateKey, 15),
        ("\u{feff}1", K::ByteOrderMark, 0),
        ("\"ab\ncd\"", K::Syntax, 3),
    ] {
        let error = read(text).expect_err(text);
        assert_eq!((error.kind(), error.offset()), (kind, offset), "{text:?}");
        assert!(error.to_string().ends_with(&format!("(at byte {offset})")));
    }
    let error = Json::read(b"[\"a\xff\"]".to_vec(), &JsonLimits::default()).expect_err("no UTF-8");
    assert_eq!((error.kind(), error.offset()), (K::Utf8, 3));
    let long = format!("[1,{}]", "1".repeat(401));
    assert_eq!(read(&long).expect_err("too long").offset(), 3);
    let deep = "[".repeat(65);
    assert_eq!(read(&deep).expect_err("too deep").offset(), 64);
}

#[test]
fn what_is_no_json_is_told_from_what_is_not_taken() {
    for text in ["", "[", "1 2", "\u{feff}1", "\"\\ud800\""] {
        assert!(read(text).expect_err(text).is_syntax(), "{text:?}");
    }
    let long = "1".repeat(401);
    for text in [r#"{"a":1,"a":1}"#, &"[".repeat(65), &long] {
        assert!(!read(text).expect_err(text).is_syntax(), "{text:?}");
    }
}

/// Nothing that prints itself shows what it holds.
#[test]
fn a_secret_is_not_printed() {
    let mut shown = format!("{:?}", json(r#"{"token":"hunter2"}"#));
    let mut o = ObjectWriter::new();
    o.str("token", "hunter2");
    write!(shown, "{o:?}").unwrap();
    let mut a = ArrayWriter::new();
    a.str("hunter2");
    write!(shown, "{a:?}").unwrap();
    o.finish().map_strings(&mut |s| {
        write!(shown, "{s:?}").unwrap();
        None
    });
    for text in [r#"["hunter2"#, r#"{"hunter2":1,"hunter2":2}"#, "hunter2"] {
        let error = read(text).expect_err(text);
        write!(shown, "{error} {error:?}").unwrap();
    }
    assert!(
        !shown.contains("hunter") && !shown.contains("token"),
        "{shown}"
    );
    assert!(shown.starts_with("Json(Object, 19 bytes)"), "{shown}");
}

#[test]
fn kinds_and_scalars() {
    let kinds = ["{}", "[]", "\"\"", "0", "-1", "true", "false", "null"].map(|t| json(t).kind());
    use JsonKind::*;
    assert_eq!(
        kinds,
        [Object, Array, String, Number, Number, Bool, Bool, Null]
    );
    assert_eq!(json("true").bool(), Some(true));
    assert_eq!(json("\"true\"").bool(), None);
    assert_eq!(json("18446744073709551615").u64(), Some(u64::MAX));
    assert_eq!(json("-1").u64(), None);
    assert_eq!(json("1.8446744073709551615e19").u64(), Some(u64::MAX));
    assert_eq!(json("\"1\"").f64(), None);
    assert_eq!(json("1").string(), None);
    let text = r#""\ud83d\ude00\u00e9\"\\\/\b\f\n\r\t\u0000x""#;
    assert_eq!(
        json(text).string().as_deref(),
        Some("😀é\"\\/\u{8}\u{c}\n\r\t\0x")
    );
    // A member that does not say its key plainly is found all the same, and no other.
    let whole = json(r#"{"\u0061":1,"b\\":2,"c":3}"#);
    assert_eq!(whole.get("a").and_then(|v| v.i64()), Some(1));
    assert_eq!(whole.get("b\\").and_then(|v| v.i64()), Some(2));
    assert!(whole.get("\\u0061").is_none() && whole.get("b\\\\").is_none());
}
