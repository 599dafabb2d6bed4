//! The anchor over stdio: reads lines, takes what it needs with serde_json, and writes the answers of all whole lines at
//! once. It checks nothing.

use std::io::{Read, Write};
use toolgate_bench::bare::Bare;

fn main() -> std::io::Result<()> {
    toolgate_bench::stay()?;
    let bare = Bare::new();
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    let (mut held, mut out) = (Vec::with_capacity(1 << 16), Vec::with_capacity(1 << 16));
    let mut chunk = vec![0; 1 << 16];
    // Where the search for the end of a line goes on.
    let mut seen = 0;
    loop {
        let count = input.read(&mut chunk)?;
        if count == 0 {
            return Ok(());
        }
        held.extend_from_slice(&chunk[..count]);
        let mut from = 0;
        while let Some(end) = held[seen..].iter().position(|b| *b == b'\n') {
            let end = seen + end;
            let before = out.len();
            bare.answer(&held[from..end], &mut out);
            if out.len() > before {
                out.push(b'\n');
            }
            (from, seen) = (end + 1, end + 1);
        }
        held.drain(..from);
        seen = held.len();
        output.write_all(&out)?;
        output.flush()?;
        out.clear();
    }
}
