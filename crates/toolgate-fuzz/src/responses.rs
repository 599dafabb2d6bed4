//! Targets for responses of servers: definitions, results, lists and event streams.

use crate::protocol::read;
use toolgate::__fuzz::sse_events;
use toolgate_core::ItemKind;
use toolgate_protocol::{
    dialect,
    json::Json,
    method::{
        discover::DiscoverResult,
        elicitation::{ElicitAnswer, InputRequiredResult},
        initialize::{Implementation, InitializeResult},
        list::{CacheHint, ListPage},
        operation::Op,
        output::Output,
        tasks::{Task, TaskForm},
    },
    normalize,
};

fn assert_json(written: &Json) {
    assert!(
        read(written.as_str().as_bytes()).is_some(),
        "not JSON: {}",
        written.as_str()
    );
}

/// Normalization of definitions: a repaired definition needs no second repair, and every revision can write it.
pub fn definition(bytes: &[u8]) {
    let Some(json) = read(bytes) else {
        return;
    };
    for kind in ItemKind::ALL {
        let Ok(first) = normalize::definition(kind, json.clone()) else {
            continue;
        };
        let repaired = first.definition.json().clone();
        assert_json(&repaired);
        match normalize::definition(kind, repaired.clone()) {
            Ok(second) => {
                let same = second.definition.json().as_str() == repaired.as_str();
                assert!(
                    same,
                    "{kind:?} is repaired twice: {:?} then {:?}",
                    first.repairs, second.repairs
                );
            }
            Err(why) => panic!("a repaired {kind:?} is refused: {why}"),
        }
        for dialect in dialect::ALL {
            if let Ok(written) = dialect.definition(&first.definition) {
                assert_json(&written);
            }
        }
    }
}

/// Normalization of results: a repaired result needs no second repair.
pub fn result(bytes: &[u8]) {
    let Some(json) = read(bytes) else {
        return;
    };
    for op in [
        Op::Tool,
        Op::Resource,
        Op::Prompt,
        Op::Complete(ItemKind::Prompt),
    ] {
        let (first, repairs) = normalize::result(op, &json, "file:///a");
        assert_json(&first);
        let (second, again) = normalize::result(op, &first, "file:///a");
        let same = second.as_str() == first.as_str();
        assert!(same, "{op:?} is repaired twice: {repairs:?} then {again:?}");
        let _ = Output::read(op, &first);
    }
}

/// Readers of all other results of a server.
pub fn server_reply(bytes: &[u8]) {
    let Some(json) = read(bytes) else {
        return;
    };
    let _ = (InitializeResult::read(&json), DiscoverResult::read(&json));
    let _ = (CacheHint::read(&json), Implementation::read(&json));
    let _ = (InputRequiredResult::read(&json), ElicitAnswer::read(&json));
    for kind in ItemKind::ALL {
        let _ = ListPage::read(kind, &json);
    }
    for form in [TaskForm::Core, TaskForm::Extension] {
        let _ = Task::read(form, &json);
    }
}

/// Parser of server-sent events: the events do not depend on how the stream is divided.
pub fn sse(bytes: &[u8]) {
    const LIMIT: usize = 4096;
    let whole = sse_events(bytes, bytes.len(), LIMIT);
    let Some(whole) = whole else {
        return;
    };
    for part in [1, 2, 7] {
        assert_eq!(
            sse_events(bytes, part, LIMIT).as_ref(),
            Some(&whole),
            "parts of {part}"
        );
    }
}
