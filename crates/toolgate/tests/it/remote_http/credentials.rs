//! Tokens of somebody who is asked: they go along, are asked for anew after a refusal, and stay on their origin.

use super::{
    super::remote::peer::{all, options},
    server::{Server, discovered, soon, start_with},
};
use http::{HeaderMap, HeaderValue, header};
use serde_json::json;
use std::{
    io::ErrorKind,
    net::TcpListener,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};
use toolgate::{
    Service,
    client::{HttpOptions, RemoteServer},
    core::BoxFuture,
};
use toolgate_auth::client::{
    AuthError, AuthErrorKind, CredentialProvider, CredentialRequest, RejectedResponse,
    RetryDecision,
};

/// Gives another token each time, and asks for one more try after a first refusal.
#[derive(Clone, Default)]
struct Keys(Arc<Seen>);

#[derive(Default)]
struct Seen {
    given: AtomicUsize,
    refused: Mutex<Vec<String>>,
    fails: Mutex<bool>,
}

impl CredentialProvider for Keys {
    fn headers<'a>(
        &'a self,
        _: CredentialRequest<'a>,
    ) -> BoxFuture<'a, Result<HeaderMap, AuthError>> {
        let n = self.0.given.fetch_add(1, SeqCst);
        let mut headers = HeaderMap::new();
        for (name, value) in [
            (header::AUTHORIZATION, format!("DPoP canary-token-{n}")),
            (
                header::HeaderName::from_static("dpop"),
                format!("canary-proof-{n}"),
            ),
        ] {
            headers.insert(name, HeaderValue::from_str(&value).unwrap());
        }
        Box::pin(std::future::ready(Ok(headers)))
    }

    fn on_rejection<'a>(
        &'a self,
        request: CredentialRequest<'a>,
        refusal: RejectedResponse<'a>,
    ) -> BoxFuture<'a, Result<RetryDecision, AuthError>> {
        let operation = request.operation.unwrap_or("nobody");
        self.0
            .refused
            .lock()
            .unwrap()
            .push(format!("{} {operation}", refusal.status.as_u16()));
        let fails = *self.0.fails.lock().unwrap();
        let answer = match refusal.previous_rejections {
            _ if fails => Err(AuthError::new(
                AuthErrorKind::NeedsSignIn,
                "somebody has to sign in",
            )),
            0 => Ok(RetryDecision::Retry),
            _ => Ok(RetryDecision::GiveUp),
        };
        Box::pin(std::future::ready(answer))
    }
}

async fn open(keys: &Keys) -> (RemoteServer, Server) {
    let http = HttpOptions::default()
        .header("x-api-key", "canary-key")
        .unwrap();
    let (opening, server) = start_with(options(), http.credentials(keys.clone())).await;
    let probe = server.next().await;
    assert_eq!(probe.header("authorization"), Some("DPoP canary-token-0"));
    probe.answer("401 Unauthorized", &[], "").await;
    let probe = server.next().await;
    assert_eq!(probe.header("authorization"), Some("DPoP canary-token-1"));
    assert_eq!(probe.header("dpop"), Some("canary-proof-1"));
    probe.result(discovered(json!({}))).await;
    (soon(opening).await.unwrap().unwrap(), server)
}

#[tokio::test]
async fn a_refused_request_is_sent_again_once_with_other_credentials() {
    let keys = Keys::default();
    let (remote, server) = open(&keys).await;
    let (list, ()) = tokio::join!(remote.list(all()), async {
        for n in 2..4 {
            let asked = server.next().await;
            let token = format!("canary-token-{n}");
            assert_eq!(
                asked.header("authorization"),
                Some(format!("DPoP {token}").as_str())
            );
            let words = format!("what is {token}, with canary-proof-{n}?");
            let plain = [("content-type", "text/plain")];
            asked.answer("403 Forbidden", &plain, &words).await;
        }
    });
    let error = format!("{:?}", list.map(drop).unwrap_err());
    assert!(
        error.contains("what is") && !error.contains("canary"),
        "{error}"
    );
    let seen = keys.0.refused.lock().unwrap().clone();
    assert_eq!(
        seen,
        ["401 server/discover", "403 tools/list", "403 tools/list"]
    );
}

#[tokio::test]
async fn why_there_is_no_token_reaches_the_caller() {
    let keys = Keys::default();
    let (remote, server) = open(&keys).await;
    *keys.0.fails.lock().unwrap() = true;
    let (list, ()) = tokio::join!(remote.list(all()), async {
        server
            .next()
            .await
            .answer("401 Unauthorized", &[], "")
            .await;
    });
    let error = list.map(drop).unwrap_err();
    assert!(
        error.public_message().contains("somebody has to sign in"),
        "{}",
        error.public_message()
    );
}

#[tokio::test]
async fn t36_no_redirect_takes_credentials_to_another_origin() {
    let thief = TcpListener::bind("127.0.0.1:0").unwrap();
    thief.set_nonblocking(true).unwrap();
    let to = format!("http://{}/mcp", thief.local_addr().unwrap());
    let (remote, server) = open(&Keys::default()).await;
    let elsewhere = [to.as_str(), to.strip_prefix("http:").unwrap()];
    for status in ["301 M", "302 F", "303 S", "307 T", "308 P"] {
        for location in elsewhere {
            let (list, ()) = tokio::join!(remote.list(all()), async {
                let asked = server.next().await;
                assert_eq!(asked.header("x-api-key"), Some("canary-key"));
                asked.answer(status, &[("location", location)], "").await;
            });
            assert!(list.is_err(), "{status} to {location}");
        }
    }
    let came = thief.accept().map(drop).map_err(|error| error.kind());
    assert_eq!(
        came,
        Err(ErrorKind::WouldBlock),
        "nobody went to the other origin"
    );
}
