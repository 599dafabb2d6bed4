//! Pins as the operator sees them and decides about them.

use super::{ActionError, ActionResult, OperatorApi, item_view};
use serde_json::{Value, json};
use std::{collections::HashMap, sync::atomic::Ordering};
use toolgate_core::{ItemKind, Json};
use toolgate_policy::{
    Approver, PinError, PinView, Pins, SecretRedactor,
    pins::{DefinitionDifference, SteeringFlag, steering_flags},
};

/// Maximum number of pins that the console shows. More are shown once some of these are decided.
const MAX_SHOWN_PINS: usize = 500;
/// Maximum size of the differences and texts that the console gets with every change, in bytes. Those of further pins
/// are requested one by one.
const MAX_PIN_TEXT_BYTES: usize = 1024 * 1024;

impl OperatorApi {
    /// Executes an action on pins; `None` for any other action.
    pub(super) async fn pin_action(
        &self,
        action: &str,
        with: &Value,
        who: &Approver,
    ) -> Option<ActionResult> {
        let word = |key: &str| with.get(key).and_then(Value::as_str);
        let pins = self.active.snapshot().pins.clone();
        let name = word("name").unwrap_or_default();
        let (done, what) = match action {
            "pins" => return Some(self.list_pins(&pins, word("server")).await),
            "pins/diff" => return Some(find_pins(&pins, name)),
            "pins/accept" => match word("server") {
                Some(server) => (pins.accept_all(server, who).await, server),
                None => (pins.accept(name, word("digest"), who).await, name),
            },
            "pins/reject" => (pins.reject(name, word("digest"), who).await, name),
            "pins/forget" => (pins.forget(name, who).await, name),
            _ => return None,
        };
        Some(match done {
            Ok(count) => {
                self.send_pins();
                Ok(json!({"ok": true, "count": count}))
            }
            Err(PinError::Unknown) => Err(unknown_pin(what)),
            Err(error) => Err(ActionError::Refused(format!("{what}: {error}"))),
        })
    }

    async fn list_pins(&self, pins: &Pins, server: Option<&str>) -> ActionResult {
        let known = |id: &str| {
            self.active
                .snapshot()
                .config
                .servers
                .iter()
                .any(|s| s.id == id)
        };
        match server.filter(|id| !known(id)) {
            Some(id) => Err(ActionError::Unknown(format!(
                "there is no server {id:?}; `toolgate status` lists the servers"
            ))),
            None => {
                let flags = self.review_flags().await;
                let with_flags = |view: &PinView| {
                    let mut pin = pin_summary(view);
                    pin["flags"] = json!(flags.get(&(view.kind.clone(), view.name.clone())));
                    pin
                };
                Ok(pins.views(server).iter().map(with_flags).collect())
            }
        }
    }

    /// Returns the flags of the known definitions by kind and full name, without asking a server.
    async fn review_flags(&self) -> HashMap<(String, String), Vec<String>> {
        let mut flags = HashMap::new();
        for kind in ItemKind::ALL {
            for item in self.known_items(kind).await.items() {
                let shown = item_view::review_flags(item);
                if !shown.is_empty() {
                    flags.insert((kind.as_str().to_owned(), item.full_name()), shown);
                }
            }
        }
        flags
    }

    /// Returns the pins that wait for a decision or were rejected, with differences up to the maximum size.
    pub(super) fn open_pins(&self) -> Value {
        let mut room = MAX_PIN_TEXT_BYTES;
        let open = self
            .active
            .snapshot()
            .pins
            .awaiting_decision(MAX_SHOWN_PINS);
        let fitting = |view: &PinView| match room.checked_sub(text_bytes(view)) {
            Some(left) => {
                room = left;
                pin_with_texts(view)
            }
            None => pin_summary(view),
        };
        open.iter().map(fitting).collect()
    }

    /// Returns how many pins wait for a decision, with a number that changes when the pins may have.
    pub(super) fn pin_counts(&self) -> Value {
        let open = self
            .active
            .snapshot()
            .pins
            .awaiting_decision(MAX_SHOWN_PINS);
        let waiting = open.iter().filter(|pin| pin.rejected_by.is_none()).count();
        json!({"open": waiting, "serial": self.items_serial.load(Ordering::Relaxed)})
    }

    /// Tells the console that the pins may have changed.
    pub(super) fn send_pins(&self) {
        self.items_serial.fetch_add(1, Ordering::Relaxed);
        self.feed.send_with("pinned", || self.pin_counts());
    }
}

fn find_pins(pins: &Pins, name: &str) -> ActionResult {
    let found = pins.find(name);
    match found.is_empty() {
        true => Err(unknown_pin(name)),
        false => Ok(found.iter().map(pin_with_texts).collect()),
    }
}

fn unknown_pin(name: &str) -> ActionError {
    ActionError::Unknown(format!(
        "there is no pin for {name:?}; `toolgate pins list` lists the pins"
    ))
}

/// Renders a pin without its texts, but with what in them may steer a model: nobody accepts it without that.
fn pin_summary(view: &PinView) -> Value {
    let steering = steering_of(view);
    let steering: Value = steering.iter().map(item_view::steering_json).collect();
    json!({
        "server": &*view.server, "kind": view.kind, "name": SecretRedactor::redact_for_display(&view.name), "state": view.state.as_str(),
        "rejected": view.rejected_by, "first": view.first_seen, "accepted": view.accepted_digest.as_deref(), "by": view.accepted_by,
        "at": view.accepted_at, "other": view.pending_digest.as_deref(), "hidden": view.hidden,
        "steering": steering,
    })
}

/// Returns the size of the texts that [`pin_summary`] leaves out, in bytes.
fn text_bytes(view: &PinView) -> usize {
    let len = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let each = view.differences.iter();
    let differences: usize = each.map(|d| d.path.len() + len(&d.old) + len(&d.new)).sum();
    differences + len(&view.pending_text)
}

fn pin_with_texts(view: &PinView) -> Value {
    let mut all = pin_summary(view);
    all["differences"] = view.differences.iter().map(difference_json).collect();
    all["text"] = json!(
        view.pending_text
            .as_deref()
            .map(SecretRedactor::redact_for_display)
    );
    all
}

/// Renders a difference, with secrets removed. Control and invisible characters stay; the view makes them visible.
fn difference_json(one: &DefinitionDifference) -> Value {
    let text = |text: &Option<String>| {
        text.as_deref()
            .map(|text| SecretRedactor::redact_for_display(text).into_owned())
    };
    json!({"place": SecretRedactor::redact_for_display(&one.path), "old": text(&one.old), "new": text(&one.new), "cosmetic": one.cosmetic})
}

/// Returns the texts of a new definition that may steer a model. Of a changed one, only those that are new count.
fn steering_of(view: &PinView) -> Vec<SteeringFlag> {
    let read = |text: &str| Json::read(text.as_bytes().to_vec(), &Default::default()).ok();
    if let Some(whole) = view.pending_text.as_deref().and_then(read) {
        return steering_flags(&whole);
    }
    let mut flags = Vec::new();
    for difference in &view.differences {
        let old = difference.old.as_deref().and_then(read);
        let old = old.map_or_else(Vec::new, |old| steering_flags(&old));
        let new = difference.new.as_deref().and_then(read);
        for mut flag in new.iter().flat_map(steering_flags) {
            let is_known =
                |known: &SteeringFlag| known.kind == flag.kind && known.text == flag.text;
            if !old.iter().any(is_known) {
                let inner = match flag.place.is_empty() {
                    true => String::new(),
                    false => format!(".{}", flag.place),
                };
                flag.place = format!("{}{inner}", difference.path);
                flags.push(flag);
            }
        }
    }
    flags.sort_by_key(|flag| std::cmp::Reverse(flag.kind));
    flags
}
