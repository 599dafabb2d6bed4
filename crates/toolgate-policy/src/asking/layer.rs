//! Layer that checks the input requests of servers and the responses to them.

use super::{InputRequestPolicy, NAME, SamplingPolicy, answer, held};
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
                return Err(call.unknown());
            };
            if let Some(questions) = held::questions(&call) {
                return Box::pin(self.resume(&call, &item, questions)).await;
            }
            let server = item.origin.server.as_ref();
            if self.answers
                && let Err(why) = answer::check_answers(&mut call.round).await
            {
                return Err(unfit(server, &why, &call.trail));
            }
            let left = self.offered(server, &call.abilities);
            let looked_at = self.sampling.of(server) == SamplingPolicy::Ask && left.sampling;
            let whole = looked_at.then(|| call.clone());
            let asked = InputRequestContext {
                caller: call.caller.clone(),
                trail: call.trail.clone(),
                has: std::mem::replace(&mut call.abilities, left.clone()),
                left,
                call: whole,
                item,
            };
            match next.call(call).await {
                Ok(Outcome::Done(output)) => Ok(Outcome::Done(output)),
                // Rare, so boxed to keep the future of a call small.
                other => Box::pin(self.asked(asked, other)).await,
            }
        })
    }
}

impl InputRequestPolicy {
    async fn asked(
        &self,
        asked: InputRequestContext,
        outcome: Result<Outcome, Error>,
    ) -> Result<Outcome, Error> {
        let server = asked.item.origin.server.as_ref();
        let mut questions = match outcome {
            Ok(Outcome::Ask(questions)) => questions,
            Err(error) => {
                let error = self.told(server, (&asked.has, &asked.left), error, &asked.trail);
                return Err(error);
            }
            done => return done,
        };
        for InputRequest { kind, .. } in &mut questions.asks {
            self.judge(server, &asked.caller, kind, &asked.trail)?;
        }
        if self.answers
            && let Err(why) = answer::keep_forms(&mut questions)
        {
            let text = format!(
                "refused: the server {server} sent a form whose responses cannot be validated: {why}"
            );
            asked.trail.add(NAME, "refuse", text.as_str());
            return Err(Error::new(ErrorKind::Refused(RefusalReason::Result), text));
        }
        match asked.call {
            Some(call) if samples(&questions) => self.hold(&call, &asked.item, questions).await,
            _ => Ok(Outcome::Ask(questions)),
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
            return self.hold(call, item, questions).await;
        }
        for InputRequest { kind, .. } in &mut questions.asks {
            if matches!(kind, InputRequestKind::Sample(_)) {
                self.judge(server, &call.caller, kind, &call.trail)?;
            }
        }
        Ok(Outcome::Ask(questions))
    }
}

/// Returns the error for an invalid form response.
fn unfit(server: &str, why: &str, trail: &DecisionLog) -> Error {
    let text = format!(
        "the response to the form of the server {server} is invalid and was not sent: {why}"
    );
    trail.add(NAME, "refuse", text.as_str());
    Error::new(ErrorKind::Invalid(Vec::new()), text)
}

fn samples(questions: &InputRequests) -> bool {
    let samples = |ask: &InputRequest| matches!(ask.kind, InputRequestKind::Sample(_));
    questions.asks.iter().any(samples)
}
