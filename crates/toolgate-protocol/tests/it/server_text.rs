//! Text of servers, with its two repairs.

use toolgate_protocol::{
    json::{Json, JsonLimits, ReadErrorKind, ServerText},
    memory_budget::MemoryPermit,
};

fn read(text: &str) -> Result<ServerText, (ReadErrorKind, Vec<u8>)> {
    let bytes = text.as_bytes().to_vec();
    let read = Json::read_server_text(
        bytes,
        &JsonLimits::default(),
        MemoryPermit::default(),
        false,
    );
    read.map_err(|(error, bytes)| (error.kind(), bytes))
}

/// The digest of a repaired text is that of the text that its reader gets.
#[test]
fn half_a_surrogate_pair_becomes_the_replacement_character() {
    for (text, repaired) in [
        (r#""\ud800""#, "\u{fffd}"),
        (r#""\udc00\ud800""#, "\u{fffd}\u{fffd}"),
        (r#""a\ud800\u0041\uDFFFb""#, "a\u{fffd}A\u{fffd}b"),
        (r#""\ud800abdc00""#, "\u{fffd}abdc00"),
        (r#""\ud800\ud83d\ude00\\ud800""#, "\u{fffd}😀\\ud800"),
    ] {
        let read = read(text).unwrap();
        assert!(read.repaired, "{text}");
        assert_eq!(read.json.string().unwrap(), repaired, "{text}");
        assert_eq!(
            read.json.canonical(),
            Json::from_value(&repaired.into()).canonical()
        );
        // Strict readers take what is passed on.
        let again = Json::read(
            read.json.as_str().as_bytes().to_vec(),
            &JsonLimits::default(),
        );
        assert_eq!(again.unwrap(), read.json);
        assert!(Json::read(text.as_bytes().to_vec(), &JsonLimits::default()).is_err());
    }
    let whole = read(r#"{"a":"\ud83d\ude00\ufffd","b":{"c":1}}"#).unwrap();
    assert!(!whole.repaired);
    // Members are found where they were.
    let read = read(r#"{"\ud800":{"x":"\udc00"},"b":{"c":1}}"#).unwrap();
    assert_eq!(
        read.json
            .get("\u{fffd}")
            .unwrap()
            .get("x")
            .unwrap()
            .string()
            .unwrap(),
        "\u{fffd}"
    );
    assert_eq!(read.json.get("b").unwrap().as_str(), r#"{"c":1}"#);
}

#[test]
fn what_a_repair_would_change_in_meaning_is_refused_with_its_bytes() {
    for (text, kind) in [
        (r#"{"\ud800":1,"\udc00":2}"#, ReadErrorKind::DuplicateKey),
        (r#"{"a":1,"a":2}"#, ReadErrorKind::DuplicateKey),
        (r#""\ud800\u00""#, ReadErrorKind::Syntax),
        (r#"{"a":NaN}"#, ReadErrorKind::Syntax),
    ] {
        let (found, bytes) = read(text).unwrap_err();
        assert_eq!((found, bytes.as_slice()), (kind, text.as_bytes()));
    }
}
