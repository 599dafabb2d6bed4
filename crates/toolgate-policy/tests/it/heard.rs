//! A record without a journal is made for who listens to `tracing`, and only then.

use crate::world::World;
use serde_json::json;
use std::{
    fmt::Debug,
    sync::{Arc, Mutex},
};
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
    subscriber::with_default,
};

/// Keeps the word of each event of the record.
struct Ear {
    level: Level,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Subscriber for Ear {
    fn enabled(&self, about: &Metadata<'_>) -> bool {
        about.target() == "toolgate::audit" && *about.level() <= self.level
    }

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Word(&self.heard));
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

struct Word<'a>(&'a Mutex<Vec<String>>);

impl Visit for Word<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "event" {
            self.0.lock().unwrap().push(value.to_owned());
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
}

/// What is heard of one call that passes and one that is refused.
fn heard(level: Level) -> Vec<String> {
    let heard = Arc::new(Mutex::default());
    let ear = Ear {
        level,
        heard: heard.clone(),
    };
    let world = World::unrecorded();
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    with_default(ear, || {
        let call = |name| world.go(world.call(name, json!({})));
        assert!(runtime.block_on(call("look")).is_ok());
        assert!(runtime.block_on(call("nothing")).is_err());
    });
    let mut heard = heard.lock().unwrap().clone();
    heard.retain(|event| event != "tool.pinned");
    heard
}

#[test]
fn who_listens_hears_each_call_begin_and_end() {
    assert_eq!(heard(Level::INFO), ["call.begin", "call.end", "deny"]);
    assert!(heard(Level::WARN).is_empty());
}
