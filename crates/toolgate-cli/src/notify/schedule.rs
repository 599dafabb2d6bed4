//! Schedule of one `[[notify]]` entry: when it sends a message about a request, and its digest. Reads no clock.

use super::message::ExpiredRequest;
use crate::config::DailyHours;
use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

/// Time, with the minute of the day at the gateway.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalMoment {
    pub(crate) at: SystemTime,
    /// Minute of the day in local time.
    pub(crate) minute: u32,
}

/// Times at which an entry sends messages.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ScheduleRules {
    /// Time after which an undecided request is sent.
    pub(crate) after: Duration,
    pub(crate) hours: Option<DailyHours>,
    pub(crate) quiet_hours: Option<DailyHours>,
    /// Interval of the digest.
    pub(crate) digest: Option<Duration>,
}

/// Undecided requests of an entry, and requests for its digest.
#[derive(Debug, Default)]
pub(crate) struct NoticeSchedule {
    requests: BTreeMap<Arc<str>, RequestState>,
    expired: Vec<ExpiredRequest>,
    last_digest: Option<SystemTime>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum RequestState {
    /// To be sent at this time.
    Due(SystemTime),
    /// Sent, or outside of the hours of the entry.
    Settled,
}

/// Messages that are due now.
#[derive(Debug, Default, Eq, PartialEq)]
pub(crate) struct DueNotices {
    /// Approvals to send messages about.
    pub(crate) requests: Vec<Arc<str>>,
    /// Requests of a digest; empty for none.
    pub(crate) digest: Vec<ExpiredRequest>,
    /// Time of the next check of the schedule.
    pub(crate) next: Option<SystemTime>,
}

/// Maximum number of requests that wait for a digest; the oldest are dropped.
const MAX_EXPIRED: usize = 1000;

impl NoticeSchedule {
    /// Adds an undecided request of the entry.
    pub(crate) fn add(&mut self, id: &Arc<str>, requested_at: SystemTime, rules: &ScheduleRules) {
        let due = RequestState::Due(requested_at + rules.after);
        self.requests.entry(id.clone()).or_insert(due);
    }

    /// Removes a request that is decided or has expired; returns whether the entry had it.
    pub(crate) fn remove(&mut self, id: &str) -> bool {
        self.requests.remove(id).is_some()
    }

    /// Returns the ids of the undecided requests.
    pub(crate) fn ids(&self) -> Vec<Arc<str>> {
        self.requests.keys().cloned().collect()
    }

    /// Adds a request that expired without a decision.
    pub(crate) fn add_expired(&mut self, request: ExpiredRequest) {
        if self.expired.len() == MAX_EXPIRED {
            self.expired.remove(0);
        }
        self.expired.push(request);
    }

    /// Takes what is due.
    pub(crate) fn take_due(&mut self, now: LocalMoment, rules: &ScheduleRules) -> DueNotices {
        let mut due = DueNotices::default();
        let quiet_end = quiet_end(now, rules.quiet_hours);
        let outside = rules.hours.is_some_and(|hours| !hours.contains(now.minute));
        for (id, state) in &mut self.requests {
            let RequestState::Due(at) = *state else {
                continue;
            };
            if at > now.at {
                due.wake_at(at);
            } else if outside {
                *state = RequestState::Settled;
            } else if let Some(end) = quiet_end {
                *state = RequestState::Due(end);
                due.wake_at(end);
            } else {
                *state = RequestState::Settled;
                due.requests.push(id.clone());
            }
        }
        self.take_digest(now, rules, quiet_end, &mut due);
        due
    }

    fn take_digest(
        &mut self,
        now: LocalMoment,
        rules: &ScheduleRules,
        quiet_end: Option<SystemTime>,
        due: &mut DueNotices,
    ) {
        let Some(interval) = rules.digest.filter(|_| !self.expired.is_empty()) else {
            self.expired.clear();
            return;
        };
        // The first digest comes an interval after the first request that it names.
        let first = self
            .expired
            .first()
            .map_or(now.at, |first| first.expired_at);
        let at = self.last_digest.map_or(first, |last| last.max(first)) + interval;
        if at > now.at {
            due.wake_at(at);
        } else if let Some(end) = quiet_end {
            due.wake_at(end);
        } else {
            self.last_digest = Some(now.at);
            due.digest = std::mem::take(&mut self.expired);
        }
    }
}

impl DueNotices {
    fn wake_at(&mut self, at: SystemTime) {
        self.next = Some(self.next.map_or(at, |next| next.min(at)));
    }
}

/// Returns the end of the quiet hours; `None` if it is not within them.
fn quiet_end(now: LocalMoment, quiet: Option<DailyHours>) -> Option<SystemTime> {
    let quiet = quiet.filter(|quiet| quiet.contains(now.minute))?;
    let left = u64::from(quiet.minutes_left(now.minute)) * 60;
    Some(now.at + Duration::from_secs(left))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;

    fn at(hour: u64, minute: u64) -> LocalMoment {
        let minutes = hour * 60 + minute;
        LocalMoment {
            at: UNIX_EPOCH + Duration::from_secs(minutes * 60),
            minute: u32::try_from(minutes % 1440).unwrap(),
        }
    }

    fn hours(text: &str) -> Option<DailyHours> {
        Some(DailyHours::try_from(text.to_owned()).unwrap())
    }

    fn schedule(rules: &ScheduleRules, requested: LocalMoment) -> NoticeSchedule {
        let mut schedule = NoticeSchedule::default();
        schedule.add(&"a-1".into(), requested.at, rules);
        schedule
    }

    #[test]
    fn a_request_is_sent_once_and_at_once() {
        let rules = ScheduleRules::default();
        let mut schedule = schedule(&rules, at(9, 0));
        assert_eq!(schedule.take_due(at(9, 0), &rules).requests.len(), 1);
        schedule.add(&"a-1".into(), at(9, 0).at, &rules);
        assert_eq!(schedule.take_due(at(9, 1), &rules), DueNotices::default());
    }

    #[test]
    fn an_escalation_is_sent_only_if_nobody_decided_by_then() {
        let rules = ScheduleRules {
            after: Duration::from_secs(300),
            ..ScheduleRules::default()
        };
        let mut waiting = schedule(&rules, at(9, 0));
        let first = waiting.take_due(at(9, 4), &rules);
        assert_eq!((first.requests.len(), first.next), (0, Some(at(9, 5).at)));
        assert_eq!(waiting.take_due(at(9, 5), &rules).requests.len(), 1);
        let mut decided = schedule(&rules, at(9, 0));
        assert!(decided.remove("a-1"));
        assert!(decided.take_due(at(9, 5), &rules).requests.is_empty());
    }

    #[test]
    fn quiet_hours_hold_messages_back_until_their_end() {
        let rules = ScheduleRules {
            quiet_hours: hours("22:00-07:00"),
            ..ScheduleRules::default()
        };
        let mut schedule = schedule(&rules, at(23, 30));
        let held = schedule.take_due(at(23, 30), &rules);
        assert_eq!((held.requests.len(), held.next), (0, Some(at(31, 0).at)));
        assert!(schedule.take_due(at(30, 59), &rules).requests.is_empty());
        assert_eq!(schedule.take_due(at(31, 0), &rules).requests.len(), 1);
    }

    #[test]
    fn requests_of_other_hours_are_not_sent() {
        let rules = ScheduleRules {
            hours: hours("18:00-08:00"),
            ..ScheduleRules::default()
        };
        let mut day = schedule(&rules, at(17, 59));
        assert!(day.take_due(at(17, 59), &rules).requests.is_empty());
        assert!(day.take_due(at(18, 0), &rules).requests.is_empty());
        let mut night = schedule(&rules, at(18, 0));
        assert_eq!(night.take_due(at(18, 0), &rules).requests.len(), 1);
    }

    #[test]
    fn a_digest_collects_what_expired() {
        let rules = ScheduleRules {
            digest: Some(Duration::from_secs(3600)),
            quiet_hours: hours("12:00-13:00"),
            ..ScheduleRules::default()
        };
        let expired = |id: &str, moment: LocalMoment| ExpiredRequest {
            approval: id.into(),
            tool: "s.t".to_owned(),
            caller: "key:ci".to_owned(),
            expired_at: moment.at,
        };
        let mut schedule = NoticeSchedule::default();
        schedule.add_expired(expired("a-1", at(9, 10)));
        assert_eq!(
            schedule.take_due(at(9, 20), &rules).next,
            Some(at(10, 10).at)
        );
        schedule.add_expired(expired("a-2", at(9, 50)));
        assert_eq!(schedule.take_due(at(10, 10), &rules).digest.len(), 2);
        schedule.add_expired(expired("a-3", at(11, 30)));
        let held = schedule.take_due(at(12, 30), &rules);
        assert_eq!((held.digest.len(), held.next), (0, Some(at(13, 0).at)));
        assert_eq!(schedule.take_due(at(13, 0), &rules).digest.len(), 1);
        // Without a digest, nothing is kept.
        schedule.add_expired(expired("a-4", at(14, 0)));
        schedule.take_due(at(14, 0), &ScheduleRules::default());
        assert!(schedule.take_due(at(20, 0), &rules).digest.is_empty());
    }
}
