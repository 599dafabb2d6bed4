//! Requests for approval of the past, from the index.

use super::{AuditIndex, signed, unsigned};
use std::collections::BTreeMap;

/// Requests for approval of one day.
#[derive(Clone, Debug, Default)]
pub(crate) struct ApprovalDay {
    /// Begin of the day in microseconds since 1970.
    pub(crate) from: u64,
    pub(crate) asked: u64,
    pub(crate) approved: u64,
    pub(crate) denied: u64,
    pub(crate) expired: u64,
    /// Median time until a person decided, in microseconds.
    pub(crate) median_wait: Option<u64>,
}

impl AuditIndex {
    /// Returns the requests for approval by day. The days begin at `from`, in microseconds since 1970, and have
    /// `day` microseconds each.
    pub(crate) fn approval_days(
        &self,
        from: u64,
        to: u64,
        day: u64,
    ) -> rusqlite::Result<Vec<ApprovalDay>> {
        let count = to.saturating_sub(from).div_ceil(day.max(1));
        let begin = |n| from + n * day;
        let new = |n| ApprovalDay {
            from: begin(n),
            ..ApprovalDay::default()
        };
        let mut days: Vec<ApprovalDay> = (0..count).map(new).collect();
        let mut waits = BTreeMap::<usize, Vec<u64>>::new();
        let mut asked = self.connection.prepare_cached(
            "SELECT asked.ts, done.ts, done.state FROM approval asked
             LEFT JOIN approval done ON done.id = asked.id AND done.state IN ('approved', 'denied', 'expired')
             WHERE asked.state = 'asked' AND asked.ts >= ?1 AND asked.ts < ?2",
        )?;
        let mut rows = asked.query([signed(from), signed(to)])?;
        while let Some(row) = rows.next()? {
            let ts = unsigned(row.get(0)?);
            let at = usize::try_from((ts - from) / day.max(1)).unwrap_or(usize::MAX);
            let Some(of) = days.get_mut(at) else { continue };
            of.asked += 1;
            let state: Option<String> = row.get(2)?;
            match state.as_deref() {
                Some("approved") => of.approved += 1,
                Some("denied") => of.denied += 1,
                Some("expired") => of.expired += 1,
                _ => {}
            }
            if let (Some("approved" | "denied"), Some(done)) = (state.as_deref(), row.get(1)?) {
                let wait = unsigned(done).saturating_sub(ts);
                waits.entry(at).or_default().push(wait);
            }
        }
        for (at, mut all) in waits {
            all.sort_unstable();
            days[at].median_wait = all.get(all.len() / 2).copied();
        }
        Ok(days)
    }

    /// Returns how many requests for each tool were approved and denied since that time, in microseconds since 1970.
    pub(crate) fn approvals_by_tool(&self, from: u64) -> rusqlite::Result<Vec<(String, u64, u64)>> {
        let mut asked = self.connection.prepare_cached(
            "SELECT name.text, sum(state = 'approved'), sum(state = 'denied') FROM approval
             JOIN name ON name.id = approval.tool
             WHERE ts >= ?1 AND state IN ('approved', 'denied') GROUP BY 1 ORDER BY 2 DESC",
        )?;
        let rows = asked.query_map([signed(from)], |row| {
            Ok((row.get(0)?, unsigned(row.get(1)?), unsigned(row.get(2)?)))
        })?;
        rows.collect()
    }
}
