//! Sending of calls, with the HTTP headers that repeat their arguments.

use super::{
    call,
    connection::{RequestFailure, RequestPurpose},
    remote::RemoteServer,
    transport::MirroredHeaders,
};
use crate::param_headers::{ParamHeaderList, ParamHeaders};
use toolgate_core::{Call, Error, ErrorKind, ListRequest, Op, SchemaViolation};
use toolgate_protocol::{json::Json, message::code, method::definition::ItemKind};

impl RemoteServer {
    /// Sends a call and waits for its result.
    pub(super) async fn send_call(&self, call: &Call) -> Result<Json, RequestFailure> {
        let mirrored = self
            .mirrored_headers(call)
            .map_err(RequestFailure::Rejected)?;
        let answer = self.send_request(call, &mirrored).await;
        match answer {
            Err(RequestFailure::Rpc(error))
                if error.code == code::HEADER_MISMATCH && self.repeats_arguments() =>
            {
                // Rare, so boxed to keep the future of a call small.
                Box::pin(self.resend_after_refresh(call, RequestFailure::Rpc(error))).await
            }
            answer => answer,
        }
    }

    /// Returns whether arguments may have to be repeated as headers.
    pub(super) fn repeats_arguments(&self) -> bool {
        self.link.is_http() && self.peer.dialect.mirrored_headers
    }

    async fn send_request(
        &self,
        call: &Call,
        mirrored: &MirroredHeaders,
    ) -> Result<Json, RequestFailure> {
        let (reporter, caller) = (call.reporter.clone(), call.caller.clone());
        let purpose = RequestPurpose::Call(reporter, caller, None, call.decision_log.clone());
        let as_task = self.requires_task(call);
        let params = |id: &_| call::params(call, id, (&self.peer, as_task), &self.options);
        let method = call.op.method();
        self.link
            .request_with(method, purpose, mirrored, params)
            .await
    }

    /// Resends a call that the server rejected unread because its header rules changed, after refreshing the tool list.
    /// The arguments stay those that the rules allowed.
    async fn resend_after_refresh(
        &self,
        call: &Call,
        first: RequestFailure,
    ) -> Result<Json, RequestFailure> {
        self.link.mark_list_stale(ItemKind::Tool);
        match self
            .list_for(ListRequest::all(call.caller.clone(), ItemKind::Tool))
            .await
        {
            Ok(_) => {
                let mirrored = self
                    .mirrored_headers(call)
                    .map_err(RequestFailure::Rejected)?;
                self.send_request(call, &mirrored).await
            }
            Err(_) => Err(first),
        }
    }

    /// Returns the headers that repeat parts of a call.
    ///
    /// # Errors
    /// An argument that cannot be repeated.
    fn mirrored_headers(&self, call: &Call) -> Result<MirroredHeaders, Error> {
        if !self.repeats_arguments() {
            return Ok(MirroredHeaders::default());
        }
        let arguments = self.param_headers(call).map_err(|problem| {
            let words = format!(
                "invalid arguments for {}: at {}: expected {}, got {}",
                call.name(),
                problem.path,
                problem.expected,
                problem.received
            );
            Error::new(ErrorKind::InvalidArguments(vec![problem]), words)
        })?;
        Ok(MirroredHeaders {
            revision_and_name: Some((self.peer.dialect, call.name().to_owned())),
            arguments,
        })
    }

    /// Returns the arguments that the server wants repeated, by the last list or by the item that was looked up.
    fn param_headers(&self, call: &Call) -> Result<ParamHeaderList, SchemaViolation> {
        if call.op != Op::Tool {
            return Ok(ParamHeaderList::new());
        }
        let item = self.lists.of(ItemKind::Tool).find(call.name());
        let Some(item) = item.or_else(|| call.item().cloned()) else {
            return Ok(ParamHeaderList::new());
        };
        let marks =
            item.cached(|item| ParamHeaders::read(&item.def.input_schema()).unwrap_or_default());
        marks.headers_for(call.arguments().raw())
    }
}
