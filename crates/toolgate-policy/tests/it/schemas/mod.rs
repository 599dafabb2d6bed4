//! Schemas and values that come from others.

mod bombs;
mod references;
mod strangers;
mod suite;
