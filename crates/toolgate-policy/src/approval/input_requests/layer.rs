//! Layer that checks the input requests of servers and the responses to them.

use super::{InputRequestPolicy, NAME, SamplingPolicy, form_response, sampling_approval};
use std::sync::Arc;
use toolgate_core::{
    BoxFuture, Call, Caller, ClientCapabilities, DecisionLog, Error, ErrorKind, InputRequest,
    InputRequestKind, InputRequests, Item, Layer, Next, Outcome, RefusalReason,
};

/// Context for judging the outcome of a call.
struct InputRequestContext {
    caller: Caller,
    trail: DecisionLog,
    item: Arc<Item>,
    /// Capabilities of the caller, and (as `left`) those offered to the server.
    has: ClientCapabilities,
    left: ClientCapabilities,
    /// The call itself, if an approver may have to review a sampling request.
    call: Option<Call>,
}

impl Layer for InputRequestPolicy {
    fn name(&self) -> &'static str {
        NAME
    }

    fn call<'a>(&'a self, mut call: Call, next: Next<'a>) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(async move {
            let Some(item) = call.item().cloned() else {
                return Err(call.unknown_item_error());
            };
            if let Some(questions) = sampling_approval::pending_requests(&call) {
                return Box::pin(self.resume(&call, &item, questions)).await;
            }
            let server = item.origin.server.as_ref();
            if self.validate_responses
                && form_response::has_form_schemas(&call.round)
                && let Err(why) =
                    Box::pin(form_response::check_form_responses(&mut call.round)).await
            {
                return Err(invalid_response(server, &why, &call.decision_log));
            }
            let left = self.offered_capabilities(server, &call.capabilities);
            let looked_at = self.sampling.of(server) == SamplingPolicy::Ask && left.sampling;
            let whole = looked_at.then(|| call.clone());
            let asked = InputRequestContext {
                caller: call.caller.clone(),
                trail: call.decision_log.clone(),
                has: std::mem::replace(&mut call.capabilities, left.clone()),
                left,
                call: whole,
                item,
            };
            match next.call(call).await {
                Ok(Outcome::Done(output)) => Ok(Outcome::Done(output)),
                // Rare, so boxed to keep the future of a call small.
                other => Box::pin(self.judge_outcome(asked, other)).await,
            }
        })
    }
}

impl InputRequestPolicy {
    async fn judge_outcome(
        &self,
        asked: InputRequestContext,
        outcome: Result<Outcome, Error>,
    ) -> Result<Outcome, Error> {
        let server = asked.item.origin.server.as_ref();
        let mut questions = match outcome {
            Ok(Outcome::InputRequired(questions)) => questions,
            Err(error) => {
                let error = self.explain_unsupported(
                    server,
                    (&asked.has, &asked.left),
                    error,
                    &asked.trail,
                );
                return Err(error);
            }
            done => return done,
        };
        for InputRequest { kind, .. } in &mut questions.requests {
            self.judge(server, &asked.caller, kind, &asked.trail)?;
        }
        if self.validate_responses
            && let Err(why) = form_response::store_form_schemas(&mut questions)
        {
            let text = format!(
                "refused: the server {server} sent a form whose responses cannot be validated: {why}"
            );
            asked.trail.add(NAME, "refuse", text.as_str());
            return Err(Error::new(
                ErrorKind::Refused(RefusalReason::BlockedResult),
                text,
            ));
        }
        match asked.call {
            Some(call) if has_sampling(&questions) => {
                self.approve_sampling(&call, &asked.item, questions).await
            }
            _ => Ok(Outcome::InputRequired(questions)),
        }
    }

    /// Resumes input requests that awaited an approval, under the current settings.
    async fn resume(
        &self,
        call: &Call,
        item: &Item,
        mut questions: InputRequests,
    ) -> Result<Outcome, Error> {
        let server = item.origin.server.as_ref();
        if self.sampling.of(server) == SamplingPolicy::Ask {
            return self.approve_sampling(call, item, questions).await;
        }
        for InputRequest { kind, .. } in &mut questions.requests {
            if matches!(kind, InputRequestKind::Sample(_)) {
                self.judge(server, &call.caller, kind, &call.decision_log)?;
            }
        }
        Ok(Outcome::InputRequired(questions))
    }
}

/// Returns the error for an invalid form response.
fn invalid_response(server: &str, why: &str, trail: &DecisionLog) -> Error {
    let text = format!("the response to the form from the server {server} was not sent: {why}");
    trail.add(NAME, "refuse", text.as_str());
    Error::new(ErrorKind::InvalidArguments(Vec::new()), text)
}

fn has_sampling(questions: &InputRequests) -> bool {
    let samples = |ask: &InputRequest| matches!(ask.kind, InputRequestKind::Sample(_));
    questions.requests.iter().any(samples)
}
