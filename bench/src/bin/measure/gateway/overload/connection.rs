//! One HTTP connection of the load generator, with at most one request at a time.

use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use serde_json::Value;
use std::{
    borrow::Cow,
    io::{ErrorKind, Read, Write},
    net::{Ipv4Addr, SocketAddrV4, TcpStream},
};

/// Connections of one source address; by default, the gateway allows 256.
const PER_ADDRESS: usize = 125;

/// Form of an answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reply {
    /// The expected result.
    Good,
    /// A rejection or an error, described by its form.
    Other(String),
    /// The connection was closed without an answer.
    Closed,
    /// No answer at all.
    Missing,
}

/// A connection that stays open.
pub struct Connection {
    stream: TcpStream,
    port: u16,
    number: usize,
    /// Record and number of the request that is sent.
    request: Option<(usize, String)>,
    received: Vec<u8>,
}

impl Connection {
    /// Opens a connection; its number decides from which address.
    pub fn open(port: u16, number: usize) -> Connection {
        Connection {
            stream: dial(port, number),
            port,
            number,
            request: None,
            received: Vec::new(),
        }
    }

    /// Opens it again, after the gateway closed it.
    pub fn reopen(&mut self) {
        self.stream = dial(self.port, self.number);
        self.received.clear();
    }

    /// The socket.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Sends a request. A failure shows when its answer is read.
    pub fn send(&mut self, request: &[u8], number: String, record: usize) {
        self.request = Some((record, number));
        let _ = self.stream.write_all(request);
    }

    /// Reads what has arrived. Returns the answer with its record if it is complete, and whether the connection is closed.
    pub fn receive(&mut self, padding: &[u8]) -> (Option<(usize, Reply)>, bool) {
        let closed = match self.read() {
            Ok(closed) => closed,
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        };
        let answer = match complete(&self.received) {
            Some(response) => self.request.take().map(|(record, number)| {
                let reply = response.reply(&number, padding);
                (record, reply)
            }),
            None if closed => self
                .request
                .take()
                .map(|(record, _)| (record, Reply::Closed)),
            None => return (None, false),
        };
        self.received.clear();
        (answer, closed)
    }

    fn read(&mut self) -> std::io::Result<bool> {
        let mut part = [0; 1 << 16];
        loop {
            let count = self.stream.read(&mut part)?;
            self.received.extend_from_slice(&part[..count]);
            if count < part.len() {
                return Ok(count == 0);
            }
        }
    }
}

fn dial(port: u16, number: usize) -> TcpStream {
    let from = Ipv4Addr::new(127, 0, 0, 1 + (number / PER_ADDRESS) as u8);
    let dial = || {
        let fd = socket(AddressFamily::INET, SocketType::STREAM, None)?;
        bind(&fd, &SocketAddrV4::new(from, 0))?;
        connect(&fd, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))?;
        rustix::io::Result::Ok(TcpStream::from(fd))
    };
    let stream = dial().expect("the gateway listens");
    stream.set_nodelay(true).expect("no delay");
    stream.set_nonblocking(true).expect("nonblocking");
    stream
}

/// A whole response.
struct Response<'a> {
    status: &'a str,
    body: Cow<'a, [u8]>,
}

/// Returns the response if all of it has arrived.
fn complete(received: &[u8]) -> Option<Response<'_>> {
    let end = received.windows(4).position(|part| part == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&received[..end]).expect("an ASCII head");
    let body = &received[end + 4..];
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.parse::<usize>().expect("a length"))
    });
    let body = match length {
        Some(length) => (body.len() >= length).then_some(Cow::Borrowed(body))?,
        None => Cow::Owned(last_event(dechunk(body)?)),
    };
    let status = head.split(' ').nth(1).unwrap_or_default();
    Some(Response { status, body })
}

/// Joins the chunks of a body, if the last one has arrived.
fn dechunk(mut body: &[u8]) -> Option<Vec<u8>> {
    let mut joined = Vec::new();
    loop {
        let end = body.windows(2).position(|part| part == b"\r\n")?;
        let size = std::str::from_utf8(&body[..end]).expect("a size");
        let size = usize::from_str_radix(size, 16).expect("a size");
        body = &body[end + 2..];
        joined.extend_from_slice(body.get(..size)?);
        body = body.get(size + 2..)?;
        if size == 0 {
            return Some(joined);
        }
    }
}

/// Returns the data of the last event of a stream.
fn last_event(stream: Vec<u8>) -> Vec<u8> {
    let mut lines = stream.rsplit(|byte| *byte == b'\n');
    let data = lines.find_map(|line| line.strip_prefix(b"data: "));
    data.map_or(stream.clone(), <[u8]>::to_vec)
}

impl Response<'_> {
    /// Compares the text of the result: the number of the request, then the padding.
    fn reply(&self, number: &str, padding: &[u8]) -> Reply {
        let mark = br#""text":""#;
        let text = self.body.windows(mark.len()).position(|part| part == mark);
        let text = text.map(|at| &self.body[at + mark.len()..]);
        let rest = text.and_then(|text| text.strip_prefix(number.as_bytes()));
        if self.status == "200" && rest.is_some_and(|rest| rest.starts_with(padding)) {
            return Reply::Good;
        }
        let body: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        let form = match (&body["error"]["code"], &body["result"]["isError"]) {
            (Value::Number(code), _) => format!("JSON-RPC error {code}"),
            (_, Value::Bool(true)) => "`isError`".to_owned(),
            _ => "wrong answer".to_owned(),
        };
        Reply::Other(match self.status {
            "200" => form,
            status => format!("HTTP {status}, {form}"),
        })
    }
}
