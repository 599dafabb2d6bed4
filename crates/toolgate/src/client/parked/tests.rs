//! Order of the messages that end a parked call, against a server that answers faster than the client ends the call.

use super::*;
use crate::client::{
    options::RemoteOptions,
    transport::{ClientTransport, OutgoingRequest},
};
use futures_util::FutureExt;
use serde_json::{Value, json};
use std::sync::Weak;
use toolgate_core::Origin;
use toolgate_protocol::{dialect::Dialect, memory_budget::BudgetScope};

/// Server that replies to its only request while the client still sends the answer to an input request.
#[derive(Default)]
struct PromptServer {
    link: OnceLock<Weak<ServerConnection>>,
    received: Mutex<Vec<Value>>,
}

/// Transport to a [`PromptServer`].
struct PromptTransport(Arc<PromptServer>);

impl ClientTransport for PromptTransport {
    fn send<'a>(
        &'a self,
        link: &'a ServerConnection,
        request: &'a OutgoingRequest<'a>,
    ) -> BoxFuture<'a, Result<(), RequestFailure>> {
        assert!(link.mark_sent(request.id));
        Box::pin(async { Ok(()) })
    }

    fn send_priority(&self, line: String) -> bool {
        let message: Value = serde_json::from_str(&line).unwrap();
        let answers = message.get("method").is_none();
        self.0.received.lock().unwrap().push(message);
        let link = self.0.link.get().and_then(Weak::upgrade);
        if let Some(link) = link.filter(|_| answers) {
            let reply = json!({"jsonrpc": "2.0", "id": 1, "result": {}}).to_string();
            link.receive_line(reply.into_bytes(), BudgetScope::default().permit());
        }
        true
    }

    fn send_initialized<'a>(&'a self, _: &'a ServerConnection, _: String) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }

    fn cancels_by_notification(&self, _: &Dialect) -> bool {
        true
    }

    fn is_http(&self) -> bool {
        false
    }

    fn keeps_session(&self) -> bool {
        true
    }
}

/// Returns the messages that the server receives when its call is dropped with this input request open.
fn dropped(kind: InputRequestKind) -> Vec<Value> {
    let server = Arc::<PromptServer>::default();
    let origin = Origin {
        server: "s".into(),
        trusted: false,
    };
    let transport = Arc::new(PromptTransport(server.clone()));
    let link = ServerConnection::over(transport, &RemoteOptions::new(origin));
    server.link.set(Arc::downgrade(&link)).unwrap();
    let id = Arc::<OnceLock<Id>>::default();
    let (own, known) = (link.clone(), id.clone());
    let mut answer: BoxFuture<'static, _> = Box::pin(async move {
        let params = |id: &Id| {
            known.set(id.clone()).unwrap();
            ObjectWriter::new().finish()
        };
        own.request("tools/call", RequestPurpose::List, params)
            .await
    });
    assert!((&mut answer).now_or_never().is_none());
    let question = ServerInputRequest {
        id: Id::number(7),
        kind,
    };
    drop(CallExchange {
        link,
        answer,
        input_requests: mpsc::channel(1).1,
        id,
        open_request: Some(question),
    });
    std::mem::take(&mut server.received.lock().unwrap())
}

#[test]
fn a_dropped_call_is_cancelled_even_if_the_server_ends_it_on_the_answer() {
    let params = || ObjectWriter::new().finish();
    for kind in [
        InputRequestKind::Elicit(params()),
        InputRequestKind::Sample(params()),
    ] {
        let messages = dropped(kind);
        let [answer, cancellation] = messages.as_slice() else {
            panic!("{messages:?}")
        };
        assert_eq!(answer["id"], 7);
        assert_eq!(cancellation["method"], "notifications/cancelled");
        assert_eq!(cancellation["params"]["requestId"], 1);
    }
}
