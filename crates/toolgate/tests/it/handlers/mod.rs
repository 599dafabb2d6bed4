//! Servers made of plain functions, from outside, in every revision.

mod asking;
mod attributes;
mod building;
mod cancelling;
mod changing;
mod completions;
mod errors;
mod facts;
mod free_arguments;
mod hiding;
mod icons_and_apps;
mod item_attributes;
mod mounting;
mod offering;
pub(crate) mod panicking;
pub(crate) mod peer;
mod prompt_arguments;
mod recording;
mod request_parts;
mod skills;
mod stateless;
mod tool_policy;
