//! The anchor of clients: writes the line or the body, reads the answer with serde_json into a small struct, and compares.
//! It checks nothing else. Over HTTP it is hyper on one connection.

use http_body_util::{BodyExt, Full};
use hyper::{Request, body::Bytes, client::conn::http1};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use std::{
    borrow::Cow,
    error::Error,
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
    time::{Duration, Instant},
};
use tokio::net::TcpStream;
use toolgate_bench::{META, job::Job};

#[derive(Deserialize)]
struct Answer<'a> {
    id: u64,
    #[serde(borrow)]
    result: Given<'a>,
}

#[derive(Deserialize)]
struct Given<'a> {
    #[serde(borrow, default)]
    content: Vec<Block<'a>>,
    #[serde(borrow, default)]
    tools: Vec<Tool<'a>>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Tool<'a> {
    #[serde(borrow, rename = "name")]
    _name: Cow<'a, str>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let job = Job::read();
    let took = match &job.url {
        None => over_stdio(&job)?,
        Some(url) => over_http(&job, url)?,
    };
    job.done(took);
    Ok(())
}

fn method(job: &Job) -> &'static str {
    if job.lists {
        "tools/list"
    } else {
        "tools/call"
    }
}

/// Puts a request behind what is there.
fn ask(job: &Job, id: u64, out: &mut Vec<u8>) -> serde_json::Result<()> {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id.to_string().as_bytes());
    if job.lists {
        out.extend_from_slice(br#","method":"tools/list","params":{"#);
        out.extend_from_slice(META.trim_start_matches(',').as_bytes());
    } else {
        out.extend_from_slice(
            br#","method":"tools/call","params":{"name":"echo","arguments":{"text":"#,
        );
        serde_json::to_writer(&mut *out, &job.text(id))?;
        out.extend_from_slice(b"}");
        out.extend_from_slice(META.as_bytes());
    }
    out.extend_from_slice(b"}}");
    Ok(())
}

fn check(job: &Job, answer: &[u8]) -> serde_json::Result<()> {
    let answer: Answer<'_> = serde_json::from_slice(answer)?;
    match job.lists {
        true => job.check_list(answer.result.tools.len()),
        false => job.check(
            answer.id,
            answer
                .result
                .content
                .first()
                .map_or("", |block| &block.text),
        ),
    }
    Ok(())
}

fn over_stdio(job: &Job) -> Result<Duration, Box<dyn Error>> {
    let words = job.server()?;
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    let mut server = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut input = server.stdin.take().ok_or("no input")?;
    let mut output = BufReader::with_capacity(1 << 16, server.stdout.take().ok_or("no output")?);
    let (mut out, mut line) = (Vec::new(), Vec::new());
    let (mut flight, mut done) = (0, 0);
    let begin = Instant::now();
    while done < job.calls {
        while flight < job.flight
            && let Some(id) = job.next()
        {
            ask(job, id, &mut out)?;
            out.push(b'\n');
            flight += 1;
        }
        input.write_all(&out)?;
        out.clear();
        // All that came together, as the server writes it.
        loop {
            line.clear();
            output.read_until(b'\n', &mut line)?;
            check(job, &line)?;
            (flight, done) = (flight - 1, done + 1);
            if output.buffer().is_empty() {
                break;
            }
        }
    }
    let took = begin.elapsed();
    drop(input);
    server.wait()?;
    Ok(took)
}

#[tokio::main(flavor = "current_thread")]
async fn over_http(job: &Job, url: &str) -> Result<Duration, Box<dyn Error>> {
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let mut held = tokio::task::JoinSet::new();
    held.spawn(connection);
    let begin = Instant::now();
    while let Some(id) = job.next() {
        let mut body = Vec::with_capacity(512);
        ask(job, id, &mut body)?;
        let mut request = Request::post("/mcp")
            .header("host", address)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", method(job));
        if !job.lists {
            request = request.header("mcp-name", "echo");
        }
        sender.ready().await?;
        let response = sender
            .send_request(request.body(Full::<Bytes>::from(body))?)
            .await?;
        check(job, &response.into_body().collect().await?.to_bytes())?;
    }
    Ok(begin.elapsed())
}
