//! Rate limits by caller and tool, and by server: token buckets.

mod bucket;
mod fleet;

pub use bucket::TokenBucket;
pub use fleet::{RateMessageSender, RateSharing};

use crate::{
    CallerMatcher, GlobPattern,
    access::names::{self, ItemNames},
    humanize,
};
use fleet::SharedBuckets;
use foldhash::HashMap as FoldHashMap;
use std::{
    borrow::Cow,
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::time::Instant;
use toolgate_core::{
    Call, Caller, Error, ErrorKind, Item, LimitSubject, MaybeReady, Rule, RuleDecision,
};

/// Rate limit for calls with its burst: `count` calls in each period, also all at once.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RateQuota {
    /// Maximum number of calls in each period; 0 means 1.
    pub count: u32,
    /// Length of the period of the rate limit.
    pub per: Duration,
}

impl RateQuota {
    /// Creates a rate limit of `count` calls per minute.
    pub fn per_minute(count: u32) -> RateQuota {
        RateQuota {
            count,
            per: Duration::from_secs(60),
        }
    }

    fn count(&self) -> f64 {
        f64::from(self.count.max(1))
    }

    /// Returns the refill rate, in tokens per second.
    fn tokens_per_second(&self) -> f64 {
        self.count() / self.per.as_secs_f64().max(0.001)
    }

    fn describe(&self) -> String {
        match self.per.as_secs() {
            1 => format!("{} per second", self.count.max(1)),
            60 => format!("{} per minute", self.count.max(1)),
            3600 => format!("{} per hour", self.count.max(1)),
            _ => format!("{} in {}", self.count.max(1), humanize::duration(self.per)),
        }
    }
}

/// Rate limit for calls of the matching tools by the matching callers.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RateRule {
    /// Patterns of the full names of items that the rate limit applies to.
    pub tools: Vec<GlobPattern>,
    /// Callers that the rate limit applies to; by default all.
    pub callers: CallerMatcher,
    /// Patterns of the full names of items that the rate limit does not apply to, despite `tools`.
    pub except: Vec<GlobPattern>,
    /// Rate limit of each caller and tool.
    pub quota: RateQuota,
}

impl RateRule {
    /// Creates a rate limit for each caller and each item that the patterns match.
    pub fn new(tools: Vec<GlobPattern>, quota: RateQuota) -> RateRule {
        RateRule {
            tools,
            callers: CallerMatcher::default(),
            except: Vec::new(),
            quota,
        }
    }
}

/// Rate limiter of calls (a [`Rule`](toolgate_core::Rule)) with a token bucket for each caller and tool. Clones share
/// the buckets.
#[derive(Clone)]
pub struct RateLimiter {
    rules: Arc<[RateRule]>,
    default: RuleQuota,
    /// Quotas by server id, for all callers of the server together.
    servers: Arc<HashMap<String, RateQuota>>,
    table: Arc<Mutex<BucketTable>>,
    max_buckets: usize,
    /// True if the bucket levels are known.
    levels_known: bool,
    /// The other gateways that have a part of each quota.
    sharing: Option<Arc<RateSharing>>,
}

/// Limit subject, tool, whether it is a later round of a call, and the position of the rule.
type BucketKey = (LimitSubject, Arc<str>, bool, usize);

/// Quota of a rule, and the position of the rule. Rules of different views never share a bucket.
type RuleQuota = (usize, RateQuota);

/// Position of the default quota.
const DEFAULT_POSITION: usize = usize::MAX;

/// All buckets of a rate limiter.
#[derive(Default)]
struct BucketTable {
    /// Looked up on each call with keys from inside the process: a fast hash with a random seed suffices.
    buckets: FoldHashMap<BucketKey, TokenBucket>,
    /// Buckets that other gateways can borrow from, by the name that all gateways use.
    shared: SharedBuckets,
}

impl RateLimiter {
    /// Maximum number of buckets.
    const MAX_BUCKETS: usize = 10_000;
    /// Factor of the quota for later rounds: they answer input requests of a first round that was already counted.
    const LATER_ROUND_FACTOR: u32 = 10;

    /// Creates a rate limiter. All rules that match caller and tool apply, whatever their order; without a match, the
    /// default does.
    pub fn new(rules: Vec<RateRule>, default: RateQuota) -> RateLimiter {
        RateLimiter {
            rules: rules.into(),
            default: (DEFAULT_POSITION, default),
            servers: Arc::default(),
            table: Arc::default(),
            max_buckets: RateLimiter::MAX_BUCKETS,
            levels_known: true,
            sharing: None,
        }
    }

    /// Shares each quota with other gateways: this one has an equal part, and borrows from the others.
    #[must_use]
    pub fn shared(mut self, sharing: Arc<RateSharing>) -> RateLimiter {
        self.sharing = Some(sharing);
        self
    }

    /// Returns a rate limiter with other rules over the same token buckets: used tokens stay used.
    pub fn reloaded(&self, rules: Vec<RateRule>, default: RateQuota) -> RateLimiter {
        RateLimiter {
            rules: rules.into(),
            default: (DEFAULT_POSITION, default),
            servers: Arc::default(),
            table: self.table.clone(),
            max_buckets: self.max_buckets,
            levels_known: true,
            sharing: self.sharing.clone(),
        }
    }

    /// Sets rate limits for servers, by configured id, for all callers together.
    pub fn per_server(
        mut self,
        servers: impl IntoIterator<Item = (String, RateQuota)>,
    ) -> RateLimiter {
        self.servers = Arc::new(servers.into_iter().collect());
        self
    }

    /// Returns the quotas of all matching rules, in the order of the rules; without a match, the default.
    fn quotas(&self, caller: &Caller, names: &ItemNames) -> Vec<RuleQuota> {
        let applies = |(_, rule): &(usize, &RateRule)| {
            names.restricted_by(&rule.tools, &rule.except) && rule.callers.matches(caller)
        };
        let matching = self.rules.iter().enumerate().filter(applies);
        let quotas: Vec<RuleQuota> = matching.map(|(at, rule)| (at, rule.quota)).collect();
        match quotas.is_empty() {
            true => vec![self.default],
            false => quotas,
        }
    }

    fn quotas_of(&self, call: &Call, item: &Item) -> Cow<'_, [RuleQuota]> {
        match self.rules.is_empty() {
            true => Cow::Borrowed(std::slice::from_ref(&self.default)),
            false => Cow::Owned(self.quotas(&call.caller, &names::of(item, Some(call.name())))),
        }
    }

    /// Returns a rate limiter whose bucket levels count as unknown. For processes that have the settings but not the
    /// buckets.
    #[doc(hidden)]
    pub fn without_levels(mut self) -> RateLimiter {
        self.levels_known = false;
        self
    }

    /// Returns the quotas of this call and the tokens left, without taking one; also those of its server if it has a
    /// quota.
    fn describe(&self, call: &Call, item: &Item) -> Vec<String> {
        let tool = item.shared_name();
        let left = |key: &BucketKey, quota: RateQuota| {
            if !self.levels_known {
                return format!("{}; the number left is unknown", quota.describe());
            }
            let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
            let bucket = table.buckets.get(key);
            let tokens = bucket.map_or(quota.count(), |bucket| bucket.left(Instant::now()));
            format!("{}; {} left now", quota.describe(), tokens.max(0.0).floor())
        };
        let quotas = self.quotas_of(call, item);
        let each = quotas.iter().map(|(at, quota)| {
            let key = (call.caller.limit_subject(), tool.clone(), false, *at);
            left(&key, *quota)
        });
        let mut told: Vec<String> = each.collect();
        let server: &str = &item.origin.server;
        if let Some(all) = self.servers.get(server) {
            let key = (Caller::new("").limit_subject(), server.into(), false, 0);
            told.push(format!("{server}, for all callers: {}", left(&key, *all)));
        }
        told
    }

    /// Takes a token from each bucket of the tool, and one from the bucket of the server if it has a quota. If one is
    /// empty, takes none. All resources of a template share their buckets.
    fn take(
        &self,
        call: &Call,
        server: &str,
        tool: Arc<str>,
        quotas: &[RuleQuota],
        now: Instant,
    ) -> Result<(), Error> {
        let later = call.round.number > 0;
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let mut key = (call.caller.limit_subject(), tool, later, 0);
        for (taken, (at, quota)) in quotas.iter().enumerate() {
            key.3 = *at;
            self.take_one(&mut table, &key, *quota, &key.1, now)
                .inspect_err(|_| give_back(&mut table, key.clone(), &quotas[..taken]))?;
        }
        let Some(all) = self.servers.get(server) else {
            return Ok(());
        };
        // Full names contain a dot, so no bucket of a tool has this key.
        let whole = (Caller::new("").limit_subject(), server.into(), later, 0);
        let of = format!("the server {server} (for all callers)");
        self.take_one(&mut table, &whole, *all, &of, now)
            .inspect_err(|_| give_back(&mut table, key, quotas))
    }

    /// Takes a token for an action that is not a tool call. Its name has a space, which no full name has.
    pub(crate) fn take_for(
        &self,
        caller: &Caller,
        what: &str,
        quota: RateQuota,
    ) -> Result<(), Error> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (caller.limit_subject(), what.into(), false, 0);
        self.take_one(&mut table, &key, quota, what, Instant::now())
    }

    fn take_one(
        &self,
        table: &mut BucketTable,
        key: &BucketKey,
        quota: RateQuota,
        of: &str,
        now: Instant,
    ) -> Result<(), Error> {
        let factor = if key.2 {
            RateLimiter::LATER_ROUND_FACTOR
        } else {
            1
        };
        let own = RateQuota {
            count: quota.count.max(1).saturating_mul(factor),
            per: quota.per,
        };
        let taken = match table.buckets.get_mut(key) {
            Some(bucket) => {
                bucket.quota = own;
                let taken = bucket.take(now);
                if let Some(sharing) = &self.sharing {
                    sharing.ask_if_low(&table.shared, key, bucket, now);
                }
                taken
            }
            None => {
                let mut bucket = self.new_bucket(table, key, own, now);
                let taken = bucket.take(now);
                self.evict_full_buckets(table, now)?;
                if let Some(sharing) = &self.sharing {
                    sharing.ask_if_low(&table.shared, key, &mut bucket, now);
                }
                table.buckets.insert(key.clone(), bucket);
                taken
            }
        };
        taken.map_err(|wait| {
            let (own, wait_words) = (own.describe(), humanize::duration(wait));
            let text = format!("the rate limit of {of} is reached: {own}; retry in {wait_words}");
            Error::new(ErrorKind::Busy(Some(wait)), text)
        })
    }

    /// Makes room for one more bucket: full buckets carry no state and are evicted.
    fn evict_full_buckets(&self, table: &mut BucketTable, now: Instant) -> Result<(), Error> {
        if table.buckets.len() >= self.max_buckets {
            let BucketTable { buckets, shared } = table;
            buckets.retain(|key, bucket| {
                let is_full = bucket.is_full(now);
                if is_full {
                    shared.forget(key);
                }
                !is_full
            });
        }
        if table.buckets.len() >= self.max_buckets {
            let text = "too many callers at once; try again later";
            return Err(Error::new(ErrorKind::Busy(None), text));
        }
        Ok(())
    }
}

/// Gives the tokens of these quotas back: the call does not take place.
fn give_back(table: &mut BucketTable, mut key: BucketKey, quotas: &[RuleQuota]) {
    for (at, _) in quotas {
        key.3 = *at;
        if let Some(bucket) = table.buckets.get_mut(&key) {
            bucket.give_back();
        }
    }
}

impl Rule for RateLimiter {
    fn name(&self) -> &'static str {
        "rate"
    }

    fn may_hide_items(&self) -> bool {
        false
    }

    fn decide<'a>(&'a self, call: &'a Call, item: &'a Item) -> MaybeReady<'a> {
        MaybeReady::Ready(
            match self.take(
                call,
                &item.origin.server,
                item.shared_name(),
                &self.quotas_of(call, item),
                Instant::now(),
            ) {
                Ok(()) => RuleDecision::Allow,
                Err(error) => RuleDecision::Deny(error),
            },
        )
    }

    /// Reports the quotas and the tokens left, without taking a token.
    fn explain<'a>(&'a self, call: &'a Call, item: &'a Item) -> MaybeReady<'a> {
        for quota in self.describe(call, item) {
            call.decision_log.add("rate", "info", quota);
        }
        MaybeReady::Ready(RuleDecision::Allow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_core::Json;

    fn call(caller: &str, round: u32) -> Call {
        let arguments = Json::from_value(&serde_json::json!({}));
        let mut call = Call::tool("c", Caller::new(caller), "t", arguments);
        call.round.number = round;
        call
    }

    #[test]
    fn later_rounds_have_their_own_quota() {
        let rate = RateLimiter::new(Vec::new(), RateQuota::per_minute(1));
        let now = Instant::now();
        let take = |round| {
            rate.take(&call("a", round), "s", "s.t".into(), &[rate.default], now)
                .is_ok()
        };
        assert!(take(0) && !take(0));
        assert!((0..10).all(|_| take(1)) && !take(2));
    }

    #[test]
    fn a_server_has_a_quota_for_all_callers_together() {
        let rate = RateLimiter::new(Vec::new(), RateQuota::per_minute(2));
        let rate = rate.per_server([("s".to_owned(), RateQuota::per_minute(3))]);
        let now = Instant::now();
        let take = |caller, server: &str| {
            let tool = format!("{server}.t").into();
            rate.take(&call(caller, 0), server, tool, &[rate.default], now)
        };
        assert!(take("a", "s").is_ok() && take("b", "s").is_ok() && take("b", "s").is_ok());
        let refused = take("a", "s").unwrap_err();
        assert_eq!(
            refused.public_message(),
            "the rate limit of the server s (for all callers) is reached: 3 per minute; retry in 20 s"
        );
        assert!(take("a", "other").is_ok(), "each server by itself");
        // The rejected call took no token: after the wait, both buckets have one.
        let later = now + Duration::from_secs(20);
        let again = rate.take(&call("a", 0), "s", "s.t".into(), &[rate.default], later);
        assert!(again.is_ok());
    }

    fn rule(tools: &str, callers: &[&str], count: u32, per_seconds: u64) -> RateRule {
        let per = Duration::from_secs(per_seconds);
        RateRule {
            callers: callers.iter().copied().collect(),
            ..RateRule::new(vec![GlobPattern::new(tools)], RateQuota { count, per })
        }
    }

    #[test]
    fn all_matching_rules_apply_whatever_their_order() {
        let mut rules = vec![rule("s.*", &["a"], 5, 60), rule("s.t", &[], 3, 60)];
        for _ in 0..2 {
            let rate = RateLimiter::new(rules.clone(), RateQuota::per_minute(4));
            let now = Instant::now();
            let calls = |caller, tool: &str| {
                let quotas = rate.quotas(&Caller::new(caller), &ItemNames::tool(tool));
                let take = || rate.take(&call(caller, 0), "s", tool.into(), &quotas, now);
                (0..9).take_while(|_| take().is_ok()).count()
            };
            let found = (
                calls("a", "s.t"),
                calls("a", "s.u"),
                calls("b", "s.t"),
                calls("b", "s.u"),
            );
            assert_eq!(found, (3, 5, 3, 4));
            rules.reverse();
        }
    }

    #[test]
    fn a_call_that_one_rule_rejects_takes_no_token_of_the_others() {
        // Two a second, and three an hour.
        let rules = vec![rule("s.t", &[], 2, 1), rule("s.t", &[], 3, 3600)];
        let rate = RateLimiter::new(rules, RateQuota::per_minute(1));
        let quotas = rate.quotas(&Caller::new("a"), &ItemNames::tool("s.t"));
        let now = Instant::now();
        let take = |now| rate.take(&call("a", 0), "s", "s.t".into(), &quotas, now);
        assert!(take(now).is_ok() && take(now).is_ok());
        let refused = take(now).unwrap_err();
        assert!(refused.public_message().contains("2 per second"));
        let later = now + Duration::from_secs(1);
        assert!(
            take(later).is_ok(),
            "the refused call took none of the hour"
        );
        let refused = take(later).unwrap_err();
        assert!(refused.public_message().contains("3 per hour"));
        let again = take(later).unwrap_err();
        assert!(
            again.public_message().contains("3 per hour"),
            "it took none of the second"
        );
    }

    #[test]
    fn a_full_table_evicts_full_buckets_and_rejects_new_callers() {
        let mut rate = RateLimiter::new(Vec::new(), RateQuota::per_minute(60));
        rate.max_buckets = 2;
        let now = Instant::now();
        let take = |caller, now| {
            rate.take(&call(caller, 0), "s", "s.t".into(), &[rate.default], now)
                .is_ok()
        };
        assert!(take("a", now) && take("b", now));
        assert!(!take("c", now), "one over");
        assert!(take("a", now), "known callers go on");
        // A second later the bucket of b is full again, and that of a is not.
        let later = now + Duration::from_secs(1);
        assert!(take("c", later));
        let table = rate.table.lock().unwrap();
        assert!(
            table
                .buckets
                .keys()
                .any(|key| key.0 == Caller::new("a").limit_subject()),
            "what was used stays used"
        );
    }
}
