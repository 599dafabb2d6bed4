//! What the operator sees of pins, and decides.

use super::{Done, NotDone, Operator};
use serde_json::{Value, json};
use toolgate_policy::{PinError, PinView, Pins, Secrets, pins::Difference};

/// Pins that the console shows at once; the next come when some of these are settled.
const SHOWN: usize = 500;
/// Bytes of differences and texts that go to the console with every change; those of the rest are asked for one by one.
const SENT: usize = 1024 * 1024;

impl Operator {
    /// Does what has to do with pins; `None` for anything else.
    pub(super) async fn pins(&self, action: &str, with: &Value, by: &'static str) -> Option<Done> {
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
            Err(error) => Err(NotDone::Refused(format!("{what}: {error}"))),
        })
    }

    fn listed(&self, pins: &Pins, server: Option<&str>) -> Done {
        let known = |id: &str| self.live.plan().config.servers.iter().any(|s| s.id == id);
        match server.filter(|id| !known(id)) {
            Some(id) => Err(NotDone::Unknown(format!("there is no server {id:?}"))),
            None => Ok(pins.views(server).iter().map(short).collect()),
        }
    }

    /// What waits for somebody or was rejected, with what differs as far as there is room.
    pub(super) fn open_pins(&self) -> Value {
        let mut room = SENT;
        let open = self.live.plan().route.pins.open(SHOWN);
        let fitting = |view: &PinView| match room.checked_sub(size(view)) {
            Some(left) => {
                room = left;
                whole(view)
            }
            None => short(view),
        };
        open.iter().map(fitting).collect()
    }

    /// Tells the console how pins stand.
    pub(super) fn tell_pins(&self) {
        if self.board.is_watched() {
            self.board.tell("pins", &self.open_pins());
        }
    }
}

fn found(pins: &Pins, name: &str) -> Done {
    let found = pins.find(name);
    match found.is_empty() {
        true => Err(unknown(name)),
        false => Ok(found.iter().map(whole).collect()),
    }
}

fn unknown(name: &str) -> NotDone {
    NotDone::Unknown(format!(
        "there is no pin of {name:?}; `toolgate pins list` shows them"
    ))
}

/// A pin without the texts.
fn short(view: &PinView) -> Value {
    json!({
        "server": &*view.server, "kind": view.kind, "name": Secrets::without(&view.name), "state": view.state.as_str(),
        "rejected": view.rejected, "first": view.first, "accepted": view.accepted.as_deref(), "by": view.by,
        "at": view.at, "other": view.other.as_deref(), "hidden": view.hidden,
    })
}

/// Bytes of what a short one leaves out.
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
    all["text"] = json!(view.text.as_deref().map(Secrets::without));
    all
}

/// What differs, as it came: control and invisible characters are made visible where it is shown, and secrets are not.
fn difference(one: &Difference) -> Value {
    let text = |text: &Option<String>| {
        text.as_deref()
            .map(|text| Secrets::without(text).into_owned())
    };
    json!({"place": Secrets::without(&one.place), "old": text(&one.old), "new": text(&one.new), "cosmetic": one.cosmetic})
}
