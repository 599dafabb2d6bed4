//! Calls whose server waits for an answer.
//!
//! A server with a handshake asks in the middle of a call, by a request of its own. Here that is a round like any other:
//! the call ends with the question, its exchange with the server is parked, and the same call, when it comes again with
//! the answer, goes on from there. The server sees one call.

use super::{
    answerer::question,
    call::{self, SLOT},
    era::EraRefusal,
    link::{Failure, Link, Purpose},
    remote::Remote,
    transport::Mirrored,
};
use crate::ids;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};
use tokio::{sync::mpsc, task::AbortHandle};
use toolgate_core::{
    Abilities, Ask, AskKind, BoxFuture, Call, Caller, Error, Kind, Open, Outcome, Questions, Slots,
};
use toolgate_wire::{
    json::{Json, ObjectWriter},
    message::{self, Id, RpcError, code},
};

/// The key of the one question of a round.
const KEY: &str = "question";
/// Questions of one call that may wait behind the first.
const BEHIND: usize = 4;

/// A request of the server in the middle of a call.
pub(super) struct Question {
    id: Id,
    kind: AskKind,
}

/// Where the questions in the middle of a call go.
pub(super) type Asking = mpsc::Sender<Question>;

/// A call at the server, from its first byte to its reply.
struct Exchange {
    link: Arc<Link>,
    answer: BoxFuture<'static, Result<Json, Failure>>,
    questions: mpsc::Receiver<Question>,
    /// The id of the request, once it has one.
    id: Arc<OnceLock<Id>>,
    /// The question that the caller has been given.
    open: Option<Question>,
}

/// The exchanges of one server that wait.
#[derive(Default)]
pub(super) struct Parked(Mutex<HashMap<String, Waiting>>);

struct Waiting {
    exchange: Exchange,
    /// Whose it is, and the call in all its rounds.
    caller: Caller,
    call: Arc<str>,
    /// Forgets it when its time is over.
    end: Option<End>,
}

/// What runs until a call that waits is forgotten; ends with the waiting.
struct End(AbortHandle);

impl Drop for End {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Link {
    /// Passes a question on to the call in whose middle it comes: the one on whose stream it came, or the only one that
    /// runs. False where it is no question.
    pub(super) fn passes_on(
        &self,
        id: &Id,
        method: &str,
        params: Option<&Json>,
        of: Option<&Id>,
    ) -> bool {
        // Roots are asked for outside of calls, too, where nobody could answer: they are not declared.
        let Some(kind) = question(method, params).filter(|kind| !matches!(kind, AskKind::Roots))
        else {
            return false;
        };
        let asking = |purpose: &Purpose| match purpose {
            Purpose::Call(_, _, asking, _) => Some(asking.clone()),
            _ => None,
        };
        let call = of.and_then(|of| asking(&self.purpose(of)?));
        let no = match call.or_else(|| self.only(asking)) {
            None => "no call runs, or more than one, so that nobody can be asked",
            Some(None) => "the client of this call declared no such ability",
            Some(Some(asking)) => {
                let question = Question {
                    id: id.clone(),
                    kind,
                };
                match asking.try_send(question) {
                    Ok(()) => return true,
                    Err(_) => "too many questions at once",
                }
            }
        };
        self.says_no(id, no);
        true
    }

    fn says_no(&self, id: &Id, words: &str) {
        let error = RpcError::new(code::INVALID_REQUEST, words);
        self.hurry(message::reply(Some(id), &Err::<Json, _>(error)));
    }
}

impl Remote {
    /// Whether the server may ask in the middle of this call.
    pub(super) fn may_ask(&self, granted: &Abilities) -> bool {
        let asks = granted.elicitation || granted.elicitation_url || granted.sampling;
        asks && self.passes_questions()
    }

    /// Whether questions of the server are passed on to the callers that share it.
    pub(super) fn passes_questions(&self) -> bool {
        !self.peer.dialect.stateless && self.options.passes_questions()
    }

    /// A call in whose middle the server may ask.
    pub(super) async fn asked_in(
        &self,
        call: &Call,
        granted: &Abilities,
    ) -> Result<Outcome, Error> {
        let mut exchange = match call.round.slots.get(SLOT) {
            None => self.begin(call),
            Some(key) => match self.parked.take(key, call) {
                Some(exchange) => exchange,
                None => {
                    return Err(self.upstream(
                        "waits for this answer no longer; it is not known whether the call took effect",
                    ));
                }
            },
        };
        if let Some(question) = exchange.open.take() {
            exchange.report_to(call);
            match call.round.answer(KEY) {
                Some(answer) => self
                    .link
                    .hurry(message::reply(Some(&question.id), &Ok(answer.clone()))),
                None => return self.park(exchange, question, call),
            }
        }
        loop {
            tokio::select! {
                biased;
                answer = &mut exchange.answer => {
                    let result = answer.map_err(|failure| self.call_failed(call.op, failure))?;
                    return self.outcome(call, &result, granted);
                }
                Some(question) = exchange.questions.recv() => {
                    if may(granted, &question.kind) {
                        return self.park(exchange, question, call);
                    }
                    self.link.says_no(&question.id, "the client of this call declared no such ability");
                }
            }
        }
    }

    fn begin(&self, call: &Call) -> Exchange {
        let (asking, questions) = mpsc::channel(BEHIND);
        let (reporter, caller) = (call.reporter.clone(), call.caller.clone());
        let purpose = Purpose::Call(reporter, caller, Some(asking), call.trail.clone());
        let (link, peer, options) = (self.link.clone(), self.peer.clone(), self.options.clone());
        let (call, id) = (call.clone(), Arc::<OnceLock<Id>>::default());
        let known = id.clone();
        let answer = async move {
            let params = |id: &Id| {
                let _ = known.set(id.clone());
                call::params(&call, id, (&peer, false), &options)
            };
            let method = call.op.method();
            link.request_with(method, purpose, &Mirrored::default(), params)
                .await
        };
        Exchange {
            link: self.link.clone(),
            answer: Box::pin(answer),
            questions,
            id,
            open: None,
        }
    }

    /// Ends the round with the question, and keeps the exchange for the next one.
    fn park(
        &self,
        mut exchange: Exchange,
        question: Question,
        call: &Call,
    ) -> Result<Outcome, Error> {
        let ask = Ask {
            key: KEY.to_owned(),
            kind: question.kind.clone(),
        };
        exchange.open = Some(question);
        let key = ids::secret();
        let waiting = Waiting {
            exchange,
            caller: call.caller.clone(),
            call: call.id.clone(),
            end: None,
        };
        let (all, own) = (self.options.parked, self.options.parked_per_caller);
        if !self.parked.keep(&key, waiting, all, own) {
            let words = format!(
                "too many calls of the server {} wait for answers; give some of them first",
                self.name()
            );
            return Err(Error::new(Kind::Busy(None), words));
        }
        self.forget_later(&key);
        let (parked, refused) = (Arc::downgrade(&self.parked), key.clone());
        // Where a layer does not let the question pass, or the caller leaves while it is asked.
        let open = Open::until(move || {
            drop(parked.upgrade().and_then(|all| all.all().remove(&refused)));
        });
        Ok(Outcome::Ask(Questions {
            asks: vec![ask],
            slots: Slots::from([(SLOT.to_owned(), key)]),
            open,
        }))
    }

    /// Forgets what waits under that key when its time is over.
    fn forget_later(&self, key: &str) {
        let (parked, life) = (Arc::downgrade(&self.parked), self.options.parked_for);
        let late = key.to_owned();
        #[allow(
            clippy::disallowed_methods,
            reason = "it ends with the call that waits, of which there is a bounded number"
        )]
        let end = tokio::spawn(async move {
            tokio::time::sleep(life).await;
            let forgotten = parked
                .upgrade()
                .and_then(|parked| parked.all().remove(&late));
            drop(forgotten);
        });
        if let Some(waiting) = self.parked.all().get_mut(key) {
            waiting.end = Some(End(end.abort_handle()));
        }
    }

    /// What a result means for its call.
    pub(super) fn outcome(
        &self,
        call: &Call,
        result: &Json,
        granted: &Abilities,
    ) -> Result<Outcome, Error> {
        call.held.hold(result);
        if call::is_misplaced_question(result, &self.peer) {
            let error = self.upstream("put a question into the result of a call");
            let refusal = EraRefusal::AsksByResult { at_question: true };
            return Err(match self.peer.sessions_only {
                true => error,
                false => refusal.explain(error, &self.options),
            });
        }
        let outcome = call::outcome(call, result, &self.peer, granted);
        let mut outcome = outcome.map_err(|reason| self.invalid(&reason))?;
        self.advise(&mut outcome, granted);
        Ok(outcome)
    }
}

/// Whether the caller can be asked that.
fn may(granted: &Abilities, kind: &AskKind) -> bool {
    match kind {
        AskKind::Elicit(params) => match params.get("mode").and_then(|mode| mode.string()) {
            Some(mode) if mode == "url" => granted.elicitation_url,
            _ => granted.elicitation,
        },
        AskKind::Sample(params) => {
            let with_tools = params.get("tools").is_some() || params.get("toolChoice").is_some();
            granted.sampling && (granted.sampling_tools || !with_tools)
        }
        _ => false,
    }
}

impl Parked {
    /// False where there are too many.
    fn keep(&self, key: &str, waiting: Waiting, most: usize, most_of_caller: usize) -> bool {
        let mut all = self.all();
        let own = all.values().filter(|w| w.caller == waiting.caller).count();
        let fits = all.len() < most && own < most_of_caller;
        if fits {
            all.insert(key.to_owned(), waiting);
        }
        fits
    }

    /// The exchange of that call.
    fn take(&self, key: &str, call: &Call) -> Option<Exchange> {
        let mut all = self.all();
        let waiting = all.get(key)?;
        let own = waiting.caller == call.caller && waiting.call == call.id;
        let waiting = if own { all.remove(key) } else { None };
        waiting.map(|waiting| waiting.exchange)
    }

    /// How many wait.
    pub(super) fn count(&self) -> usize {
        self.all().len()
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Waiting>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Exchange {
    /// What the server tells from now on is for this round.
    fn report_to(&self, call: &Call) {
        let mut table = self.link.table();
        let waiting = self.id.get().and_then(|id| table.session.waiting_mut(id));
        if let Some(waiting) = waiting
            && let Purpose::Call(reporter, ..) = &mut waiting.purpose
        {
            *reporter = call.reporter.clone();
        }
    }
}

/// Nobody came back: the server is told, and then its call is cancelled.
impl Drop for Exchange {
    fn drop(&mut self) {
        let Some(question) = self.open.take() else {
            return;
        };
        match question.kind {
            AskKind::Elicit(_) => {
                let mut cancelled = ObjectWriter::new();
                cancelled.str("action", "cancel");
                let answer = Ok(cancelled.finish());
                self.link.hurry(message::reply(Some(&question.id), &answer));
            }
            _ => self.link.says_no(&question.id, "nobody answers this"),
        }
    }
}
