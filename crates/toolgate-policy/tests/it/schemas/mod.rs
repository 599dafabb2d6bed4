//! Schemas and values that come from others.

mod bombs;
mod suite;
