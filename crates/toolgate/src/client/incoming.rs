//! What a line of the server means. A bad one is counted and dropped; it never closes the stream.

use super::{
    lines,
    link::{Failure, Link, Listening, Purpose},
    status::Trouble,
};
use std::sync::{Arc, atomic::Ordering::Relaxed};
use toolgate_core::Event;
use toolgate_wire::{
    json::{Json, Kind, ObjectWriter, ReadError, ReadErrorKind},
    message::{self, Id, Malformed, Message, RpcError, code},
    method::{
        PING,
        definition::ItemKind,
        meta,
        notifications::{
            ACKNOWLEDGED, CANCELLED, ELICITATION_DONE, MESSAGE, PROGRESS, PROMPTS_CHANGED,
            Progress, RESOURCE_UPDATED, RESOURCES_CHANGED, TOOLS_CHANGED,
        },
    },
    room::Claim,
};

impl Link {
    /// Takes one line.
    pub(super) fn take(&self, line: Vec<u8>, claim: Claim) {
        self.take_in(line, claim, self.is_stateless(), None);
    }

    /// Takes one line, where the era is that of the stream it came on: the answer to a probe may come on a modern
    /// stream before the era of the server is known. `of` is the request whose stream it is, where it has one.
    pub(super) fn take_in(&self, line: Vec<u8>, claim: Claim, stateless: bool, of: Option<&Id>) {
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        let answers = lines::answers(&line);
        let lists = answers.is_some_and(|id| self.lists(id));
        let json = match self.read(line, lists, claim) {
            Ok(json) => json,
            Err(bad) if bad.kind() == ReadErrorKind::NoRoom => return self.no_room(answers),
            // The reader's own words may quote the line, so they are not kept.
            Err(_) => {
                let from = if self.is_http() {
                    "an event on its stream was not JSON"
                } else {
                    "a line on its standard output was not JSON"
                };
                return self.notes.count(Trouble::BadLine, from);
            }
        };
        let batches = self.dialect.get().is_some_and(|dialect| dialect.batches);
        if !batches || json.kind() != Kind::Array {
            return self.one(&json, Message::read(&json), stateless, of);
        }
        match message::batch(&json) {
            Ok(messages) => json
                .items()
                .zip(messages)
                .for_each(|(json, message)| self.one(&json, message, stateless, of)),
            Err(malformed) => self.malformed(&json, malformed),
        }
    }

    /// A message as strict JSON. Where it `lists`, what no object may have within is left to who reads the items.
    pub(super) fn read(
        &self,
        bytes: Vec<u8>,
        lists: bool,
        claim: Claim,
    ) -> Result<Json, ReadError> {
        if !lists {
            return Json::read_for(bytes, &self.limits, claim);
        }
        let (json, apart) = Json::read_list_for(bytes, &self.limits, claim)?;
        if apart {
            self.apart.store(true, Relaxed);
        }
        Ok(json)
    }

    /// There was no room for a message: what it answers ends at once, instead of leaving it to its deadline.
    pub(super) fn no_room(&self, answers: Option<u64>) {
        self.notes.count(
            Trouble::LongLine,
            "a message was dropped: too many bytes were in flight",
        );
        let id = answers.map(Id::number);
        if let Some(id) = id.filter(|id| self.purpose(id).is_some()) {
            self.settle(Some(&id), Err(Failure::NoRoom));
        }
    }

    pub(super) fn one(
        &self,
        json: &Json,
        message: Result<Message, Malformed>,
        stateless: bool,
        of: Option<&Id>,
    ) {
        match message {
            Ok(Message::Reply { id, answer }) => {
                self.settle(id.as_ref(), answer.map_err(Failure::Rpc))
            }
            Ok(Message::Request { id, method, params }) => {
                self.asked(&id, &method, params.as_ref(), stateless, of)
            }
            Ok(Message::Notification { method, params }) => self.told(&method, params.as_ref()),
            Err(malformed) => self.malformed(json, malformed),
        }
    }

    /// A reply that is none ends the call it names at once, instead of leaving it to its deadline.
    fn malformed(&self, json: &Json, malformed: Malformed) {
        self.notes.count(
            Trouble::Malformed,
            format!("a message was malformed: {}", malformed.reason),
        );
        let id = malformed
            .id
            .filter(|id| json.get("method").is_none() && self.purpose(id).is_some());
        if let Some(id) = id {
            self.settle(Some(&id), Err(Failure::Malformed(malformed.reason)));
        }
    }

    /// The server asks something of us. Legacy servers may: one application answers for itself, and where several callers
    /// share the server a question goes to the call in whose middle it comes.
    fn asked(
        &self,
        id: &Id,
        method: &str,
        params: Option<&Json>,
        stateless: bool,
        of: Option<&Id>,
    ) {
        if stateless {
            return self.notes.count(
                Trouble::StrayRequest,
                "it sent a request, which 2026-07-28 does not have",
            );
        }
        if self.put(id, method, params) || self.passes_on(id, method, params, of) {
            return;
        }
        let answer = match method {
            PING => Ok(ObjectWriter::new().finish()),
            _ => {
                self.notes.count(
                    Trouble::StrayRequest,
                    "it sent a request for an ability that was not declared",
                );
                Err(RpcError::new(
                    code::METHOD_NOT_FOUND,
                    "method not found: the client declared no such ability",
                ))
            }
        };
        self.hurry(message::reply(Some(id), &answer));
    }

    fn told(&self, method: &str, params: Option<&Json>) {
        match method {
            PROGRESS => self.progress(params),
            TOOLS_CHANGED if self.listened(params) => self.stale(ItemKind::Tool),
            RESOURCES_CHANGED if self.listened(params) => self.stale(ItemKind::Resource),
            PROMPTS_CHANGED if self.listened(params) => self.stale(ItemKind::Prompt),
            RESOURCE_UPDATED if self.listened(params) => {
                if let Some(uri) = params.and_then(|p| p.get("uri")).and_then(|u| u.string()) {
                    self.updated(&uri);
                }
            }
            // What changed before the stream was open was not told.
            ACKNOWLEDGED if self.listened(params) => {
                self.generation.fetch_add(1, Relaxed);
                if let Some(listening) = self.stream_of(params) {
                    listening.acknowledge(params.and_then(|p| p.get("notifications")));
                }
            }
            MESSAGE if self.answerer.is_some() => self.told_app(params),
            MESSAGE if self.is_stateless() && self.log(params) => {}
            CANCELLED => self.taken_back(params),
            ELICITATION_DONE => self.done(params),
            _ => self.stray(),
        }
    }

    fn progress(&self, params: Option<&Json>) {
        let read = params.and_then(Progress::read);
        let found =
            read.and_then(|(token, progress)| Some((self.purpose(&Id::read(&token)?)?, progress)));
        match found {
            Some((Purpose::Call(reporter, ..), progress)) => {
                reporter.tell(Event::Progress(progress))
            }
            _ => self.notes.count(
                Trouble::StrayNotification,
                "it sent progress for no running call",
            ),
        }
    }

    /// Whether a change notification was asked for: always up to 2025-11-25, by a subscription since.
    fn listened(&self, params: Option<&Json>) -> bool {
        if !self.is_stateless() {
            return true;
        }
        self.stream_of(params).is_some()
    }

    /// The stream that a notification belongs to, where there is one: who waits for its acknowledgement.
    fn stream_of(&self, params: Option<&Json>) -> Option<Arc<Listening>> {
        let id = meta::get(params, meta::SUBSCRIPTION)
            .as_ref()
            .and_then(Id::read)?;
        match self.purpose(&id)? {
            Purpose::Listen(listening) => Some(listening),
            _ => None,
        }
    }
}
