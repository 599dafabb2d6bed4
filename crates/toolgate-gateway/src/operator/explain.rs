//! What would become of a call, step by step. Nothing is called, recorded, asked or used up.

use super::{Done, NotDone, Operator};
use serde_json::{Value, json};
use std::sync::Arc;
use toolgate::{Call, Caller, Decision, Item, ItemKind, Json, List, Op, PinState, Rule, Verdict};
use toolgate_policy::{Freeze, Pinned, Route};
use toolgate_wire::json::Kind;

/// The steps so far, and what comes of them.
struct Way {
    steps: Vec<Value>,
    /// Why a person would be asked.
    asked: Vec<String>,
}

impl Way {
    fn step(&mut self, by: &str, verdict: &str, why: impl Into<String>) {
        let why: String = why.into();
        self.steps
            .push(json!({"by": by, "verdict": verdict, "why": why}));
    }

    fn ends(self, verdict: &str) -> Value {
        json!({"steps": self.steps, "verdict": verdict})
    }
}

impl Operator {
    /// The way of a call that nobody makes.
    pub(super) async fn explain(&self, with: &Value) -> Done {
        let word = |key: &str| with.get(key).and_then(Value::as_str);
        let name = word("tool").unwrap_or_default();
        let text = word("text").unwrap_or("{}").to_owned();
        let mut arguments = Json::read(text.into_bytes(), &Default::default())
            .map_err(|e| format!("the arguments: {e}"))?;
        if arguments.kind() != Kind::Object {
            return Err("the arguments must be a JSON object".to_owned().into());
        }
        let plan = self.live.plan();
        let caller = match word("caller") {
            Some(caller) => Caller::new(caller),
            None => plan.caller(self.endpoint.is_some()),
        };
        let (mut item, op) = self.find(name).await?;
        if is_new(&item) {
            // As any list of a caller does, which pins what it sees for the first time.
            let list = List::all(caller.clone(), item.kind());
            let _ = plan.service.list(list).await;
            (item, _) = self.find(name).await?;
        }
        let at = match op {
            Op::Resource => name
                .split_once(Item::RESOURCE)
                .map(|(_, uri)| uri.to_owned()),
            _ => None,
        };
        let at = at.unwrap_or_else(|| item.def.name().to_owned());
        if op == Op::Resource {
            arguments = Json::from_value(&json!({ "uri": at }));
        }
        let call = Call::new("explain", caller, op, at, arguments);
        Ok(way(&plan.route, &call, &item).await)
    }

    /// The item of a full name or a name on the wire, whether or not anybody may see it.
    async fn find(&self, name: &str) -> Result<(Arc<Item>, Op), NotDone> {
        for fresh in [false, true] {
            if fresh {
                // A server may just have started: ask them all.
                self.refresh().await;
            }
            for kind in ItemKind::ALL {
                let catalog = self.known(kind).await;
                let op = match kind {
                    ItemKind::Tool => Op::Tool,
                    ItemKind::Prompt => Op::Prompt,
                    ItemKind::Resource | ItemKind::Template => Op::Resource,
                };
                let at = |item: &&Arc<Item>| {
                    let uri =
                        name.strip_prefix(&format!("{}.{}", item.origin.server, Item::RESOURCE));
                    kind == ItemKind::Template
                        && uri.is_some_and(|uri| {
                            toolgate_wire::method::uri_template::fits(item.def.name(), uri)
                        })
                };
                let named = |item: &&Arc<Item>| item.full_name() == name || item.def.name() == name;
                let mut items = catalog.items().iter();
                if let Some(item) = items.find(|item| named(item) || at(item)) {
                    return Ok((item.clone(), op));
                }
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

/// The layers in their order, as `standard.rs` has them; each says what it would.
async fn way(route: &Route, call: &Call, item: &Item) -> Value {
    let mut way = Way {
        steps: Vec::new(),
        asked: Vec::new(),
    };
    if let Some(why) = &item.withheld {
        way.step("resolve", "hide", format!("withheld: {why}"));
        return way.ends("hide");
    }
    for rule in [&Pinned as &dyn Rule, &route.access] {
        if !rule.sees(&call.caller, item) {
            let why = rule.why_hidden(&call.caller, item);
            let text = format!("{} does not see it: {why}", call.caller);
            way.step("resolve", "hide", text);
            return way.ends("hide");
        }
    }
    if let Some(why) = route.access.hides_at(&call.caller, item, call.name()) {
        way.step(
            "resolve",
            "hide",
            format!("{} does not see it: {why}", call.caller),
        );
        return way.ends("hide");
    }
    way.step(
        "resolve",
        "found",
        format!("{} for {}", item.full_name(), call.caller),
    );
    let freeze = Freeze(route.desk.freezes().clone());
    for rule in [&freeze as &dyn Rule, &Pinned, &route.access] {
        if !way.asks(rule.name(), rule.decide(call, item), call).await {
            return way.ends("deny");
        }
    }
    for told in route.rate.explain(call, item) {
        way.step("rate", "told", told);
    }
    for rule in [&route.arguments as &dyn Rule, &route.cleaning.leaks] {
        if !way.asks(rule.name(), rule.decide(call, item), call).await {
            return way.ends("deny");
        }
    }
    way.confirm(route, call, item)
}

impl Way {
    /// What a rule says, with what it left in the trail; false where it refuses.
    async fn asks(&mut self, by: &str, decision: Decision<'_>, call: &Call) -> bool {
        let verdict = match decision {
            Decision::Now(verdict) => verdict,
            Decision::Later(verdict) => verdict.await,
        };
        let steps = call.trail.steps();
        call.trail.clear();
        let silent = steps.is_empty();
        for step in steps {
            self.step(step.by, step.verdict, step.why);
        }
        match verdict {
            Verdict::Allow if silent => self.step(by, "allow", ""),
            Verdict::Allow => {}
            Verdict::Ask(why) => {
                self.step(by, "ask", why.as_str());
                self.asked.push(why);
            }
            Verdict::Refuse(error) => {
                self.step(by, "refuse", error.public());
                return false;
            }
        }
        true
    }

    fn confirm(mut self, route: &Route, call: &Call, item: &Item) -> Value {
        if self.asked.is_empty() {
            self.step("confirm", "allow", "nobody is asked");
            return self.ends("allow");
        }
        let persons = route.persons.needed(&call.caller, item, call.name());
        let who = match persons {
            0 | 1 => "a person at the console or the terminal is asked, or the caller's own client"
                .to_owned(),
            more => format!("{more} persons at the console or the terminal are asked"),
        };
        self.step(
            "confirm",
            "ask",
            format!("{who}; where a grant speaks of it, nobody"),
        );
        self.ends("ask")
    }
}
