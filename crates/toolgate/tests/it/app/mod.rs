//! The client of an application: against our own servers in every revision, and against hostile ones.

mod calling;
mod discovery;
mod duties;
mod group;
mod legacy;
mod manual;
mod model;
mod pins;
mod process;
mod questions;
mod sample_server;
mod task_handles;
mod unlisted_skills;
