//! What would become of a call, step by step. Nothing is called, recorded, asked or used up.

use super::{Done, NotDone, Operator};
use crate::explained::{self, Asked, Found};
use serde_json::{Value, json};
use toolgate::{Caller, Item, ItemKind, List, PinState};
use toolgate_policy as policy;

impl Operator {
    /// The way of a call that nobody makes.
    pub(super) async fn explain(&self, with: &Value) -> Done {
        let word = |key: &str| with.get(key).and_then(Value::as_str);
        let name = word("tool").unwrap_or_default();
        let plan = self.live.plan();
        let caller = match word("caller") {
            Some(caller) => match plan.config.auth.can_be(caller) {
                Ok(()) => Caller::new(caller),
                Err(why) => return Ok(json!({ "no_caller": why })),
            },
            None => plan.caller(self.endpoint.is_some()),
        };
        let asked = Asked::read(name, caller.clone(), word("text"))?;
        let mut found = self.find(name).await?;
        if is_new(&found.item) {
            // As any list of a caller does, which pins what it sees for the first time.
            let list = List::all(caller, found.item.kind());
            let _ = plan.service.list(list).await;
            found = self.find(name).await?;
        }
        let call = asked.call(&found);
        let item = found.item;
        let pipeline = policy::pipeline(&plan.route, plan.servers.clone());
        let mut way = pipeline.explain(&call, &item).await;
        let needs = explained::door(&mut way, &plan.config, &call, &item);
        Ok(explained::told(&way, &needs))
    }

    /// What a full name or a name on the wire means, whether or not anybody may see it.
    async fn find(&self, name: &str) -> Result<Found, NotDone> {
        for fresh in [false, true] {
            if fresh {
                // A server may just have started: ask them all.
                self.refresh().await;
            }
            let mut catalogs = Vec::new();
            for kind in ItemKind::ALL {
                catalogs.push((kind, self.known(kind).await));
            }
            if let Some(found) = explained::find(&catalogs, name) {
                return Ok(found);
            }
        }
        Err(NotDone::Unknown(format!(
            "there is no {name:?}; `toolgate tools`, `resources` and `prompts` list what there is"
        )))
    }
}

/// Whether nobody has seen the definition yet.
fn is_new(item: &Item) -> bool {
    let pin = item.pin.as_ref();
    pin.is_some_and(|pin| pin.state == PinState::New && pin.hidden.is_some())
}
