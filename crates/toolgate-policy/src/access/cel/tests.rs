use super::*;
use serde_json::{Value, json};
use std::time::{Duration, UNIX_EPOCH};
use toolgate_core::{CallArguments, Caller, Definition, Item, Origin};
use toolgate_protocol::json::{Json, JsonLimits};

fn item(trusted: bool) -> Item {
    let def = json!({"name": "write", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true, "destructiveHint": false}});
    let def = Definition::tool(Json::from_value(&def)).unwrap();
    let origin = Origin {
        server: "files".into(),
        trusted,
    };
    Item::new(origin, def)
}

fn judged_raw(text: &str, args: &str) -> Result<bool, String> {
    let raw = Json::read(args.as_bytes().to_vec(), &JsonLimits::default()).unwrap();
    let (caller, item, args) = (Caller::new("key:ci"), item(false), CallArguments::new(raw));
    // Saturday, 21 November 2026, 13:10:05 UTC.
    let time = UNIX_EPOCH + Duration::from_secs(1_795_266_605);
    let facts = ConditionFacts {
        time,
        pinned: Some("accepted"),
        ..ConditionFacts::new(&caller, &item).with(&args)
    };
    CelCondition::compile(text).unwrap().evaluate(&facts)
}

fn judged(text: &str, args: Value) -> Result<bool, String> {
    judged_raw(text, &args.to_string())
}

#[test]
fn conditions_hold() {
    let args = json!({
        "repo": "acme/site", "n": 3, "big": 18446744073709551615u64, "half": 0.5, "one": 1.0, "none": null,
        "list": ["a", "b"], "paths": ["/srv/a", "/etc/b"], "on": true, "in": {"x": 1, "y-z": "q"}, "text": "Größe"
    });
    for text in [
        "args.repo.startsWith('acme/')",
        "args.repo.endsWith(\"site\") && args.repo.contains('e/s')",
        "args.repo.matches('^acme/[a-z]+$')",
        "args.n == 3 && args.n != 4 && args.n < 4 && args.n >= 3",
        "args.n + 1 == 4 && args.n * 2 - 1 == 5 && 7 / 2 == args.n && 7 % 4 == 3",
        "-args.n == -3 && !(args.n == 4)",
        "args.n < args.big && args.big == 18446744073709551615",
        "args.big > 9223372036854775807.0 && args.half < 1 && args.one == 1 && 3u == args.n",
        "1 + 2 * 3 == 7 && (1 + 2) * 3 == 9 && 0.5 + 0.25 == 0.75",
        "args.n in [1, 2, 3] && !('c' in args.list) && 'repo' in args",
        "'y-z' in args['in'] && args['in']['x'] == 1 && args.list[1] == 'b'",
        "size(args.list) == 2 && args.list.size() == 2 && size(args.text) == 5 && size(args['in']) == 2",
        "args.list == ['a', 'b'] && args.list != ['a']",
        "args.list.all(x, size(x) == 1) && args.list.exists(x, x == 'b') && args.list.exists_one(x, x == 'a')",
        "args.paths.filter(p, p.startsWith('/etc/')).size() == 1",
        "args.list.map(x, x + x) == ['aa', 'bb']",
        "args['in'].exists(key, key == 'x')",
        "args.list.exists(x, args.paths.exists(y, y.endsWith('/' + x)))",
        "has(args.repo) && !has(args.nope) && args.none == null && args.repo != null",
        "!has(args.nope) || args.nope == 1",
        "args.on ? args.n == 3 : args.nope",
        "args.on",
        "caller.name == 'key:ci' && server == 'files'",
        "tool.name == 'write' && tool.kind == 'tool' && tool.pinned == 'accepted'",
        "!tool.read_only && tool.destructive // claims of a stranger",
        "time.hour == 13 && time.minute == 10 && time.weekday == 'sat' && time.date == '2026-11-21'",
        "time.unix == 1795266605 && time.date < '2026-12-01'",
        "'ACME'.lowerAscii() == 'acme' && int('12') == 12 && int(2.9) == 2 && string(args.n) == '3'",
        "'\\x41\\u00e9\\n' == 'Aé\\n'",
    ] {
        assert_eq!(judged(text, args.clone()), Ok(true), "{text}");
    }
}

#[test]
fn annotations_count_where_the_server_is_trusted() {
    let (caller, when) = (
        Caller::new("a"),
        CelCondition::compile("tool.read_only && !tool.destructive").unwrap(),
    );
    for trusted in [true, false] {
        assert_eq!(
            when.evaluate(&ConditionFacts::new(&caller, &item(trusted))),
            Ok(trusted)
        );
    }
}

#[test]
fn unevaluable_conditions_are_errors() {
    for (text, args, why) in [
        ("args.path == 'x'", json!({}), "args.path is missing"),
        (
            "args.a.b == 1",
            json!({"a": 1}),
            "args.a is an integer, not an object",
        ),
        (
            "args.path == 'x'",
            json!({"path": ["x"]}),
            "args.path is a list, which cannot be compared or combined with a string",
        ),
        (
            "args.path != 'x'",
            json!({"path": 1}),
            "args.path is an integer, which cannot be compared or combined with a string",
        ),
        (
            "args.n < 3",
            json!({"n": "2"}),
            "args.n is a string, which cannot be compared or combined with an integer",
        ),
        (
            "args.n + 0.5 == 1.0",
            json!({"n": 1}),
            "args.n is an integer, which cannot be compared or combined with a decimal number",
        ),
        (
            "args.path.startsWith('/')",
            json!({"path": null}),
            "args.path is null, not a string",
        ),
        (
            "args.path.matches('/')",
            json!({"path": 1}),
            "args.path is an integer, not a string",
        ),
        (
            "args.path",
            json!({"path": "yes"}),
            "the result is a string, not a boolean",
        ),
        (
            "!args.path",
            json!({"path": "yes"}),
            "args.path is a string, not a boolean",
        ),
        (
            "args.l[2] == 1",
            json!({"l": [1, 2]}),
            "args.l does not have the requested index",
        ),
        (
            "args.l[-1] == 1",
            json!({"l": [1, 2]}),
            "args.l does not have the requested index",
        ),
        (
            "args.l['a'] == 1",
            json!({"l": [1, 2]}),
            "args.l is a list and cannot be indexed by a string",
        ),
        (
            "args.l.all(x, x > 0)",
            json!({"l": [1, "a"]}),
            "x is a string, which cannot be compared or combined with an integer",
        ),
        (
            "args.l.all(x, x > 0)",
            json!({"l": 1}),
            "args.l is an integer, not a list",
        ),
        (
            "args.n in [1, 2]",
            json!({"n": "1"}),
            "args.n is a string, which cannot be compared or combined with an integer",
        ),
        (
            "size(args.n) == 1",
            json!({"n": 1}),
            "args.n is an integer and has no size",
        ),
        ("1 / args.n == 1", json!({"n": 0}), "division by zero"),
        (
            "args.n * args.n > 0",
            json!({"n": u64::MAX}),
            "an integer result does not fit in 64 bits",
        ),
        (
            "args.n * args.n > 0.0",
            json!({"n": 1e300}),
            "a decimal result is too large",
        ),
        (
            "int(args.n) == 1",
            json!({"n": "1x"}),
            "args.n is a string, which int() cannot convert",
        ),
        ("has(args.a.b)", json!({}), "args.a is missing"),
    ] {
        assert_eq!(judged(text, args), Err(why.to_owned()), "{text}");
    }
}

/// The order of operands does not matter: one that decides does so in every position.
#[test]
fn a_deciding_operand_overrides_errors() {
    for (text, holds) in [
        ("args.nope == 1 || true", Some(true)),
        ("true || args.nope == 1", Some(true)),
        ("args.nope == 1 && false", Some(false)),
        ("args.nope == 1 || false", None),
        ("args.nope == 1 && true", None),
        ("[1, 2].exists(x, x == 2 || args.nope == 1)", Some(true)),
        ("[1, 2].all(x, x == 1 && args.nope == 1)", Some(false)),
    ] {
        assert_eq!(judged(text, json!({})).ok(), holds, "{text}");
    }
}

#[test]
fn rejects_numbers_that_are_not_exact() {
    let args = r#"{"n": 123456789012345678901234567890, "ok": 1}"#;
    let why = "args contains a number that cannot be represented exactly";
    assert_eq!(judged_raw("args.ok == 1", args), Err(why.to_owned()));
    assert_eq!(judged_raw("server == 'files'", args), Ok(true));
}

/// Invalid texts with their error messages.
#[test]
fn rejects_invalid_conditions_with_their_position() {
    for (text, why) in [
        ("", "column 1: the condition is empty"),
        ("  // nothing", "column 1: the condition is empty"),
        (
            "args.n = 3",
            "column 8: a single = is not an operator; write ==",
        ),
        ("a & b", "column 3: a single & is not an operator; write &&"),
        (
            "args.n == 3 &&",
            "column 15: unexpected end of the condition, expected a value",
        ),
        (
            "args.n == 3 or true",
            "column 13: unexpected or, expected an operator or the end of the condition",
        ),
        (
            "arg.n == 3",
            "column 1: unknown name arg; did you mean args?",
        ),
        (
            "request.path == ''",
            "column 1: unknown name request; use one of args, caller, server, time, tool",
        ),
        (
            "tool.readonly",
            "column 6: unknown field of tool readonly; did you mean read_only?",
        ),
        (
            "time.year == 2026",
            "column 6: unknown field of time year; use one of hour, minute, weekday, date, unix",
        ),
        (
            "caller == 'me'",
            "column 1: caller has no value of its own; use one of its fields: name, groups, roles, claims",
        ),
        (
            "args.a.startswith('b')",
            "column 8: unknown function startswith; did you mean startsWith?",
        ),
        (
            "startsWith(args.a, 'b')",
            "column 1: startsWith() must be written as value.startsWith(…)",
        ),
        (
            "args.a.startsWith()",
            "column 8: startsWith() takes 1 argument, not 0",
        ),
        (
            "exec('rm')",
            "column 1: unknown function exec; use one of size, startsWith, endsWith, contains, lowerAscii, int, string, all, exists, exists_one, filter, map, has, matches",
        ),
        (
            "has(args)",
            "column 5: has() takes a field, as in has(args.path)",
        ),
        (
            "args.l.all(args, true)",
            "column 12: args is already defined; choose another name",
        ),
        (
            "args.l.all(x, x.all(x, true))",
            "column 21: x is already defined; choose another name",
        ),
        (
            "args.l.all(1, true)",
            "column 12: unexpected number, expected a name for the item",
        ),
        (
            "args.a.matches(args.b)",
            "column 16: matches() takes one pattern, written as a string literal",
        ),
        (
            "args.a.matches('(')",
            "column 16: the pattern of matches() is not a valid regular expression: unclosed group",
        ),
        (
            "args.a.matches('(a{1000}){1000}')",
            "column 16: the pattern of matches() needs more than 262144 bytes once compiled; write a shorter one",
        ),
        ("'a", "column 1: this string is not closed; ' is missing"),
        (
            "'\\q' == ''",
            "column 1: this escape sequence is unknown; write \\\\ for a backslash",
        ),
        (
            "'\\u12' == ''",
            "column 1: this escape sequence needs 4 hexadecimal digits that denote a Unicode character",
        ),
        (
            "r'a' == ''",
            "column 1: strings with a prefix (raw strings, bytes) are not supported",
        ),
        (
            "{'a': 1} == args",
            "column 1: object literals are not supported",
        ),
        (
            "99999999999999999999 == 1",
            "column 1: this number is too large",
        ),
        ("1e999 == 1.0", "column 1: this number is too large"),
        (
            "0x10 == 16",
            "column 1: hexadecimal numbers are not supported",
        ),
        (
            "1a == 1",
            "column 1: a letter or digit or _ directly follows a number",
        ),
        (
            "args.n == 1 == true",
            "column 13: comparisons cannot be chained; join two comparisons with &&",
        ),
        (
            "1 == 'a'",
            "column 3: cannot compare a number with a string",
        ),
        (
            "time.hour == '9'",
            "column 11: cannot compare a number with a string",
        ),
        (
            "args.n + 1 || 2",
            "column 15: || needs a boolean on both sides, not a number",
        ),
        ("!3", "column 2: ! cannot be applied to a number"),
        ("-'a' == 1", "column 2: - cannot be applied to a string"),
        (
            "size(args)",
            "column 1: the result of the condition is a number, not a boolean",
        ),
        (
            "'true'",
            "column 1: the result of the condition is a string, not a boolean",
        ),
        (
            "(args.on",
            "column 9: unexpected end of the condition, expected )",
        ),
        (
            "args.l[1",
            "column 9: unexpected end of the condition, expected ]",
        ),
        (
            "args.\"a\"",
            "column 6: unexpected string, expected the name of a field",
        ),
        (
            "args.on ? true",
            "column 15: unexpected end of the condition, expected :",
        ),
        ("args.größe == 1", "column 8: unexpected character 'ö'"),
        (
            "args.a\n  && arg.b",
            "line 2, column 6: unknown name arg; did you mean args?",
        ),
    ] {
        assert_eq!(CelCondition::compile(text).unwrap_err(), why, "{text}");
    }
}

#[test]
fn a_condition_has_a_length_and_a_depth() {
    let text = |spaces: usize| format!("true{}", " ".repeat(spaces));
    assert!(CelCondition::compile(&text(4092)).is_ok());
    assert_eq!(
        CelCondition::compile(&text(4093)).unwrap_err(),
        "the condition is 4097 bytes long, and the limit is 4096; shorten it"
    );
    let deep = |n: usize| format!("{}true{}", "(".repeat(n), ")".repeat(n));
    assert!(CelCondition::compile(&deep(62)).is_ok());
    for text in [
        deep(64),
        format!("{}true", "!".repeat(4000)),
        format!("{}1 == 1", "-".repeat(4000)),
        format!("args{} == 1", ".a".repeat(2000)),
        format!("1{} == 1", "+1".repeat(2000)),
        format!("{}true", "true?true:".repeat(400)),
        "[".repeat(4000),
        "size(".repeat(800),
    ] {
        let why = CelCondition::compile(&text).unwrap_err();
        assert!(
            why.ends_with("the condition is nested more than 64 levels deep; simplify it"),
            "{why}"
        );
    }
    // A long chain is not deeply nested.
    let long = vec!["args.n == 1"; 200].join(" || ");
    assert_eq!(judged(&long, json!({"n": 1})), Ok(true));
}

/// Expressions without bound on their cost: nested loops multiply the work, or double a text.
#[test]
fn every_evaluation_ends() {
    let numbers: Vec<u32> = (0..3000).collect();
    let args = json!({"l": numbers, "s": "a".repeat(200_000)});
    let doubled = format!("[args.s]{}.size() == 1", ".map(x, x + x)".repeat(50));
    for text in [
        "args.l.all(a, args.l.all(b, args.l.all(c, args.l.all(d, a + b + c + d >= 0))))",
        "args.l.map(a, args.l.map(b, args.l)).size() == 0",
        doubled.as_str(),
        "args.l.all(x, args.s.contains('b') || true)",
        "args.l.all(x, args.s.matches('(a*)*b') || true)",
        "args.l.exists(a, args.l.map(b, b) != args.l)",
        "args.l.all(a, args.l.exists(b, b > 2999 )) || true",
    ] {
        let start = std::time::Instant::now();
        let why = judged(text, args.clone());
        let took = start.elapsed();
        if !text.ends_with("|| true") {
            assert_eq!(
                why,
                Err(
                    "the evaluation needs more than 100000 steps; simplify the condition"
                        .to_owned()
                ),
                "{text}"
            );
        }
        assert!(took < Duration::from_secs(10), "{text} took {took:?}");
    }
}

#[test]
fn reports_what_a_condition_reads() {
    for (text, args, time, pinned) in [
        ("args.n == 1", true, false, false),
        ("true || [1].exists(x, has(args.n))", true, false, false),
        ("time.hour > 8 && server == 'a'", false, true, false),
        ("tool.pinned == 'new' || tool.read_only", false, false, true),
        ("caller.name.startsWith('key:')", false, false, false),
        ("'args.n' == tool.name", false, false, false),
    ] {
        let when = CelCondition::compile(text).unwrap();
        let reads = (when.reads_args(), when.reads_time(), when.reads_pinned());
        assert_eq!(reads, (args, time, pinned), "{text}");
    }
}
