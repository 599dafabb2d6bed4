//! The duties together, over a scripted service.

mod approvals;
mod cleaning;
mod limits;
mod rules;
mod trace;
mod world;
