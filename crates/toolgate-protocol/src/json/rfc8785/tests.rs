use super::{
    read::{MAX_RECORD_DEPTH, TOO_DEEP},
    *,
};
use proptest::prelude::*;
use serde_json::json;

fn to_string(value: &Value) -> Result<String, NonCanonicalValue> {
    let mut out = String::new();
    write(&mut out, value).map(|()| out)
}

fn check(value: Value, expected: &str) {
    assert_eq!(to_string(&value).unwrap(), expected);
}

fn reads(text: &str) -> bool {
    read_object(text.as_bytes()).is_ok()
}

#[test]
fn writes_the_canonical_form() {
    check(
        json!({"b": 1, "a": [true, false, -3], "": {}}),
        r#"{"":{},"a":[true,false,-3],"b":1}"#,
    );
    check(
        json!("\u{8}\t\n\u{c}\r\"\\\u{1f}\u{7f}\u{2028}é/"),
        "\"\\b\\t\\n\\f\\r\\\"\\\\\\u001f\u{7f}\u{2028}é/\"",
    );
    check(json!(9007199254740991_u64), "9007199254740991");
}

#[test]
fn writes_numbers_like_values() {
    for number in [
        0,
        7,
        10,
        99,
        100,
        1_234_567_890,
        MAX_INTEGER - 1,
        MAX_INTEGER,
    ] {
        let mut out = String::new();
        write_number(&mut out, number);
        assert_eq!(Ok(out), to_string(&json!(number)));
    }
    let mut out = String::new();
    write_number(&mut out, u64::MAX);
    assert_eq!(out, MAX_INTEGER.to_string());
}

// The example of RFC 8785, section 3.2.3: U+1F600 sorts before U+FB33.
#[test]
fn keys_sort_by_utf16() {
    check(
        json!({"\u{fb33}": 1, "\u{1f600}": 2, "ö": 3, "€": 4, "1": 5}),
        "{\"1\":5,\"ö\":3,\"€\":4,\"\u{1f600}\":2,\"\u{fb33}\":1}",
    );
}

#[test]
fn refuses_values_that_readers_disagree_on() {
    for value in [
        json!(1.5),
        json!(1.0),
        json!(null),
        json!(9007199254740993_u64),
        json!(i64::MIN),
    ] {
        assert!(to_string(&json!([value])).is_err(), "{value}");
    }
    let nested = |n: usize| (0..n).fold(json!(1), |inner, _| json!([inner]));
    assert!(to_string(&nested(MAX_VALUE_DEPTH)).is_ok());
    let error = to_string(&nested(MAX_VALUE_DEPTH + 1));
    assert_eq!(error, Err(NonCanonicalValue::TooDeep));
}

#[test]
fn reads_canonical_objects() {
    for text in [
        "{}",
        r#"{"a":[],"b":{"":-1},"c":"\u001f\n\"é"}"#,
        r#"{"\u0000":"\u0000","a":0,"b":9007199254740991,"c":[true,false]}"#,
    ] {
        assert!(reads(text), "{text}");
    }
}

#[test]
fn rejects_every_other_spelling() {
    let spellings = [
        "",
        "[]",
        "{",
        "{} ",
        " {}",
        "{ }",
        r#"{"a": 1}"#,
        r#"{"a" :1}"#,
        r#"{"a":1 }"#,
        r#"{"a":[1, 2]}"#,
        r#"{"a":1,}"#,
        r#"{,"a":1}"#,
        r#"{"b":1,"a":1}"#,
        r#"{"x":{"b":1,"a":1}}"#,
        "{\"\u{fb33}\":1,\"\u{1f600}\":2}",
        r#"{"a":1,"a":1}"#,
        r#"{"a":01}"#,
        r#"{"a":-0}"#,
        r#"{"a":-}"#,
        r#"{"a":+1}"#,
        r#"{"a":1.0}"#,
        r#"{"a":1e3}"#,
        r#"{"a":9007199254740992}"#,
        r#"{"a":-9007199254740992}"#,
        r#"{"a":null}"#,
        r#"{"a":tru}"#,
        r#"{"a":"\/"}"#,
        r#"{"a":"\u000a"}"#,
        r#"{"a":"\u001F"}"#,
        r#"{"a":"\u0041"}"#,
        r#"{"\u0041":1}"#,
        r#"{"a":"\u00e9"}"#,
        r#"{"a":"\ud800"}"#,
        r#"{"a":"\ud83d\ude00"}"#,
        r#"{"a":"\u+01f"}"#,
        "{\"a\":\"\t\"}",
        r#"{"a":[1,]}"#,
        r#"{"a":[,1]}"#,
        r#"{"a":"x}"#,
        r#"{"a":1}{}"#,
        "\u{feff}{}",
    ];
    for text in spellings {
        assert!(!reads(text), "{text}");
    }
    assert!(read_object(b"{\"a\":\"\xff\"}").is_err());
    let nested = |n: usize| format!("{{\"a\":{}1{}}}", "[".repeat(n), "]".repeat(n));
    assert!(reads(&nested(MAX_RECORD_DEPTH - 2)));
    for n in [MAX_RECORD_DEPTH - 1, 10_000] {
        assert_eq!(read_object(nested(n).as_bytes()).err(), Some(TOO_DEEP));
    }
}

/// Values that have a canonical form.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        (-(MAX_INTEGER as i64)..=MAX_INTEGER as i64).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|all| Value::Object(all.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn keys_compare_like_their_utf16_units(
        start in "[a\u{7f}é€\u{ffff}𐍈]{0,3}",
        a in "[a\u{7f}é\u{7ff}\u{800}\u{d7ff}\u{e000}\u{ffff}\u{10000}\u{10ffff}]{0,3}",
        b in "[a\u{7f}é\u{7ff}\u{800}\u{d7ff}\u{e000}\u{ffff}\u{10000}\u{10ffff}]{0,3}",
    ) {
        let (a, b) = (format!("{start}{a}"), format!("{start}{b}"));
        prop_assert_eq!(compare_keys(&a, &b), a.encode_utf16().cmp(b.encode_utf16()));
    }

    #[test]
    fn a_written_object_is_read_to_the_same_value(value in value()) {
        let value = json!({"v": value});
        let text = to_string(&value).unwrap();
        let json = read_object(text.as_bytes()).unwrap();
        prop_assert_eq!(json.to_value(), value);
        let again = serde_json::from_str::<Value>(&text).unwrap();
        prop_assert_eq!(to_string(&again).unwrap(), text);
    }

    #[test]
    fn another_spelling_of_a_written_object_is_rejected(value in value()) {
        let value = json!({"v": value, "w": 1});
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        prop_assert!(!reads(&pretty));
    }
}
