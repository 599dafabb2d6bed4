//! Limits of calls: rate, concurrency, time, size, and the circuit breaker.

pub(crate) mod circuit_breaker;
pub(crate) mod concurrency;
pub(crate) mod deadline;
pub(crate) mod rate;
pub(crate) mod size;
