//! A server with state: the tools are methods of a struct, and all of them use the same value.
//!
//! `cargo run --example counter` serves on standard input and output.

use std::sync::atomic::{AtomicI64, Ordering};
use toolgate::{HandlerExit, Server, tools};

#[derive(Default)]
struct Counter {
    /// Calls run side by side, so what changes is atomic, or behind a lock.
    value: AtomicI64,
}

#[tools]
impl Counter {
    /// Counts up, or down with a negative number.
    #[tool(destructive = false, open_world = false)]
    fn count(
        &self,
        /// How far; 1 if it is left out.
        by: Option<i64>,
    ) -> Result<String, HandlerExit> {
        let by = by.unwrap_or(1);
        let added = |value: i64| value.checked_add(by);
        let before = self
            .value
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, added)
            .map_err(|value| {
                HandlerExit::new(format!("the counter stands at {value} and ends there"))
            })?;
        Ok((before + by).to_string())
    }

    /// Tells where the counter stands.
    #[tool(read_only, open_world = false)]
    fn value(&self) -> String {
        self.value.load(Ordering::Relaxed).to_string()
    }

    /// Sets the counter to zero.
    #[tool(idempotent, open_world = false)]
    fn reset(&self) {
        self.value.store(0, Ordering::Relaxed);
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), toolgate::ServeError> {
    toolgate::stdio(Server::new("counter", "1.0.0").tools(Counter::default())).await
}
