//! Sanitizers of untrusted content, and the search for secrets.

pub(crate) mod edit;
pub(crate) mod error_text;
pub(crate) mod links;
pub(crate) mod media;
pub(crate) mod secrets;
pub(crate) mod skills;
pub(crate) mod text;
pub(crate) mod text_fn;
pub(crate) mod untrusted;
