//! Laws over random texts.

use proptest::prelude::*;
use toolgate_protocol::json::{Json, JsonLimits};

fn value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>()
            .prop_filter("finite", |n| n.is_finite())
            .prop_map(Into::into),
        any::<String>().prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Into::into),
            prop::collection::hash_map("[^\0]*", inner, 0..8)
                .prop_map(|m| serde_json::Value::Object(m.into_iter().collect())),
        ]
    })
}

fn read(bytes: &[u8]) -> Option<Json> {
    Json::read(bytes.to_vec(), &JsonLimits::default()).ok()
}

proptest! {
    #[test]
    fn good_json_comes_back_as_it_was(value in value()) {
        let text = value.to_string();
        let json = read(text.as_bytes()).expect("good JSON");
        prop_assert_eq!(json.as_str(), text.as_str());
        prop_assert_eq!(json.to_value(), value);
        // The canonical form says the same, is its own canonical form, and does not depend on the spelling.
        let canonical = json.canonical();
        prop_assert_eq!(read(canonical.as_bytes()).expect("canonical").canonical(), canonical.clone());
        let pretty = serde_json::to_string_pretty(&serde_json::from_str::<serde_json::Value>(&text).expect("JSON")).expect("text");
        prop_assert_eq!(read(pretty.as_bytes()).expect("pretty").canonical(), canonical);
        // Looking at all strings changes nothing; writing each as it is changes no meaning.
        prop_assert!(json.map_strings(&mut |_| None).is_none());
        let same = json.map_strings(&mut |s| Some(s.text.to_owned())).unwrap_or(json.clone());
        prop_assert_eq!(same.to_value(), json.to_value());
    }

    #[test]
    fn any_number_keeps_its_letters(number in "-?(0|[1-9][0-9]{0,60})(\\.[0-9]{1,60})?([eE][+-]?[0-9]{1,3})?") {
        let text = format!("{{\"a\":[{number}],\"b\":\"x\"}}");
        let json = read(text.as_bytes()).expect("a number");
        prop_assert_eq!(json.as_str(), text.as_str());
        let changed = json.map_strings(&mut |s| (s.text == "x").then(|| "y".to_owned())).expect("a change");
        prop_assert_eq!(changed.as_str(), text.replace("\"x\"", "\"y\""));
        prop_assert!(json.canonical().contains(&number));
    }

    /// Whatever we take, serde_json takes too; whatever it refuses, we refuse.
    #[test]
    fn we_are_stricter_than_another_reader(text in "[\\[\\]{}\",:\\\\ua0-9eE+.\\- \ntrfalsn]{0,40}") {
        let theirs = serde_json::from_str::<serde_json::Value>(&text);
        if let Some(json) = read(text.as_bytes()).filter(|json| !json.is_lossy()) {
            prop_assert_eq!(theirs.expect("theirs"), json.to_value());
        }
    }

    /// A good text with some bytes changed: a value or an error, never a panic; and a value can be walked.
    #[test]
    fn changed_bytes_never_panic(value in value(), at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<prop::sample::Index>()) {
        let mut bytes = value.to_string().into_bytes();
        let place = at.index(bytes.len());
        bytes[place] = byte;
        for bytes in [bytes.clone(), bytes[..cut.index(bytes.len())].to_vec()] {
            if let Some(json) = read(&bytes) {
                json.canonical();
                json.to_value();
                json.is_lossy();
                json.map_strings(&mut |s| Some(s.text.to_uppercase()));
                json.members().for_each(|(_, v)| { v.kind(); });
            }
        }
    }

    #[test]
    fn any_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read(&bytes);
    }
}
