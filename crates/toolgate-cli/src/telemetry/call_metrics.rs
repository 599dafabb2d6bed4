//! Counters of calls. Each item keeps a handle to its series, so that a call looks nothing up.

use super::operations::{SentSeries, WireSeries};
use crate::config::TelemetrySettings;
use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};
use toolgate_core::{Item, ItemKind};
use toolgate_policy::CallEnd;
use toolgate_telemetry::{
    CounterFamily, MetricCounter, MetricRegistry, MetricSource, OTHER_VALUE, PeakByKey, SampleList,
    definition::{CALL_ERRORS, CALLER_CALLS, CALLS, DECISIONS, RATE_LIMIT_CALLER_MAX},
};

/// Outcomes of a round of a call, as in the audit log.
const OUTCOMES: [&str; 13] = [
    "ok",
    "tool_error",
    "refused",
    "waiting",
    "input_required",
    "timeout",
    "cancelled",
    "cancelled_unknown",
    "rpc_error",
    "bad_answer",
    "upstream_lost",
    "bug",
    OTHER_VALUE,
];

/// Maximum number of series by caller and outcome.
const MAX_CALLER_SERIES: usize = 10_000;
/// Maximum number of series whose values the program chooses.
const MAX_FIXED_SERIES: usize = 500;

/// Counters of the calls of one item, by outcome.
#[derive(Debug)]
pub(crate) struct ItemSeries {
    server: Arc<str>,
    /// Name of the tool or prompt on its server; empty for others, whose URIs callers choose.
    name: Arc<str>,
    outcomes: [MetricCounter; OUTCOMES.len()],
    /// Durations of the requests of callers about the item.
    pub(super) received: WireSeries,
    /// Durations of the requests to its server.
    pub(super) sent: SentSeries,
}

/// Key of the series of an item: its server, and its name for a tool or a prompt.
type ItemSeriesKey = (Arc<str>, Arc<str>);

/// Counters of all calls.
#[derive(Debug)]
pub(crate) struct CallMetrics {
    registry: Arc<MetricRegistry>,
    max_items: usize,
    items: RwLock<HashMap<ItemSeriesKey, Arc<ItemSeries>>>,
    /// Calls whose names no item has, or whose items are above the maximum.
    other: Arc<ItemSeries>,
    allowed: MetricCounter,
    decisions: CounterFamily,
    errors: CounterFamily,
    callers: Option<CounterFamily>,
    rate_limited: PeakByKey,
}

impl ItemSeries {
    fn new((server, name): ItemSeriesKey) -> ItemSeries {
        ItemSeries {
            server,
            name,
            outcomes: Default::default(),
            received: WireSeries::default(),
            sent: SentSeries::default(),
        }
    }

    /// Returns whether these are the series of all items without series of their own.
    pub(super) fn is_other(&self) -> bool {
        &*self.server == OTHER_VALUE
    }

    fn count(&self, outcome: &str) {
        let at = OUTCOMES.iter().position(|one| *one == outcome);
        if let Some(counter) = self.outcomes.get(at.unwrap_or(OUTCOMES.len() - 1)) {
            counter.increment();
        }
    }

    fn collect(&self, samples: &mut SampleList) {
        let counts = OUTCOMES.iter().zip(&self.outcomes);
        for (outcome, counter) in counts.filter(|(_, counter)| counter.get() > 0) {
            let attributes = [
                ("toolgate.server", self.server.clone()),
                ("gen_ai.tool.name", self.name.clone()),
                ("toolgate.outcome", (*outcome).into()),
            ];
            samples.number(&CALLS, attributes, counter.get() as f64);
        }
        self.collect_durations(samples);
    }
}

impl CallMetrics {
    /// Creates counters without calls.
    pub(crate) fn new(settings: &TelemetrySettings, registry: Arc<MetricRegistry>) -> CallMetrics {
        let other = (OTHER_VALUE.into(), OTHER_VALUE.into());
        CallMetrics {
            registry,
            max_items: settings.tool_series,
            items: RwLock::default(),
            other: Arc::new(ItemSeries::new(other)),
            allowed: MetricCounter::default(),
            decisions: CounterFamily::new(&DECISIONS, MAX_FIXED_SERIES),
            errors: CounterFamily::new(&CALL_ERRORS, MAX_FIXED_SERIES),
            callers: settings
                .callers
                .then(|| CounterFamily::new(&CALLER_CALLS, MAX_CALLER_SERIES)),
            rate_limited: PeakByKey::default(),
        }
    }

    /// Returns the series of an item, which the item keeps.
    pub(super) fn handle_of<'i>(&self, item: &'i Item) -> Option<&'i ItemSeries> {
        item.observer_handle(|| self.series_of(item))
    }

    /// Counts the end of a round of a call.
    pub(crate) fn count(&self, end: &CallEnd) {
        let series = end.item.as_deref().and_then(|item| self.handle_of(item));
        series.unwrap_or(&self.other).count(end.outcome);
        match end.decided_by {
            Some(policy) if end.outcome == "waiting" => self.decisions.increment(&["ask", policy]),
            Some(policy) => {
                self.decisions.increment(&["deny", policy]);
                if policy == "rate" {
                    self.rate_limited.count(&end.caller.shared_name());
                }
            }
            None if end.was_sent => self.allowed.increment(),
            None => {}
        }
        if let Some(class) = end.code {
            self.errors.increment(&[class]);
        }
        if let Some(callers) = &self.callers {
            callers.increment(&[end.caller.name(), end.outcome]);
        }
    }

    /// Returns the series of an item. Callers choose the URIs of resources, so these count by server only.
    fn series_of(&self, item: &Item) -> Arc<ItemSeries> {
        let name = match item.kind() {
            ItemKind::Tool | ItemKind::Prompt => item.local_name.as_str(),
            ItemKind::Resource | ItemKind::Template | ItemKind::Skill => "",
        };
        let key: ItemSeriesKey = (item.origin.server.clone(), name.into());
        let mut items = self.items.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(series) = items.get(&key) {
            return series.clone();
        }
        if items.len() >= self.max_items {
            // Series of items that no list has any more make room.
            items.retain(|_, series| Arc::strong_count(series) > 1);
        }
        if items.len() >= self.max_items {
            self.registry.count_dropped_series();
            return self.other.clone();
        }
        let series = Arc::new(ItemSeries::new(key.clone()));
        items.insert(key, series.clone());
        series
    }
}

impl MetricSource for CallMetrics {
    fn collect(&self, samples: &mut SampleList) {
        let items = self.items.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = items.iter().collect();
        all.sort_by(|a, b| a.0.cmp(b.0));
        all.iter().for_each(|(_, series)| series.collect(samples));
        self.other.collect(samples);
        let allow = [("toolgate.decision", "allow".into())];
        samples.number(&DECISIONS, allow, self.allowed.get() as f64);
        self.decisions.collect(samples);
        self.errors.collect(samples);
        if let Some(callers) = &self.callers {
            callers.collect(samples);
        }
        samples.plain(&RATE_LIMIT_CALLER_MAX, self.rate_limited.peak() as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_core::{Definition, Json, Origin};

    fn item(name: &str) -> Item {
        let definition = format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}}}}"#);
        let definition = serde_json::from_str(&definition).unwrap();
        let definition = Definition::tool(Json::from_value(&definition)).unwrap();
        let origin = Origin {
            server: "files".into(),
            trusted: false,
        };
        Item::new(origin, definition)
    }

    fn metrics(tool_series: usize) -> CallMetrics {
        let settings = TelemetrySettings {
            tool_series,
            ..TelemetrySettings::default()
        };
        CallMetrics::new(&settings, Arc::default())
    }

    #[test]
    fn a_new_definition_of_a_tool_counts_in_the_series_of_the_old_one() {
        let metrics = metrics(10);
        let (one, other) = (
            metrics.series_of(&item("read")),
            metrics.series_of(&item("read")),
        );
        assert!(Arc::ptr_eq(&one, &other));
    }

    #[test]
    fn tools_above_the_maximum_count_together_until_others_are_gone() {
        let metrics = metrics(2);
        let kept: Vec<_> = ["a", "b"].map(|name| metrics.series_of(&item(name))).into();
        assert!(Arc::ptr_eq(&metrics.series_of(&item("c")), &metrics.other));
        let dropped = metrics.registry.collect();
        let (_, samples) = dropped.metrics().next().unwrap();
        assert_eq!(
            samples[0].value,
            toolgate_telemetry::SampleValue::Number(1.0)
        );
        drop(kept);
        assert_eq!(&*metrics.series_of(&item("c")).name, "c");
    }

    #[test]
    fn every_outcome_has_a_counter() {
        let series = ItemSeries::new(("s".into(), "t".into()));
        OUTCOMES.iter().for_each(|outcome| series.count(outcome));
        series.count("a new one");
        let counts: Vec<u64> = series.outcomes.iter().map(MetricCounter::get).collect();
        assert!(counts[..OUTCOMES.len() - 1].iter().all(|count| *count == 1));
        assert_eq!(counts.last(), Some(&2));
    }
}
