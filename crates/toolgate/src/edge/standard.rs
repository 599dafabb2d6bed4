//! Standard input and output of this process, without a thread in between if they are pipes.

use tokio::io::{AsyncRead, AsyncWrite};

/// Boxed input stream of an MCP server over stdio: standard input.
pub type StandardInput = Box<dyn AsyncRead + Send + Unpin>;
/// Boxed output stream of an MCP server over stdio: standard output.
pub type StandardOutput = Box<dyn AsyncWrite + Send + Unpin>;

/// Returns standard input and output as asynchronous streams, for an MCP server over stdio. A pipe is reopened in
/// non-blocking mode, which leaves the pipe unchanged for processes that share it. Anything else goes through a tokio
/// thread. The caller must be the only reader and writer.
///
/// # Panics
/// Panics outside a tokio runtime with IO enabled.
pub fn streams() -> (StandardInput, StandardOutput) {
    (input(), output())
}

#[cfg(target_os = "linux")]
fn input() -> StandardInput {
    use tokio::net::unix::pipe::OpenOptions;
    match OpenOptions::new().open_receiver("/proc/self/fd/0") {
        Ok(pipe) => Box::new(pipe),
        Err(_) => Box::new(tokio::io::stdin()),
    }
}

#[cfg(target_os = "linux")]
fn output() -> StandardOutput {
    use tokio::net::unix::pipe::OpenOptions;
    match OpenOptions::new().open_sender("/proc/self/fd/1") {
        Ok(pipe) => Box::new(pipe),
        Err(_) => Box::new(tokio::io::stdout()),
    }
}

#[cfg(not(target_os = "linux"))]
fn input() -> StandardInput {
    Box::new(tokio::io::stdin())
}

#[cfg(not(target_os = "linux"))]
fn output() -> StandardOutput {
    Box::new(tokio::io::stdout())
}
