//! T54: schemas and values made to take for ever.

#![allow(clippy::print_stdout, reason = "the figures of the tests")]

use crate::pipeline_fixture::item;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Map, Value, json};
use std::{
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};
use toolgate_core::{
    BoxFuture, Call, Caller, Catalog, ChangeFilter, ChangeStream, Error, ItemKind, Json,
    ListRequest, Outcome, Output, Service,
};
use toolgate_policy::{Policy, RateLimiter, RateQuota, SchemaBounds, SchemaSanitizer};

/// A name, a schema of arguments, and arguments.
type Bomb = (String, Value, Value);

struct Tools(Catalog);

impl Service for Tools {
    fn list(&self, _: ListRequest) -> BoxFuture<'_, Result<Catalog, Error>> {
        Box::pin(async { Ok(self.0.clone()) })
    }

    fn call(&self, _: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(async { Ok(Outcome::Done(Output::text("done"))) })
    }

    fn changes(&self, _: ChangeFilter) -> BoxFuture<'_, Result<ChangeStream, Error>> {
        Box::pin(std::future::pending())
    }
}

/// A schema around that of one argument.
fn of_x(schema: Value) -> Value {
    json!({"type": "object", "properties": {"x": schema}})
}

fn repeat(times: usize, inner: &Value) -> Vec<Value> {
    vec![inner.clone(); times]
}

fn many(count: usize, one: impl Fn(usize) -> Value) -> Value {
    (0..count).map(one).collect()
}

/// So many levels of a list in a list, or of a member.
fn deep(levels: usize, wrap: impl Fn(Value) -> Value, end: Value) -> Value {
    (0..levels).fold(end, |inner, _| wrap(inner))
}

fn chain(length: usize, link: impl Fn(Value) -> Value) -> Value {
    let mut defs = Map::new();
    for at in 0..length {
        let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
        defs.insert(format!("d{at}"), link(next));
    }
    defs.insert(format!("d{length}"), json!({"type": "string"}));
    json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": defs})
}

/// All of them; with `TOOLGATE_LONG` the lists are as long as the reader lets in.
fn bombs() -> Vec<Bomb> {
    let wide = if std::env::var_os("TOOLGATE_LONG").is_some() {
        99_000
    } else {
        10_000
    };
    let mut all: Vec<Bomb> = Vec::new();
    let mut add = |name: String, schema: Value, value: Value| all.push((name, schema, value));
    for n in 1..=30 {
        let words = ["allOf", "anyOf", "oneOf"];
        let key = words[n % 3];
        let schema = chain(n, |next| json!({key: [next, next]}));
        add(
            format!("{n} references, twice each, {key}"),
            schema,
            json!({"x": 1}),
        );
    }
    for n in 2..=21 {
        let node = json!({"properties": {"x": {"$ref": "#"}}, "required": ["y"]});
        let schema = json!({"type": "object", "anyOf": repeat(n, &node)});
        let value = deep(50, |inner| json!({"x": inner}), json!({}));
        add(format!("{n} ways round, 50 deep"), schema, value);
    }
    for n in 1..=15 {
        let schema = deep(
            n,
            |inner| json!({"anyOf": [inner, inner]}),
            json!({"type": "string"}),
        );
        add(
            format!("anyOf in anyOf, {n} deep"),
            of_x(schema),
            json!({"x": many(2000, |n| json!(n))}),
        );
    }
    let text = |n: usize| format!("{}!", "a".repeat(n));
    let patterns = [
        "^(a+)+$",
        "^(a|a)*$",
        "^(a|aa)+$",
        "(a*)*b",
        "^(.*a){20}$",
        "(.*)(.*)(.*)(.*)c",
        "^([a-z]+)*\\d$",
        "(a?){30}a{30}",
        "(a?){100}a{100}",
        "(a?){300}a{300}",
        "[ab]*a[ab]{50}c",
        "[ab]*a[ab]{300}c",
        "[ab]*a[ab]{1000}c",
        "(?:a{1,50}){1,50}c",
        "((a{1,10}){1,10}){1,10}c",
        "(a{0,400}b?){0,5}c",
        "^(\\w+\\s?)*$",
        "(x+x+)+y",
        "^(([a-z])+.)+[A-Z]([a-z])+$",
        "(\\s*a\\s*)*c",
        "a{1000}",
        "(aa|a){500}c",
        "(a|b|ab)*c",
        "\\p{L}*\\p{Ll}*c",
        "^(?:\\p{L}{1,60}){1,4}$",
    ];
    for pattern in patterns {
        for size in [3000, 10 * wide] {
            let schema = of_x(json!({"type": "string", "pattern": pattern}));
            add(
                format!("pattern {pattern} on {size}"),
                schema,
                json!({"x": text(size)}),
            );
        }
    }
    // By chance, so that no two places look alike.
    let coins = |n: usize| -> String {
        let mut state = 0x9E37_79B9_u32;
        let mut coin = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if state >> 31 == 0 { 'a' } else { 'b' }
        };
        (0..n).map(|_| coin()).collect()
    };
    for (pattern, sizes) in [
        ("[ab]*a[ab]{1000}c", [300, 600, 3000]),
        ("[ab]*a[ab]{50}c", [3000, 10_000, 100_000]),
        ("[ab]*a[ab]{14}c", [30_000, 100_000, 990_000]),
        ("[ab]*a[ab]{6}c", [30_000, 100_000, 990_000]),
        ("\\w*a\\w{6}c", [3000, 30_000, 100_000]),
        ("^[ab]*a[ab]{40}c$", [3000, 10_000, 100_000]),
        ("^[ab]{0,5000}[ab]{0,60}c$", [3000, 9000, 100_000]),
        ("^[ab]{1,5000}$", [3000, 5000, 100_000]),
        ("(?:a{1,20}b?){1,20}c", [300, 1500, 30_000]),
        ("(?:a{1,50}){1,50}c", [100, 200, 240]),
        ("((a?b?){1,10}){1,10}c", [300, 1500, 30_000]),
    ] {
        for size in sizes {
            let schema = of_x(json!({"type": "string", "pattern": pattern}));
            add(
                format!("pattern {pattern} on {size} coins"),
                schema,
                json!({"x": coins(size)}),
            );
        }
    }
    for (count, pattern) in [
        (190, "[ab]*a[ab]{1000}c"),
        (190, "\\w{1,12}"),
        (8, "\\p{L}{1,60}"),
        (190, "(?:a{1,20}){1,20}"),
    ] {
        let each = |n: usize| json!({"pattern": format!("{pattern}{n}")});
        let schema = of_x(json!({"anyOf": many(count, each)}));
        let value = json!({"x": coins(1000)});
        add(format!("{count} patterns {pattern}"), schema, value);
    }
    for n in 1..=10 {
        let pattern = format!("((a{{1,{0}}}){{1,{0}}}){{1,{0}}}", n * 40);
        add(
            format!("pattern {pattern}"),
            of_x(json!({"pattern": pattern})),
            json!({"x": text(3000)}),
        );
    }
    let nested = |mut n: usize| {
        // All of one hash: lists of empty lists, of as many brackets.
        let (mut all, mut top) = (Vec::new(), json!([]));
        while n > 0 {
            top = if n.is_multiple_of(2) {
                json!([top])
            } else {
                json!([[], top])
            };
            n /= 2;
        }
        all.push(top);
        Value::Array(all)
    };
    let lists: [(&str, Value); 9] = [
        ("numbers", many(wide, |n| json!(n))),
        ("halves", many(wide, |n| json!(n as f64 + 0.5))),
        ("words", many(wide, |n| json!(format!("{n:08}")))),
        ("pairs", many(wide / 3, |n| json!([n, 1]))),
        ("objects", many(wide / 5, |n| json!({"a": n, "b": 1}))),
        ("the same but the last", many(wide, |n| json!(n / 2))),
        ("big numbers", many(wide, |n| json!(u64::MAX - n as u64))),
        (
            "fewer big numbers",
            many(4900, |n| json!(u64::MAX - n as u64)),
        ),
        ("lists of one hash", many(1200, nested)),
    ];
    for (name, list) in &lists {
        add(
            format!("uniqueItems of {name}"),
            of_x(json!({"uniqueItems": true})),
            json!({"x": list}),
        );
        let schema = json!({"items": {"enum": many(5000, |n| json!(format!("w{n}")))}});
        add(
            format!("enum of 5000 for {name}"),
            of_x(schema),
            json!({"x": list}),
        );
    }
    for n in [1, 10, 100, 500, 900] {
        let contains = json!({"contains": {"const": n}, "minContains": 2});
        let list = json!({"x": lists[0].1});
        add(
            format!("allOf {n} contains"),
            of_x(json!({"allOf": repeat(n, &contains)})),
            list.clone(),
        );
        add(
            format!("anyOf {n} contains"),
            of_x(json!({"anyOf": repeat(n, &contains)})),
            list.clone(),
        );
        let schema = json!({"items": {"oneOf": repeat(n, &json!({"type": "integer"}))}});
        add(format!("oneOf {n} for each"), of_x(schema), list);
    }
    let keys: Map<String, Value> = (0..4000).map(|n| (format!("key{n}"), json!(1))).collect();
    for n in [10, 100, 190] {
        let patterns: Map<String, Value> = (0..n)
            .map(|n| (format!("^(k|ke|key)*{n}$"), json!({"type": "string"})))
            .collect();
        add(
            format!("{n} patternProperties"),
            of_x(json!({"patternProperties": patterns})),
            json!({"x": keys}),
        );
        let names = repeat(n, &json!({"propertyNames": {"pattern": "^(k+e+y+)+$"}}));
        add(
            format!("{n} propertyNames"),
            of_x(json!({"allOf": names})),
            json!({"x": keys}),
        );
    }
    for n in [2, 5, 10, 15, 20, 25, 30] {
        let not_seen = |key: &'static str| {
            deep(
                n,
                move |inner| json!({"allOf": [inner], key: false}),
                json!({"properties": {"a": true}}),
            )
        };
        add(
            format!("unevaluatedProperties {n} deep"),
            of_x(not_seen("unevaluatedProperties")),
            json!({"x": keys}),
        );
        add(
            format!("unevaluatedItems {n} deep"),
            of_x(not_seen("unevaluatedItems")),
            json!({"x": many(4000, |n| json!(n))}),
        );
        let wide = json!({"anyOf": many(n * 20, |at| json!({"properties": {format!("key{at}"): true}})), "unevaluatedProperties": false});
        add(
            format!("unevaluatedProperties over {} branches", n * 20),
            of_x(wide),
            json!({"x": keys}),
        );
        if n <= 10 {
            let schema = deep(
                n.min(7),
                |inner| json!({"if": inner, "then": inner, "else": inner}),
                json!({"type": "string"}),
            );
            add(format!("if in if, {n} deep"), of_x(schema), json!({"x": 1}));
        }
        let schema = deep(n, |inner| json!({"not": inner}), json!({"type": "string"}));
        add(
            format!("not in not, {n} deep"),
            of_x(schema),
            json!({"x": many(20_000, |n| json!(n))}),
        );
        let tree = json!({"$dynamicAnchor": "n", "type": "object", "properties": {"x": {"anyOf": repeat(n, &json!({"$dynamicRef": "#n"}))}}, "required": ["y"]});
        add(
            format!("{n} dynamic references"),
            tree,
            deep(40, |inner| json!({"x": inner}), json!({})),
        );
        let depends: Map<String, Value> = (0..n * 20)
            .map(|at| (format!("key{at}"), json!({"minProperties": 5000})))
            .collect();
        add(
            format!("{} dependentSchemas", n * 20),
            of_x(json!({"dependentSchemas": depends})),
            json!({"x": keys}),
        );
    }
    for n in [100, 1000, 1900] {
        let long = repeat(n, &json!({"maxLength": 10_000_000}));
        add(
            format!("{n} lengths of a long string"),
            of_x(json!({"allOf": long})),
            json!({"x": "ä".repeat(500_000)}),
        );
    }
    for step in ["1e-300", "5e-324", "0.1", "1e300", "3"] {
        let step: Value = serde_json::from_str(step).unwrap();
        let schema = of_x(json!({"items": {"multipleOf": step}}));
        add(
            format!("multiples of {step}"),
            schema,
            json!({"x": many(wide / 2, |n| json!(n as f64 * 1e290))}),
        );
    }
    for format in [
        "regex",
        "idn-email",
        "iri",
        "uri-template",
        "json-pointer",
        "idn-hostname",
        "date-time",
        "ipv6",
    ] {
        let schema = json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {"x": {"format": format}}});
        add(
            format!("format {format}"),
            schema,
            json!({"x": "(a:[".repeat(100_000)}),
        );
    }
    let schema = json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {"x": {"format": "regex"}}});
    let large = "(?:\\p{L}{1,100}){1,100}";
    add("a large expression".to_owned(), schema, json!({"x": large}));
    all
}

fn status(key: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with(key)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// The time that a processor spent, on this thread or in all of the process.
fn spent(clock: ClockId) -> Duration {
    let now = clock_gettime(clock);
    Duration::new(
        now.tv_sec.try_into().unwrap(),
        now.tv_nsec.try_into().unwrap(),
    )
}

fn service(schema: &Value) -> Tools {
    let tool = item(json!({"name": "t", "inputSchema": schema}));
    Tools(Catalog::new(vec![tool]))
}

/// Runs one bomb and returns the outcome.
pub(super) async fn explode(
    bounds: SchemaBounds,
    schema: &Value,
    value: &Value,
    caller: &Caller,
) -> String {
    let tools = service(schema);
    explode_at(bounds, tools, Json::from_value(value), caller).await
}

async fn explode_at(bounds: SchemaBounds, tools: Tools, value: Json, caller: &Caller) -> String {
    let mut standard = Policy::default();
    standard.rate = RateLimiter::new(Vec::new(), RateQuota::per_minute(1_000_000));
    standard.schemas = SchemaSanitizer(bounds);
    let pipeline = standard.over(Arc::new(tools));
    let listed = pipeline
        .list(ListRequest::all(caller.clone(), ItemKind::Tool))
        .await
        .unwrap();
    if listed.items().is_empty() {
        return "withheld".to_owned();
    }
    let call = Call::tool("c".to_owned(), caller.clone(), "t", value);
    match pipeline.call(call).await {
        Ok(_) => "passed".to_owned(),
        Err(error) if error.public_message().contains("took longer") => "out of time".to_owned(),
        Err(error)
            if error
                .public_message()
                .contains("validated against this schema in time") =>
        {
            "too much".to_owned()
        }
        Err(_) => "refused".to_owned(),
    }
}

/// Variable by which a test runs this one in a process of its own, so that its memory can be measured.
const ALONE: &str = "TOOLGATE_TEST_ALONE";

/// Cost of one bomb, including checks that continued in the background.
struct Cost {
    /// Of all threads.
    all: Duration,
    /// Of the thread on which other calls run too.
    here: Duration,
    /// KiB more than before.
    memory: u64,
    name: String,
}

/// Each has a runtime of its own, whose end waits for the threads that still check.
fn cost(name: &str, schema: &Value, value: &Value) -> (Cost, String) {
    let caller = Caller::new("key:test");
    let tools = service(schema);
    let value = Json::from_value(value);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    // The peak of the process is set back, so that each tells its own.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let before = status("VmRSS:");
    let (all, here) = (
        spent(ClockId::ProcessCPUTime),
        spent(ClockId::ThreadCPUTime),
    );
    let said = runtime.block_on(explode_at(SchemaBounds::default(), tools, value, &caller));
    let here = spent(ClockId::ThreadCPUTime) - here;
    drop(runtime);
    let cost = Cost {
        all: spent(ClockId::ProcessCPUTime) - all,
        here,
        memory: status("VmHWM:").saturating_sub(before),
        name: format!("{name}: {said}"),
    };
    (cost, said)
}

#[test]
fn bombs_alone() {
    if std::env::var_os(ALONE).is_none() {
        return;
    }
    let mut said = std::collections::BTreeMap::<String, usize>::new();
    let mut costs = Vec::new();
    for (name, schema, value) in &bombs() {
        let (cost, what) = cost(name, schema, value);
        *said.entry(what).or_default() += 1;
        costs.push(cost);
    }
    let count = costs.len();
    let memory = costs.iter().max_by_key(|cost| cost.memory).unwrap();
    println!("T54: most memory {} KiB, {}", memory.memory, memory.name);
    let most = memory.memory;
    let here = costs.iter().max_by_key(|cost| cost.here).unwrap();
    let stalled = here.here;
    println!("T54: longest without a pause {stalled:?}, {}", here.name);
    costs.sort_by_key(|cost| cost.all);
    let middle = costs[count / 2].all;
    println!("T54: {count} bombs, {said:?}, half within {middle:?} of a processor");
    for cost in costs.iter().rev().take(12) {
        println!(
            "T54: {:?}, here {:?}, {} KiB: {}",
            cost.all, cost.here, cost.memory, cost.name
        );
    }
    let dearest = costs.last().unwrap().all;
    assert!(count >= 250);
    // Ten times what is aimed at; without optimization all of it takes some ten times longer still.
    let slow = if cfg!(debug_assertions) { 10 } else { 1 };
    assert!(dearest < slow * Duration::from_millis(500), "{dearest:?}");
    assert!(stalled < slow * Duration::from_millis(250), "{stalled:?}");
    assert!(most < 32 * 1024, "{most} KiB");
}

#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "it starts itself again, alone in a process"
)]
fn t54_schema_bombs_are_bounded() {
    let mut alone = Command::new(std::env::current_exe().unwrap());
    alone.args(["--exact", "schemas::bombs::bombs_alone", "--nocapture"]);
    let out = alone.env(ALONE, "1").stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    text.lines()
        .filter(|line| line.starts_with("T54"))
        .for_each(|line| println!("{line}"));
    assert!(
        out.status.success(),
        "{text} {}",
        String::from_utf8_lossy(&out.stderr)
    );
    assert!(text.contains("T54: "), "{text}");
}

#[tokio::test]
async fn the_time_is_a_setting() {
    let mut kinds = repeat(50, &json!({"type": "string"}));
    kinds.push(json!({"type": "integer"}));
    let schema = of_x(json!({"items": {"anyOf": kinds}}));
    let value = json!({"x": many(20_000, |n| json!(n))});
    let caller = Caller::new("key:test");
    let with = |time| {
        let mut bounds = SchemaBounds::default();
        bounds.time = time;
        bounds
    };
    let short = with(Duration::from_micros(1));
    let said = explode(short, &schema, &value, &caller).await;
    assert_eq!(said, "too much");
    let long = with(Duration::from_secs(60));
    let said = explode(long, &schema, &value, &caller).await;
    assert_eq!(said, "passed");
}
