//! Access control: rules, conditions, token scopes, API keys and the freeze switch.

pub(crate) mod cel;
pub(crate) mod freeze;
pub mod keys;
pub(crate) mod names;
pub(crate) mod pattern;
pub(crate) mod rules;
pub(crate) mod scopes;
pub(crate) mod whatwg;
