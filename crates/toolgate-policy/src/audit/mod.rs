//! Audit records of calls: begin, end, contents, and the observer of the console.

pub(crate) mod begin;
pub(crate) mod content_keys;
pub(crate) mod contents;
pub(crate) mod end;
pub(crate) mod observer;
