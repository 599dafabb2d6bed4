//! Shared code of the bench programs: texts, long tool lists, the job of a client, the listener.

pub mod bare;
pub mod breaking;
pub mod job;

use hyper::{Request, Response, body::Incoming, server::conn::http1, service::Service};
use hyper_util::rt::TokioIo;
use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::{Value, json};
use std::io::{self, Read, Write};
use tokio::net::TcpListener;

/// `_meta` of a request of 2026-07-28, which describes its sender.
pub const META: &str = r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1.0.0"},"io.modelcontextprotocol/clientCapabilities":{}}"#;

/// Quotes, newlines and other letters, as source code has them. No two are the same.
pub fn text(id: u64, bytes: usize) -> String {
    let unit = "let naïve = \"x\";\n";
    let mut text = format!("{id:08} ");
    while text.len() + unit.len() < bytes {
        text.push_str(unit);
    }
    while text.len() < bytes {
        text.push('.');
    }
    text
}

/// Returns a text of this length for the inside of a JSON string.
pub fn padding(bytes: usize) -> String {
    let text = match bytes {
        0 => String::new(),
        bytes => text(0, bytes),
    };
    let json = Value::from(text).to_string();
    json[1..json.len() - 1].to_owned()
}

/// The tools of a large list.
pub fn many(count: usize) -> Vec<Value> {
    (0..count).map(definition).collect()
}

/// One definition of about a kilobyte, as real ones have.
fn definition(n: usize) -> Value {
    let text =
        "Finds the records that fit, newest first, and says how many more there are. ".repeat(4);
    let field = |name: &str| json!({"type": "string", "description": format!("The {name} of the records that are looked for.")});
    json!({
        "name": format!("tool_{n:05}"),
        "title": format!("Tool {n}"),
        "description": text,
        "inputSchema": {"type": "object", "properties": {
            "query": field("query"), "owner": field("owner"), "label": field("label"),
            "limit": {"type": "integer", "minimum": 1, "maximum": 100}},
            "required": ["query"]},
    })
}

/// The word behind an option of the command line.
pub fn word(option: &str) -> Option<String> {
    std::env::args().skip_while(|word| word != option).nth(1)
}

/// The number behind an option of the command line.
pub fn number(option: &str) -> Option<u32> {
    word(option)?.parse().ok()
}

/// Returns whether the command line has an option.
pub fn has(option: &str) -> bool {
    std::env::args().any(|word| word == option)
}

/// Stays on the core that `--core` names, where it names one.
pub fn stay() -> io::Result<()> {
    if let Some(core) = number("--core") {
        let mut set = CpuSet::new();
        set.set(core as usize);
        sched_setaffinity(None, &set)?;
    }
    Ok(())
}

/// Serves on a free port of the loopback interface, on this thread. Says the port on the output, and ends the program with
/// its input.
pub async fn serve_http<S, B>(service: impl Fn() -> S) -> io::Result<()>
where
    S: Service<Request<Incoming>, Response = Response<B>> + 'static,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    S::Future: 'static,
    B: hyper::body::Body + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let mut output = io::stdout().lock();
    writeln!(output, "{}", listener.local_addr()?.port())?;
    output.flush()?;
    drop(output);
    std::thread::spawn(|| {
        let _ = io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
    let local = tokio::task::LocalSet::new();
    local
        .run_until(async {
            loop {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                let served =
                    http1::Builder::new().serve_connection(TokioIo::new(stream), service());
                tokio::task::spawn_local(served);
            }
        })
        .await
}
