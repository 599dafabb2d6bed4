//! Polls all gateways of a data directory, over the same control socket as the other commands.

use super::pending_request::PendingRequest;
use crate::operator::control::{ControlResponse, GatewaySockets};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Freeze that is active.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ActiveFreeze {
    /// `all`, `caller NAME` or `server ID`.
    pub(super) what: String,
    pub(super) by: String,
    pub(super) reason: String,
}

/// End of a request that an earlier poll listed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct EndedRequest {
    pub(super) request: PendingRequest,
    /// `approved`, `denied`, `expired` and so on.
    pub(super) decision: String,
    pub(super) by: Option<String>,
    pub(super) reason: Option<String>,
}

/// State of all gateways at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct GatewaySnapshot {
    /// Number of gateways that responded.
    pub(super) gateways: usize,
    /// Pending requests, in the order of `toolgate inbox`. Empty if no gateway responded.
    pub(super) requests: Vec<PendingRequest>,
    pub(super) freezes: Vec<ActiveFreeze>,
    /// Requests that ended since the last poll to which a gateway responded.
    pub(super) ended: Vec<EndedRequest>,
    /// Reasons of gateways that do not respond.
    pub(super) problem: Option<String>,
}

/// Connection to the gateways of a data directory. It survives their restarts.
pub(super) struct GatewayPoll {
    data: PathBuf,
    /// Requests of the last poll to which a gateway responded.
    known: Vec<PendingRequest>,
}

impl GatewayPoll {
    pub(super) fn new(data: PathBuf) -> GatewayPoll {
        let known = Vec::new();
        GatewayPoll { data, known }
    }

    /// Reads the state of all gateways.
    pub(super) fn poll(&mut self) -> GatewaySnapshot {
        let sockets = match GatewaySockets::find_optional(&self.data) {
            Ok(Some(sockets)) => sockets,
            Ok(None) => return GatewaySnapshot::default(),
            Err(why) => return without_gateway(vec![why]),
        };
        let (answers, missed) = sockets.request_each("inbox", &json!({}));
        let gateways = answers.len();
        if gateways == 0 {
            return without_gateway(missed);
        }
        let mut requests = merge_requests(answers);
        let mut ended = Vec::new();
        for request in std::mem::take(&mut self.known) {
            if requests.iter().any(|other| other.id == request.id) {
                continue;
            }
            let answer = sockets.request_each("approval", &json!({"id": request.id}));
            match ended_request(request, answer.0) {
                Ok(end) => ended.push(end),
                Err(pending) => requests.push(*pending),
            }
        }
        self.known.clone_from(&requests);
        let (answers, _) = sockets.request_each("freezes", &json!({}));
        GatewaySnapshot {
            gateways,
            requests,
            freezes: merge_freezes(answers),
            ended,
            problem: problem_text(missed),
        }
    }

    /// Sends an action to the gateway that knows its object.
    ///
    /// # Errors
    /// The reason for which no gateway executed it.
    pub(super) fn send(&self, action: &str, with: &Value) -> Result<Value, String> {
        GatewaySockets::find(&self.data)?.request_any(action, with)
    }
}

fn without_gateway(missed: Vec<String>) -> GatewaySnapshot {
    GatewaySnapshot {
        problem: problem_text(missed),
        ..GatewaySnapshot::default()
    }
}

fn problem_text(missed: Vec<String>) -> Option<String> {
    (!missed.is_empty()).then(|| missed.join("; "))
}

/// Joins the lists of all responses.
fn join_lists(answers: Vec<ControlResponse>) -> impl Iterator<Item = Value> {
    let lists = answers.into_iter().map(|answer| match answer {
        ControlResponse::Ok(Value::Array(list)) => list,
        _ => Vec::new(),
    });
    lists.flatten()
}

/// Joins the pending requests of all gateways. Each gateway lists those of the whole data directory.
fn merge_requests(answers: Vec<ControlResponse>) -> Vec<PendingRequest> {
    let mut all: Vec<PendingRequest> = Vec::new();
    for request in join_lists(answers).map(|value| PendingRequest::from_json(&value)) {
        match all.iter_mut().find(|other| other.id == request.id) {
            Some(known) => known.merge(request),
            None => all.push(request),
        }
    }
    all.sort_by_key(|request| (!request.is_awaited, request.expires));
    all
}

fn merge_freezes(answers: Vec<ControlResponse>) -> Vec<ActiveFreeze> {
    let mut all: Vec<ActiveFreeze> = Vec::new();
    for value in join_lists(answers) {
        let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        let freeze = ActiveFreeze {
            what: text("what"),
            by: text("by"),
            reason: text("reason"),
        };
        if !all.iter().any(|other| other.what == freeze.what) {
            all.push(freeze);
        }
    }
    all
}

/// Returns how a request ended; the request itself if a gateway still has it as pending.
fn ended_request(
    request: PendingRequest,
    answers: Vec<ControlResponse>,
) -> Result<EndedRequest, Box<PendingRequest>> {
    let known = answers.into_iter().find_map(|answer| match answer {
        ControlResponse::Ok(value) => Some(value),
        _ => None,
    });
    let known = known.unwrap_or_default();
    let text = |key: &str| known[key].as_str().map(str::to_owned);
    match text("decision") {
        Some(decision) if decision == "asked" => Err(Box::new(request)),
        decision => Ok(EndedRequest {
            request,
            decision: decision.unwrap_or_else(|| "expired".to_owned()),
            by: text("by"),
            reason: text("reason"),
        }),
    }
}
