//! Console events that are not calls.

use super::{GatewayParts, approval_events::AnnouncedApprovals};
use crate::{
    event_log::{self, GatewayEvent},
    operator::api::SentRequests,
    servers::ServerState,
};
use std::{collections::HashMap, time::Duration};
use toolgate_core::{Caller, ChangeFilter, Service};

/// Minimum time between two events of the same kind.
const MIN_EVENT_INTERVAL: Duration = Duration::from_millis(250);

/// Maximum number of lines about unusable messages of one server. `toolgate status` shows the last one.
const MAX_UNUSABLE_LINES: usize = 100;

/// Interval at which the audit log, keys and tasks are polled.
const STATE_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Interval at which the free space of the disk is polled.
const DISK_POLL_INTERVAL: Duration = Duration::from_secs(10);

impl GatewayParts {
    /// Keeps the console up to date with everything that is not a call.
    pub(super) async fn run_feeds(&self) {
        tokio::join!(
            self.active.forward_changes(),
            self.operator.approvals.follow(),
            self.feed_approvals(),
            self.feed_servers(),
            self.feed_tools(),
            self.feed_pins(),
            self.feed_audit(),
            self.feed_disk(),
            self.feed_tasks(),
            self.announce_unusable(),
            self.feed_keys(),
            self.notifications.run()
        );
    }

    async fn feed_keys(&self) {
        let mut told = self.operator.key_list();
        loop {
            tokio::time::sleep(STATE_POLL_INTERVAL).await;
            self.operator.sync_keys(&mut told).await;
        }
    }

    async fn feed_approvals(&self) {
        let mut approvals = self.operator.approvals.changes();
        let (mut sent, mut announced) = (SentRequests::new(), AnnouncedApprovals::default());
        loop {
            let open = self.operator.open_approvals();
            announced.update(&open, &self.operator.approvals, &self.operator.flags);
            self.operator.send_requests(&open, &mut sent);
            if approvals.changed().await.is_err() {
                return;
            }
        }
    }

    async fn feed_servers(&self) {
        let mut servers = self.supervisor.watch();
        while servers.changed().await.is_ok() {
            self.operator.collect_notes().await;
            let status = || self.operator.server_status();
            self.operator.feed.send_with("servers", status);
            // A server that writes a lot must not keep the gateway busy.
            tokio::time::sleep(MIN_EVENT_INTERVAL).await;
        }
    }

    /// Lists all items again when a list changed, or when a server started or ended.
    async fn feed_tools(&self) {
        let want = ChangeFilter::all_lists(Caller::new("operator"));
        let mut servers = self.supervisor.watch();
        let mut tools = self.active.changes(want).await.ok();
        loop {
            let running = self.running();
            self.operator.list_servers().await;
            self.operator.send_items().await;
            tokio::time::sleep(MIN_EVENT_INTERVAL).await;
            let stale = async {
                match &mut tools {
                    Some(tools) => tools.next().await,
                    None => std::future::pending().await,
                }
            };
            let moved = async {
                while self.running() == running && servers.changed().await.is_ok() {
                    tokio::time::sleep(MIN_EVENT_INTERVAL).await;
                }
            };
            tokio::select! {
                told = stale => if told.is_none() { tools = None },
                () = moved => {}
            }
        }
    }

    /// Follows the decisions on pins that other processes make.
    async fn feed_pins(&self) {
        let pins = self.active.snapshot().pins.clone();
        pins.follow().await;
    }

    /// Polls the state of the audit log and of the issuers; neither has change notifications.
    async fn feed_audit(&self) {
        let (mut told, mut issuers) = (self.operator.audit_status(), self.operator.issuers());
        loop {
            tokio::time::sleep(STATE_POLL_INTERVAL).await;
            let recorder = self.active.snapshot().policies.recorder.clone();
            recorder.record_rejection_counts();
            let now = self.operator.issuers();
            if now != issuers {
                self.operator.feed.send("issuers", &now);
                issuers = now;
            }
            let now = self.operator.audit_status();
            if now != told {
                self.operator.feed.send("record", &now);
                told = now;
            }
        }
    }

    /// Polls the free space of the disk while anybody watches.
    async fn feed_disk(&self) {
        let mut told = None;
        loop {
            tokio::time::sleep(DISK_POLL_INTERVAL).await;
            let watched = self.operator.feed.is_watched();
            let now = watched.then(|| self.operator.disk_status());
            if let Some(disk) = now.as_ref().filter(|_| now != told) {
                self.operator.feed.send("disk", disk);
            }
            told = now;
        }
    }

    /// Prints unusable messages of servers, up to a maximum for each server.
    async fn announce_unusable(&self) {
        let mut announced = HashMap::<String, (u64, usize)>::new();
        loop {
            tokio::time::sleep(STATE_POLL_INTERVAL).await;
            for server in self.supervisor.status() {
                let Some((count, words)) = server.unusable else {
                    continue;
                };
                let (last, lines) = announced.entry(server.id.clone()).or_default();
                if *last != count && *lines < MAX_UNUSABLE_LINES {
                    let (server, text) = (server.id.clone(), words.clone());
                    event_log::emit(GatewayEvent::UnusableMessage { server, text });
                    *lines += 1;
                }
                *last = count;
            }
        }
    }

    /// Polls the tasks, which have no change notifications.
    async fn feed_tasks(&self) {
        let mut told = None;
        loop {
            tokio::time::sleep(STATE_POLL_INTERVAL).await;
            // A new subscriber gets the tasks with the full state.
            let now = self.operator.feed.is_watched();
            let now = now.then(|| self.operator.tasks());
            if let Some(tasks) = now.as_ref().filter(|_| now != told) {
                self.operator.feed.send("tasks", tasks);
            }
            told = now;
        }
    }

    /// Returns which servers are running.
    fn running(&self) -> Vec<bool> {
        let status = self.supervisor.status();
        status
            .iter()
            .map(|s| s.state == ServerState::Running)
            .collect()
    }
}
