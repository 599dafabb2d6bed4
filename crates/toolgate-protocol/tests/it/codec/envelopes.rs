//! Messages, and the parameters in them.

use super::{json, key, meta, object, text, value};
use proptest::prelude::*;
use serde_json::Value;
use toolgate_protocol::{
    json::{Json, ObjectWriter},
    message::{self, Id, JsonRpcMessage, RpcError},
    method::{
        definition::ItemKind,
        elicitation::{ElicitAnswer, InputRequiredResult, RawInputRequest},
        notifications::{self, Progress},
        operation::{self, Op, OperationParams},
    },
};

fn id() -> impl Strategy<Value = Id> {
    let value = prop_oneof![
        any::<i64>().prop_map(Value::from),
        text().prop_map(Value::from)
    ];
    value.prop_map(|value| Id::read(&json(&value)).expect("an id"))
}

fn read(line: &str) -> JsonRpcMessage {
    assert!(!line.contains(['\n', '\r']), "one line");
    let json = Json::read(line.as_bytes().to_vec(), &Default::default()).expect("JSON");
    JsonRpcMessage::read(&json).expect("a message")
}

/// Generates an operation and its possible arguments.
fn used() -> impl Strategy<Value = (Op, Value)> {
    let strings = || prop::collection::hash_map(key(), text(), 0..3);
    let argument = (text(), text(), prop::option::of(strings()));
    let complete = argument.prop_map(|(name, value, context)| {
        let mut all = serde_json::json!({"argument": {"name": name, "value": value}});
        if let Some(context) = context {
            all["context"] = serde_json::json!({"arguments": context});
        }
        all
    });
    let of = prop::sample::select(vec![ItemKind::Prompt, ItemKind::Template]);
    prop_oneof![
        object().prop_map(|o| (Op::Tool, o)),
        strings().prop_map(|s| (Op::Prompt, serde_json::json!(s))),
        Just((Op::Resource, Value::Null)),
        (of, complete).prop_map(|(of, all)| (Op::Complete(of), all)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Holds: BASE-01, BASE-07.
    #[test]
    fn a_message_is_read_back(id in id(), method in text(), params in prop::option::of(object()), code in any::<i64>(), words in text(), data in prop::option::of(value())) {
        let params = params.as_ref().map(json);
        match read(&message::request(&id, &method, params.as_ref())) {
            JsonRpcMessage::Request { id: same, method: m, params: p } => {
                prop_assert_eq!((same.json().as_str(), m, p), (id.json().as_str(), method.clone(), params.clone()));
            }
            other => prop_assert!(false, "{:?}", other),
        }
        match read(&message::notification(&method, params.as_ref())) {
            JsonRpcMessage::Notification { method: m, params: p } => prop_assert_eq!((m, p), (method, params.clone())),
            other => prop_assert!(false, "{:?}", other),
        }
        let error = RpcError { code, message: words, data: data.as_ref().map(json), relayed: false };
        for answer in [Ok(params.unwrap_or_else(|| json(&Value::Null))), Err(error)] {
            match read(&message::reply(Some(&id), &answer)) {
                JsonRpcMessage::Reply { id: same, answer: a } => prop_assert_eq!((same, a), (Some(id.clone()), answer)),
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }

    #[test]
    fn a_use_is_read_back((op, arguments) in used(), name in text(), answers in prop::collection::btree_map(key(), value(), 0..3), state in prop::option::of(text())) {
        let arguments = if op == Op::Resource { serde_json::json!({"uri": name}) } else { arguments };
        let arguments = json(&arguments);
        let mut o = ObjectWriter::new();
        operation::write(&mut o, op, &name, &arguments);
        if !answers.is_empty() {
            o.object("inputResponses", |r| answers.iter().for_each(|(k, v)| r.raw(k, &json(v))));
        }
        if let Some(state) = &state {
            o.str("requestState", state);
        }
        let read = OperationParams::read(op.method(), Some(&o.finish()));
        let read = read.map_err(TestCaseError::fail)?;
        let answers: Vec<(String, Json)> = answers.iter().map(|(k, v)| (k.clone(), json(v))).collect();
        prop_assert_eq!((read.op, read.name, read.arguments.to_value()), (op, name, arguments.to_value()));
        prop_assert_eq!((read.answers, read.state), (answers, state));
    }

    /// Holds: PROG-03.
    #[test]
    fn progress_is_read_back(id in id(), progress in -1e300..1e300f64, whole in any::<i32>(), total in prop::option::of(0.0..1e300f64), words in prop::option::of(text())) {
        for progress in [progress, f64::from(whole)] {
            let told = Progress { progress, total, message: words.clone() };
            let written = told.json(id.json());
            let (token, read) = Progress::read(&written).expect("progress");
            prop_assert_eq!((token.as_str(), read), (id.json().as_str(), told));
        }
    }

    #[test]
    fn a_cancellation_names_its_request(id in id(), reason in text()) {
        let read = notifications::cancelled_id(Some(&notifications::cancelled(&id, &reason)));
        prop_assert_eq!(read, Some(id));
    }

    #[test]
    fn questions_are_read_back(asks in prop::collection::btree_map(key(), (text(), prop::option::of(object())), 0..4), state in text()) {
        let requests = asks.into_iter().map(|(key, (method, params))| RawInputRequest { key, method, params: params.as_ref().map(json) });
        let written = InputRequiredResult { requests: requests.collect(), state: Some(state), server: None };
        let read = InputRequiredResult::read(&written.json()).map_err(TestCaseError::fail)?;
        prop_assert_eq!((read.requests, read.state), (written.requests, written.state));
    }

    #[test]
    fn an_answer_of_the_user_is_read(content in prop::option::of(object()), meta in meta()) {
        for (word, expected) in [("accept", ElicitAnswer::Accept(content.as_ref().map(json))), ("decline", ElicitAnswer::Decline), ("cancel", ElicitAnswer::Cancel)] {
            let mut o = ObjectWriter::new();
            o.str("action", word);
            if let Some(content) = &content {
                o.raw("content", &json(content));
            }
            if let Some(meta) = &meta {
                o.raw("_meta", meta);
            }
            prop_assert_eq!(ElicitAnswer::read(&o.finish()), Some(expected));
        }
    }
}
