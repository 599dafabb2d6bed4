//! Approval of sampling requests. Until an approver decides, the requests wait in a slot of the call.

use super::{Asking, NAME};
use std::sync::Arc;
use toolgate_core::{
    Arguments, Ask, AskKind, Call, Confirmed, Definition, Error, Item, Json, Kind, Outcome,
    Questions, Refusal,
};
use toolgate_wire::{
    json::{Limits, ObjectWriter},
    method::elicitation::{self, InputRequired, Request},
};

/// Slot with the pending input requests.
const HELD: &str = "asking";
/// Slot with the id of their approval.
const ID: &str = "asking-approval";
/// Slot in which `confirm` expects that id.
const CONFIRM: &str = "confirm";

/// Returns the input requests that awaited an approval since the last round.
pub(super) fn questions(call: &Call) -> Option<Questions> {
    let held = call.round.slots.get(HELD)?;
    let held = Json::read(held.clone().into_bytes(), &Limits::default()).ok()?;
    let mut slots = call.round.slots.clone();
    slots.retain(|name, _| !matches!(name.as_str(), HELD | ID | CONFIRM));
    let ask = |request: Request| {
        let params = request
            .params
            .unwrap_or_else(|| ObjectWriter::new().finish());
        let kind = match request.method.as_str() {
            elicitation::NAME => AskKind::Elicit(params),
            elicitation::SAMPLING => AskKind::Sample(params),
            _ => AskKind::Roots,
        };
        Ask {
            key: request.key,
            kind,
        }
    };
    let asks = InputRequired::read(&held).ok()?.requests;
    Some(Questions {
        asks: asks.into_iter().map(ask).collect(),
        slots,
        // The previous round still holds the open request at the server.
        ..Questions::default()
    })
}

/// Serializes input requests, for [`questions`] to read.
fn text(questions: &Questions) -> String {
    let request = |ask: &Ask| {
        let (method, params) = match &ask.kind {
            AskKind::Elicit(params) => (elicitation::NAME, Some(params.clone())),
            AskKind::Sample(params) => (elicitation::SAMPLING, Some(params.clone())),
            AskKind::SignIn(page) => (elicitation::NAME, Some(page.params())),
            AskKind::Approve(_) | AskKind::Roots => (elicitation::ROOTS, None),
        };
        Request {
            key: ask.key.clone(),
            method: method.to_owned(),
            params,
        }
    };
    let required = InputRequired {
        requests: questions.asks.iter().map(request).collect(),
        ..InputRequired::default()
    };
    required.json().as_str().to_owned()
}

/// Returns a synthetic tool that represents sampling requests of one server to the approver.
///
/// An approval of a tool therefore never covers its sampling requests, and the reverse.
fn as_tool(item: &Item) -> Result<Item, Error> {
    let definition = serde_json::json!({
        "name": elicitation::SAMPLING,
        "description": "Questions of this server to the model of whoever calls it",
        "inputSchema": {"type": "object"},
    });
    let definition = Definition::tool(Json::from_value(&definition));
    let definition = definition.map_err(|why| Error::new(Kind::Bug, why))?;
    Ok(Item::new(item.origin.clone(), definition))
}

/// Returns a copy of the call with the sampling requests as its arguments.
fn as_call(call: &Call, item: &Item, questions: &Questions) -> Call {
    let mut about = call.clone();
    item.def.name().clone_into(&mut about.of.name);
    let mut asked = ObjectWriter::new();
    for ask in &questions.asks {
        if let AskKind::Sample(params) = &ask.kind {
            asked.raw(&ask.key, params);
        }
    }
    about.of.arguments = Arguments::new(asked.finish());
    let id = call.round.slots.get(ID);
    about.round.slots = id
        .map(|id| (CONFIRM.to_owned(), id.clone()))
        .into_iter()
        .collect();
    about
}

impl Asking {
    /// Passes on the input requests once the sampling requests are approved, or requests the approval.
    pub(super) async fn hold(
        &self,
        call: &Call,
        item: &Item,
        mut questions: Questions,
    ) -> Result<Outcome, Error> {
        let Some(person) = &self.person else {
            let text =
                "refused: a sampling request needs an approval, and no approver is available here";
            call.trail.add(NAME, "refuse", text);
            return Err(Error::new(Kind::Refused(Refusal::Rule), text));
        };
        let tool = Arc::new(as_tool(item)?);
        let about = as_call(call, &tool, &questions);
        let why = format!(
            "the server {} sends a sampling request to the model of {}",
            item.origin.server, call.caller
        );
        match person.confirm(&about, &tool, vec![why]).await? {
            Confirmed::Yes { .. } => {}
            Confirmed::Edited { arguments, .. } => edit(&mut questions, &arguments)?,
            Confirmed::Ask(approval) => {
                let id = approval.slots.get(CONFIRM).cloned().unwrap_or_default();
                let mut slots = questions.slots.clone();
                slots.insert(HELD.to_owned(), text(&questions));
                slots.insert(ID.to_owned(), id);
                return Ok(Outcome::Ask(Questions {
                    asks: approval.asks,
                    slots,
                    open: questions.open,
                }));
            }
        }
        Ok(Outcome::Ask(questions))
    }
}

/// Replaces the sampling requests with those that the approver edited.
fn edit(questions: &mut Questions, written: &Json) -> Result<(), Error> {
    for ask in &mut questions.asks {
        if let AskKind::Sample(params) = &mut ask.kind {
            let text = "refused: the edit of the approver removed a sampling request";
            let new = written.get(&ask.key);
            *params = new.ok_or_else(|| Error::new(Kind::Refused(Refusal::Person), text))?;
        }
    }
    Ok(())
}
