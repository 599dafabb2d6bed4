//! HTTP/1.1 by hand, so that a test can send what no decent client would.

use super::{LONG, SOON, schemas};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
}

/// A request with the usual Host; `extra` are whole header lines.
pub(crate) fn send(port: u16, method: &str, path: &str, extra: &[String], body: &[u8]) -> Response {
    raw(port, &request(port, method, path, extra, body))
}

/// The bytes of such a request.
pub(crate) fn request(
    port: u16,
    method: &str,
    path: &str,
    extra: &[String],
    body: &[u8],
) -> Vec<u8> {
    let mut head =
        format!("{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n");
    for line in extra {
        head.push_str(line);
        head.push_str("\r\n");
    }
    head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
    [head.as_bytes(), body].concat()
}

/// Sends bytes as they are and reads until the other end closes, or the message is whole.
#[track_caller]
pub(crate) fn raw(port: u16, bytes: &[u8]) -> Response {
    let all = exchange(port, bytes, LONG);
    let response = parse(&all);
    let response =
        response.unwrap_or_else(|| panic!("no answer but {:?}", String::from_utf8_lossy(&all)));
    schemas::check(bytes, &response);
    response
}

/// The same towards a gateway that may be killed meanwhile: nothing unless the answer is whole.
pub(crate) fn try_raw(port: u16, bytes: &[u8]) -> Option<Response> {
    let all = exchange(port, bytes, SOON);
    let response = whole(&all).then(|| parse(&all)).flatten()?;
    schemas::check(bytes, &response);
    Some(response)
}

/// The same, and what is wrong with the messages in the answer, for tests that go on after an invalid one.
#[track_caller]
pub(crate) fn checked(port: u16, bytes: &[u8]) -> (Response, Option<String>) {
    let all = exchange(port, bytes, LONG);
    let response = whole(&all).then(|| parse(&all)).flatten();
    let response = response
        .unwrap_or_else(|| panic!("no whole answer but {:?}", String::from_utf8_lossy(&all)));
    let wrong = schemas::validate(bytes, &response).err();
    (response, wrong)
}

fn exchange(port: u16, bytes: &[u8], bound: Duration) -> Vec<u8> {
    let mut all = Vec::new();
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else {
        return all;
    };
    stream.set_read_timeout(Some(bound)).unwrap();
    // The other end may refuse before it has read everything.
    let _ = stream.write_all(bytes);
    let mut buffer = [0; 16 * 1024];
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        all.extend_from_slice(&buffer[..read]);
        if whole(&all) {
            break;
        }
    }
    all
}

fn whole(all: &[u8]) -> bool {
    let Some(at) = find(all, b"\r\n\r\n") else {
        return false;
    };
    let head = String::from_utf8_lossy(&all[..at]).to_ascii_lowercase();
    if head.contains("transfer-encoding: chunked") {
        return all.ends_with(b"0\r\n\r\n");
    }
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    length.is_some_and(|length: usize| all.len() >= at + 4 + length)
}

pub(super) fn parse(all: &[u8]) -> Option<Response> {
    let at = find(all, b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&all[..at]).into_owned();
    let mut lines = head.lines();
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_ascii_lowercase(), value.trim().to_owned()))
    };
    let headers: Vec<_> = lines.filter_map(header).collect();
    let chunked = headers
        .iter()
        .any(|(name, value)| name == "transfer-encoding" && value == "chunked");
    let body = if chunked {
        unchunk(&all[at + 4..])
    } else {
        all[at + 4..].to_vec()
    };
    Some(Response {
        status,
        headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    })
}

fn unchunk(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(at) = find(rest, b"\r\n") {
        let size = std::str::from_utf8(&rest[..at])
            .ok()
            .and_then(|hex| usize::from_str_radix(hex, 16).ok());
        let Some(size @ 1..) = size else { break };
        let end = (at + 2 + size).min(rest.len());
        body.extend_from_slice(&rest[at + 2..end]);
        rest = rest.get(end + 2..).unwrap_or_default();
    }
    body
}

fn find(all: &[u8], what: &[u8]) -> Option<usize> {
    all.windows(what.len()).position(|window| window == what)
}

/// Sends many requests on one connection, of which the last closes it, and gives all that came back.
pub(crate) fn all_of(port: u16, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    let mut writer = stream.try_clone().unwrap();
    let bytes = bytes.to_vec();
    // Beside the reading, or both ends may wait for each other with full buffers.
    let writing = std::thread::spawn(move || {
        let _ = writer.write_all(&bytes);
    });
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    let _ = writing.join();
    String::from_utf8_lossy(&all).into_owned()
}

/// Client that keeps its connection, as most clients do. It opens another one only after a response that says so.
pub(crate) struct KeptConnection {
    port: u16,
    stream: Option<TcpStream>,
}

impl KeptConnection {
    pub(crate) fn new(port: u16) -> KeptConnection {
        KeptConnection { port, stream: None }
    }

    /// Sends a request and reads its whole answer. An error is a lost request.
    pub(crate) fn send(&mut self, request: &[u8]) -> std::io::Result<Response> {
        // The helpers for single requests close their connection.
        let request = String::from_utf8_lossy(request).replacen("Connection: close\r\n", "", 1);
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => TcpStream::connect(("127.0.0.1", self.port))?,
        };
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LONG))?;
        stream.write_all(request.as_bytes())?;
        let (mut all, mut buffer) = (Vec::new(), [0; 16 * 1024]);
        while !whole(&all) {
            match stream.read(&mut buffer)? {
                0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
                read => all.extend_from_slice(&buffer[..read]),
            }
        }
        let response = parse(&all).ok_or(std::io::ErrorKind::InvalidData)?;
        if response.header("connection") != Some("close") {
            self.stream = Some(stream);
        }
        Ok(response)
    }
}
