//! Feeds a server over stdio with a fixed number of calls, checks every answer, and says how long it took.
//!
//! `feed --calls N [--flight N] [--bytes N] [--list] [--legacy] -- COMMAND…`

use serde_json::Value;
use std::{
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
    time::Instant,
};

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"feed","version":"1.0.0"},"io.modelcontextprotocol/clientCapabilities":{}}"#;

struct Plan {
    calls: u64,
    flight: u64,
    bytes: usize,
    list: bool,
    legacy: bool,
}

impl Plan {
    fn request(&self, id: u64, out: &mut Vec<u8>) {
        let meta = if self.legacy { "\"x\":1" } else { META };
        let text = self.text(id);
        let line = match self.list {
            true => format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/list\",\"params\":{{{meta}}}}}\n"),
            false => format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"echo\",\"arguments\":{{\"text\":{}}},{meta}}}}}\n",
                Value::from(text)
            ),
        };
        out.extend_from_slice(line.as_bytes());
    }

    /// Quotes, newlines and other letters, as source code has them.
    fn text(&self, id: u64) -> String {
        let unit = "let naïve = \"x\";\n";
        let mut text = format!("{id:08} ");
        while text.len() + unit.len() < self.bytes {
            text.push_str(unit);
        }
        while text.len() < self.bytes {
            text.push('.');
        }
        text
    }

    fn check(&self, line: &str) -> u64 {
        let id = line.split_once("\"id\":").map_or("", |(_, rest)| rest);
        let id: String = id.chars().take_while(char::is_ascii_digit).collect();
        let id: u64 = id.parse().expect("an id");
        if self.list {
            assert!(line.contains("\"tool_00000\""), "a list");
            return id;
        }
        let answer: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(answer["result"]["content"][0]["text"], self.text(id), "{}", &line[..line.len().min(400)]);
        id
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let split = words.iter().position(|w| w == "--").expect("a command after --");
    let (options, command) = (&words[..split], &words[split + 1..]);
    let number = |name: &str, or: u64| {
        let at = options.iter().position(|w| w == name);
        at.map_or(or, |at| options[at + 1].parse().expect("a number"))
    };
    let has = |name: &str| options.iter().any(|w| w == name);
    let plan = Plan {
        calls: number("--calls", 1000),
        flight: number("--flight", 1),
        bytes: number("--bytes", 16) as usize,
        list: has("--list"),
        legacy: has("--legacy"),
    };
    let begin = Instant::now();
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut input = child.stdin.take().expect("stdin");
    let mut output = BufReader::with_capacity(1 << 16, child.stdout.take().expect("stdout"));
    let mut line = String::new();
    if plan.legacy {
        let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"feed","version":"1.0.0"}}}"#;
        writeln!(input, "{hello}").expect("a write");
        output.read_line(&mut line).expect("a read");
        writeln!(input, r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#).expect("a write");
    }
    let first = begin.elapsed();
    let begin = Instant::now();
    let (mut sent, mut done, mut out) = (0, 0, Vec::new());
    while done < plan.calls {
        while sent < plan.calls && sent - done < plan.flight {
            sent += 1;
            plan.request(sent, &mut out);
        }
        input.write_all(&out).expect("a write");
        out.clear();
        line.clear();
        output.read_line(&mut line).expect("a read");
        plan.check(&line);
        done += 1;
    }
    let took = begin.elapsed();
    drop(input);
    child.wait().expect("it ends");
    let rate = plan.calls as f64 / took.as_secs_f64();
    println!("{rate:.0} calls/s, {:.2} us a call, opened in {:.2} ms", 1e6 / rate, first.as_secs_f64() * 1e3);
}
