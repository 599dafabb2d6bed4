//! Audit recorder of `tracing` events: it writes a record only if a subscriber listens.

use crate::pipeline_fixture::PipelineFixture;
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

/// Returns the traced events of one allowed and one denied call.
fn traced_events(level: Level) -> Vec<String> {
    let heard = Arc::new(Mutex::default());
    let ear = Ear {
        level,
        heard: heard.clone(),
    };
    let fixture = PipelineFixture::unrecorded();
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    with_default(ear, || {
        let call = |name| fixture.go(fixture.call(name, json!({})));
        assert!(runtime.block_on(call("look")).is_ok());
        assert!(runtime.block_on(call("nothing")).is_err());
    });
    let mut heard = heard.lock().unwrap().clone();
    heard.retain(|event| event != "tool.pinned");
    heard
}

#[test]
fn who_listens_hears_each_call_begin_and_end() {
    assert_eq!(
        traced_events(Level::INFO),
        ["call.begin", "call.end", "deny"]
    );
    assert!(traced_events(Level::WARN).is_empty());
}
