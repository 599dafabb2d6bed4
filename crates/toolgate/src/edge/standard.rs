//! The standard streams of this process, without a thread in between where they are pipes.

use tokio::io::{AsyncRead, AsyncWrite};

/// What is read from.
pub type Input = Box<dyn AsyncRead + Send + Unpin>;
/// What is written to.
pub type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// Standard input and output. A pipe is opened once more, so that it does not block us and stays as it is for whoever
/// shares it. All else goes through a thread of tokio. For the one who serves on them: nobody else may read or write.
///
/// # Panics
/// Outside of a runtime of tokio with its IO on.
pub fn streams() -> (Input, Output) {
    (input(), output())
}

#[cfg(target_os = "linux")]
fn input() -> Input {
    use tokio::net::unix::pipe::OpenOptions;
    match OpenOptions::new().open_receiver("/proc/self/fd/0") {
        Ok(pipe) => Box::new(pipe),
        Err(_) => Box::new(tokio::io::stdin()),
    }
}

#[cfg(target_os = "linux")]
fn output() -> Output {
    use tokio::net::unix::pipe::OpenOptions;
    match OpenOptions::new().open_sender("/proc/self/fd/1") {
        Ok(pipe) => Box::new(pipe),
        Err(_) => Box::new(tokio::io::stdout()),
    }
}

#[cfg(not(target_os = "linux"))]
fn input() -> Input {
    Box::new(tokio::io::stdin())
}

#[cfg(not(target_os = "linux"))]
fn output() -> Output {
    Box::new(tokio::io::stdout())
}
