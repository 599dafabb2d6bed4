//! Parked calls: calls whose server waits for input.
//!
//! A legacy server requests input during a call, by a request of its own. Here that becomes an ordinary round: the call
//! returns the input request, its exchange with the server is parked, and the retry of the call with the answer resumes
//! the exchange. The server sees one call.

use super::{
    call::{self, REQUEST_STATE_SLOT},
    client_handler::read_input_request,
    connection::{RequestFailure, RequestPurpose, ServerConnection},
    era::EraMismatch,
    remote::RemoteServer,
    transport::MirroredHeaders,
};
use crate::ids;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};
use tokio::{sync::mpsc, task::AbortHandle};
use toolgate_core::{
    BoxFuture, Call, Caller, ClientCapabilities, Error, ErrorKind, InputRequest, InputRequestKind,
    InputRequests, Outcome, PendingInputGuard, RoundSlots,
};
use toolgate_protocol::{
    json::{Json, ObjectWriter},
    message::{self, Id, RpcError, code},
};

/// Key of the single input request of a round.
const INPUT_REQUEST_KEY: &str = "question";
/// Maximum number of input requests of one call that may queue behind the first.
const MAX_QUEUED_INPUT_REQUESTS: usize = 4;

/// Input request of a legacy server during a call.
pub(super) struct ServerInputRequest {
    id: Id,
    kind: InputRequestKind,
}

/// Channel for the input requests of one call.
pub(super) type InputRequestSender = mpsc::Sender<ServerInputRequest>;

/// Exchange of one call with the server, from its first byte to its reply.
struct CallExchange {
    link: Arc<ServerConnection>,
    answer: BoxFuture<'static, Result<Json, RequestFailure>>,
    input_requests: mpsc::Receiver<ServerInputRequest>,
    /// Id of the request, once it has one.
    id: Arc<OnceLock<Id>>,
    /// Input request that the caller is answering.
    open_request: Option<ServerInputRequest>,
}

/// Parked exchanges of one server, by a random key.
#[derive(Default)]
pub(super) struct Parked(Mutex<HashMap<String, ParkedCall>>);

struct ParkedCall {
    exchange: CallExchange,
    /// Owner: the caller, and the call id in all its rounds.
    caller: Caller,
    call: Arc<str>,
    /// Task that drops the exchange after its time-out.
    end: Option<ParkedCallTimeout>,
}

/// Time-out task of a parked call; aborted on drop.
struct ParkedCallTimeout(AbortHandle);

impl Drop for ParkedCallTimeout {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl ServerConnection {
    /// Passes an input request on to its call: the one on whose response stream it came, or the only call in flight.
    /// Returns false for any other request.
    pub(super) fn pass_input_request(
        &self,
        id: &Id,
        method: &str,
        params: Option<&Json>,
        of: Option<&Id>,
    ) -> bool {
        // Roots may be requested outside of calls, where no caller can answer: they are not declared.
        let Some(kind) = read_input_request(method, params)
            .filter(|kind| !matches!(kind, InputRequestKind::Roots))
        else {
            return false;
        };
        let asking = |purpose: &RequestPurpose| match purpose {
            RequestPurpose::Call(_, _, asking, _) => Some(asking.clone()),
            _ => None,
        };
        let call = of.and_then(|of| asking(&self.purpose(of)?));
        let no = match call.or_else(|| self.find_single(asking)) {
            None => {
                "no call or more than one call is in flight, so this client cannot tell whose user has to answer"
            }
            Some(None) => {
                "the client that made this call did not declare the capability for this request"
            }
            Some(Some(asking)) => {
                let question = ServerInputRequest {
                    id: id.clone(),
                    kind,
                };
                match asking.try_send(question) {
                    Ok(()) => return true,
                    Err(_) => "too many input requests are in flight; wait for some of them to end",
                }
            }
        };
        self.reject_request(id, no);
        true
    }

    fn reject_request(&self, id: &Id, words: &str) {
        let error = RpcError::new(code::INVALID_REQUEST, words);
        self.send_priority(message::reply(Some(id), &Err::<Json, _>(error)));
    }
}

impl RemoteServer {
    /// Returns whether the server may request input during this call.
    pub(super) fn may_request_input(&self, granted: &ClientCapabilities) -> bool {
        let asks = granted.elicitation || granted.elicitation_url || granted.sampling;
        asks && self.passes_input_requests()
    }

    /// Returns whether the server's input requests are passed on to the callers that share it.
    pub(super) fn passes_input_requests(&self) -> bool {
        self.peer.dialect.server_requests && self.options.passes_input_requests()
    }

    /// Runs a call during which the server may request input.
    pub(super) async fn call_with_input_requests(
        &self,
        call: &Call,
        granted: &ClientCapabilities,
    ) -> Result<Outcome, Error> {
        let mut exchange = match call.round.slots.get(REQUEST_STATE_SLOT) {
            None => self.begin_exchange(call),
            Some(key) => match self.parked.take(key, call) {
                Some(exchange) => exchange,
                None => {
                    return Err(self.upstream_error(
                        "is no longer waiting for this answer; it is not known whether the call took effect",
                    ));
                }
            },
        };
        if let Some(question) = exchange.open_request.take() {
            exchange.report_to(call);
            match call.round.answer(INPUT_REQUEST_KEY) {
                Some(answer) => self
                    .link
                    .send_priority(message::reply(Some(&question.id), &Ok(answer.clone()))),
                None => return self.park(exchange, question, call),
            }
        }
        loop {
            tokio::select! {
                biased;
                answer = &mut exchange.answer => {
                    let result = answer.map_err(|failure| self.call_error(call, failure))?;
                    return self.outcome(call, &result, granted);
                }
                Some(question) = exchange.input_requests.recv() => {
                    if is_granted(granted, &question.kind) {
                        return self.park(exchange, question, call);
                    }
                    self.link.reject_request(&question.id, "the client that made this call did not declare the capability for this request");
                }
            }
        }
    }

    fn begin_exchange(&self, call: &Call) -> CallExchange {
        let (asking, questions) = mpsc::channel(MAX_QUEUED_INPUT_REQUESTS);
        let (reporter, caller) = (call.reporter.clone(), call.caller.clone());
        let purpose =
            RequestPurpose::Call(reporter, caller, Some(asking), call.decision_log.clone());
        let (link, peer, options) = (self.link.clone(), self.peer.clone(), self.options.clone());
        let (call, id) = (call.clone(), Arc::<OnceLock<Id>>::default());
        let known = id.clone();
        let answer = async move {
            let params = |id: &Id| {
                let _ = known.set(id.clone());
                call::params(&call, id, (&peer, false), &options)
            };
            let method = call.op.method();
            link.request_with(method, purpose, &MirroredHeaders::default(), params)
                .await
        };
        CallExchange {
            link: self.link.clone(),
            answer: Box::pin(answer),
            input_requests: questions,
            id,
            open_request: None,
        }
    }

    /// Ends the round with the input request, and parks the exchange for the next round.
    fn park(
        &self,
        mut exchange: CallExchange,
        question: ServerInputRequest,
        call: &Call,
    ) -> Result<Outcome, Error> {
        let ask = InputRequest {
            key: INPUT_REQUEST_KEY.to_owned(),
            kind: question.kind.clone(),
        };
        exchange.open_request = Some(question);
        let key = ids::secret_id();
        let waiting = ParkedCall {
            exchange,
            caller: call.caller.clone(),
            call: call.id.clone(),
            end: None,
        };
        let (all, own) = (
            self.options.max_parked_calls,
            self.options.max_parked_calls_per_caller,
        );
        if !self.parked.insert_within_limits(&key, waiting, all, own) {
            let words = format!(
                "too many calls to the server {} are waiting for input; answer some of them first",
                self.name()
            );
            return Err(Error::new(ErrorKind::Busy(None), words));
        }
        self.expire_later(&key);
        let (parked, refused) = (Arc::downgrade(&self.parked), key.clone());
        // Drops the exchange if a layer blocks the input request, or if the caller gives up.
        let open = PendingInputGuard::with_cleanup(move || {
            drop(parked.upgrade().and_then(|all| all.all().remove(&refused)));
        });
        let mut requests = InputRequests::new(vec![ask]);
        requests.slots = RoundSlots::from([(REQUEST_STATE_SLOT.to_owned(), key)]);
        requests.guard = open;
        Ok(Outcome::InputRequired(requests))
    }

    /// Drops the parked exchange under that key after its time-out.
    fn expire_later(&self, key: &str) {
        let (parked, life) = (
            Arc::downgrade(&self.parked),
            self.options.parked_call_timeout,
        );
        let late = key.to_owned();
        #[allow(
            clippy::disallowed_methods,
            reason = "ends with the parked call; the number of parked calls is bounded"
        )]
        let end = tokio::spawn(async move {
            tokio::time::sleep(life).await;
            let forgotten = parked
                .upgrade()
                .and_then(|parked| parked.all().remove(&late));
            drop(forgotten);
        });
        if let Some(waiting) = self.parked.all().get_mut(key) {
            waiting.end = Some(ParkedCallTimeout(end.abort_handle()));
        }
    }

    /// Returns the outcome that a result means for its call.
    pub(super) fn outcome(
        &self,
        call: &Call,
        result: &Json,
        granted: &ClientCapabilities,
    ) -> Result<Outcome, Error> {
        call.held_permits.hold(result);
        if call::is_misplaced_input_request(result, &self.peer) {
            let error = self.upstream_error("requested input by an input_required result, which its protocol revision does not have");
            let refusal = EraMismatch::InputByResult { at_question: true };
            return Err(match self.peer.sessions_only {
                true => error,
                false => refusal.add_advice(error, &self.options),
            });
        }
        let outcome = call::outcome(call, result, &self.peer, granted);
        let mut outcome = outcome.map_err(|reason| self.invalid_result_error(&reason))?;
        self.add_era_advice(&mut outcome, granted);
        Ok(outcome)
    }
}

/// Returns whether the caller supports an input request of that kind.
fn is_granted(granted: &ClientCapabilities, kind: &InputRequestKind) -> bool {
    match kind {
        InputRequestKind::Elicit(params) => match params.get("mode").and_then(|mode| mode.string())
        {
            Some(mode) if mode == "url" => granted.elicitation_url,
            _ => granted.elicitation,
        },
        InputRequestKind::Sample(params) => {
            let with_tools = params.get("tools").is_some() || params.get("toolChoice").is_some();
            granted.sampling && (granted.sampling_tools || !with_tools)
        }
        _ => false,
    }
}

impl Parked {
    /// Parks an exchange. Returns false if a limit is reached.
    fn insert_within_limits(
        &self,
        key: &str,
        waiting: ParkedCall,
        most: usize,
        most_of_caller: usize,
    ) -> bool {
        let mut all = self.all();
        let own = all.values().filter(|w| w.caller == waiting.caller).count();
        let fits = all.len() < most && own < most_of_caller;
        if fits {
            all.insert(key.to_owned(), waiting);
        }
        fits
    }

    /// Removes and returns the exchange of that call.
    fn take(&self, key: &str, call: &Call) -> Option<CallExchange> {
        let mut all = self.all();
        let waiting = all.get(key)?;
        let own = waiting.caller == call.caller && waiting.call == call.id;
        let waiting = if own { all.remove(key) } else { None };
        waiting.map(|waiting| waiting.exchange)
    }

    /// Returns the number of parked calls.
    pub(super) fn count(&self) -> usize {
        self.all().len()
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, ParkedCall>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallExchange {
    /// Redirects the server's progress and log messages to this round.
    fn report_to(&self, call: &Call) {
        let mut table = self.link.table();
        let waiting = self.id.get().and_then(|id| table.session.waiter_mut(id));
        if let Some(waiting) = waiting
            && let RequestPurpose::Call(reporter, ..) = &mut waiting.purpose
        {
            *reporter = call.reporter.clone();
        }
    }
}

/// Answers the open input request with a cancellation if the caller never retried, and cancels the request itself.
///
/// The request leaves the table first. A server that ends its call on the answer would otherwise complete the request,
/// and the cancellation that belongs to the answer would depend on its speed.
impl Drop for CallExchange {
    fn drop(&mut self) {
        let Some(question) = self.open_request.take() else {
            return;
        };
        let cancellation = self.id.get().and_then(|id| self.link.discard_request(id));
        match question.kind {
            InputRequestKind::Elicit(_) => {
                let mut cancelled = ObjectWriter::new();
                cancelled.str("action", "cancel");
                let answer = Ok(cancelled.finish());
                self.link
                    .send_priority(message::reply(Some(&question.id), &answer));
            }
            _ => self
                .link
                .reject_request(&question.id, "the caller did not answer"),
        }
        if let Some(line) = cancellation {
            self.link.send_priority(line);
        }
    }
}

#[cfg(test)]
mod tests;
