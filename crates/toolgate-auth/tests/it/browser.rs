//! The way back of a person.

use std::{sync::Mutex, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::oneshot,
};
use toolgate_auth::{
    Url,
    client::{AuthErrorKind, LoopbackBrowser, SignIn},
};

async fn get(host: &str, target: &str, named: &str) -> String {
    let mut stream = TcpStream::connect(host).await.unwrap();
    let request = format!("GET {target} HTTP/1.1\r\nHost: {named}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.lines().next().unwrap().to_owned()
}

/// Holds: AUTH-54.
#[tokio::test]
async fn only_the_answer_with_the_state_ends_the_wait() {
    let (opened, page) = oneshot::channel();
    let opened = Mutex::new(Some(opened));
    let browser = LoopbackBrowser::new(move |url| {
        let opened = opened.lock().unwrap().take().unwrap();
        opened.send(url.as_str().to_owned()).unwrap();
    });
    let visit = browser.begin(None).await.unwrap();
    let redirect = visit.redirect_uri().to_owned();
    let host = redirect
        .strip_prefix("http://")
        .unwrap()
        .strip_suffix("/callback")
        .unwrap();
    assert!(host.starts_with("127.0.0.1:"), "{host}");
    let url = "https://as.test/authorize?state=the+state&x=1";
    let coming = visit.open_and_wait(Url::parse(url).unwrap());
    let asking = async {
        assert_eq!(page.await.unwrap(), url);
        for (target, named) in [
            ("/callback?code=evil&state=other", host),
            ("/callback?code=evil", host),
            ("/callback", host),
            ("/other?code=evil&state=the+state", host),
            ("/callback?code=evil&state=the+state", "evil.test"),
        ] {
            let status = get(host, target, named).await;
            assert!(status.contains("400"), "{target} as {named}: {status}");
        }
        let status = get(host, "/callback?code=good&state=the+state&iss=y", host).await;
        assert!(status.contains("200"), "{status}");
    };
    let (query, ()) = tokio::join!(coming, asking);
    assert_eq!(query.unwrap(), "code=good&state=the+state&iss=y");
    assert!(
        TcpStream::connect(host).await.is_err(),
        "the port is closed"
    );
    // The same address once more, for servers that know one only.
    let again = browser.begin(Some(&redirect)).await.unwrap();
    assert_eq!(again.redirect_uri(), redirect);
}

/// Browsers open connections in advance, and any page or program may send what it likes.
#[tokio::test]
async fn neither_silent_connections_nor_strangers_hold_up_the_answer() {
    let browser = LoopbackBrowser::new(|_| {});
    let visit = browser.begin(None).await.unwrap();
    let redirect = visit.redirect_uri().to_owned();
    let host = redirect
        .strip_prefix("http://")
        .and_then(|rest| rest.strip_suffix("/callback"))
        .unwrap();
    let coming = visit.open_and_wait(Url::parse("https://as.test/authorize?state=s").unwrap());
    let asking = async {
        let mut silent = Vec::new();
        for n in 0..200 {
            silent.push(TcpStream::connect(host).await.unwrap());
            let status = get(host, &format!("/callback?code=evil&state={n}"), host).await;
            assert!(status.contains("400"), "{status}");
        }
        // One that was opened in advance is used.
        let mut early = TcpStream::connect(host).await.unwrap();
        get(host, "/favicon.ico", host).await;
        let request = format!("GET /callback?code=good&state=s HTTP/1.1\r\nHost: {host}\r\n\r\n");
        early.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        early.read_to_string(&mut answer).await.unwrap();
        assert!(answer.contains("200 OK"), "{answer}");
    };
    let both = async { tokio::join!(coming, asking) };
    // A bound on a hang, not a measurement: one after the other would take 5 seconds each.
    let (query, ()) = tokio::time::timeout(Duration::from_secs(60), both)
        .await
        .expect("nobody is waited for");
    assert_eq!(query.unwrap(), "code=good&state=s");
}

#[tokio::test]
async fn who_never_comes_back_is_not_waited_for_for_ever() {
    let browser = LoopbackBrowser::new(|_| {}).timeout(Duration::from_millis(20));
    let visit = browser.begin(None).await.unwrap();
    let error = visit
        .open_and_wait(Url::parse("https://as.test/?state=x").unwrap())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::NeedsSignIn);
}
