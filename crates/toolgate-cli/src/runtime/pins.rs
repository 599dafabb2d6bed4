//! Pins of the gateway: settings, server identities, and notifications.

use crate::{
    config::{Config, RemoteAddress},
    event_log::{self, GatewayEvent},
    runtime::call_feed::CallFeed,
    runtime::compose::per_server,
    telemetry::GatewayTelemetry,
};
use std::sync::Arc;
use toolgate_policy::{AuditRecorder, PinEvent, PinEventKind, Pins, StateStore};

/// Creates the pins of the data directory. Their events go to the event log and to the console.
pub(crate) fn create_pins(
    store: Arc<dyn StateStore>,
    recorder: Arc<AuditRecorder>,
    board: Arc<CallFeed>,
    telemetry: Option<Arc<GatewayTelemetry>>,
) -> Pins {
    Pins::new(store, recorder).on_event(move |event| {
        let what = match event.what {
            PinEventKind::New => "new",
            PinEventKind::Changed(_) => "changed",
            _ => "flagged",
        };
        if let Some(telemetry) = &telemetry {
            telemetry.pin_events.increment(&[&event.server, what]);
        }
        report(&board, &event);
    })
}

/// Applies the settings of a config to the pins.
pub(crate) fn with_settings(config: &Config, pins: Pins) -> Pins {
    let defaults = config.pins;
    let first = per_server(config, defaults.on_new, |server| {
        server.pins_first.unwrap_or(defaults.on_new)
    });
    let change = per_server(config, defaults.on_change, |server| {
        server.pins_change.unwrap_or(defaults.on_change)
    });
    let identities = config
        .servers
        .iter()
        .map(|s| (s.id.clone(), identity(s.address.as_ref(), &s.command)));
    pins.on_new(first)
        .on_change(change)
        .on_confusable(defaults.confusable_names)
        .max_per_server(config.limits.pins_per_server)
        .identities(identities)
}

/// Returns the identity of a server: its URL, or the words of its command.
pub(crate) fn identity(address: Option<&RemoteAddress>, command: &[String]) -> String {
    match address {
        Some(address) => serde_json::json!({"url": address.url}).to_string(),
        None => serde_json::json!({"command": command}).to_string(),
    }
}

fn report(board: &CallFeed, event: &PinEvent) {
    event_log::emit(GatewayEvent::Definition(event.clone()));
    let told =
        serde_json::json!({"name": event.name, "kind": event.kind, "text": event.to_string()});
    board.send("pin", &told);
}
