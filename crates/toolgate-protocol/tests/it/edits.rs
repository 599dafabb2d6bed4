//! Changes leave all other bytes as they came.

use super::json;
use toolgate_protocol::json::{ArrayWriter, Json, ObjectWriter, write_string};

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
fn all_other_bytes_stay() {
    let whole = json("{ \"\\u0061\" : 1.0 ,\n\"b\":[ 1 ] , \"c\" : \"x\\/y\" }");
    for (key, expected) in [
        ("a", "{ \"b\":[ 1 ] , \"c\" : \"x\\/y\" }"),
        ("b", "{ \"\\u0061\" : 1.0 ,\n\"c\" : \"x\\/y\" }"),
        ("c", "{ \"\\u0061\" : 1.0 ,\n\"b\":[ 1 ] }"),
    ] {
        assert_eq!(whole.without(key).as_str(), expected);
    }
    let text = whole.as_str();
    for (key, expected) in [
        ("a", text.replace("1.0", "{}")),
        ("b", text.replace("[ 1 ]", "{}")),
        ("c", text.replace("\"x\\/y\"", "{}")),
        ("d\"", text.replace("y\"", "y\",\"d\\\"\":{}")),
    ] {
        assert_eq!(whole.with(key, &json("{}")).as_str(), expected);
    }
    let one = json("{ \"a\" : 1 }");
    assert_eq!(one.without("a").as_str(), "{  }");
    assert_eq!(
        json("{ }").with("a", &one).as_str(),
        "{\"a\":{ \"a\" : 1 } }"
    );
    // What is no object has no members to lose, and becomes one where it gets one.
    assert_eq!(json("[1]").without("a").as_str(), "[1]");
    assert_eq!(json("[1]").with("a", &json("2")).as_str(), "{\"a\":2}");
    // A part of a larger text is changed alone.
    let part = json("[ {\"x\":1,\"y\":2} , 3]").items().next().unwrap();
    assert_eq!(part.without("x").as_str(), "{\"y\":2}");
    assert_eq!(part.with("x", &json("9")).as_str(), "{\"x\":9,\"y\":2}");
}

#[test]
fn keys_are_changed_where_asked() {
    let whole = json(r#"{"a" : {"b":"b"}, "b":["b"]}"#);
    let new = whole.map_strings(&mut |s| (s.key && s.text == "b").then(|| "\n".to_owned()));
    assert_eq!(new.unwrap().as_str(), r#"{"a" : {"\n":"b"}, "\n":["b"]}"#);
    // The same words again are no change, and escapes stay as they came.
    let whole = json(r#"["\u0061","b"]"#);
    assert!(whole.map_strings(&mut |s| Some(s.text.into())).is_none());
    let new = whole.map_strings(&mut |s| Some(s.text.replace('b', "c")));
    assert_eq!(new.unwrap().as_str(), r#"["\u0061","c"]"#);
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

#[test]
fn writers_write_these_bytes() {
    let mut a = ArrayWriter::new();
    assert_eq!(ArrayWriter::new().finish().as_str(), "[]");
    assert_eq!(ObjectWriter::default().finish().as_str(), "{}");
    a.raw(&json("[ 1 ]"));
    a.int(i64::MIN);
    a.bool(false);
    a.null();
    a.object(|_| ());
    a.array(|a| a.array(|a| a.str("x")));
    a.str("");
    let expected = r#"[[ 1 ],-9223372036854775808,false,null,{},[["x"]],""]"#;
    let a = a.finish();
    assert_eq!(a.as_str(), expected);
    let mut o = ObjectWriter::new();
    o.raw_text("t", "{\"x\": 1}");
    o.raw("a", &a);
    o.object("o", |_| ());
    o.object("p", |p| p.object("q", |q| q.null("r")));
    assert_eq!(
        o.finish().as_str(),
        format!(r#"{{"t":{{"x": 1}},"a":{expected},"o":{{}},"p":{{"q":{{"r":null}}}}}}"#)
    );
}

#[test]
fn escapes_are_as_few_as_can_be() {
    for sign in (0..=0xffff_u32).filter_map(char::from_u32) {
        let mut out = String::new();
        write_string(&mut out, &format!("ab{sign}cdefgh"));
        let expected = match sign {
            '"' | '\\' => format!("\"ab\\{sign}cdefgh\""),
            '\0'..='\x1f' => format!("\"ab\\u{:04x}cdefgh\"", u32::from(sign)),
            _ => format!("\"ab{sign}cdefgh\""),
        };
        assert_eq!(out, expected);
    }
}
