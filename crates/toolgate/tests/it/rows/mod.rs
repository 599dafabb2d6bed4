//! The rows of the table of attacks that belong to the protocol: bytes, headers, ids, sessions, seals and caches. Each
//! test has the number of its row in its name and prints its figure.

mod bytes;
mod caches;
mod eras;
mod forwarded;
mod handles;
mod mismatch;
mod replay;
mod upstream;
pub(crate) mod web;
