//! Everything together, as its users see it.
#![allow(missing_docs, reason = "tests")]

mod aggregate;
mod remote;
mod serve;
