//! Text files of what goes over stdio: `> ` is sent, `< ` must come back, in this order; `# ` is a comment.
//! `UPDATE=1 cargo test -p toolgate` writes what came into the files.

use super::{HANG, Scripted, server};
use crate::official::{Side, Talk};
use std::path::PathBuf;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use toolgate::{Caller, edge::stdio};

async fn play(name: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/transcripts")
        .join(format!("{name}.txt"));
    let text = std::fs::read_to_string(&path).unwrap();
    let (near, far) = tokio::io::duplex(1 << 20);
    let (read, write) = tokio::io::split(far);
    let serving = stdio::serve(server(Scripted::new()), Caller::new("test"), read, write);
    let playing = async {
        let (read, mut write) = tokio::io::split(near);
        let mut lines = BufReader::new(read).lines();
        let mut got = String::new();
        let mut talk = Talk::of(Side::Server);
        for line in text.lines() {
            if let Some(sent) = line.strip_prefix("> ") {
                talk.heard(sent);
                write
                    .write_all(format!("{sent}\n").as_bytes())
                    .await
                    .unwrap();
            }
            if line.starts_with("< ") {
                let came = tokio::time::timeout(HANG, lines.next_line())
                    .await
                    .expect("an answer")
                    .unwrap()
                    .unwrap();
                talk.said(&came);
                got.push_str(&format!("< {}\n", mask(&came)));
            } else {
                got.push_str(&format!("{line}\n"));
            }
        }
        drop(write);
        drop(lines);
        got
    };
    let (served, got) = tokio::join!(serving, playing);
    served.unwrap();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &got).unwrap();
    }
    assert_eq!(got, text, "{}", path.display());
}

/// Sealed state is never the same twice.
fn mask(line: &str) -> String {
    let Some((before, after)) = line.split_once("\"requestState\":\"") else {
        return line.to_owned();
    };
    let rest = after.split_once('"').map_or("", |(_, rest)| rest);
    format!("{before}\"requestState\":\"…\"{rest}")
}

macro_rules! transcripts {
    ($($name:ident),* $(,)?) => { $(#[tokio::test] async fn $name() { play(stringify!($name)).await; })* };
}

transcripts!(
    stdio_2025_11_25,
    stdio_2025_06_18,
    stdio_2026_07_28,
    stdio_bad_input,
    stdio_ask_inline,
    stdio_batch
);
