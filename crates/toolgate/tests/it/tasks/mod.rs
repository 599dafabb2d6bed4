//! Calls that go on after their answer, at the serving edge.

mod core;
mod extension;
mod holding;
mod keeping;

use crate::handlers::peer::Peer;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::sync::{Notify, watch};
use toolgate::{
    edge::{ProtocolServer, ServerLimits, TaskLimits},
    handlers::{Cx, HandlerExit, LogLevel, Server, TaskSupport, Tool, ask},
};

/// Control of the slow tools: holds them until the test releases them, and observes their end.
#[derive(Default)]
pub(crate) struct Hand {
    pub(crate) go: Notify,
    /// Signals that a call has reported progress after its end.
    pub(crate) reported_late: Notify,
    /// Number of running tools.
    running: watch::Sender<usize>,
}

impl Hand {
    /// Ends when so many slow tools run.
    pub(crate) async fn runs(&self, count: usize) {
        let mut running = self.running.subscribe();
        let running = running.wait_for(|n| *n == count);
        tokio::time::timeout(Duration::from_secs(20), running)
            .await
            .expect("in time")
            .unwrap();
    }
}

struct Running(Arc<Hand>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.send_modify(|n| *n -= 1);
    }
}

/// A call that may become one becomes a task at once.
pub(crate) fn limits() -> TaskLimits {
    let mut limits = TaskLimits::default();
    limits.become_task_after = Duration::ZERO;
    limits.polls_per_minute = 1_000_000;
    limits
}

pub(crate) fn served(tasks: TaskLimits) -> (Arc<ProtocolServer>, Arc<Hand>) {
    let hand = Arc::new(Hand::default());
    let object = json!({"type": "object"});
    let waits = |name: &str, support| {
        let hand = hand.clone();
        let tool = Tool::dynamic(name, object.clone(), move |_, cx: Cx| {
            let hand = hand.clone();
            async move {
                hand.running.send_modify(|n| *n += 1);
                let _running = Running(hand.clone());
                cx.progress(1.0, None, "it runs");
                hand.go.notified().await;
                Ok::<_, HandlerExit>("slow")
            }
        });
        tool.task(support)
    };
    let asks = Tool::dynamic("asks", object.clone(), |_, cx: Cx| async move {
        let (one, two) = cx.ask_all((("one", ask::text("One?")), ("two", ask::text("Two?"))))?;
        let sure = cx.ask("sure", ask::confirm("Sure?"))?;
        Ok::<_, HandlerExit>(format!("{one} {two} {sure}"))
    });
    let first = Tool::dynamic("first", object.clone(), |_, cx: Cx| async move {
        let name = cx.ask("name", ask::text("Who?"))?;
        if !cx.become_task() {
            return Err(HandlerExit::new("nobody looks"));
        }
        std::future::pending::<()>().await;
        Ok::<_, HandlerExit>(name)
    });
    let fails = Tool::dynamic("fails", object.clone(), |_, _| async {
        Err::<String, _>(HandlerExit::new("it failed"))
    });
    let breaks = Tool::dynamic("breaks", object.clone(), |_, _| async {
        Err::<String, _>(HandlerExit::error(toolgate::Error::new(
            toolgate::core::ErrorKind::Bug,
            "it broke",
        )))
    });
    let answers = Tool::dynamic("answers", object.clone(), |_, _| async {
        let kind = toolgate::core::ErrorKind::JsonRpc(-32050);
        Err::<String, _>(HandlerExit::error(toolgate::Error::new(
            kind,
            "no such page",
        )))
    });
    let late_hand = hand.clone();
    let late = Tool::dynamic("late", object.clone(), move |_, cx: Cx| {
        let hand = late_hand.clone();
        async move {
            for (progress, message) in [(1.0, "begun"), (2.0, "half")] {
                cx.progress(progress, None, message);
                cx.log(LogLevel::Error, message);
                hand.go.notified().await;
            }
            #[allow(
                clippy::disallowed_methods,
                reason = "a handler that does what it should not"
            )]
            tokio::spawn(async move {
                hand.go.notified().await;
                cx.progress(3.0, None, "too late");
                cx.log(LogLevel::Error, "too late");
                hand.reported_late.notify_one();
            });
            Ok::<_, HandlerExit>("late")
        }
    });
    let plain = Tool::dynamic("plain", object.clone(), |_, _| async {
        Ok::<_, HandlerExit>("plain")
    });
    let mut limits = ServerLimits::default();
    limits.tasks = tasks;
    limits.page_items = 2;
    let server = Server::new("slow", "1")
        .limits(limits)
        .tool(waits("slow", TaskSupport::Optional))
        .tool(waits("job", TaskSupport::Required))
        .tool(asks.task(TaskSupport::Required))
        .tool(first.task(TaskSupport::Optional))
        .tool(fails.task(TaskSupport::Required))
        .tool(breaks.task(TaskSupport::Required))
        .tool(answers.task(TaskSupport::Optional))
        .tool(late.task(TaskSupport::Optional))
        .tool(plain);
    (server.build().unwrap(), hand)
}

/// Returns the capabilities of a client with the extension.
pub(crate) fn knows() -> Value {
    json!({"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}})
}

/// Looks until the task is in that state.
pub(crate) async fn until(peer: &mut Peer, id: &Value, status: &str) -> Value {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    loop {
        let task = peer.result("tasks/get", json!({"taskId": id})).await;
        if task["status"] == status {
            return task;
        }
        assert!(tokio::time::Instant::now() < deadline, "{task}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
