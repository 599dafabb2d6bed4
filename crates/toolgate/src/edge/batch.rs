//! Several messages in one JSON array, which peers of 2025-03-26 may send.

use super::{
    answer,
    legacy::Legacy,
    outlet::{Frame, Frames, Outlet},
};
use std::sync::Arc;
use toolgate_core::Caller;
use toolgate_wire::{
    dialect::Dialect,
    json::{Json, Kind},
    message::{self, Malformed, Message, RpcError, code},
};

/// A batch, not worked on yet.
pub(crate) struct Batch(Vec<Result<Message, Malformed>>);

impl Batch {
    /// Reads one; `None` where this is no array, or the peer's revision has no batches.
    pub(crate) fn read(json: &Json, dialect: &Dialect) -> Option<Result<Batch, RpcError>> {
        if json.kind() != Kind::Array || !dialect.batches {
            return None;
        }
        let read = message::batch(json).map(Batch);
        Some(read.map_err(|bad| RpcError::new(code::INVALID_REQUEST, bad.reason)))
    }

    /// Whether anything in it is answered.
    pub(crate) fn wants_reply(&self) -> bool {
        self.0.iter().any(|message| match message {
            Ok(message) => matches!(message, Message::Request { .. }),
            Err(bad) => bad.is_answered(),
        })
    }

    /// Hands each message to the peer. What comes before the replies goes to `outlet` at once, the replies as one array
    /// when the last of them is there.
    pub(crate) async fn receive(self, legacy: &Arc<Legacy>, caller: &Caller, outlet: &Outlet) {
        let (own, frames) = legacy.outlet();
        #[allow(
            clippy::disallowed_methods,
            reason = "it ends with the requests of the batch, which the edge owns"
        )]
        tokio::spawn(gather(frames, outlet.clone()));
        for message in self.0 {
            match message {
                Ok(message) => legacy.receive_of(caller.clone(), message, &own).await,
                Err(bad) if !bad.is_answered() => {}
                Err(bad) => {
                    let wrong = RpcError::new(code::INVALID_REQUEST, bad.reason);
                    own.send(answer::frame(bad.id.as_ref(), &Err(wrong))).await;
                }
            }
        }
    }
}

/// Ends when all requests of the batch did, or when nobody reads any more.
async fn gather(mut frames: Frames, outlet: Outlet) {
    let mut replies = Vec::new();
    loop {
        let frame = tokio::select! {
            frame = frames.recv() => frame,
            () = outlet.closed() => return,
        };
        match frame {
            Some(Frame::Reply(text, _)) => replies.push(text),
            Some(before) => outlet.send(before).await,
            None => break,
        }
    }
    if !replies.is_empty() {
        let texts: Vec<&str> = replies.iter().map(AsRef::as_ref).collect();
        let text = format!("[{}]", texts.join(","));
        outlet.send(Frame::Reply(text.into(), None)).await;
    }
}
