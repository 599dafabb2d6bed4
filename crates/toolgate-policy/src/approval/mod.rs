//! Approvals of calls, and the policy for input requests of servers.

pub(crate) mod approvals;
pub(crate) mod input_requests;
pub mod passkeys;
