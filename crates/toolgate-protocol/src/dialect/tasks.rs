//! Task results and notifications of each revision.

use super::Dialect;
use crate::{
    json::{Json, ObjectWriter},
    method::{
        initialize::Implementation,
        tasks::{self, Task, TaskForm},
    },
};

impl Dialect {
    /// Writes the result that announces a new task: the call continues as a task (`CreateTaskResult`).
    pub fn task_created(&self, task: &Task, server: &Implementation) -> Json {
        let mut o = ObjectWriter::new();
        if self.tasks == TaskForm::Extension {
            o.str("resultType", "task");
            task.write(&mut o, self.tasks, false);
        } else {
            o.object("task", |o| task.write(o, self.tasks, false));
        }
        self.end_result(&mut o, None, &server.json());
        o.finish()
    }

    /// Writes the result of `tasks/get` for this revision.
    pub fn task(&self, task: &Task, server: &Implementation) -> Json {
        let mut o = ObjectWriter::new();
        self.begin_result(&mut o);
        task.write(&mut o, self.tasks, true);
        self.end_result(&mut o, None, &server.json());
        o.finish()
    }

    /// Writes the result of `tasks/list`: one page of tasks and the cursor of the next one.
    pub fn task_list(&self, tasks: &[Task], next: Option<&str>) -> Json {
        let mut o = ObjectWriter::new();
        self.begin_result(&mut o);
        o.array("tasks", |a| {
            for task in tasks {
                a.object(|o| task.write(o, self.tasks, false));
            }
        });
        if let Some(next) = next {
            o.str("nextCursor", next);
        }
        o.finish()
    }

    /// Returns the method name of task status notifications in this revision.
    pub fn task_notification(&self) -> &'static str {
        match self.tasks {
            TaskForm::Extension => tasks::CHANGED,
            _ => tasks::STATUS,
        }
    }
}

/// Returns a JSON-RPC message with the id of its related task in `_meta` (2025-11-25).
pub fn with_related_task(message: &Json, task: &str) -> Json {
    let mut of = ObjectWriter::new();
    of.str("taskId", task);
    let meta = message.get("_meta");
    let empty = || ObjectWriter::new().finish();
    let meta = meta
        .unwrap_or_else(empty)
        .with(tasks::RELATED, &of.finish());
    message.with("_meta", &meta)
}
