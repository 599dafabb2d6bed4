//! Registry of metrics: the one source of `/metrics` and of the metrics over OTLP.

use crate::{HistogramValues, MetricCounter, MetricDefinition, definition::SERIES_DROPPED};
use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::{Duration, Instant, SystemTime},
};

/// Value of an attribute: a constant, or a name that others share.
pub type AttributeValue = Arc<str>;

/// Value of a sample.
#[derive(Clone, Debug, PartialEq)]
pub enum SampleValue {
    /// Value of a counter or a gauge.
    Number(f64),
    /// Values of a histogram.
    Histogram(HistogramValues),
}

/// One series of a metric at one time: its attributes and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricSample {
    /// Attributes by name. Empty values are left out.
    pub attributes: Vec<(&'static str, AttributeValue)>,
    /// Current value.
    pub value: SampleValue,
}

/// Samples of all metrics at one time, by the name of the metric.
#[derive(Debug, Default)]
pub struct SampleList {
    by_metric: BTreeMap<&'static str, (&'static MetricDefinition, Vec<MetricSample>)>,
}

impl SampleList {
    /// Adds a number of a metric with these attributes. An attribute with an empty value is left out.
    pub fn number<const N: usize>(
        &mut self,
        metric: &'static MetricDefinition,
        attributes: [(&'static str, AttributeValue); N],
        value: f64,
    ) {
        self.add(metric, attributes.into(), SampleValue::Number(value));
    }

    /// Adds a gauge or counter without attributes.
    pub fn plain(&mut self, metric: &'static MetricDefinition, value: f64) {
        self.number(metric, [], value);
    }

    /// Adds a series of a metric.
    pub fn add(
        &mut self,
        metric: &'static MetricDefinition,
        mut attributes: Vec<(&'static str, AttributeValue)>,
        value: SampleValue,
    ) {
        attributes.retain(|(_, value)| !value.is_empty());
        debug_assert!(
            attributes
                .iter()
                .all(|(key, _)| metric.attributes.contains(key)),
            "{} has an attribute that its definition lacks: {attributes:?}",
            metric.name
        );
        let (_, samples) = self
            .by_metric
            .entry(metric.name)
            .or_insert_with(|| (metric, Vec::new()));
        samples.push(MetricSample { attributes, value });
    }

    /// Returns the metrics that have samples, in the order of their names.
    pub fn metrics(&self) -> impl Iterator<Item = (&'static MetricDefinition, &[MetricSample])> {
        self.by_metric
            .values()
            .map(|(metric, samples)| (*metric, samples.as_slice()))
    }
}

/// Source of samples. It is asked for each scrape and for each export, so that calls need not keep gauges up to date.
pub trait MetricSource: Send + Sync + 'static {
    /// Adds the current samples.
    fn collect(&self, samples: &mut SampleList);
}

impl<F: Fn(&mut SampleList) + Send + Sync + 'static> MetricSource for F {
    fn collect(&self, samples: &mut SampleList) {
        self(samples);
    }
}

/// Registry of all metrics of the program.
pub struct MetricRegistry {
    sources: RwLock<Vec<Arc<dyn MetricSource>>>,
    started: Instant,
    started_at: SystemTime,
    dropped_series: MetricCounter,
}

impl Default for MetricRegistry {
    fn default() -> MetricRegistry {
        MetricRegistry {
            sources: RwLock::default(),
            started: Instant::now(),
            started_at: SystemTime::now(),
            dropped_series: MetricCounter::default(),
        }
    }
}

impl std::fmt::Debug for MetricRegistry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MetricRegistry").finish_non_exhaustive()
    }
}

impl MetricRegistry {
    /// Adds a source of samples.
    pub fn register(&self, source: Arc<dyn MetricSource>) {
        let mut sources = self.sources.write().unwrap_or_else(PoisonError::into_inner);
        sources.push(source);
    }

    /// Returns the current samples of all sources.
    pub fn collect(&self) -> SampleList {
        let sources = self.sources.read().unwrap_or_else(PoisonError::into_inner);
        let sources = sources.clone();
        let mut samples = SampleList::default();
        sources
            .iter()
            .for_each(|source| source.collect(&mut samples));
        samples.plain(&SERIES_DROPPED, self.dropped_series.get() as f64);
        samples
    }

    /// Returns the time at which counting began.
    pub fn started_at(&self) -> SystemTime {
        self.started_at
    }

    /// Returns the time since counting began, by the monotonic clock.
    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// Counts a series that was not created, because a family has its maximum.
    pub fn count_dropped_series(&self) {
        self.dropped_series.increment();
    }
}

/// Counters of one metric by the values of its attributes, with a maximum of series. Further values count together as
/// `_OTHER`.
#[derive(Debug)]
pub struct CounterFamily {
    metric: &'static MetricDefinition,
    max_series: usize,
    series: RwLock<HashMap<Vec<AttributeValue>, Arc<MetricCounter>>>,
}

/// Value of an attribute that stands for all values above a maximum, as in the semantic conventions.
pub const OTHER_VALUE: &str = "_OTHER";

impl CounterFamily {
    /// Creates the counters of a metric with at most this number of series.
    pub fn new(metric: &'static MetricDefinition, max_series: usize) -> CounterFamily {
        CounterFamily {
            metric,
            max_series,
            series: RwLock::default(),
        }
    }

    /// Adds one to the series with these values, in the order of the metric's attributes.
    pub fn increment(&self, values: &[&str]) {
        self.add(values, 1);
    }

    /// Adds a number to the series with these values, in the order of the metric's attributes.
    pub fn add(&self, values: &[&str], count: u64) {
        let key: Vec<AttributeValue> = values.iter().map(|value| (*value).into()).collect();
        if let Some(counter) = self
            .series
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&key)
        {
            return counter.add(count);
        }
        let mut series = self.series.write().unwrap_or_else(PoisonError::into_inner);
        let key = match series.len() < self.max_series || series.contains_key(&key) {
            true => key,
            false => vec![OTHER_VALUE.into(); key.len()],
        };
        series.entry(key).or_default().add(count);
    }
}

impl MetricSource for CounterFamily {
    fn collect(&self, samples: &mut SampleList) {
        let series = self.series.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = series.iter().collect();
        all.sort_by(|a, b| a.0.cmp(b.0));
        for (values, counter) in all {
            let attributes = self.metric.attributes.iter().copied();
            let attributes = attributes.zip(values.iter().cloned()).collect();
            samples.add(
                self.metric,
                attributes,
                SampleValue::Number(counter.get() as f64),
            );
        }
    }
}

/// Most events of one key within the current minute or the one before, with a maximum of keys. Exact up to that
/// maximum.
#[derive(Debug, Default)]
pub struct PeakByKey {
    state: Mutex<PeakWindows>,
}

#[derive(Debug, Default)]
struct PeakWindows {
    since: Option<Instant>,
    current: HashMap<Arc<str>, u64>,
    /// Highest count of the window before.
    before: u64,
}

impl PeakByKey {
    /// Maximum number of keys that are counted apart.
    const MAX_KEYS: usize = 1024;
    /// Length of a window.
    const WINDOW: Duration = Duration::from_secs(60);

    /// Counts an event of a key.
    pub fn count(&self, key: &Arc<str>) {
        self.count_at(key, Instant::now());
    }

    /// Returns the highest count of one key.
    pub fn peak(&self) -> u64 {
        self.peak_at(Instant::now())
    }

    fn count_at(&self, key: &Arc<str>, now: Instant) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.roll(now);
        if state.current.len() < PeakByKey::MAX_KEYS || state.current.contains_key(key) {
            *state.current.entry(key.clone()).or_default() += 1;
        }
    }

    fn peak_at(&self, now: Instant) -> u64 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.roll(now);
        state.highest().max(state.before)
    }
}

impl PeakWindows {
    fn highest(&self) -> u64 {
        self.current.values().copied().max().unwrap_or(0)
    }

    fn roll(&mut self, now: Instant) {
        let since = *self.since.get_or_insert(now);
        let passed = now.saturating_duration_since(since);
        if passed < PeakByKey::WINDOW {
            return;
        }
        self.before = match passed < 2 * PeakByKey::WINDOW {
            true => self.highest(),
            false => 0,
        };
        self.current.clear();
        self.since = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::{DECISIONS, HTTP_REJECTIONS};

    #[test]
    fn values_above_the_maximum_of_series_count_together() {
        let family = CounterFamily::new(&HTTP_REJECTIONS, 2);
        for value in ["a", "b", "c", "d", "a"] {
            family.increment(&[value]);
        }
        let mut samples = SampleList::default();
        family.collect(&mut samples);
        let (_, series) = samples.metrics().next().unwrap();
        let found: Vec<(&str, &SampleValue)> = series
            .iter()
            .map(|sample| (&*sample.attributes[0].1, &sample.value))
            .collect();
        let number = |n| SampleValue::Number(n);
        assert_eq!(
            found,
            [
                ("_OTHER", &number(2.0)),
                ("a", &number(2.0)),
                ("b", &number(1.0))
            ]
        );
    }

    #[test]
    fn an_empty_value_is_no_attribute() {
        let family = CounterFamily::new(&DECISIONS, 2);
        family.increment(&["allow", ""]);
        let mut samples = SampleList::default();
        family.collect(&mut samples);
        let (_, series) = samples.metrics().next().unwrap();
        assert_eq!(series[0].attributes.len(), 1);
    }

    #[test]
    fn a_peak_is_that_of_one_key_and_ends_after_two_windows() {
        let (peak, start) = (PeakByKey::default(), Instant::now());
        let (ann, bob): (Arc<str>, Arc<str>) = ("ann".into(), "bob".into());
        for _ in 0..3 {
            peak.count_at(&ann, start);
            peak.count_at(&bob, start);
        }
        assert_eq!(peak.peak_at(start), 3);
        assert_eq!(peak.peak_at(start + PeakByKey::WINDOW), 3);
        assert_eq!(peak.peak_at(start + 2 * PeakByKey::WINDOW), 0);
        peak.count_at(&ann, start + 2 * PeakByKey::WINDOW);
        assert_eq!(peak.peak_at(start + 5 * PeakByKey::WINDOW), 0);
    }
}
