//! Access control: rules, conditions, token scopes, API keys and the freeze switch.

pub(crate) mod callers;
pub(crate) mod cel;
pub(crate) mod freeze;
pub mod keys;
pub(crate) mod matching;
pub(crate) mod names;
pub(crate) mod pattern;
#[cfg(any(test, not(feature = "full-uri")))]
pub(crate) mod plain_uri;
pub(crate) mod rules;
pub(crate) mod scopes;
pub(crate) mod views;
#[cfg(feature = "full-uri")]
pub(crate) mod whatwg;
#[cfg(not(feature = "full-uri"))]
pub(crate) use self::plain_uri as whatwg;
