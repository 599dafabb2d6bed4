//! Handling of the server's messages. An invalid message fails the request that it answers, and never closes the
//! stream.

use super::{
    connection::{RequestFailure, RequestPurpose, ServerConnection, StreamAcknowledgement},
    status::{MAX_MESSAGE_BYTES, ProtocolErrorKind, sanitize_line, truncate},
    unusable_answer::UnusableAnswer,
};
use std::sync::{Arc, atomic::Ordering::Relaxed};
use toolgate_core::ReporterEvent;
use toolgate_protocol::{
    batch::read_batch,
    dialect::Dialect,
    json::{Json, JsonKind, ObjectWriter, ReadError},
    memory_budget::MemoryPermit,
    message::{self, Id, JsonRpcMessage, MalformedMessage, RpcError, code},
    method::{
        PING,
        definition::ItemKind,
        meta,
        notifications::{
            ACKNOWLEDGED, CANCELLED, ELICITATION_COMPLETE, MESSAGE, PROGRESS, PROMPTS_CHANGED,
            Progress, RESOURCE_UPDATED, RESOURCES_CHANGED, TOOLS_CHANGED,
        },
    },
    unreadable::UnreadableText,
};

/// Source of a message. It identifies the request that an answer without an id belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) enum MessageSource<'a> {
    /// The server's only stream: it carries the answers to all requests.
    Stream,
    /// The HTTP response to this request.
    Response(&'a Id),
    /// A stream for unsolicited messages of the server.
    Unsolicited,
}

/// Maximum length of a resource URI in a change notification, in bytes as written.
const MAX_URI_BYTES: usize = 16 << 10;
/// Byte order mark in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl ServerConnection {
    /// Handles one line of a byte stream.
    pub(super) fn receive_line(&self, mut line: Vec<u8>, claim: MemoryPermit) {
        if !self.has_received_line.swap(true, Relaxed) && line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
            self.notes
                .record("its output begins with a byte order mark");
        }
        self.receive(line, claim, self.current_dialect(), MessageSource::Stream);
    }

    /// Handles one message by the revision of the stream it came on. Over HTTP it is that of the request, because the
    /// server's is unknown until it answers the probe.
    pub(super) fn receive(
        &self,
        line: Vec<u8>,
        claim: MemoryPermit,
        dialect: &Dialect,
        carrier: MessageSource<'_>,
    ) {
        if line.iter().all(u8::is_ascii_whitespace) || self.completes_repeated_list(&line) {
            return;
        }
        let json = match self.read(line, claim) {
            Ok(json) => json,
            Err((bad, line)) => {
                let unread = UnreadableText::of(&line);
                if unread.is_no_message() && bad.is_syntax() {
                    return self.record_noise(&line, carrier);
                }
                return self.fail_unusable(
                    UnusableAnswer::read(bad, &self.limits),
                    unread,
                    carrier,
                );
            }
        };
        if !self.current_dialect().batches || json.kind() != JsonKind::Array {
            return self.handle_message(&json, JsonRpcMessage::read(&json), dialect, carrier);
        }
        match read_batch(&json) {
            Ok(messages) => json
                .items()
                .zip(messages)
                .for_each(|(json, message)| self.handle_message(&json, message, dialect, carrier)),
            Err(malformed) => self.malformed(&json, malformed, carrier),
        }
    }

    /// Parses a message. If it answers a list request, faults within single items are left to the reader of the items.
    pub(super) fn read(
        &self,
        bytes: Vec<u8>,
        claim: MemoryPermit,
    ) -> Result<Json, (ReadError, Vec<u8>)> {
        // The id in the message decides, not the HTTP response it came on: the message is matched by that id.
        let lists = self.is_listing()
            && UnreadableText::of(&bytes)
                .replies
                .iter()
                .any(|id| self.is_list_request(id));
        let read = Json::read_server_text(bytes, &self.limits, claim, lists)?;
        if read.has_duplicate_keys {
            self.rereads_items.store(true, Relaxed);
        }
        if read.repaired {
            self.notes
                .record("an unpaired surrogate in one of its messages was replaced with U+FFFD");
        }
        Ok(read.json)
    }

    /// Completes a list request whose reply repeats an earlier one. Returns false if the message has to be read.
    pub(super) fn completes_repeated_list(&self, message: &[u8]) -> bool {
        if !self.is_listing() {
            return false;
        }
        let found = self.repeated_lists.find(message.trim_ascii_end());
        match found.filter(|(id, _)| self.is_list_request(id)) {
            Some((id, result)) => {
                self.complete_request(Some(&id), Ok(result));
                true
            }
            None => false,
        }
    }

    pub(super) fn handle_message(
        &self,
        json: &Json,
        message: Result<JsonRpcMessage, MalformedMessage>,
        dialect: &Dialect,
        carrier: MessageSource<'_>,
    ) {
        match message {
            Ok(JsonRpcMessage::Reply { id, answer }) => {
                // An error without an id means that the server could not read the id.
                let id = id.or_else(|| self.request_meant(carrier));
                if let (Ok(result), Some(id)) = (&answer, &id)
                    && self.is_listing()
                    && self.is_list_request(id)
                {
                    self.repeated_lists.remember(json, result);
                }
                let answer = answer.map_err(|mut error| {
                    truncate(&mut error.message, MAX_MESSAGE_BYTES);
                    RequestFailure::Rpc(error)
                });
                self.complete_request(id.as_ref(), answer)
            }
            Ok(JsonRpcMessage::Request { id, method, params }) => {
                self.handle_request(&id, &method, params.as_ref(), dialect, carrier)
            }
            Ok(JsonRpcMessage::Notification { method, params }) => {
                self.handle_notification(&method, params.as_ref())
            }
            Err(malformed) => self.malformed(json, malformed, carrier),
        }
    }

    /// Fails the call that a malformed reply names, instead of leaving it to its time-out.
    fn malformed(&self, json: &Json, malformed: MalformedMessage, carrier: MessageSource<'_>) {
        self.notes.count(
            ProtocolErrorKind::Malformed,
            format!("one of its messages was malformed: {}", malformed.reason),
        );
        let id = match malformed.id {
            Some(id) => Some(id).filter(|_| json.get("method").is_none()),
            None if malformed.reply => self.request_meant(carrier),
            None => None,
        };
        let id = id.filter(|id| self.purpose(id).is_some());
        if let Some(id) = id {
            self.complete_request(Some(&id), Err(RequestFailure::Malformed(malformed.reason)));
        }
    }

    /// Handles a request of the server, if the revision allows it. An application that has the server to itself
    /// answers; otherwise the request goes to the call during which it came.
    fn handle_request(
        &self,
        id: &Id,
        method: &str,
        params: Option<&Json>,
        dialect: &Dialect,
        carrier: MessageSource<'_>,
    ) {
        let of = match carrier {
            MessageSource::Response(of) => Some(of),
            MessageSource::Stream | MessageSource::Unsolicited => None,
        };
        if !dialect.server_requests {
            let revision = dialect.revision;
            return self.notes.count(
                ProtocolErrorKind::StrayRequest,
                format!("it sent a request, which revision {revision} does not allow"),
            );
        }
        if self.answer_by_application(id, method, params)
            || self.pass_input_request(id, method, params, of)
        {
            return;
        }
        let answer = match method {
            PING => Ok(ObjectWriter::new().finish()),
            _ => {
                self.notes.count(
                    ProtocolErrorKind::StrayRequest,
                    "it sent a request with a method that this client does not support",
                );
                Err(RpcError::new(
                    code::METHOD_NOT_FOUND,
                    format!(
                        "method not found: this client does not support {:?}",
                        sanitize_line(method, 60)
                    ),
                ))
            }
        };
        self.send_priority(message::reply(Some(id), &answer));
    }

    fn handle_notification(&self, method: &str, params: Option<&Json>) {
        match method {
            PROGRESS => self.progress(params),
            TOOLS_CHANGED if self.is_subscribed(params) => self.mark_list_stale(ItemKind::Tool),
            RESOURCES_CHANGED if self.is_subscribed(params) => {
                self.mark_list_stale(ItemKind::Resource)
            }
            PROMPTS_CHANGED if self.is_subscribed(params) => self.mark_list_stale(ItemKind::Prompt),
            RESOURCE_UPDATED if self.is_subscribed(params) => {
                let uri = params.and_then(|p| p.get("uri"));
                let uri = uri.filter(|uri| uri.as_str().len() <= MAX_URI_BYTES);
                match uri.and_then(|uri| uri.string()) {
                    Some(uri) => self.mark_resource_updated(&uri),
                    None => self.count_stray_notification(),
                }
            }
            // Changes before the stream was open were not reported.
            ACKNOWLEDGED if self.is_subscribed(params) => {
                self.generation.fetch_add(1, Relaxed);
                if let Some(listening) = self.notification_stream(params) {
                    listening.acknowledge(params.and_then(|p| p.get("notifications")));
                }
            }
            MESSAGE if self.answerer.is_some() => self.log_to_application(params),
            MESSAGE if self.has_request_logs() && self.attribute_log(params) => {}
            CANCELLED => self.cancel_input_request(params),
            ELICITATION_COMPLETE => self.complete_elicitation(params),
            _ => self.count_stray_notification(),
        }
    }

    fn progress(&self, params: Option<&Json>) {
        let read = params.and_then(Progress::read);
        let found =
            read.and_then(|(token, progress)| Some((self.purpose(&Id::read(&token)?)?, progress)));
        match found {
            Some((RequestPurpose::Call(reporter, ..), mut progress)) => {
                let message = progress.message.as_mut();
                message
                    .into_iter()
                    .for_each(|text| truncate(text, MAX_MESSAGE_BYTES));
                reporter.send(ReporterEvent::Progress(progress))
            }
            _ => self.notes.count(
                ProtocolErrorKind::StrayNotification,
                "it sent progress for a call that is not in flight",
            ),
        }
    }

    /// Returns whether each request sets its own log level, so that a log message belongs to a call.
    fn has_request_logs(&self) -> bool {
        self.current_dialect().request_log_level
    }

    /// Returns whether a change notification was subscribed to, if the revision requires that.
    fn is_subscribed(&self, params: Option<&Json>) -> bool {
        !self.current_dialect().subscription_streams || self.notification_stream(params).is_some()
    }

    /// Returns the notification stream that a notification belongs to.
    fn notification_stream(&self, params: Option<&Json>) -> Option<Arc<StreamAcknowledgement>> {
        let id = meta::get(params, meta::SUBSCRIPTION)
            .as_ref()
            .and_then(Id::read)?;
        match self.purpose(&id)? {
            RequestPurpose::Listen(listening) => Some(listening),
            _ => None,
        }
    }
}
