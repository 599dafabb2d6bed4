//! How often a caller may use a tool.

use crate::{
    Pattern,
    names::{self, Names},
    words,
};
use ahash::AHashMap;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::time::Instant;
use toolgate_core::{Call, Caller, Decision, Error, Item, Kind, LimitSubject, Rule, Verdict};

/// So many uses in so long a time; all of them at once are fine.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Quota {
    /// How many; 0 is taken as 1.
    pub count: u32,
    /// In which time.
    pub per: Duration,
}

impl Quota {
    /// So many a minute.
    pub fn per_minute(count: u32) -> Quota {
        Quota {
            count,
            per: Duration::from_secs(60),
        }
    }

    fn count(&self) -> f64 {
        f64::from(self.count.max(1))
    }

    /// Tokens a second.
    fn speed(&self) -> f64 {
        self.count() / self.per.as_secs_f64().max(0.001)
    }

    fn words(&self) -> String {
        match self.per.as_secs() {
            1 => format!("{} per second", self.count.max(1)),
            60 => format!("{} per minute", self.count.max(1)),
            3600 => format!("{} per hour", self.count.max(1)),
            _ => format!("{} in {}", self.count.max(1), words::span(self.per)),
        }
    }
}

/// A quota for some tools and callers.
#[derive(Clone, Debug)]
pub struct RateRule {
    /// Which things, by their full names.
    pub tools: Vec<Pattern>,
    /// Which callers; empty for all.
    pub callers: Vec<Pattern>,
    /// Which of these tools are left out.
    pub except: Vec<Pattern>,
    /// How many for each caller and tool.
    pub quota: Quota,
}

/// A bucket of tokens for each caller and tool. Clones share the buckets.
#[derive(Clone)]
pub struct Rate {
    rules: Arc<[RateRule]>,
    default: Quota,
    /// For all callers of a server together.
    servers: Arc<HashMap<String, Quota>>,
    table: Arc<Mutex<Buckets>>,
    most: usize,
    /// Whether what is left is known.
    counted: bool,
}

/// Subject, tool, and whether it is a later round of a call.
type Key = (LimitSubject, Arc<str>, bool);

/// It is asked for each call, and by nobody outside: the hash is a short one, with a seed.
type Buckets = AHashMap<Key, Bucket>;

struct Bucket {
    tokens: f64,
    at: Instant,
    quota: Quota,
}

impl Bucket {
    fn refill(&mut self, now: Instant) {
        let gained = now.saturating_duration_since(self.at).as_secs_f64() * self.quota.speed();
        self.tokens = (self.tokens + gained).min(self.quota.count());
        self.at = now;
    }

    /// Takes a token, or says how long to wait for one.
    fn take(&mut self, now: Instant) -> Result<(), Duration> {
        self.refill(now);
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            return Ok(());
        }
        Err(Duration::from_secs_f64(
            (1.0 - self.tokens) / self.quota.speed(),
        ))
    }

    fn idle(&self, now: Instant) -> bool {
        let gained = now.saturating_duration_since(self.at).as_secs_f64() * self.quota.speed();
        self.tokens + gained >= self.quota.count()
    }
}

impl Rate {
    /// The buckets that are remembered at most.
    const MOST: usize = 10_000;
    /// Later rounds answer questions, which the first round paid for; they have this much more room.
    const ROUNDS: u32 = 10;

    /// The first rule that speaks of a caller and tool counts, else the default.
    pub fn new(rules: Vec<RateRule>, default: Quota) -> Rate {
        Rate {
            rules: rules.into(),
            default,
            servers: Arc::default(),
            table: Arc::default(),
            most: Rate::MOST,
            counted: true,
        }
    }

    /// Other rules over the same buckets: what was used stays used.
    pub fn reloaded(&self, rules: Vec<RateRule>, default: Quota) -> Rate {
        Rate {
            rules: rules.into(),
            default,
            servers: Arc::default(),
            table: self.table.clone(),
            most: self.most,
            counted: true,
        }
    }

    /// How often servers may be used by all callers together, by their configured ids.
    pub fn per_server(mut self, servers: impl IntoIterator<Item = (String, Quota)>) -> Rate {
        self.servers = Arc::new(servers.into_iter().collect());
        self
    }

    fn quota(&self, caller: &Caller, names: &Names) -> Quota {
        let speaks = |rule: &&RateRule| {
            names.fit(&rule.tools, &rule.except)
                && (rule.callers.is_empty()
                    || rule.callers.iter().any(|p| p.matches(caller.name())))
        };
        self.rules
            .iter()
            .find(speaks)
            .map_or(self.default, |rule| rule.quota)
    }

    fn quota_of(&self, call: &Call, item: &Item) -> Quota {
        match self.rules.is_empty() {
            true => self.default,
            false => self.quota(&call.caller, &names::of(item, Some(call.name()))),
        }
    }

    /// The same, where nobody counts: for whoever has the settings and not the buckets.
    pub fn uncounted(mut self) -> Rate {
        self.counted = false;
        self
    }

    /// How often this call may be made, and how many are left now; nothing is used up by asking. Of a server with a quota
    /// of its own, that is told as well.
    fn told(&self, call: &Call, item: &Item) -> Vec<String> {
        let quota = self.quota_of(call, item);
        let tool = item.shared_name();
        let left = |key: &Key, quota: Quota| {
            if !self.counted {
                return format!("{}; how many are left is not known", quota.words());
            }
            let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
            let tokens = table.get(key).map_or(quota.count(), |bucket| {
                let since = Instant::now().saturating_duration_since(bucket.at);
                (bucket.tokens + since.as_secs_f64() * quota.speed()).min(quota.count())
            });
            format!("{}; {} left now", quota.words(), tokens.max(0.0).floor())
        };
        let mut told = vec![left(&(call.caller.limit_subject(), tool, false), quota)];
        let server: &str = &item.origin.server;
        if let Some(all) = self.servers.get(server) {
            let key = (Caller::new("").limit_subject(), server.into(), false);
            told.push(format!("{server}, for all callers: {}", left(&key, *all)));
        }
        told
    }

    /// One bucket for all that a template has, and one for the server where that has a quota of its own.
    fn take(
        &self,
        call: &Call,
        server: &str,
        tool: Arc<str>,
        quota: Quota,
        now: Instant,
    ) -> Result<(), Error> {
        let later = call.round.number > 0;
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let own = (call.caller.limit_subject(), tool, later);
        self.take_one(&mut table, &own, quota, &own.1, now)?;
        let Some(all) = self.servers.get(server) else {
            return Ok(());
        };
        // No full name is without a dot, so no bucket of a tool is this one.
        let whole = (Caller::new("").limit_subject(), server.into(), later);
        let of = format!("the server {server}, for all callers");
        self.take_one(&mut table, &whole, *all, &of, now)
            .inspect_err(|_| {
                // It was not used after all.
                if let Some(bucket) = table.get_mut(&own) {
                    bucket.tokens += 1.0;
                }
            })
    }

    /// Uses something once that is no tool: a name with a blank in it, which no full name has.
    pub(crate) fn take_for(&self, caller: &Caller, what: &str, quota: Quota) -> Result<(), Error> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (caller.limit_subject(), what.into(), false);
        self.take_one(&mut table, &key, quota, what, Instant::now())
    }

    fn take_one(
        &self,
        table: &mut Buckets,
        key: &Key,
        quota: Quota,
        of: &str,
        now: Instant,
    ) -> Result<(), Error> {
        let factor = if key.2 { Rate::ROUNDS } else { 1 };
        let own = Quota {
            count: quota.count.max(1).saturating_mul(factor),
            per: quota.per,
        };
        let taken = match table.get_mut(key) {
            Some(bucket) => {
                bucket.quota = own;
                bucket.take(now)
            }
            None => {
                let mut bucket = Bucket {
                    tokens: own.count(),
                    at: now,
                    quota: own,
                };
                let taken = bucket.take(now);
                self.make_room(table, now)?;
                table.insert(key.clone(), bucket);
                taken
            }
        };
        taken.map_err(|wait| {
            let (quota, wait_words) = (quota.words(), words::span(wait));
            let text = format!("rate limit of {of}: {quota}; again in {wait_words}");
            Error::new(Kind::Busy(Some(wait)), text)
        })
    }

    /// For one more bucket: those that are full say nothing and are forgotten.
    fn make_room(&self, table: &mut Buckets, now: Instant) -> Result<(), Error> {
        if table.len() >= self.most {
            table.retain(|_, bucket| !bucket.idle(now));
        }
        if table.len() >= self.most {
            let text = "too many callers at once; try again later";
            return Err(Error::new(Kind::Busy(None), text));
        }
        Ok(())
    }
}

impl Rule for Rate {
    fn name(&self) -> &'static str {
        "rate"
    }

    fn hides_some(&self) -> bool {
        false
    }

    fn decide<'a>(&'a self, call: &'a Call, item: &'a Item) -> Decision<'a> {
        Decision::Now(
            match self.take(
                call,
                &item.origin.server,
                item.shared_name(),
                self.quota_of(call, item),
                Instant::now(),
            ) {
                Ok(()) => Verdict::Allow,
                Err(error) => Verdict::Refuse(error),
            },
        )
    }

    /// Asking uses nothing up: it is told how often, and how much is left.
    fn explain<'a>(&'a self, call: &'a Call, item: &'a Item) -> Decision<'a> {
        for told in self.told(call, item) {
            call.trail.add("rate", "told", told);
        }
        Decision::Now(Verdict::Allow)
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
    fn later_rounds_have_their_own_room() {
        let rate = Rate::new(Vec::new(), Quota::per_minute(1));
        let now = Instant::now();
        let take = |round| {
            rate.take(&call("a", round), "s", "s.t".into(), rate.default, now)
                .is_ok()
        };
        assert!(take(0) && !take(0));
        assert!((0..10).all(|_| take(1)) && !take(2));
    }

    #[test]
    fn a_server_has_a_quota_for_all_callers_together() {
        let rate = Rate::new(Vec::new(), Quota::per_minute(2));
        let rate = rate.per_server([("s".to_owned(), Quota::per_minute(3))]);
        let now = Instant::now();
        let take = |caller, server: &str| {
            let tool = format!("{server}.t").into();
            rate.take(&call(caller, 0), server, tool, rate.default, now)
        };
        assert!(take("a", "s").is_ok() && take("b", "s").is_ok() && take("b", "s").is_ok());
        let refused = take("a", "s").unwrap_err();
        assert_eq!(
            refused.public(),
            "rate limit of the server s, for all callers: 3 per minute; again in 20 s"
        );
        assert!(take("a", "other").is_ok(), "each server by itself");
        // What the server refused was not used: after the wait there is one for it, and its own as well.
        let later = now + Duration::from_secs(20);
        let again = rate.take(&call("a", 0), "s", "s.t".into(), rate.default, later);
        assert!(again.is_ok());
    }

    #[test]
    fn the_first_rule_that_speaks_counts() {
        let rule = |tools: &str, callers: &[&str], count| RateRule {
            tools: vec![Pattern::new(tools)],
            callers: callers.iter().map(|c| Pattern::new(*c)).collect(),
            except: Vec::new(),
            quota: Quota::per_minute(count),
        };
        let rules = vec![rule("s.*", &["a"], 2), rule("s.t", &[], 3)];
        let rate = Rate::new(rules, Quota::per_minute(4));
        let count = |caller, tool: &str| rate.quota(&Caller::new(caller), &Names::tool(tool)).count;
        assert_eq!(
            (count("a", "s.t"), count("b", "s.t"), count("b", "s.u")),
            (2, 3, 4)
        );
    }

    #[test]
    fn a_full_table_forgets_the_idle_and_refuses_the_rest() {
        let mut rate = Rate::new(Vec::new(), Quota::per_minute(60));
        rate.most = 2;
        let now = Instant::now();
        let take = |caller, now| {
            rate.take(&call(caller, 0), "s", "s.t".into(), rate.default, now)
                .is_ok()
        };
        assert!(take("a", now) && take("b", now));
        assert!(!take("c", now), "one over");
        assert!(take("a", now), "known callers go on");
        // A second later b has all its tokens again, and a has not.
        let later = now + Duration::from_secs(1);
        assert!(take("c", later));
        let table = rate.table.lock().unwrap();
        assert!(
            table
                .keys()
                .any(|key| key.0 == Caller::new("a").limit_subject()),
            "what was used stays used"
        );
    }
}
