//! Service that watches approval requests and sends messages about them.

use crate::{
    event_log::LocalClock,
    notify::{
        ExpiredRequest, LocalMoment, NoticeSchedule, Notification, NotificationSender, Notifier,
        OutgoingMessage, RequestMessage,
    },
    runtime::active::ActiveSnapshot,
};
use futures_util::{StreamExt, stream::FuturesUnordered};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::{Duration, SystemTime},
};
use toolgate_core::{BoxFuture, visible_line};
use toolgate_policy::{ApprovalStatus, ApprovalView};

/// Maximum number of messages that are being sent.
const MAX_RUNNING: usize = 64;
/// Maximum number of messages that wait to be sent; above it, the newest are dropped and counted as failed.
const MAX_WAITING: usize = 1000;
/// Maximum time between two checks of the schedule: the clock may be set.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Sends messages about approval requests, as `[[notify]]` says.
pub(crate) struct NotificationService {
    pub(crate) active: Arc<ActiveSnapshot>,
    pub(crate) sender: Arc<NotificationSender>,
}

/// Known requests, and the schedule of each entry by its name.
#[derive(Default)]
struct NotificationState {
    schedules: HashMap<String, NoticeSchedule>,
    known: HashMap<Arc<str>, ApprovalView>,
}

impl NotificationService {
    /// Runs until the gateway stops.
    pub(crate) async fn run(&self) {
        let (mut changes, mut configs) = (self.sender.approvals.changes(), self.active.watch());
        let mut state = NotificationState::default();
        let mut clock = LocalClock::default();
        let mut sending = FuturesUnordered::<BoxFuture<'_, ()>>::new();
        let mut waiting = Vec::<OutgoingMessage>::new();
        loop {
            let now = self.sender.approvals.now();
            let moment = LocalMoment {
                at: now,
                minute: clock.minute_of_day(now),
            };
            let notifiers = self.active.snapshot().notifiers.clone();
            let (due, next) = self.take_due(&mut state, &notifiers, moment);
            waiting.extend(due);
            for dropped in waiting.drain(waiting.len().min(MAX_WAITING)..) {
                self.sender
                    .report_failure(&dropped, "too many messages wait to be sent");
            }
            while sending.len() < MAX_RUNNING && !waiting.is_empty() {
                let message = waiting.remove(0);
                sending.push(Box::pin(self.sender.send(message)));
            }
            let wait = next.map_or(MAX_WAIT, |next| {
                next.duration_since(now).unwrap_or_default().min(MAX_WAIT)
            });
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return },
                changed = configs.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(wait) => {}
                Some(()) = sending.next() => {}
            }
        }
    }

    /// Returns the messages that are due, and the time of the next ones.
    fn take_due(
        &self,
        state: &mut NotificationState,
        notifiers: &[Arc<Notifier>],
        now: LocalMoment,
    ) -> (Vec<OutgoingMessage>, Option<SystemTime>) {
        if notifiers.is_empty() {
            *state = NotificationState::default();
            return (Vec::new(), None);
        }
        // Another process of the data directory sends the messages about its own requests.
        let open = self.sender.approvals.list().into_iter();
        let open = open.filter(|view| view.is_local && view.status == ApprovalStatus::Pending);
        let open: HashMap<Arc<str>, ApprovalView> =
            open.map(|view| (view.id.clone(), view)).collect();
        self.settle(state, &open);
        let names: HashSet<&str> = notifiers
            .iter()
            .map(|one| one.settings.name.as_str())
            .collect();
        state
            .schedules
            .retain(|name, _| names.contains(name.as_str()));
        let (mut due, mut next) = (Vec::new(), None::<SystemTime>);
        for notifier in notifiers {
            let rules = notifier.rules();
            let schedule = state
                .schedules
                .entry(notifier.settings.name.clone())
                .or_default();
            for view in open.values().filter(|view| notifier.matches(view)) {
                schedule.add(&view.id, view.requested_at, &rules);
            }
            let notices = schedule.take_due(now, &rules);
            next = next.into_iter().chain(notices.next).min();
            let mut messages: Vec<Notification> = notices
                .requests
                .iter()
                .filter_map(|id| open.get(id))
                .map(|view| self.request_message(notifier, view))
                .collect();
            if !notices.digest.is_empty() {
                messages.push(Notification::Digest {
                    expired: notices.digest,
                    link: (self.sender.console)(),
                });
            }
            let messages = messages.into_iter();
            due.extend(messages.map(|message| self.sender.outgoing(notifier, message)));
        }
        state.known = open;
        (due, next)
    }

    /// Removes requests that are no longer open from all schedules. Those that expired are for the digests.
    fn settle(&self, state: &mut NotificationState, open: &HashMap<Arc<str>, ApprovalView>) {
        for schedule in state.schedules.values_mut() {
            for id in schedule.ids() {
                if open.contains_key(&id) {
                    continue;
                }
                schedule.remove(&id);
                let expired = self.expired(&id);
                if let Some(view) = state.known.get(&id).filter(|_| expired) {
                    schedule.add_expired(ExpiredRequest {
                        approval: id.clone(),
                        tool: visible_line(&view.item.full_name()),
                        caller: visible_line(view.binding.caller.name()),
                        expired_at: view.expires_at,
                    });
                }
            }
        }
    }

    fn expired(&self, id: &str) -> bool {
        let view = self.sender.approvals.find(id);
        view.is_none_or(|view| view.status == ApprovalStatus::Expired)
    }

    fn request_message(&self, notifier: &Notifier, view: &ApprovalView) -> Notification {
        let message =
            RequestMessage::new(view, &(self.sender.console)(), notifier.settings.arguments);
        Notification::Request(Box::new(message))
    }
}
