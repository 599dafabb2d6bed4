//! Servers made of plain functions, from outside, in every revision.

mod asking;
mod building;
mod changing;
mod offering;
pub(crate) mod peer;
mod recording;
