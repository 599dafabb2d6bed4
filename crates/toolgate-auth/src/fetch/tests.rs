#![allow(clippy::print_stdout, reason = "figures of the tests")]

//! Forbidden addresses, and responses of permitted ones.

use super::*;
use std::{
    net::{IpAddr, SocketAddr},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

/// Returns a fetcher with a test resolver.
fn told(
    reach: AddressPolicy,
    tell: impl Fn(&str) -> Vec<IpAddr> + Send + Sync + 'static,
) -> PeerFetcher {
    heard(reach, tell, |_| {})
}

/// Returns a fetcher with a test resolver and a callback before each connection.
fn heard(
    reach: AddressPolicy,
    tell: impl Fn(&str) -> Vec<IpAddr> + Send + Sync + 'static,
    hear: impl Fn(IpAddr) + Send + Sync + 'static,
) -> PeerFetcher {
    PeerFetcher {
        resolver: DnsResolver::Test(Arc::new(tell), Arc::new(hear)),
        ..PeerFetcher::new(reach, FetchLimits::default())
    }
}

async fn kind(fetcher: &PeerFetcher, at: &str) -> FetchErrorKind {
    let fetched = fetcher.fetch(FetchRequest::get(url(at))).await;
    fetched.map(|fetched| fetched.status).unwrap_err().kind()
}

/// Starts a server that sends the next text on each connection and records the requests.
async fn server(answers: Vec<String>) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = seen.clone();
    #[allow(clippy::disallowed_methods, reason = "a server of a test")]
    tokio::spawn(async move {
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = [0; 4096];
            let read = stream.read(&mut head).await.unwrap();
            kept.lock()
                .unwrap()
                .push(String::from_utf8_lossy(&head[..read]).into_owned());
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    (address, seen)
}

fn ok(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn to(location: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n")
}

mod flips;
mod spelled;

const SPECIAL: [&str; 46] = [
    "0.0.0.0",
    "0.1.2.3",
    "169.254.169.254",
    "169.254.0.1",
    "192.0.0.8",
    "192.0.2.1",
    "192.88.99.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.7",
    "203.0.113.9",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:192.168.1.1",
    "::7f00:1",
    "::a00:1",
    "::ffff:0:7f00:1",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b::a00:1",
    "64:ff9b:1::1",
    "2002:7f00:1::",
    "2002:a00:1::",
    "2002:a9fe:a9fe::1",
    "2001::1",
    "2001:db8::1",
    "2001:10::1",
    "3fff::1",
    "100::1",
    "fe80::1",
    "fe90::1",
    "febf::1",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
    "5f00::1",
    "4000::1",
    "2620:4f:8000::1",
    "e000::1",
    "::2",
];
const PRIVATE: [&str; 10] = [
    "10.0.0.1",
    "10.255.255.255",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "192.168.255.255",
    "100.64.0.1",
    "100.127.255.255",
    "fc00::1",
    "fdff::1",
];
const LOOPBACK: [&str; 4] = ["127.0.0.1", "127.255.255.254", "127.1.2.3", "::1"];
const PUBLIC: [&str; 14] = [
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "172.15.0.1",
    "172.32.0.1",
    "192.167.1.1",
    "198.20.0.1",
    "223.255.255.255",
    "2606:4700::1111",
    "64:ff9b::808:808",
    "2002:808:808::1",
];

fn taken(reach: AddressPolicy, list: &[&str]) -> usize {
    list.iter()
        .filter(|ip| reach.check_address(ip.parse().unwrap()).is_ok())
        .count()
}

/// Holds: SEC-03
#[test]
fn t33_only_public_addresses_are_gone_to_unless_it_is_said() {
    for (reach, expected) in [
        (AddressPolicy::public(), [14, 0, 0, 0]),
        (AddressPolicy::public().and_loopback(), [14, 4, 0, 0]),
        (AddressPolicy::public().danger_and_private(), [14, 0, 10, 0]),
        (
            AddressPolicy::for_server(&url("http://localhost:1/mcp")),
            [14, 4, 0, 0],
        ),
        (
            AddressPolicy::for_server(&url("https://a.test/mcp")),
            [14, 0, 0, 0],
        ),
    ] {
        let counts = [&PUBLIC[..], &LOOPBACK, &PRIVATE, &SPECIAL].map(|list| taken(reach, list));
        assert_eq!(counts, expected, "{reach:?}");
    }
}

#[tokio::test]
async fn t34_one_bad_address_of_a_name_spoils_all() {
    let (address, seen) = server(vec![ok("{}")]).await;
    let both: Vec<IpAddr> = vec!["127.0.0.1".parse().unwrap(), "10.0.0.1".parse().unwrap()];
    let fetcher = told(AddressPolicy::public().and_loopback(), move |_| {
        both.clone()
    });
    let at = format!("https://a.test:{}/", address.port());
    assert_eq!(kind(&fetcher, &at).await, FetchErrorKind::Forbidden);
    assert!(seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn t34_a_name_is_resolved_once_and_that_address_is_used() {
    let (address, seen) = server(vec![ok("{}")]).await;
    let asked = AtomicUsize::new(0);
    let fetcher = told(AddressPolicy::public().and_loopback(), move |_| {
        // The second answer would lead to an address without a listener.
        let ips = ["127.0.0.1", "127.9.9.9"];
        vec![ips[asked.fetch_add(1, SeqCst).min(1)].parse().unwrap()]
    });
    let fetched = fetcher
        .fetch(FetchRequest::get(url(&format!(
            "http://localhost:{}/x",
            address.port()
        ))))
        .await;
    assert_eq!(fetched.map(|f| f.status.as_u16()), Ok(200));
    assert!(seen.lock().unwrap()[0].starts_with("GET /x HTTP/1.1\r\n"));
}

#[tokio::test]
async fn permits_plain_http_only_on_loopback() {
    let fetcher = told(AddressPolicy::public().and_loopback(), |_| {
        vec!["93.184.216.34".parse().unwrap()]
    });
    for at in [
        "http://a.test/",
        "http://93.184.216.34/",
        "http://localhost/",
    ] {
        assert_eq!(kind(&fetcher, at).await, FetchErrorKind::Forbidden, "{at}");
    }
    let fetcher = told(AddressPolicy::public().and_loopback(), |_| {
        vec!["127.0.0.1".parse().unwrap()]
    });
    assert_eq!(
        kind(&fetcher, "http://a.test:1/").await,
        FetchErrorKind::Forbidden,
        "a name that others give an address to"
    );
    let fetcher = told(AddressPolicy::public(), |_| {
        vec!["127.0.0.1".parse().unwrap()]
    });
    assert_eq!(
        kind(&fetcher, "http://127.0.0.1:1/").await,
        FetchErrorKind::Forbidden
    );
}

/// Holds: SEC-03
#[tokio::test]
async fn t36_a_redirect_stays_on_its_origin_and_takes_nothing_along() {
    let here = AddressPolicy::public().and_loopback();
    let fetcher = PeerFetcher::new(here, FetchLimits::default());
    let (address, _) = server(vec![to("/two"), ok("{\"a\":1}")]).await;
    let fetched = fetcher
        .fetch(FetchRequest::get(url(&format!("http://{address}/one"))))
        .await
        .unwrap();
    assert_eq!(
        (fetched.url.clone().path(), fetched.json().unwrap().as_str()),
        ("/two", "{\"a\":1}")
    );

    let (other, seen) = server(vec![ok("{}")]).await;
    for status in ["301 M", "302 F", "303 S", "307 T", "308 P"] {
        let answer = to(&format!("http://{other}/")).replace("302 Found", status);
        let (address, _) = server(vec![answer]).await;
        assert_eq!(
            kind(&fetcher, &format!("http://{address}/")).await,
            FetchErrorKind::Redirect
        );
        let (address, _) = server(vec![to("/here").replace("302 Found", status)]).await;
        let form = FetchRequest::form(url(&format!("http://{address}/token")), [("code", "x")]);
        let fetched = fetcher.fetch(form).await.map(|f| f.status);
        assert_eq!(fetched.unwrap_err().kind(), FetchErrorKind::Redirect);
    }
    assert!(
        seen.lock().unwrap().is_empty(),
        "nothing went to the other origin"
    );
}

#[tokio::test]
async fn rejects_one_redirect_too_many() {
    for redirects in [0, 1, 3] {
        let limits = FetchLimits {
            max_redirects: redirects,
            ..FetchLimits::default()
        };
        let fetcher = PeerFetcher::new(AddressPolicy::public().and_loopback(), limits);
        let mut answers = vec![to("/again"); redirects];
        answers.push(ok("{}"));
        let (address, _) = server(answers).await;
        let at = format!("http://{address}/");
        assert!(fetcher.fetch(FetchRequest::get(url(&at))).await.is_ok());
        let (address, _) = server(vec![to("/again"); redirects + 1]).await;
        let at = format!("http://{address}/");
        assert_eq!(kind(&fetcher, &at).await, FetchErrorKind::Redirect);
    }
}

#[tokio::test]
async fn rejects_a_body_one_byte_over_the_limit() {
    let limits = FetchLimits {
        max_body_bytes: 8,
        ..FetchLimits::default()
    };
    let fetcher = PeerFetcher::new(AddressPolicy::public().and_loopback(), limits);
    let (address, _) = server(vec![ok("12345678"), ok("123456789")]).await;
    let at = format!("http://{address}/");
    assert!(fetcher.fetch(FetchRequest::get(url(&at))).await.is_ok());
    assert_eq!(kind(&fetcher, &at).await, FetchErrorKind::TooLarge);
}

#[tokio::test]
async fn times_out_on_a_silent_server() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let limits = FetchLimits {
        timeout: Duration::from_millis(50),
        ..FetchLimits::default()
    };
    let fetcher = PeerFetcher::new(AddressPolicy::public().and_loopback(), limits);
    let at = format!("http://{}/?secret=1", listener.local_addr().unwrap());
    let error = fetcher
        .fetch(FetchRequest::get(url(&at)))
        .await
        .map(|f| f.status)
        .unwrap_err();
    assert_eq!(error.kind(), FetchErrorKind::Timeout);
    assert!(!error.to_string().contains("secret"), "{error}");
}
