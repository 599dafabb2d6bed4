//! One over each limit, and texts that would break a reader with recursion.

use super::read;
use toolgate_wire::json::{Json, Limits, ReadErrorKind as K};

fn nested(depth: usize) -> String {
    format!("{}1{}", "[".repeat(depth), "]".repeat(depth))
}

fn kind(text: String, limits: &Limits) -> Option<K> {
    Json::read(text.into_bytes(), limits)
        .err()
        .map(|e| e.kind())
}

#[test]
fn one_over_each_limit() {
    let limits = Limits {
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
    for depth in 1..20 {
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

/// A million levels or items on a small stack: an error or a value, never an overflow.
#[test]
fn nothing_overflows_a_small_stack() {
    let work = || {
        let wide = Limits {
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
        assert!(!deepest.lossy());
        deepest.to_value();
    };
    std::thread::Builder::new()
        .stack_size(256 * 1024)
        .spawn(work)
        .unwrap()
        .join()
        .unwrap();
}
