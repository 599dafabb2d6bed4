//! JSON-RPC batches: several messages in one JSON array, allowed in revision 2025-03-26.

use super::{
    call::MessageSender,
    handshake::InitializedClient,
    responder::{OutgoingFrame, OutgoingFrames, Responder},
    response,
};
use std::sync::Arc;
use toolgate_protocol::{
    batch::read_batch,
    dialect::Dialect,
    json::{Json, JsonKind},
    message::{JsonRpcMessage, MalformedMessage, RpcError, code},
};

/// A parsed batch whose messages are not yet handled.
pub(crate) struct MessageBatch(Vec<Result<JsonRpcMessage, MalformedMessage>>);

impl MessageBatch {
    /// Parses a batch. Returns `None` if the JSON is not an array or the revision has no batches.
    pub(crate) fn read(json: &Json, dialect: &Dialect) -> Option<Result<MessageBatch, RpcError>> {
        if json.kind() != JsonKind::Array || !dialect.batches {
            return None;
        }
        let read = read_batch(json).map(MessageBatch);
        Some(read.map_err(|bad| RpcError::new(code::INVALID_REQUEST, bad.reason)))
    }

    /// Returns whether any message in the batch gets a reply.
    pub(crate) fn wants_reply(&self) -> bool {
        self.0.iter().any(|message| match message {
            Ok(message) => matches!(message, JsonRpcMessage::Request { .. }),
            Err(bad) => bad.is_answered(),
        })
    }

    /// Handles each message. Requests and notifications of the server go to `responder` at once; the replies follow as one
    /// array after the last one is complete.
    pub(crate) async fn receive(
        self,
        client: &Arc<InitializedClient>,
        sender: &MessageSender,
        responder: &Responder,
    ) {
        let (own, frames) = client.responder();
        #[allow(
            clippy::disallowed_methods,
            reason = "it ends with the requests of the batch, which the server owns"
        )]
        tokio::spawn(collect_replies(frames, responder.clone()));
        for message in self.0 {
            match message {
                Ok(message) => client.receive_as(sender.clone(), message, &own).await,
                Err(bad) if !bad.is_answered() => {}
                Err(bad) => {
                    let wrong = RpcError::new(code::INVALID_REQUEST, bad.reason);
                    own.send(response::reply_frame(bad.id.as_ref(), &Err(wrong)))
                        .await;
                }
            }
        }
    }
}

/// Collects the replies. Ends when all requests of the batch ended, or when `responder` is closed.
async fn collect_replies(mut frames: OutgoingFrames, responder: Responder) {
    let mut replies = Vec::new();
    loop {
        let frame = tokio::select! {
            frame = frames.recv() => frame,
            () = responder.closed() => return,
        };
        match frame {
            Some(OutgoingFrame::Reply(text, _)) => replies.push(text),
            Some(before) => responder.send(before).await,
            None => break,
        }
    }
    if !replies.is_empty() {
        let texts: Vec<&str> = replies.iter().map(AsRef::as_ref).collect();
        let text = format!("[{}]", texts.join(","));
        responder
            .send(OutgoingFrame::Reply(text.into(), None))
            .await;
    }
}
