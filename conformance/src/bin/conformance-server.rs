//! The server that the official conformance suite drives: `conformance-server --port N`.

use std::process::ExitCode;

fn main() -> ExitCode {
    eprintln!("conformance-server: not yet");
    ExitCode::from(2)
}
