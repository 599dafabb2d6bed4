//! Changes leave all other bytes as they came.

use super::json;
use toolgate_wire::json::{Json, ObjectWriter};

#[test]
fn members_and_items_share_the_text() {
    let whole = json(r#" { "a" : [ 1 , "x\u0041" , { "b" : 1e400 } ] , "c" : null } "#);
    let keys: Vec<String> = whole.members().map(|(k, _)| k.into_owned()).collect();
    assert_eq!(keys, ["a", "c"]);
    let a = whole.get("a").unwrap();
    let items: Vec<Json> = a.items().collect();
    assert_eq!(
        items.iter().map(Json::as_str).collect::<Vec<_>>(),
        ["1", r#""x\u0041""#, r#"{ "b" : 1e400 }"#]
    );
    assert_eq!(items[1].string().unwrap(), "xA");
    assert!(whole.get("c").unwrap().is_null());
    assert!(whole.get("b").is_none() && a.get("a").is_none());
    assert_eq!(
        json("\"x\"").items().count() + json("1").members().count(),
        0
    );
}

#[test]
fn strings_change_and_nothing_else() {
    let text = r#"{"n": 9007199254740993 ,"k\u0065y":"old","deep":[{"x":"old"},1e400],"t":"a\tb"}"#;
    let whole = json(text);
    assert!(whole.map_strings(&mut |_| None).is_none());
    let new = whole
        .map_strings(&mut |s| (s.text == "old" && !s.key).then(|| "n\"ew".to_owned()))
        .unwrap();
    assert_eq!(new.as_str(), text.replace("\"old\"", "\"n\\\"ew\""));
    let mut keys = Vec::new();
    whole.map_strings(&mut |s| {
        if s.key {
            keys.push(s.text.to_owned());
        }
        None
    });
    assert_eq!(keys, ["n", "key", "deep", "x", "t"]);
}

#[test]
fn members_come_and_go() {
    let whole = json(r#"{"a":1e400,"b":[ 1 ],"c":"x"}"#);
    assert_eq!(whole.without("b").as_str(), r#"{"a":1e400,"c":"x"}"#);
    assert_eq!(whole.without("z").as_str(), whole.as_str());
    assert_eq!(
        whole.with("b", &json("2")).as_str(),
        r#"{"a":1e400,"b":2,"c":"x"}"#
    );
    assert_eq!(
        whole.with("d", &json("2")).as_str(),
        r#"{"a":1e400,"b":[ 1 ],"c":"x","d":2}"#
    );
}

#[test]
fn the_canonical_form() {
    let check = |text: &str, expected: &str| assert_eq!(json(text).canonical(), expected);
    check(
        r#" { "b" : 1 , "a" : [ 1.0 , 1 ] } "#,
        r#"{"a":[1.0,1],"b":1}"#,
    );
    check(
        "\"\\u0041\\/\\n\\u001f\\\"\\\\é\\u00e9\"",
        "\"A/\\u000a\\u001f\\\"\\\\éé\"",
    );
    check(r#"{"é":1,"z":2,"\u0041":3}"#, "{\"A\":3,\"z\":2,\"é\":1}");
    assert_ne!(
        json("9007199254740993").canonical(),
        json("9007199254740992").canonical()
    );
}

#[test]
fn what_is_written_is_read_again() {
    let mut o = ObjectWriter::new();
    o.str("s", "a\"\\\u{0}\n\u{1f}é😀");
    o.raw("r", &json("[1e400]"));
    o.int("i", -7);
    o.bool("b", true);
    o.null("n");
    o.object("o", |o| {
        o.array("a", |a| {
            a.str("x");
            a.object(|o| o.int("y", 1));
        })
    });
    let written = o.finish();
    let again = json(written.as_str());
    assert_eq!(
        again.get("s").unwrap().string().unwrap(),
        "a\"\\\u{0}\n\u{1f}é😀"
    );
    assert_eq!(again.get("o").unwrap().as_str(), r#"{"a":["x",{"y":1}]}"#);
}
