//! Sending of calls, with the HTTP headers that repeat their arguments.

use super::{
    call,
    http::Marks,
    link::{Failure, Purpose},
    remote::Remote,
    transport::{Headers, Mirrored},
};
use toolgate_core::{Call, Error, Kind, List, Op, Problem};
use toolgate_wire::{json::Json, message::code, method::definition::ItemKind};

impl Remote {
    /// Sends a call and waits for its result.
    pub(super) async fn sent(&self, call: &Call) -> Result<Json, Failure> {
        let mirrored = self.mirrored(call).map_err(Failure::Unsent)?;
        let answer = self.send(call, &mirrored).await;
        match answer {
            Err(Failure::Rpc(error)) if error.code == code::HEADER_MISMATCH && self.mirrors() => {
                self.send_again(call, Failure::Rpc(error)).await
            }
            answer => answer,
        }
    }

    /// Returns whether arguments may have to be repeated as headers.
    pub(super) fn mirrors(&self) -> bool {
        self.link.is_http() && self.peer.dialect.stateless
    }

    async fn send(&self, call: &Call, mirrored: &Mirrored) -> Result<Json, Failure> {
        let (reporter, caller) = (call.reporter.clone(), call.caller.clone());
        let purpose = Purpose::Call(reporter, caller, None, call.trail.clone());
        let as_task = self.asks_for_task(call);
        let params = |id: &_| call::params(call, id, (&self.peer, as_task), &self.options);
        let method = call.op.method();
        self.link
            .request_with(method, purpose, mirrored, params)
            .await
    }

    /// Resends a call that the server rejected unread because its header rules changed, after refreshing the tool list.
    /// The arguments stay those that the rules allowed.
    async fn send_again(&self, call: &Call, first: Failure) -> Result<Json, Failure> {
        self.link.stale(ItemKind::Tool);
        match self
            .list_for(List::all(call.caller.clone(), ItemKind::Tool))
            .await
        {
            Ok(_) => {
                let mirrored = self.mirrored(call).map_err(Failure::Unsent)?;
                self.send(call, &mirrored).await
            }
            Err(_) => Err(first),
        }
    }

    /// Returns the headers that repeat parts of a call.
    ///
    /// # Errors
    /// An argument that cannot be repeated.
    fn mirrored(&self, call: &Call) -> Result<Mirrored, Error> {
        if !self.mirrors() {
            return Ok(Mirrored::default());
        }
        let arguments = self.marked(call).map_err(|problem| {
            let words = format!(
                "invalid arguments for {}: at {}: expected {}, got {}",
                call.name(),
                problem.path,
                problem.expected,
                problem.got
            );
            Error::new(Kind::Invalid(vec![problem]), words)
        })?;
        Ok(Mirrored {
            said: Some((self.peer.dialect.revision, call.name().to_owned())),
            arguments,
        })
    }

    /// Returns the arguments that the server wants repeated, by the last list or by the item that was looked up.
    fn marked(&self, call: &Call) -> Result<Headers, Problem> {
        if call.op != Op::Tool {
            return Ok(Headers::new());
        }
        let item = self.lists.of(ItemKind::Tool).known(call.name());
        let Some(item) = item.or_else(|| call.item().cloned()) else {
            return Ok(Headers::new());
        };
        let marks = item.memo(|item| Marks::read(&item.def.input_schema()).unwrap_or_default());
        marks.of(call.arguments().raw())
    }
}
