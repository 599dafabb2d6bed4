//! Live feed of calls for the console.
//!
//! A call only marks its change here. Each open page collects the changes a few times a second, so a flood of calls costs
//! a page no more than a few, and without a page nothing is built.

mod arguments;
mod batch;
mod displayed_call;
mod recent_calls;
mod results;
mod rows;

pub(crate) use batch::CallFollower;
pub(crate) use displayed_call::{console_outcome, refusal_class};

use displayed_call::DisplayedCall;
use recent_calls::RecentCalls;
use results::RecentResults;

use crate::event_log::{self, EventLevel, GatewayEvent};
use serde_json::Value;
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};
use tokio::sync::{broadcast, watch};
use toolgate_core::{Catalog, Item, ItemKind, Json, OperatorDetail, Output, Progress};
use toolgate_policy::{CallCanceller, CallEnd, CallObserver, CallStage, CallView, SecretRedactor};

/// Events that a slow subscriber may lag behind before it has to reload the full state.
const MAX_QUEUED_EVENTS: usize = 64;

/// Event for the console: its name and its JSON data.
pub(crate) type ConsoleEvent = (&'static str, String);

/// Recent calls, and the event feed of the console.
pub(crate) struct CallFeed {
    calls: Mutex<RecentCalls>,
    /// Version of the list of calls: each change of a call has a higher one.
    version: watch::Sender<u64>,
    results: RecentResults,
    /// Catalog of each item kind, by the names that callers use. It gives a call its full name from the start.
    catalogs: Mutex<[Catalog; ItemKind::ALL.len()]>,
    /// Registry of running calls, through which the operator stops them.
    pub(crate) canceller: CallCanceller,
    feed: broadcast::Sender<ConsoleEvent>,
    /// Held while an event is built and sent, so that an older state cannot follow a newer one.
    send_order: Mutex<()>,
    /// Details of the failure that was printed last.
    last_printed: Mutex<Option<OperatorDetail>>,
}

impl CallFeed {
    /// Creates a feed that keeps so many bytes of the results of recent calls.
    pub(crate) fn new(result_bytes: usize) -> CallFeed {
        CallFeed {
            calls: Mutex::default(),
            version: watch::Sender::new(0),
            results: RecentResults::new(result_bytes),
            catalogs: Mutex::default(),
            canceller: CallCanceller::default(),
            feed: broadcast::Sender::new(MAX_QUEUED_EVENTS),
            send_order: Mutex::default(),
            last_printed: Mutex::default(),
        }
    }

    /// Prints the details of a failure, unless the last printed failure had the same details.
    fn print_once(&self, detail: &OperatorDetail) {
        let mut said = self
            .last_printed
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if said.as_ref() != Some(detail) {
            event_log::emit(GatewayEvent::CallFailed {
                detail: detail.for_operator().to_owned(),
            });
            *said = Some(detail.clone());
        }
    }

    /// Subscribes to events from now on.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<ConsoleEvent> {
        self.feed.subscribe()
    }

    /// Returns whether the feed has a subscriber. Without one, building an event is wasted work.
    pub(crate) fn is_watched(&self) -> bool {
        self.feed.receiver_count() > 0
    }

    /// Sends an event to the console.
    pub(crate) fn send(&self, name: &'static str, value: &Value) {
        // It fails only if there is no subscriber.
        let _ = self.feed.send((name, value.to_string()));
    }

    /// Sends an event to the console. Builds its data only if the feed has a subscriber.
    pub(crate) fn send_with(&self, name: &'static str, value: impl FnOnce() -> Value) {
        if self.is_watched() {
            let _order = self
                .send_order
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            self.send(name, &value());
        }
    }

    /// Stores the catalog of one item kind.
    pub(crate) fn set_catalog(&self, kind: ItemKind, catalog: Catalog) {
        self.lock_catalogs()[kind as usize] = catalog;
    }

    /// Finds the item that a call uses, if it is known.
    fn find_item(&self, call: &CallView) -> Option<Arc<Item>> {
        let names = self.lock_catalogs();
        let mut kinds = call.op.kinds().iter();
        kinds.find_map(|kind| names[*kind as usize].find(&call.name).cloned())
    }

    /// Returns the full name of a tool, `server.tool`, if its server has listed it; otherwise the name unchanged.
    pub(crate) fn full_name(&self, tool: &str) -> String {
        let found = self.lock_catalogs()[ItemKind::Tool as usize]
            .find(tool)
            .cloned();
        found.map_or_else(|| tool.to_owned(), |item| item.full_name())
    }

    fn lock_catalogs(&self) -> MutexGuard<'_, [Catalog; ItemKind::ALL.len()]> {
        self.catalogs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the calls as JSON, newest first.
    pub(crate) fn json(&self) -> Value {
        self.lock_calls().iter().map(DisplayedCall::json).collect()
    }

    /// Returns the rows of the calls as JSON, newest first.
    pub(crate) fn rows(&self) -> Value {
        let calls: Vec<DisplayedCall> = self.lock_calls().iter().cloned().collect();
        calls.iter().map(DisplayedCall::row).collect()
    }

    /// Returns everything about a recent call, with its result if that was kept.
    pub(crate) fn find(&self, id: &str) -> Option<Value> {
        let call = self.lock_calls().get(id).cloned()?;
        let mut all = call.json();
        let mut more = call.more();
        let result = self.results.find(id);
        let redacted = result.map(|result| SecretRedactor::redact_json(&result).to_value());
        more["result"] = redacted.unwrap_or_default();
        if let (Some(all), Value::Object(more)) = (all.as_object_mut(), more) {
            all.extend(more);
        }
        Some(all)
    }

    /// Returns the rows of the most recent calls of a caller.
    pub(crate) fn recent_of(&self, caller: &str, most: usize) -> Value {
        let calls = self.lock_calls();
        let own = calls.iter().filter(|call| call.caller.name() == caller);
        let own: Vec<DisplayedCall> = own.take(most).cloned().collect();
        drop(calls);
        own.iter().map(DisplayedCall::row).collect()
    }

    /// Returns the short arguments of recent calls of an item that were not refused.
    pub(crate) fn arguments_of(&self, item: &Item) -> Vec<Json> {
        let calls = self.lock_calls();
        let of = |call: &&DisplayedCall| {
            call.is_of(item) && call.outcome.is_some() && call.outcome != Some("refused")
        };
        calls
            .iter()
            .filter(of)
            .filter_map(DisplayedCall::exact_arguments)
            .collect()
    }

    /// Returns the calls that wait for an approval, each with the ID of that approval.
    pub(crate) fn waiting_calls(&self) -> Vec<(Arc<str>, Arc<str>)> {
        let calls = self.lock_calls();
        let waiting = calls.iter().filter(|c| c.state == "waiting");
        waiting
            .filter_map(|c| Some((c.id.clone(), c.approval.clone()?)))
            .collect()
    }

    /// Returns whether a recent call is by this caller.
    pub(crate) fn has_caller(&self, caller: &str) -> bool {
        let calls = self.lock_calls();
        calls.iter().any(|call| call.caller.name() == caller)
    }

    /// Returns the number of running calls of a caller, and the number of its calls that wait for an approval.
    pub(crate) fn open_counts(&self, caller: &str) -> (usize, usize) {
        let calls = self.lock_calls();
        let own = calls.iter().filter(|call| call.caller.name() == caller);
        let (waiting, all) = own
            .filter(|call| call.state != "done")
            .fold((0, 0), |(waiting, all), call| {
                (waiting + usize::from(call.state == "waiting"), all + 1)
            });
        (all - waiting, waiting)
    }

    /// Marks a waiting call as cancelled, because its caller will not retry it.
    pub(crate) fn mark_cancelled(&self, id: &str) {
        self.update(id, |call| {
            call.state = "done";
            call.outcome = Some("cancelled");
        });
    }

    fn update(&self, id: &str, change: impl FnOnce(&mut DisplayedCall)) {
        let mut calls = self.lock_calls();
        if let Some(call) = calls.get_mut(id) {
            change(call);
            self.mark_changed(call);
        }
    }

    /// Gives a changed call the next version, and wakes the pages. The list of calls is locked.
    fn mark_changed(&self, call: &mut DisplayedCall) {
        // Without a receiver this stores a number and wakes nobody.
        self.version.send_modify(|version| {
            *version += 1;
            call.version = *version;
        });
    }

    fn lock_calls(&self) -> MutexGuard<'_, RecentCalls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallObserver for CallFeed {
    fn on_begin(&self, call: &CallView) {
        let mut calls = self.lock_calls();
        if let Some(known) = calls.get_mut(&call.id) {
            // A duplicate request of a round does not hide the running one.
            if known.state != "running" {
                known.state = "judging";
                known.times.resume(Instant::now());
                self.mark_changed(known);
            }
            return;
        }
        let mut shown = DisplayedCall::new(call, self.find_item(call).as_deref());
        self.mark_changed(&mut shown);
        let dropped = calls.push(shown);
        drop(calls);
        drop(dropped);
    }

    fn on_stage(&self, id: &str, stage: &CallStage) {
        let CallStage::Running(item) = stage else {
            return;
        };
        self.update(id, |call| call.run(item));
    }

    fn on_progress(&self, id: &str, progress: &Progress) {
        self.update(id, |call| call.progress = Some(progress.clone()));
    }

    fn on_result(&self, id: &str, output: &Output) {
        if self.is_watched() {
            self.results.keep(id, output);
        }
    }

    fn on_end(&self, id: &str, end: &CallEnd) {
        // Duplicate request of a round: the other request still runs, and its end is the one that counts.
        if self.canceller.is_running(id) {
            return;
        }
        if let Some(detail) = &end.detail {
            self.print_once(detail);
        }
        let waits = matches!(end.outcome, "waiting" | "input_required");
        self.update(id, |call| {
            call.end(end, waits);
            if !waits && event_log::prints(EventLevel::Detail) {
                event_log::emit(call.end_event());
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        sync::{
            Barrier,
            atomic::{AtomicU64, Ordering},
        },
        thread,
    };

    #[test]
    fn an_older_state_never_follows_a_newer_one() {
        let feed = CallFeed::new(0);
        let (state, barrier) = (AtomicU64::new(0), Barrier::new(2));
        for _ in 0..500 {
            let mut events = feed.subscribe();
            let change = || {
                barrier.wait();
                state.fetch_add(1, Ordering::SeqCst);
                feed.send_with("presence", || {
                    let now = state.load(Ordering::SeqCst);
                    thread::yield_now();
                    now.into()
                });
            };
            thread::scope(|scope| {
                scope.spawn(change);
                scope.spawn(change);
            });
            events.try_recv().unwrap();
            let last = events.try_recv().unwrap();
            assert_eq!(last.1, state.load(Ordering::SeqCst).to_string());
        }
    }
}
