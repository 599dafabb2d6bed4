//! The client of an application: against our own servers in every revision, and against hostile ones.

mod calling;
mod duties;
mod legacy;
mod pins;
mod process;
mod questions;
mod sample_server;
mod unlisted_skills;
