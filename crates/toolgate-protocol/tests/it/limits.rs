//! One over each limit, and texts that would break a reader with recursion.

use super::read;
use toolgate_protocol::json::{ArrayWriter, Json, JsonLimits, ObjectWriter, ReadErrorKind as K};

fn nested(depth: usize) -> String {
    format!("{}1{}", "[".repeat(depth), "]".repeat(depth))
}

fn kind(text: String, limits: &JsonLimits) -> Option<K> {
    Json::read(text.into_bytes(), limits)
        .err()
        .map(|e| e.kind())
}

#[test]
fn one_over_each_limit() {
    let limits = JsonLimits {
        bytes: 100,
        depth: 4,
        keys: 3,
        elements: 10,
    };
    let keys = |n: usize| {
        format!(
            "{{{}}}",
            (0..n)
                .map(|k| format!("\"{k}\":1"))
                .collect::<Vec<_>>()
                .join(",")
        )
    };
    let items = |n: usize| format!("[{}]", vec!["1"; n].join(","));
    assert_eq!(kind(format!("\"{}\"", "a".repeat(98)), &limits), None);
    assert_eq!(
        kind(format!("\"{}\"", "a".repeat(99)), &limits),
        Some(K::TooLarge)
    );
    assert_eq!(kind(nested(4), &limits), None);
    assert_eq!(kind(nested(5), &limits), Some(K::TooDeep));
    assert_eq!(kind(keys(3), &limits), None);
    assert_eq!(kind(keys(4), &limits), Some(K::TooManyKeys));
    assert_eq!(kind(items(9), &limits), None);
    assert_eq!(kind(items(10), &limits), Some(K::TooManyElements));
    for (depth, good) in [(63, true), (64, true), (65, false)] {
        assert_eq!(read(&nested(depth)).is_ok(), good, "{depth}");
    }
    assert!(read(&"1".repeat(400)).is_ok());
    assert_eq!(
        read(&"1".repeat(401)).expect_err("too long").kind(),
        K::Number
    );
}

#[test]
fn a_key_twice_is_found_at_any_depth_and_among_many() {
    for depth in 1..=20 {
        let text = format!(
            "{}{{\"a\":1,\"\\u0061\":2}}{}",
            "{\"x\":".repeat(depth),
            "}".repeat(depth)
        );
        assert_eq!(
            read(&text).expect_err("twice").kind(),
            K::DuplicateKey,
            "{depth}"
        );
    }
    let many = |last: usize| {
        format!(
            "{{{},\"k{last}\":1}}",
            (0..4000)
                .map(|k| format!("\"k{k}\":1"))
                .collect::<Vec<_>>()
                .join(",")
        )
    };
    assert!(read(&many(4000)).is_ok());
    for twice in [0, 7, 15, 16, 17, 3999] {
        assert_eq!(
            read(&many(twice)).expect_err("twice").kind(),
            K::DuplicateKey,
            "{twice}"
        );
    }
}

/// T24: a million levels or items on a small stack: an error or a value, never an overflow.
#[test]
fn nothing_overflows_a_small_stack() {
    let work = || {
        let wide = JsonLimits {
            bytes: 1 << 30,
            depth: 64,
            keys: 1 << 30,
            elements: 1 << 30,
        };
        for open in ["[", "{\"a\":"] {
            assert_eq!(kind(open.repeat(1_000_000), &wide), Some(K::TooDeep));
        }
        let items = format!("[{}1]", "1,".repeat(1_000_000));
        let json = Json::read(items.into_bytes(), &wide).unwrap();
        assert_eq!(json.items().count(), 1_000_001);
        assert!(json.map_strings(&mut |_| None).is_none());
        let deepest = read(&nested(64)).unwrap();
        assert_eq!(deepest.canonical(), nested(64));
        assert!(!deepest.is_lossy());
        deepest.to_value();
    };
    on_small_stack(work);
}

fn on_small_stack(work: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new()
        .stack_size(256 * 1024)
        .spawn(work)
        .unwrap()
        .join()
        .unwrap();
}

#[test]
fn no_setting_goes_beyond_the_deepest() {
    let limits = JsonLimits {
        depth: usize::MAX,
        ..JsonLimits::default()
    };
    assert_eq!(kind(nested(JsonLimits::MAX_DEPTH), &limits), None);
    let deeper = nested(JsonLimits::MAX_DEPTH + 1);
    assert_eq!(kind(deeper, &limits), Some(K::TooDeep));
    let none = JsonLimits {
        depth: 0,
        ..JsonLimits::default()
    };
    assert_eq!(kind("1".to_owned(), &none), None);
    assert_eq!(kind("[]".to_owned(), &none), Some(K::TooDeep));
    assert_eq!(kind("{}".to_owned(), &none), Some(K::TooDeep));
}

/// T24: a million members through all that walks a value.
#[test]
fn a_million_members_on_a_small_stack() {
    on_small_stack(|| {
        let wide = JsonLimits {
            bytes: usize::MAX,
            keys: usize::MAX,
            elements: usize::MAX,
            ..JsonLimits::default()
        };
        let keys: Vec<String> = (0..1_000_000).map(|n| format!("\"{n}\":{n}")).collect();
        let text = format!("{{{}}}", keys.join(","));
        assert_eq!(
            kind(text.clone(), &JsonLimits::default()),
            Some(K::TooLarge)
        );
        let short = JsonLimits {
            bytes: usize::MAX,
            ..JsonLimits::default()
        };
        assert_eq!(kind(text.clone(), &short), Some(K::TooManyKeys));
        let json = Json::read(text.into_bytes(), &wide).unwrap();
        assert_eq!(json.members().count(), 1_000_000);
        assert_eq!(json.get("999999").and_then(|v| v.i64()), Some(999_999));
        let canonical = json.canonical();
        assert!(canonical.starts_with("{\"0\":0,\"1\":1,\"10\":10,\"100\":100,"));
        assert_eq!(canonical.len(), json.as_str().len());
        assert!(!json.is_lossy());
        assert_eq!(json.to_value().as_object().unwrap().len(), 1_000_000);
        let without = json.without("500000");
        assert_eq!(without.as_str().len() + 16, json.as_str().len());
    });
}

/// A program may nest what it writes deeper than any reader takes; nothing that walks it needs a stack.
#[test]
fn what_a_program_nested_deep_is_walked_too() {
    on_small_stack(|| {
        let mut nest = ObjectWriter::new().finish();
        for n in 0..10_000 {
            let mut a = ArrayWriter::new();
            a.raw(&nest);
            nest = a.finish();
            if n % 2 == 0 {
                nest = ObjectWriter::new().finish().with("k", &nest);
            }
        }
        assert_eq!(nest.canonical(), nest.as_str());
        assert!(!nest.is_lossy());
        let mapped = nest.map_strings(&mut |s| (s.text == "k").then(|| "l".to_owned()));
        assert_eq!(mapped.unwrap().as_str(), nest.as_str().replace('k', "l"));
        // The tree ends in text where it would be too deep to drop.
        let mut tree = &nest.to_value();
        let mut levels = 0;
        while let Some(inner) = tree.get(0).or_else(|| tree.get("k")) {
            tree = inner;
            levels += 1;
        }
        assert_eq!(levels, JsonLimits::MAX_DEPTH);
        assert!(tree.as_str().unwrap().len() > 10_000);
        nest.items().for_each(|item| _ = item.kind());
    });
}

#[test]
fn the_deepest_tree_is_built_and_dropped_on_a_small_stack() {
    on_small_stack(|| {
        let limits = JsonLimits {
            depth: JsonLimits::MAX_DEPTH,
            ..JsonLimits::default()
        };
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let text = [&open.repeat(128), "1", &close.repeat(128)].concat();
            let json = Json::read(text.clone().into_bytes(), &limits).unwrap();
            assert_eq!(json.canonical(), text);
            drop(json.to_value().clone());
            assert_eq!(Json::from_value(&json.to_value()).as_str(), text);
        }
    });
}
