//! Pins as the operator sees them and decides about them.

use super::{ActionError, ActionResult, OperatorApi};
use serde_json::{Value, json};
use toolgate_policy::{PinError, PinView, Pins, SecretRedactor, pins::DefinitionDifference};

/// Maximum number of pins that the console shows. More are shown once some of these are decided.
const MAX_SHOWN_PINS: usize = 500;
/// Maximum size of the differences and texts that the console gets with every change, in bytes. Those of further pins
/// are requested one by one.
const MAX_PIN_TEXT_BYTES: usize = 1024 * 1024;

impl OperatorApi {
    /// Executes an action on pins; `None` for any other action.
    pub(super) async fn pins(
        &self,
        action: &str,
        with: &Value,
        by: &'static str,
    ) -> Option<ActionResult> {
        let word = |key: &str| with.get(key).and_then(Value::as_str);
        let pins = self.live.plan().route.pins.clone();
        let name = word("name").unwrap_or_default();
        let (done, what) = match action {
            "pins" => return Some(self.listed(&pins, word("server"))),
            "pins/diff" => return Some(found(&pins, name)),
            "pins/accept" => match word("server") {
                Some(server) => (pins.accept_all(server, by).await, server),
                None => (pins.accept(name, word("digest"), by).await, name),
            },
            "pins/reject" => (pins.reject(name, word("digest"), by).await, name),
            "pins/forget" => (pins.forget(name, by).await, name),
            _ => return None,
        };
        Some(match done {
            Ok(count) => {
                self.tell_pins();
                Ok(json!({"ok": true, "count": count}))
            }
            Err(PinError::Unknown) => Err(unknown(what)),
            Err(error) => Err(ActionError::Refused(format!("{what}: {error}"))),
        })
    }

    fn listed(&self, pins: &Pins, server: Option<&str>) -> ActionResult {
        let known = |id: &str| self.live.plan().config.servers.iter().any(|s| s.id == id);
        match server.filter(|id| !known(id)) {
            Some(id) => Err(ActionError::Unknown(format!("there is no server {id:?}"))),
            None => Ok(pins.views(server).iter().map(short).collect()),
        }
    }

    /// Returns the pins that wait for a decision or were rejected, with differences up to the maximum size.
    pub(super) fn open_pins(&self) -> Value {
        let mut room = MAX_PIN_TEXT_BYTES;
        let open = self.live.plan().route.pins.open(MAX_SHOWN_PINS);
        let fitting = |view: &PinView| match room.checked_sub(size(view)) {
            Some(left) => {
                room = left;
                whole(view)
            }
            None => short(view),
        };
        open.iter().map(fitting).collect()
    }

    /// Sends the open pins to the console.
    pub(super) fn tell_pins(&self) {
        if self.board.is_watched() {
            self.board.tell("pins", &self.open_pins());
        }
    }
}

fn found(pins: &Pins, name: &str) -> ActionResult {
    let found = pins.find(name);
    match found.is_empty() {
        true => Err(unknown(name)),
        false => Ok(found.iter().map(whole).collect()),
    }
}

fn unknown(name: &str) -> ActionError {
    ActionError::Unknown(format!(
        "there is no pin of {name:?}; `toolgate pins list` shows them"
    ))
}

/// Renders a pin without its texts.
fn short(view: &PinView) -> Value {
    json!({
        "server": &*view.server, "kind": view.kind, "name": SecretRedactor::without(&view.name), "state": view.state.as_str(),
        "rejected": view.rejected, "first": view.first, "accepted": view.accepted.as_deref(), "by": view.by,
        "at": view.at, "other": view.other.as_deref(), "hidden": view.hidden,
    })
}

/// Returns the size of the texts that [`short`] leaves out, in bytes.
fn size(view: &PinView) -> usize {
    let len = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let each = view.differences.iter();
    let differences: usize = each
        .map(|d| d.place.len() + len(&d.old) + len(&d.new))
        .sum();
    differences + len(&view.text)
}

fn whole(view: &PinView) -> Value {
    let mut all = short(view);
    all["differences"] = view.differences.iter().map(difference).collect();
    all["text"] = json!(view.text.as_deref().map(SecretRedactor::without));
    all
}

/// Renders a difference, with secrets removed. Control and invisible characters stay; the view makes them visible.
fn difference(one: &DefinitionDifference) -> Value {
    let text = |text: &Option<String>| {
        text.as_deref()
            .map(|text| SecretRedactor::without(text).into_owned())
    };
    json!({"place": SecretRedactor::without(&one.place), "old": text(&one.old), "new": text(&one.new), "cosmetic": one.cosmetic})
}
