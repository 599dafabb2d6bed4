//! Runtime of the gateway: from a config to the pipeline that serves calls.

pub(crate) mod active;
pub(crate) mod base_url;
pub(crate) mod call_feed;
pub(crate) mod compose;
pub(crate) mod content_retention;
mod counted_calls;
pub(crate) mod dry_run;
pub(crate) mod instructions;
pub(crate) mod last_lists;
pub(crate) mod memory;
pub(crate) mod nesting;
pub(crate) mod offline;
pub(crate) mod passkeys;
pub(crate) mod persistent_tasks;
pub(crate) mod pins;
pub(crate) mod rate_sharing;
pub(crate) mod reload;
pub(crate) mod seal_keys;
pub(crate) mod search;
pub(crate) mod snapshot;
pub(crate) mod stated_caller;
pub(crate) mod store_location;
