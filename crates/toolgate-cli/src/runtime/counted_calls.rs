//! Observer of calls that shows them in the console, and counts them.

use super::call_feed::CallFeed;
use crate::telemetry::CallMetrics;
use std::sync::Arc;
use toolgate_core::{Output, Progress};
use toolgate_policy::{CallEnd, CallObserver, CallStage, CallView};

/// Observer that passes calls to the console's feed, and counts their ends.
pub(crate) struct CountedCalls {
    pub(crate) feed: Arc<CallFeed>,
    pub(crate) metrics: Arc<CallMetrics>,
}

impl CallObserver for CountedCalls {
    fn is_active(&self) -> bool {
        self.feed.is_active()
    }

    fn on_begin(&self, call: &CallView) {
        self.feed.on_begin(call);
    }

    fn on_stage(&self, id: &str, stage: &CallStage) {
        self.feed.on_stage(id, stage);
    }

    fn on_progress(&self, id: &str, progress: &Progress) {
        self.feed.on_progress(id, progress);
    }

    fn on_result(&self, id: &str, output: &Output) {
        self.feed.on_result(id, output);
    }

    fn on_end(&self, id: &str, end: &CallEnd) {
        self.metrics.count(end);
        self.feed.on_end(id, end);
    }
}
