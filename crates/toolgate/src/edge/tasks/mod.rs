//! Tasks: calls that continue after their response.
//!
//! A task is a call whose future the protocol server owns. It runs through the same pipeline to its end, with the same
//! rules, sanitizers and concurrency limits. The caller polls it instead of waiting. So the layers below know nothing
//! of tasks.

mod methods;
mod poll_limit;
mod recovery;
mod run;
mod session_status;
mod store;
mod subscriptions;
mod table;
mod task;

pub(crate) use methods::{handle_method, is_method};
pub(crate) use recovery::recover_tasks;
pub(crate) use run::{run_call, task_trigger};
pub(crate) use session_status::SessionTasks;
pub(crate) use subscriptions::TaskSubscription;
pub(crate) use table::TaskTable;

use super::task_options::{TaskLimits, TaskOffer, TaskView};
