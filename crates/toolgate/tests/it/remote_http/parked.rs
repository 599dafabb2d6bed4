//! Over HTTP a question comes on the stream of its call, so that many calls may ask at once.

use super::{
    super::remote::peer::{call, options},
    posts::done,
    server::{Server, Told, soon, start_with},
};
use serde_json::json;
use toolgate::{
    Call, Error, Json, Outcome, Service,
    client::{HttpOptions, RemoteOptions, RemoteServer},
    core::{ErrorKind, InputRequestKind},
};
use toolgate_protocol::json::JsonLimits;

async fn open(options: RemoteOptions) -> (RemoteServer, Server) {
    let (opening, server) = start_with(options, HttpOptions::default()).await;
    server.next().await.answer("404 Not Found", &[], "").await;
    server.next().await.welcome("2025-11-25", Some("s1")).await;
    server.next().await.answer("202 Accepted", &[], "").await;
    let remote = soon(opening).await.unwrap().unwrap();
    let listen = server.next().await;
    listen.answer("405 Method Not Allowed", &[], "").await;
    (remote, server)
}

fn able(id: &str) -> Call {
    let mut call = call("echo", "{}");
    call.capabilities.elicitation = true;
    call.id = id.into();
    call
}

async fn elicit(told: &mut Told, id: u64, message: &str) {
    let params =
        json!({"message": message, "requestedSchema": {"type": "object", "properties": {}}});
    told.message(
        &json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params}),
    )
    .await;
}

/// One round with a question on the stream of its call, which stays open.
async fn asked(
    remote: &RemoteServer,
    server: &Server,
    call: Call,
    id: u64,
    message: &str,
) -> (Result<Outcome, Error>, Told) {
    soon(async {
        tokio::join!(remote.call(call), async {
            let mut told = server.next().await.stream().await;
            elicit(&mut told, id, message).await;
            told
        })
    })
    .await
}

#[tokio::test]
async fn each_question_reaches_the_call_on_whose_stream_it_came() {
    let (remote, server) = open(options()).await;
    let mut waiting = Vec::new();
    for (id, message) in [(1, "first?"), (2, "second?")] {
        let call = able(message);
        let (outcome, told) = asked(&remote, &server, call.clone(), id, message).await;
        let Ok(Outcome::InputRequired(mut questions)) = outcome else {
            panic!("{outcome:?}")
        };
        std::mem::take(&mut questions.guard).defuse();
        let InputRequestKind::Elicit(params) = &questions.requests[0].kind else {
            panic!("{questions:?}")
        };
        assert_eq!(params.get("message").unwrap().string().unwrap(), message);
        waiting.push((id, call, questions, told));
    }
    assert_eq!(remote.status().parked_calls, 2);
    for (id, mut call, questions, mut told) in waiting.into_iter().rev() {
        let answer = br#"{"action":"accept","content":{}}"#.to_vec();
        call.round.slots = questions.slots;
        let answer = Json::read(answer, &JsonLimits::default()).unwrap();
        call.round.answers = vec![(questions.requests[0].key.clone(), answer)];
        let name = call.id.to_string();
        let (outcome, ()) = soon(async {
            tokio::join!(remote.call(call), async {
                let reply = server.next().await;
                assert_eq!(reply.body["id"], id);
                assert_eq!(reply.body["result"]["action"], "accept");
                reply.answer("202 Accepted", &[], "").await;
                told.result(done(&name)).await;
                told.end().await;
            })
        })
        .await;
        let Ok(Outcome::Done(output)) = outcome else {
            panic!("{outcome:?}")
        };
        let text = output.tool().unwrap().content[0].json.get("text");
        assert_eq!(text.unwrap().string().unwrap(), name);
    }
    assert_eq!(remote.status().parked_calls, 0);
}

#[tokio::test]
async fn one_call_over_those_that_may_wait_is_refused() {
    for (all, own) in [(2, 16), (64, 2)] {
        let mut few = options();
        (few.max_parked_calls, few.max_parked_calls_per_caller) = (all, own);
        let (remote, server) = open(few).await;
        let mut streams = Vec::new();
        for id in 1..=3 {
            let call = able(&format!("c{id}"));
            let (outcome, told) = asked(&remote, &server, call, id, "which?").await;
            streams.push(told);
            match outcome {
                Ok(Outcome::InputRequired(questions)) => {
                    assert!(id < 3);
                    questions.guard.defuse();
                }
                Err(refused) => {
                    assert!(
                        id == 3 && matches!(refused.kind(), ErrorKind::Busy(_)),
                        "{refused:?}"
                    );
                    assert!(
                        refused.public_message().contains("too many calls"),
                        "{refused:?}"
                    );
                }
                other => panic!("{other:?}"),
            }
        }
    }
}
