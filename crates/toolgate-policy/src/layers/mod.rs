//! Layers that programs add where they need them: for a whole server or client, or for one tool.
//!
//! None of them is on by default. Each can be added several times, and in any order; the first one added is outermost.

mod concurrency;
mod error_mask;
mod metrics;
mod result_cache;
mod retry;
mod spans;
mod timeout;

pub use concurrency::ConcurrentCalls;
pub use error_mask::ErrorMask;
pub use metrics::{ToolMetrics, ToolStats};
pub use result_cache::ResultCache;
pub use retry::RetryLayer;
pub use spans::CallSpans;
pub use timeout::TimeoutLayer;
