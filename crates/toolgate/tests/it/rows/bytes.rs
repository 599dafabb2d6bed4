//! T09 and a part of T13: what the rules judge is what the server gets, to the byte, however a body is cut and however
//! long it is.

use super::{
    upstream::Upstream,
    web::{Answer, open, read},
};
use bytes::Bytes;
use futures_util::stream;
use http::Request;
use http_body::Frame;
use http_body_util::StreamBody;
use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};
use toolgate::{
    Call, Caller, Json,
    core::{Item, MaybeReady, Pipeline},
    edge::{
        ProtocolServer, ServerLimits,
        http::{HttpEndpoint, HttpLimits},
    },
    rule::{Rule, RuleDecision},
};

/// The longest message in these tests, in bytes.
const LIMIT: usize = 1024;

/// Keeps the arguments that it judged, as they stood there.
#[derive(Clone, Default)]
struct Judge(Arc<Mutex<Vec<String>>>);

impl Rule for Judge {
    fn name(&self) -> &'static str {
        "judge"
    }

    fn decide<'a>(&'a self, call: &'a Call, _: &'a Item) -> MaybeReady<'a> {
        let arguments = call.arguments().raw().as_str().to_owned();
        self.0.lock().unwrap().push(arguments);
        MaybeReady::Ready(RuleDecision::Allow)
    }
}

struct Way {
    upstream: Upstream,
    judge: Judge,
    endpoint: HttpEndpoint,
}

impl Way {
    async fn open(limit: usize) -> Way {
        let (upstream, judge) = (Upstream::start(false).await, Judge::default());
        let remote = Arc::new(upstream.open().await);
        let pipeline = Pipeline::new()
            .resolve()
            .rule(judge.clone())
            .service(remote);
        let mut limits = ServerLimits::default();
        limits.json = toolgate_protocol::json::JsonLimits {
            bytes: limit,
            ..Default::default()
        };
        let front = ProtocolServer::new(Arc::new(pipeline), "gate", "1", limits).unwrap();
        let endpoint = HttpEndpoint::new(Arc::new(front), HttpLimits::default());
        Way {
            upstream,
            judge,
            endpoint,
        }
    }

    /// Sends a body in these pieces, within a session.
    async fn post(&self, session: &str, pieces: Vec<Vec<u8>>) -> Answer {
        let pieces = pieces
            .into_iter()
            .map(|piece| Ok(Frame::data(Bytes::from(piece))));
        let body = StreamBody::new(stream::iter(pieces.collect::<Vec<Result<_, Infallible>>>()));
        let request = Request::post("/mcp")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-session-id", session)
            .body(body)
            .unwrap();
        read(self.endpoint.handle(Caller::new("a"), request).await).await
    }

    /// Returns the evaluated and the sent arguments since the last call; the latter cut out of the raw message.
    fn seen(&self) -> (Vec<String>, Vec<String>) {
        let judged = std::mem::take(&mut *self.judge.0.lock().unwrap());
        let came = self.upstream.take().into_iter();
        let calls = came.filter(|came| came.method() == "tools/call");
        (judged, calls.map(|call| arguments(&call.body)).collect())
    }

    /// Sends arguments and checks that they arrive as they are.
    async fn arrives(&self, session: &str, arguments: &str, pieces: Vec<Vec<u8>>) {
        let answer = self.post(session, pieces).await;
        assert_eq!(answer.status, 200, "{arguments}");
        let (judged, sent) = self.seen();
        assert_eq!(judged, [arguments]);
        // An envelope is one line, so line ends between tokens become spaces.
        assert_eq!(sent, [arguments.replace(['\n', '\r'], " ")]);
    }
}

/// The arguments in a message, found by hand: from their key to the brace that closes them.
fn arguments(message: &str) -> String {
    let from = message.find("\"arguments\":").expect("arguments") + 12;
    let (mut depth, mut quoted, mut escaped) = (0, false, false);
    for (at, byte) in message.bytes().enumerate().skip(from) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => quoted = !quoted,
            b'{' if !quoted => depth += 1,
            b'}' if !quoted => depth -= 1,
            _ => {}
        }
        if depth == 0 && !quoted && at > from {
            return message[from..=at].to_owned();
        }
    }
    panic!("no end")
}

fn message(arguments: &str) -> Vec<u8> {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{arguments}}}}}"#
    )
    .into_bytes()
}

const ODD: [&str; 6] = [
    r#"{ "a" : [1.0,1e2 , 9007199254740993,-0.0,1E+2],"b":"\u00e9\/\ud83d\ude00é😀"}"#,
    "{\t\"z\":1,\r\n\"a\":{\"\":null} ,\"\\u0061b\":\"}{\\\"\" }",
    r#"{"n":0.1000000000000000055511151231257827021181583404541015625,"m":1e400}"#,
    "{\"s\":\"\u{2028}\u{2029}\u{7f}\\u0000\\u001f\"}",
    "{}",
    r#"{"deep":[[[[[[[[[[{"x":[]}]]]]]]]]]],"arguments":{"name":"other"}}"#,
];

#[tokio::test]
async fn t09_every_cut_of_a_body_arrives_as_it_was_judged() {
    let way = Way::open(LIMIT).await;
    let session = open(&way.endpoint, "a", "2025-11-25").await;
    let mut tried = 0;
    for arguments in ODD {
        let body = message(arguments);
        for at in 0..=body.len() {
            let (one, two) = body.split_at(at);
            way.arrives(&session, arguments, vec![one.to_vec(), two.to_vec()])
                .await;
            tried += 1;
        }
        let single = body.iter().map(|byte| vec![*byte]).collect();
        way.arrives(&session, arguments, single).await;
    }
    println!("T09: {tried} cuts, all judged and sent alike");
}

#[tokio::test]
async fn t09_every_length_arrives_whole_or_not_at_all() {
    let way = Way::open(LIMIT).await;
    let session = open(&way.endpoint, "a", "2025-11-25").await;
    let least = message(r#"{"s":""}"#).len();
    let (mut whole, mut refused) = (0, 0);
    for length in 0..=LIMIT + 1 {
        let fill = "x".repeat(length.saturating_sub(least));
        let arguments = format!(r#"{{"s":"{fill}"}}"#);
        let mut body = message(&arguments);
        body.truncate(length);
        let cut = body.split_off(length / 3);
        let pieces = vec![body, cut];
        if (least..=LIMIT).contains(&length) {
            way.arrives(&session, &arguments, pieces).await;
            whole += 1;
            continue;
        }
        let answer = way.post(&session, pieces).await;
        let expected = if length > LIMIT { 413 } else { 400 };
        assert_eq!(answer.status, expected, "{length}");
        assert_eq!(way.seen(), (vec![], vec![]), "{length}");
        refused += 1;
    }
    // One over, wherever it is cut, is never cut off.
    let arguments = format!(r#"{{"s":"{}"}}"#, "x".repeat(LIMIT + 1 - least));
    let body = message(&arguments);
    for at in (0..=body.len()).step_by(8) {
        let (one, two) = body.split_at(at);
        let answer = way.post(&session, vec![one.to_vec(), two.to_vec()]).await;
        assert_eq!((answer.status, way.seen()), (413, (vec![], vec![])));
        refused += 1;
    }
    println!("T09: {whole} lengths up to the limit arrived, {refused} others did not, 0 were cut");
}

/// A part of T13: numbers that no type holds, through edge, pipeline and client.
#[tokio::test]
async fn t13_numbers_pass_the_whole_way_unchanged() {
    let way = Way::open(1 << 20).await;
    let session = open(&way.endpoint, "a", "2025-11-25").await;
    let mut dice = 0x9e37_79b9_7f4a_7c15_u64;
    let mut roll = |sides: u64| {
        dice = dice
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (dice >> 33) % sides
    };
    let mut count = 0;
    for _ in 0..200 {
        let mut numbers = Vec::new();
        for _ in 0..250 {
            let mut digits = |most: u64| -> String {
                (0..=roll(most))
                    .map(|_| char::from(b'1' + roll(9) as u8))
                    .collect()
            };
            let (whole, part, power) = (digits(60), digits(40), digits(2));
            numbers.push(match roll(4) {
                0 => whole,
                1 => format!("-{whole}.{part}"),
                2 => format!("0.{part}e-{power}"),
                _ => format!("{whole}.{part}E+{power}"),
            });
        }
        count += numbers.len();
        let arguments = format!("{{\"n\":[{}]}}", numbers.join(" ,"));
        assert!(Json::read(arguments.clone().into_bytes(), &Default::default()).is_ok());
        way.arrives(&session, &arguments, vec![message(&arguments)])
            .await;
    }
    println!("T13: {count} numbers from client to server, 0 changed");
}
