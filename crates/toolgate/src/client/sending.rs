//! Sending of calls, with the HTTP headers that repeat their arguments.

use super::{
    call,
    http::ParamHeaders,
    link::{RequestFailure, RequestPurpose},
    remote::RemoteServer,
    transport::{MirroredHeaders, ParamHeaderList},
};
use toolgate_core::{Call, Error, ErrorKind, ListRequest, Op, SchemaViolation};
use toolgate_wire::{json::Json, message::code, method::definition::ItemKind};

impl RemoteServer {
    /// Sends a call and waits for its result.
    pub(super) async fn sent(&self, call: &Call) -> Result<Json, RequestFailure> {
        let mirrored = self.mirrored(call).map_err(RequestFailure::Unsent)?;
        let answer = self.send(call, &mirrored).await;
        match answer {
            Err(RequestFailure::Rpc(error))
                if error.code == code::HEADER_MISMATCH && self.mirrors() =>
            {
                self.send_again(call, RequestFailure::Rpc(error)).await
            }
            answer => answer,
        }
    }

    /// Returns whether arguments may have to be repeated as headers.
    pub(super) fn mirrors(&self) -> bool {
        self.link.is_http() && self.peer.dialect.stateless
    }

    async fn send(&self, call: &Call, mirrored: &MirroredHeaders) -> Result<Json, RequestFailure> {
        let (reporter, caller) = (call.reporter.clone(), call.caller.clone());
        let purpose = RequestPurpose::Call(reporter, caller, None, call.trail.clone());
        let as_task = self.asks_for_task(call);
        let params = |id: &_| call::params(call, id, (&self.peer, as_task), &self.options);
        let method = call.op.method();
        self.link
            .request_with(method, purpose, mirrored, params)
            .await
    }

    /// Resends a call that the server rejected unread because its header rules changed, after refreshing the tool list.
    /// The arguments stay those that the rules allowed.
    async fn send_again(&self, call: &Call, first: RequestFailure) -> Result<Json, RequestFailure> {
        self.link.stale(ItemKind::Tool);
        match self
            .list_for(ListRequest::all(call.caller.clone(), ItemKind::Tool))
            .await
        {
            Ok(_) => {
                let mirrored = self.mirrored(call).map_err(RequestFailure::Unsent)?;
                self.send(call, &mirrored).await
            }
            Err(_) => Err(first),
        }
    }

    /// Returns the headers that repeat parts of a call.
    ///
    /// # Errors
    /// An argument that cannot be repeated.
    fn mirrored(&self, call: &Call) -> Result<MirroredHeaders, Error> {
        if !self.mirrors() {
            return Ok(MirroredHeaders::default());
        }
        let arguments = self.marked(call).map_err(|problem| {
            let words = format!(
                "invalid arguments for {}: at {}: expected {}, got {}",
                call.name(),
                problem.path,
                problem.expected,
                problem.got
            );
            Error::new(ErrorKind::Invalid(vec![problem]), words)
        })?;
        Ok(MirroredHeaders {
            said: Some((self.peer.dialect.revision, call.name().to_owned())),
            arguments,
        })
    }

    /// Returns the arguments that the server wants repeated, by the last list or by the item that was looked up.
    fn marked(&self, call: &Call) -> Result<ParamHeaderList, SchemaViolation> {
        if call.op != Op::Tool {
            return Ok(ParamHeaderList::new());
        }
        let item = self.lists.of(ItemKind::Tool).known(call.name());
        let Some(item) = item.or_else(|| call.item().cloned()) else {
            return Ok(ParamHeaderList::new());
        };
        let marks =
            item.memo(|item| ParamHeaders::read(&item.def.input_schema()).unwrap_or_default());
        marks.of(call.arguments().raw())
    }
}
