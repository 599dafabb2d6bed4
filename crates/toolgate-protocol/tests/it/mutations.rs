//! Good texts with random damage: a value or an error, never a panic, and never more than another reader takes.

use toolgate_protocol::json::{Json, JsonKind, JsonLimits};

pub(crate) const SEEDS: [&str; 8] = [
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a.b","arguments":{"x":[1,2.5,-3e7]}}}"#,
    r#"{"jsonrpc":"2.0","id":"é\ud83d\ude00","result":{"content":[{"type":"text","text":"a\n\"b\"\\"}]}}"#,
    r#"[ { "a" : { "b" : [ [ ] , { } , [ { "c" : null } ] ] } } , true , false ]"#,
    r#"{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"j":1,"k":2,"l":3,"m":4,"n":5,"o":6,"p":7,"q":8}"#,
    "[18446744073709551616,0.1000000000000000055511151231257827,1e400,-0,0e99999999999999999999]",
    r#""\u0000\u001f\u007f\ud800\udc00\b\f\/""#,
    "  -12.5e+3\r\n",
    "{\"\":\"日本語 😀\",\"\u{7f}\":[\"\u{2028}\"]}",
];

/// Pieces that readers stumble over.
const PIECES: [&[u8]; 20] = [
    b"\"",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\\u0061",
    b"\\ud83d",
    b"\\ude00",
    b"\0",
    b"\xef\xbb\xbf",
    b"\xff",
    b"\xed\xa0\x80",
    b"1e",
    b"-",
    b"\\u0000",
    b" ",
    b"\"a\":1,",
];

pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % sides.max(1)
    }

    pub(crate) fn damage(&mut self, bytes: &mut Vec<u8>) {
        let at = self.roll(bytes.len() + 1);
        let end = (at + self.roll(8)).min(bytes.len());
        match self.roll(6) {
            0 => drop(bytes.drain(at..end)),
            1 => bytes.truncate(at),
            2 => drop(bytes.splice(at..at, PIECES[self.roll(PIECES.len())].iter().copied())),
            3 => drop(bytes.splice(at..end, PIECES[self.roll(PIECES.len())].iter().copied())),
            4 => {
                let copy = bytes[at..end].to_vec();
                let to = self.roll(bytes.len() + 1);
                bytes.splice(to..to, copy);
            }
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << self.roll(8);
                }
            }
        }
    }
}

/// All that can be done to a value that was taken.
fn walk(json: &Json) {
    let canonical = json.canonical();
    let again = Json::read(canonical.into_bytes(), &JsonLimits::default()).expect("canonical");
    assert_eq!(again.to_value(), json.to_value());
    assert_eq!(again.is_lossy(), json.is_lossy());
    assert_eq!(json.to_value_and_loss(), (json.to_value(), json.is_lossy()));
    if let Some(mapped) = json.map_strings(&mut |s| (!s.key).then(|| s.text.to_uppercase())) {
        Json::read(mapped.as_str().into(), &JsonLimits::default()).expect("mapped");
    }
    for (key, value) in json.members() {
        assert_eq!(json.get(&key).as_ref(), Some(&value));
        let less = json.without(&key);
        Json::read(less.as_str().into(), &JsonLimits::default()).expect("without");
        let words = [
            value.i64().is_some(),
            value.u64().is_some(),
            value.string().is_some(),
            value.bool().is_some(),
        ];
        let most = if value.kind() == JsonKind::Number {
            2
        } else {
            1
        };
        assert!(words.iter().filter(|is| **is).count() <= most);
    }
    json.items()
        .for_each(|item| assert!(!item.as_str().is_empty()));
}

#[test]
fn a_hundred_thousand_damaged_texts() {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let mut taken = 0;
    for round in 0..100_000 {
        let mut bytes = SEEDS[round % SEEDS.len()].as_bytes().to_vec();
        for _ in 0..=dice.roll(4) {
            dice.damage(&mut bytes);
        }
        let length = bytes.len();
        match Json::read(bytes.clone(), &JsonLimits::default()) {
            Ok(json) => {
                taken += 1;
                let theirs = serde_json::from_slice::<&serde_json::value::RawValue>(&bytes);
                assert!(theirs.is_ok(), "we take what another refuses: {json:?}");
                walk(&json);
            }
            Err(error) => assert!(error.offset() <= length, "{error}"),
        }
    }
    // Damage that breaks all or nothing would test little.
    assert!((5_000..60_000).contains(&taken), "{taken} were taken");
}
