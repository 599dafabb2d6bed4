//! Instruments: counters and histograms that calls update with plain atomic operations.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// Monotonic counter.
#[derive(Debug, Default)]
pub struct MetricCounter(AtomicU64);

impl MetricCounter {
    /// Adds one.
    pub fn increment(&self) {
        self.add(1);
    }

    /// Adds a number.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Relaxed);
    }

    /// Returns the count since the start.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Histogram of durations with fixed bucket boundaries.
#[derive(Debug)]
pub struct DurationHistogram {
    bounds: &'static [f64],
    /// Counts of the buckets; the last one has no upper bound.
    buckets: Box<[AtomicU64]>,
    sum_nanos: AtomicU64,
}

/// Values of a [`DurationHistogram`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HistogramValues {
    /// Count of each bucket by itself; the last one has no upper bound.
    pub buckets: Vec<u64>,
    /// Sum of the durations in seconds.
    pub sum: f64,
}

impl HistogramValues {
    /// Returns the number of durations.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

impl DurationHistogram {
    /// Creates an empty histogram with these upper bounds in seconds.
    pub fn new(bounds: &'static [f64]) -> DurationHistogram {
        DurationHistogram {
            bounds,
            buckets: (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect(),
            sum_nanos: AtomicU64::new(0),
        }
    }

    /// Records a duration.
    pub fn record(&self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        // Most calls are short, so a linear search ends at once.
        let at = self.bounds.iter().position(|bound| seconds <= *bound);
        if let Some(bucket) = self.buckets.get(at.unwrap_or(self.bounds.len())) {
            bucket.fetch_add(1, Relaxed);
        }
        self.sum_nanos.fetch_add(nanos(duration), Relaxed);
    }

    /// Returns the recorded values.
    pub fn values(&self) -> HistogramValues {
        HistogramValues {
            buckets: self.buckets.iter().map(|b| b.load(Relaxed)).collect(),
            sum: Duration::from_nanos(self.sum_nanos.load(Relaxed)).as_secs_f64(),
        }
    }
}

/// Returns a duration in nanoseconds. One of more than 584 years is cut off.
pub(crate) fn nanos(duration: Duration) -> u64 {
    let seconds = duration.as_secs().saturating_mul(1_000_000_000);
    seconds.saturating_add(duration.subsec_nanos().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_counts_in_the_first_bucket_that_it_does_not_exceed() {
        let histogram = DurationHistogram::new(&[0.01, 0.1]);
        for millis in [1, 10, 11, 100, 101] {
            histogram.record(Duration::from_millis(millis));
        }
        let values = histogram.values();
        assert_eq!(values.buckets, [2, 2, 1]);
        assert_eq!(values.count(), 5);
        assert!((values.sum - 0.223).abs() < 1e-9, "{}", values.sum);
    }
}
