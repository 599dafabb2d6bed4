//! Decisions that a chat or the receiver of a webhook sends back: `POST /notify/NAME`.

use super::HttpRoutes;
use crate::{
    console::{MAX_UNAUTHENTICATED_BODY_BYTES, read_bytes},
    notify::{
        CALLBACK_PATH, CallbackDecision, CallbackRejection, Notifier, RequestMessage, read_callback,
    },
    operator::api::approval_end,
    responses::text_response,
};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use std::{sync::Arc, time::SystemTime};
use toolgate::{
    Caller,
    edge::{Rejection, RejectionLog, http::Body},
};
use toolgate_policy::{ApprovalChannel, ApprovalStatus, ApprovalTerms, Approver};

/// Longest body of a decision in bytes. It has to be read whole before its signature can be verified.
const MAX_DECISION_BYTES: usize = MAX_UNAUTHENTICATED_BODY_BYTES;

impl HttpRoutes {
    /// Verifies a decision and applies it. Only a POST decides, and only with a valid signature.
    pub(super) async fn notification_decision(&self, request: Request<Incoming>) -> Response<Body> {
        let path = request.uri().path().to_owned();
        let name = path.strip_prefix(CALLBACK_PATH).unwrap_or_default();
        let notifiers = self.active.snapshot().notifiers.clone();
        let notifier = notifiers.iter().find(|one| one.settings.name == name);
        let notifier = notifier.filter(|one| !one.settings.people.is_empty());
        let Some(notifier) = notifier else {
            return text_response(StatusCode::NOT_FOUND, "not found; decide in the console");
        };
        if request.method() != Method::POST {
            return text_response(
                StatusCode::METHOD_NOT_ALLOWED,
                "decisions are sent with POST; open the console to decide",
            );
        }
        let (head, body) = request.into_parts();
        let body = match read_bytes(body, MAX_DECISION_BYTES).await {
            Ok(body) => body,
            Err(why) => return text_response(StatusCode::BAD_REQUEST, why),
        };
        let now = SystemTime::now();
        match read_callback(notifier, &head.headers, &body, now) {
            Ok(decision) => self.apply_decision(notifier, decision).await,
            Err(rejection) => {
                self.reject_decision(name, rejection.text()).await;
                let status = match rejection {
                    CallbackRejection::Malformed => StatusCode::BAD_REQUEST,
                    CallbackRejection::Signature => StatusCode::UNAUTHORIZED,
                    CallbackRejection::UnknownPerson => StatusCode::FORBIDDEN,
                };
                text_response(status, rejection.text())
            }
        }
    }

    async fn apply_decision(
        &self,
        notifier: &Arc<Notifier>,
        decision: CallbackDecision,
    ) -> Response<Body> {
        let text = match self.decide(notifier, &decision).await {
            Ok(text) => text,
            Err(why) => {
                self.reject_decision(&notifier.settings.name, &why).await;
                return text_response(StatusCode::CONFLICT, &why);
            }
        };
        if let Some(url) = &decision.response_url {
            notifier.replace_message(url, &text).await;
        }
        text_response(StatusCode::OK, &text)
    }

    /// Applies a decision; returns what happened, for the chat.
    async fn decide(
        &self,
        notifier: &Notifier,
        decision: &CallbackDecision,
    ) -> Result<String, String> {
        let approvals = &self.console.operator.approvals;
        let id = decision.approval.as_str();
        let view = approvals
            .find(id)
            .ok_or("there is no such request; it may have ended long ago")?;
        // The person saw these arguments, and decides about no others.
        if view.binding.arguments != decision.digest {
            return Err("the decision is for other arguments than those of the request".to_owned());
        }
        let shown = RequestMessage::new(&view, "", notifier.settings.arguments);
        if decision.approves && !shown.is_decidable() {
            return Err(
                "the message did not show the whole call, or the call needs several approvers; approve it in the console".to_owned(),
            );
        }
        let person = Approver::named(ApprovalChannel::Chat, decision.person.as_str());
        let done = match decision.approves {
            true => {
                let approved = approvals.approve(id, person, ApprovalTerms::default());
                approved.await.map(drop)
            }
            false => approvals.deny(id, person, decision.reason.clone()).await,
        };
        done.map_err(|error| format!("{id}: {error}"))?;
        let status = approvals.find(id).map(|view| view.status);
        let (end, by, _) = status
            .as_ref()
            .map_or(("decided", None, None), |status| match status {
                ApprovalStatus::Pending => ("approved, and another approver is needed", None, None),
                status => approval_end(status),
            });
        let by = by.map_or_else(|| decision.person.clone(), ToString::to_string);
        let (caller, tool) = (view.binding.caller.name(), view.item.full_name());
        Ok(format!("{caller} calls {tool}: {end} by {by}"))
    }

    async fn reject_decision(&self, name: &str, why: &str) {
        let reason = format!("a decision for the [[notify]] entry {name} was not accepted: {why}");
        let rejection = Rejection::new(Caller::new("unknown@http"), "http", reason);
        self.edge_audit.rejected(rejection).await;
    }
}
