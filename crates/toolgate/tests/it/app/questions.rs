//! Servers ask; the application's functions answer, in every revision alike.

use super::sample_server::{ASKING, REVISIONS, client};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use toolgate::{
    CallResult, Client, Error,
    client::{ClientBuilder, SamplingResponse},
    core::{ErrorKind, RequiredCapability},
    handlers::ask::{Reply, Root},
};

fn root(uri: &str) -> Root {
    Root {
        uri: uri.to_owned(),
        name: None,
    }
}

/// In what words a call failed: those of the client, or those of the server for the model.
fn failure(outcome: Result<CallResult, Error>) -> String {
    match outcome {
        Err(error) => error.public_message().to_owned(),
        Ok(result) if result.is_error() => result.text(),
        Ok(result) => panic!("it did not fail: {}", result.text()),
    }
}

/// Holds: ELIC-01, ELIC-02, ELIC-13, MRTR-10, MRTR-11, MRTR-12, TOOL-39
#[tokio::test]
async fn a_form_is_filled_in_by_the_application() {
    for revision in ASKING {
        let builder = Client::builder().on_elicit(|form| async move {
            assert_eq!((&*form.server, &*form.message), ("world", "Which unit?"));
            Reply::Accepted(json!({"value": "C"}))
        });
        let client = client(revision, builder).await;
        let result = client.call("asks", ()).await.unwrap();
        let unit: Value = result.structured().unwrap();
        assert_eq!(unit, json!({"unit": "C"}), "{revision}");
    }
}

/// Holds: ELIC-13
#[tokio::test]
async fn a_person_may_decline_and_cancel() {
    let replies = [
        (Reply::Declined, "the user declined to answer"),
        (
            Reply::Cancelled,
            "the user dismissed the request without an answer",
        ),
    ];
    for revision in ASKING {
        for (reply, words) in replies.clone() {
            let builder = Client::builder().on_elicit(move |_| {
                let reply = reply.clone();
                async move { reply }
            });
            let client = client(revision, builder).await;
            let result = client.call("asks", ()).await.unwrap();
            assert_eq!(
                (result.is_error(), &*result.text()),
                (true, words),
                "{revision}"
            );
        }
    }
}

/// Holds: ELIC-08
#[tokio::test]
async fn defaults_fill_what_is_left_out() {
    for revision in ASKING {
        let builder = Client::builder().on_elicit(|_| async { Reply::Accepted(json!({"age": 7})) });
        let client = client(revision, builder).await;
        let form: Value = client.call("form", ()).await.unwrap().structured().unwrap();
        assert_eq!(form, json!({"name": "Ada", "age": 7}), "{revision}");
    }
}

/// Holds: ELIC-12
#[tokio::test]
async fn an_answer_that_does_not_fit_is_not_sent() {
    for revision in ASKING {
        let builder =
            Client::builder().on_elicit(|_| async { Reply::Accepted(json!({"value": "K"})) });
        let client = client(revision, builder).await;
        let words = failure(client.call("asks", ()).await);
        assert!(!words.contains("unit"), "{revision}: {words}");
    }
}

/// Holds: SAMP-01, SAMP-04
#[tokio::test]
async fn the_model_is_asked_and_kept_short() {
    for revision in REVISIONS {
        let builder = Client::builder().on_sample(|ask| async move {
            assert_eq!((ask.params.max_tokens, ask.params.messages.len()), (2, 1));
            Ok(SamplingResponse::text("m", "one two three"))
        });
        let client = client(revision, builder).await;
        let said: Value = client
            .call("model", ())
            .await
            .unwrap()
            .structured()
            .unwrap();
        assert_eq!(said, json!({"said": "one two"}), "{revision}");
    }
}

/// Holds: SAMP-06
#[tokio::test]
async fn a_person_may_refuse_the_model() {
    for revision in REVISIONS {
        let builder = Client::builder().on_sample(|_| async { Err("not this".to_owned()) });
        let client = client(revision, builder).await;
        let words = failure(client.call("model", ()).await);
        assert!(!words.is_empty(), "{revision}");
    }
}

/// Holds: ROOT-01, ROOT-02, ROOT-03
#[tokio::test]
async fn roots_are_named_and_changed() {
    for revision in REVISIONS {
        let builder = Client::builder().roots([root("file:///a")]);
        let client = client(revision, builder).await;
        let roots = || async {
            let result = client.call("roots", ()).await.unwrap();
            result.structured::<Value>().unwrap()["roots"].clone()
        };
        assert_eq!(roots().await, json!(["file:///a"]), "{revision}");
        client.set_roots(vec![root("file:///b")]).unwrap();
        assert_eq!(roots().await, json!(["file:///b"]), "{revision}");
        assert!(client.set_roots(vec![root("https://x")]).is_err());
        assert_eq!(roots().await, json!(["file:///b"]), "{revision}");
    }
    let builder = Client::builder().roots([root("https://x")]);
    assert!(builder.spawn(["never-started"]).await.is_err());
}

/// Holds: MRTR-05, SAMP-01, ELIC-01, ROOT-04
#[tokio::test]
async fn what_has_no_function_fails_clearly() {
    for revision in REVISIONS {
        for tool in ["asks", "model", "roots"] {
            let client = client(revision, Client::builder()).await;
            let words = failure(client.call(tool, ()).await);
            assert!(words.contains("did not declare"), "{revision}: {words}");
        }
    }
    let client = client("2026-07-28", Client::builder()).await;
    let error = client.call("model", ()).await.unwrap_err();
    assert_eq!(
        *error.kind(),
        ErrorKind::MissingCapability(RequiredCapability::Sampling)
    );
}

/// Number of concurrent calls that request input.
const CALLS: usize = 4;

/// Holds: MRTR-13
#[tokio::test]
async fn calls_at_the_same_time_get_their_own_answers() {
    for revision in ASKING {
        let count = Arc::new(Mutex::new(0));
        let builder: ClientBuilder = Client::builder().on_elicit(move |form| {
            let (count, message) = (count.clone(), form.message.clone());
            async move {
                // The later a question comes, the earlier it is answered.
                let turns = {
                    let mut count = count.lock().unwrap();
                    *count += 1;
                    CALLS - *count
                };
                for _ in 0..turns {
                    tokio::task::yield_now().await;
                }
                Reply::Accepted(json!({"value": message.replace("Name of ", "name of ")}))
            }
        });
        let client = client(revision, builder).await;
        let calls = (0..CALLS).map(|number| {
            let client = &client;
            async move {
                let arguments = json!({"who": number.to_string()});
                client.call("name_of", arguments).await.unwrap().text()
            }
        });
        let texts = futures_util::future::join_all(calls).await;
        for (number, text) in texts.iter().enumerate() {
            let own = format!("{number} is name of {number}");
            assert!(text.contains(&own), "{revision}: {texts:?}");
        }
    }
}
