//! Accepted and rejected texts, and our decisions where the grammar is open.

use super::read;
use toolgate_protocol::json::{Json, JsonLimits, ReadErrorKind as K};

/// T11, the texts that every reader has to take.
#[test]
fn taken() {
    let texts = [
        "null",
        "true",
        "false",
        "0",
        "-0",
        "1",
        "-1",
        "0.0",
        "-0.0",
        "1.5",
        "1e1",
        "1E1",
        "1e+1",
        "1e-1",
        "1.0e0",
        "0e0",
        "0E+0",
        "123456789",
        "9007199254740993",
        "1e400",
        "-1e-400",
        "0.000000000000000000000000000001",
        "\"\"",
        "\"a\"",
        "\"\\\"\"",
        "\"\\\\\"",
        "\"\\/\"",
        "\"\\b\\f\\n\\r\\t\"",
        "\"\\u0041\"",
        "\"\\u00e9\"",
        "\"\\uD83D\\uDE00\"",
        "\"\\ud83d\\ude00\"",
        "\"é\"",
        "\"😀\"",
        "\"\u{2028}\u{2029}\"",
        "\"\u{7f}\"",
        "\"\\u0000\"",
        "\"\u{10ffff}\"",
        "\"\u{fdd0}\"",
        "\"\\uFFFF\"",
        "[]",
        "[ ]",
        "[1]",
        "[1,2]",
        "[1 , 2]",
        "[[]]",
        "[[],[]]",
        "[null]",
        "[\"a\",1,true,null,{}]",
        "{}",
        "{ }",
        "{\"a\":1}",
        "{\"a\":1,\"b\":2}",
        "{ \"a\" : 1 }",
        "{\"\":0}",
        "{\"a\":{\"a\":1}}",
        "{\"a\":[{\"a\":1}]}",
        "{\"a\":1,\"A\":2}",
        "{\"a\\u0062\":1,\"ac\":2}",
        " 1",
        "1 ",
        "\t\n\r 1 \t\n\r",
        "\n[\n1\n,\n2\n]\n",
        "{\"k\":\"a:b,c]d}e\"}",
        "[\"]\"]",
        "[\"\\\\\"]",
        "[\"\\\\\\\"\"]",
        "{\"\\\"\":1}",
        "[1e1,2e2]",
        "[-1]",
        "{\"a\":\"\\u0000\"}",
        "{\"ſ\":1,\"s\":2}",
        "{\"K\":1,\"\u{212a}\":2}",
    ];
    for text in texts {
        let json = read(text).unwrap_or_else(|error| panic!("{text:?}: {error}"));
        assert_eq!(
            json.as_str(),
            text.trim_matches([' ', '\t', '\n', '\r']),
            "the bytes stay"
        );
    }
    println!("T11: {} of {} texts taken", texts.len(), texts.len());
}

/// T11, the texts that no reader may take, and those that this one does not take.
#[test]
fn not_taken() {
    let refused = std::cell::Cell::new(0);
    let check = |text: &str, kind: K| {
        refused.set(refused.get() + 1);
        let error = read(text).expect_err(text);
        assert_eq!(error.kind(), kind, "{text:?}: {error}");
        assert!(error.offset() <= text.len(), "{text:?}: {error}");
    };
    for text in ["", " ", "\n\t\r "] {
        check(text, K::Empty);
    }
    for text in [
        // Words.
        "nul",
        "NULL",
        "True",
        "tru",
        "fals",
        "nan",
        "NaN",
        "Infinity",
        "-Infinity",
        "undefined",
        "n",
        "t",
        "f",
        // Numbers.
        "+1",
        "-",
        "--1",
        "-a",
        ".5",
        "-.5",
        "1.",
        "1.e1",
        "1e",
        "1e+",
        "1E-",
        "1.5e",
        "[01x]",
        "[-01]",
        "[1.]",
        "[.1]",
        "[1e]",
        "[0x1]",
        "[1_000]",
        "[１]",
        // Strings.
        "\"",
        "\"a",
        "'a'",
        "\"\\x41\"",
        "\"\\\"",
        "\"\\u\"",
        "\"\\u00\"",
        "\"\\u00g0\"",
        "\"\\u{41}\"",
        "\"\\a\"",
        "\"\n\"",
        "\"\t\"",
        "\"\r\"",
        "\"\u{0}\"",
        "\"\u{1f}\"",
        "\"\\",
        "\"\\u123",
        "\"\\ u0041\"",
        "\"\\U0041\"",
        // Arrays.
        "[",
        "]x",
        "[,",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "[1,,2]",
        "[1 2]",
        "[1;2]",
        "[[",
        "[[]",
        "[}",
        "[1}",
        "[\"a\"",
        "[a]",
        "[1,2",
        "[\"a\",\n",
        "[...]",
        "[1:2]",
        "[*]",
        // Objects.
        "{",
        "{,",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":1",
        "{\"a\":1,",
        "{\"a\":1,}",
        "{,\"a\":1}",
        "{\"a\":1,,\"b\":2}",
        "{\"a\" 1}",
        "{\"a\":1 \"b\":2}",
        "{a:1}",
        "{'a':1}",
        "{1:1}",
        "{null:1}",
        "{\"a\"::1}",
        "{\"a\":}",
        "{:1}",
        "{\"a\":1]",
        "{\"a\":1;\"b\":2}",
        "{\"a\",\"b\"}",
        "{{}}",
        "{\"a\":{}",
        "{[]:1}",
        "{\"a\":1,\"b\"}",
        "{\"a\":1,b:2}",
        // Comments and white space that is none.
        "/**/1",
        "//x\n1",
        "[1,/*x*/2]",
        "#1",
        "\u{a0}1",
        "\u{c}1",
        "\u{b}1",
        "\u{2028}1",
        "\u{85}1",
        "[\u{a0}]",
        "{\u{feff}}",
    ] {
        check(text, K::Syntax);
    }
    for text in [
        "1 2",
        "[]x",
        "{}{}",
        "[][]",
        "null,",
        "\"a\"\"b\"",
        "{}}",
        "[]]",
        "1,",
        "01",
        "-012",
        "1a",
        "0x1",
        "true false",
        "{} //",
        "1\u{a0}",
        "[]\u{feff}",
        "truex",
        "1\u{0}",
    ] {
        check(text, K::TrailingBytes);
    }
    for text in [
        "\"\\ud800\"",
        "\"\\udc00\"",
        "\"\\ud800\\ud800\"",
        "\"\\ud800x\"",
        "\"\\ud800\\n\"",
        "\"\\udc00\\ud800\"",
        "{\"\\ud800\":1}",
        "\"\\uD83D\"",
    ] {
        check(text, K::LoneSurrogate);
    }
    for text in [
        "{\"a\":1,\"a\":1}",
        "{\"a\":1,\"\\u0061\":2}",
        "{\"\":1,\"\":2}",
        "[{\"a\":1,\"a\":2}]",
        "{\"b\":{\"a\":1,\"a\":2}}",
        "{\"\\/\":1,\"/\":2}",
        "{\"\\ud83d\\ude00\":1,\"😀\":2}",
        "{\"a\":1,\"b\":2,\"a\":3}",
        "{\"a\\u0000\":1}",
        "{\"\\u0000\":1}",
        "{\"\\n\":1,\"\\u000a\":2}",
    ] {
        check(text, K::DuplicateKey);
    }
    check("\u{feff}1", K::ByteOrderMark);
    check("\u{feff}", K::ByteOrderMark);
    println!("T11: {0} of {0} texts refused", refused.get());
}

/// Holds: BASE-14
#[test]
fn bytes_that_are_no_text() {
    let bad: [&[u8]; 10] = [
        b"\"\xff\"",
        b"\"\xc0\xaf\"",
        b"\"\xed\xa0\x80\"",
        b"\"\xf5\x80\x80\x80\"",
        b"\"\xe2\x82\"",
        b"\xff\xfe1\x00",
        b"[\"\x80\"]",
        b"\"\xc3\"",
        b"\"\xf8\x88\x80\x80\x80\"",
        b"\"\xc1\xbf\"",
    ];
    for bytes in bad {
        let error = Json::read(bytes.to_vec(), &JsonLimits::default()).expect_err("no UTF-8");
        assert_eq!(error.kind(), K::Utf8, "{bytes:?}");
    }
}

/// T11: where the grammar leaves it open, this is what we do.
#[test]
fn decided() {
    // Numbers that no machine type holds are taken and kept to the letter, but known as such.
    for text in [
        "1e400",
        "18446744073709551616",
        "0.1000000000000000055511151231257827",
        "-9223372036854775809",
    ] {
        assert!(read(text).unwrap().is_lossy(), "{text}");
        assert!(read(text).unwrap().to_value_and_loss().1, "{text}");
    }
    for text in [
        "1",
        "-1",
        "18446744073709551615",
        "-9223372036854775808",
        "0.1",
        "1.50",
        "1e2",
        "0",
        "-0.0",
        "1e-7",
        "100000000000000000000e-2",
    ] {
        assert!(!read(text).unwrap().is_lossy(), "{text}");
        assert!(!read(text).unwrap().to_value_and_loss().1, "{text}");
    }
    // A value that is whole is an integer however it is written.
    for (text, n) in [
        ("1.0", 1),
        ("1e0", 1),
        ("10e-1", 1),
        ("1e3", 1000),
        ("-2.50e1", -25),
        ("0.0", 0),
        ("-0", 0),
    ] {
        let found = read(text).unwrap();
        assert_eq!(found.i64(), Some(n), "{text}");
        assert_eq!(found.u64(), u64::try_from(n).ok(), "{text}");
    }
    for text in [
        "1.5",
        "1e-1",
        "1e30",
        "9223372036854775808",
        "\"1\"",
        "true",
    ] {
        assert_eq!(read(text).unwrap().i64(), None, "{text}");
    }
    // An error never shows what came.
    let error = read("{\"password\":\"hunter2\"")
        .expect_err("cut off")
        .to_string();
    assert!(
        !error.contains("hunter2") && !error.contains("password"),
        "{error}"
    );
    assert!(!format!("{:?}", read("\"hunter2\"").unwrap()).contains("hunter2"));
}
