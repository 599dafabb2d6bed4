//! Pins in the gateway: their settings, what each server is, and who hears of changes.

use crate::{
    board::Board,
    config::{Address, Config},
    stack::per_server,
};
use std::sync::Arc;
use toolgate::visible_line;
use toolgate_policy::{PinEvent, Pins, Recorder, Store};

/// The pins of the data directory. What a person should know is told on stderr, and in the console.
pub(crate) fn shared(store: Arc<dyn Store>, recorder: Arc<Recorder>, board: Arc<Board>) -> Pins {
    Pins::new(store, recorder).told(move |event| tell(&board, &event))
}

/// The same pins with the settings of a config.
pub(crate) fn settings(config: &Config, pins: Pins) -> Pins {
    let defaults = config.pins;
    let first = per_server(config, defaults.first, |server| {
        server.pins_first.unwrap_or(defaults.first)
    });
    let change = per_server(config, defaults.change, |server| {
        server.pins_change.unwrap_or(defaults.change)
    });
    let identities = config
        .servers
        .iter()
        .map(|s| (s.id.clone(), identity(s.address.as_ref(), &s.command)));
    pins.first(first)
        .change(change)
        .look_alikes(defaults.look_alikes)
        .most(config.limits.pins_per_server)
        .identities(identities)
}

/// What a server is: its address, or the words of its command.
pub(crate) fn identity(address: Option<&Address>, command: &[String]) -> String {
    match address {
        Some(address) => serde_json::json!({"url": address.url}).to_string(),
        None => serde_json::json!({"command": command}).to_string(),
    }
}

fn tell(board: &Board, event: &PinEvent) {
    eprintln!("toolgate: {}", visible_line(&event.to_string()));
    let told =
        serde_json::json!({"name": event.name, "kind": event.kind, "text": event.to_string()});
    board.tell("pin", &told);
}
