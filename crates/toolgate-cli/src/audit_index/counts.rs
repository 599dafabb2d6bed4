//! Counts of calls by minute, from the index.

use super::{
    AuditIndex, call_class::NO_REFUSAL, condition::SqlConditions, fill::bucket_micros, signed,
    unsigned,
};
use rusqlite::params_from_iter;
use std::collections::BTreeMap;

/// Filter of counts. Times are in minutes since 1970; the end is not included.
#[derive(Clone, Debug, Default)]
pub(crate) struct CountFilter {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) caller: Option<String>,
    pub(crate) server: Option<String>,
    pub(crate) tool: Option<String>,
}

/// Counts of the calls of a part of the time.
#[derive(Clone, Debug, Default)]
pub(crate) struct CountBucket {
    /// Number of calls by class.
    pub(crate) classes: BTreeMap<String, u64>,
    /// Latency of the calls that ran: the median and the 95th percentile, in microseconds.
    pub(crate) p50: Option<f64>,
    pub(crate) p95: Option<f64>,
}

/// Calls from a caller to a server.
#[derive(Clone, Debug)]
pub(crate) struct FlowCount {
    pub(crate) caller: String,
    /// `None` if no server has the item.
    pub(crate) server: Option<String>,
    pub(crate) classes: BTreeMap<String, u64>,
}

/// Refused calls of one caller, for one reason.
#[derive(Clone, Debug)]
pub(crate) struct RefusalCount {
    pub(crate) caller: String,
    pub(crate) class: String,
    pub(crate) tool: Option<String>,
    pub(crate) rule: Option<String>,
    pub(crate) count: u64,
}

/// Counts of the calls of one name.
#[derive(Clone, Debug)]
pub(crate) struct GroupCount {
    pub(crate) name: String,
    pub(crate) counts: CountBucket,
}

/// Column by which counts are grouped.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CountColumn {
    Caller,
    Server,
    Tool,
}

impl CountColumn {
    fn name(self) -> &'static str {
        match self {
            CountColumn::Caller => "caller",
            CountColumn::Server => "srv",
            CountColumn::Tool => "tool",
        }
    }
}

/// Classes of calls whose latency is that of a server.
const RAN: [&str; 3] = ["allowed", "approved", "failed"];

/// Latencies by bucket, for percentiles.
#[derive(Default)]
struct Latencies(BTreeMap<i64, u64>);

impl Latencies {
    fn percentile(&self, part: f64) -> Option<f64> {
        let total: u64 = self.0.values().sum();
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a percentile of buckets is an estimate"
        )]
        let wanted = ((total as f64 * part).ceil() as u64).max(1);
        let mut sum = 0;
        let found = self.0.iter().find(|(_, n)| {
            sum += **n;
            sum >= wanted
        });
        found.map(|(bucket, _)| bucket_micros(*bucket))
    }
}

#[derive(Default)]
struct Tally {
    classes: BTreeMap<String, u64>,
    latencies: Latencies,
}

impl Tally {
    fn add(&mut self, class: &str, bucket: i64, n: u64) {
        *self.classes.entry(class.to_owned()).or_default() += n;
        if RAN.contains(&class) {
            *self.latencies.0.entry(bucket).or_default() += n;
        }
    }

    fn into_bucket(self) -> CountBucket {
        CountBucket {
            p50: self.latencies.percentile(0.5),
            p95: self.latencies.percentile(0.95),
            classes: self.classes,
        }
    }
}

impl CountFilter {
    fn conditions(&self) -> SqlConditions {
        let mut conditions = SqlConditions::new(
            "minute.minute >= ?1 AND minute.minute < ?2",
            &[signed(self.from), signed(self.to)],
        );
        conditions.require_name(&["minute.caller"], self.caller.as_deref());
        conditions.require_name(&["minute.srv"], self.server.as_deref());
        conditions.require_name(&["minute.tool"], self.tool.as_deref());
        conditions
    }
}

impl AuditIndex {
    /// Returns the counts of the time of the filter, in parts of `step` minutes.
    pub(crate) fn counts_over_time(
        &self,
        filter: &CountFilter,
        step: u64,
    ) -> rusqlite::Result<Vec<CountBucket>> {
        let step = step.max(1);
        let parts = filter.to.saturating_sub(filter.from).div_ceil(step);
        let mut tallies: Vec<Tally> = (0..parts).map(|_| Tally::default()).collect();
        let condition = filter.conditions();
        let sql = format!(
            "SELECT (minute.minute - {}) / {step}, class.text, minute.bucket, sum(minute.n) FROM minute
             JOIN name class ON class.id = minute.class WHERE {} GROUP BY 1, 2, 3",
            filter.from, condition.sql
        );
        let mut asked = self.connection.prepare_cached(&sql)?;
        let mut rows = asked.query(params_from_iter(&condition.values))?;
        while let Some(row) = rows.next()? {
            let part = usize::try_from(row.get::<_, i64>(0)?).unwrap_or(usize::MAX);
            let class: String = row.get(1)?;
            if let Some(tally) = tallies.get_mut(part) {
                tally.add(&class, row.get(2)?, unsigned(row.get(3)?));
            }
        }
        Ok(tallies.into_iter().map(Tally::into_bucket).collect())
    }

    /// Returns the counts by caller, server or tool, the most frequent first.
    pub(crate) fn counts_by(
        &self,
        column: CountColumn,
        filter: &CountFilter,
        most: usize,
    ) -> rusqlite::Result<Vec<GroupCount>> {
        let condition = filter.conditions();
        let sql = format!(
            "SELECT grouped.text, class.text, minute.bucket, sum(minute.n) FROM minute
             JOIN name class ON class.id = minute.class JOIN name grouped ON grouped.id = minute.{}
             WHERE {} GROUP BY 1, 2, 3",
            column.name(),
            condition.sql
        );
        let mut asked = self.connection.prepare_cached(&sql)?;
        let mut rows = asked.query(params_from_iter(&condition.values))?;
        let mut tallies = BTreeMap::<String, Tally>::new();
        while let Some(row) = rows.next()? {
            let class: String = row.get(1)?;
            let tally = tallies.entry(row.get(0)?).or_default();
            tally.add(&class, row.get(2)?, unsigned(row.get(3)?));
        }
        let groups = tallies.into_iter().map(|(name, tally)| GroupCount {
            name,
            counts: tally.into_bucket(),
        });
        let mut groups: Vec<GroupCount> = groups.collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.counts.total()));
        groups.truncate(most);
        Ok(groups)
    }

    /// Returns the calls between callers and servers, the most frequent first.
    pub(crate) fn flows(
        &self,
        filter: &CountFilter,
        most: usize,
    ) -> rusqlite::Result<Vec<FlowCount>> {
        let condition = filter.conditions();
        let sql = format!(
            "SELECT caller.text, srv.text, class.text, sum(minute.n) FROM minute
             JOIN name class ON class.id = minute.class JOIN name caller ON caller.id = minute.caller
             LEFT JOIN name srv ON srv.id = minute.srv WHERE {} GROUP BY 1, 2, 3",
            condition.sql
        );
        let mut asked = self.connection.prepare_cached(&sql)?;
        let mut rows = asked.query(params_from_iter(&condition.values))?;
        let mut flows = BTreeMap::<(String, Option<String>), BTreeMap<String, u64>>::new();
        while let Some(row) = rows.next()? {
            let flow = flows.entry((row.get(0)?, row.get(1)?)).or_default();
            *flow.entry(row.get(2)?).or_default() += unsigned(row.get(3)?);
        }
        let flows = flows
            .into_iter()
            .map(|((caller, server), classes)| FlowCount {
                caller,
                server,
                classes,
            });
        let mut flows: Vec<FlowCount> = flows.collect();
        flows.sort_by_key(|flow| std::cmp::Reverse(flow.classes.values().sum::<u64>()));
        flows.truncate(most);
        Ok(flows)
    }

    /// Returns the refusals by caller, class and rule, the most frequent first.
    pub(crate) fn refusals(
        &self,
        filter: &CountFilter,
        most: usize,
    ) -> rusqlite::Result<Vec<RefusalCount>> {
        let condition = filter.conditions();
        let sql = format!(
            "SELECT caller.text, class.text, tool.text, rule.text, sum(minute.n) AS total FROM minute
             JOIN name class ON class.id = minute.class JOIN name caller ON caller.id = minute.caller
             LEFT JOIN name tool ON tool.id = minute.tool LEFT JOIN name rule ON rule.id = minute.rule
             WHERE {} AND class.text NOT IN ('{}')
             GROUP BY 1, 2, 3, 4 ORDER BY total DESC LIMIT {most}",
            condition.sql,
            NO_REFUSAL.join("', '")
        );
        let mut asked = self.connection.prepare_cached(&sql)?;
        let rows = asked.query_map(params_from_iter(&condition.values), |row| {
            Ok(RefusalCount {
                caller: row.get(0)?,
                class: row.get(1)?,
                tool: row.get(2)?,
                rule: row.get(3)?,
                count: unsigned(row.get(4)?),
            })
        })?;
        rows.collect()
    }
}

impl CountBucket {
    pub(crate) fn total(&self) -> u64 {
        self.classes.values().sum()
    }
}
