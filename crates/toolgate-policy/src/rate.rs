//! How often a caller may use a tool.

use crate::{Pattern, words};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::time::Instant;
use toolgate_core::{Call, Caller, Decision, Error, Item, Kind, Rule, Verdict};

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
    /// Which tools, as `server.tool`.
    pub tools: Vec<Pattern>,
    /// Which callers; empty for all.
    pub callers: Vec<Pattern>,
    /// How many for each caller and tool.
    pub quota: Quota,
}

/// A bucket of tokens for each caller and tool. Clones share the buckets.
#[derive(Clone)]
pub struct Rate {
    rules: Arc<[RateRule]>,
    default: Quota,
    table: Arc<Mutex<HashMap<Key, Bucket>>>,
    most: usize,
}

/// Caller, tool, and whether it is a later round of a call.
type Key = (Caller, String, bool);

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
            table: Arc::default(),
            most: Rate::MOST,
        }
    }

    /// Other rules over the same buckets: what was used stays used.
    pub fn reloaded(&self, rules: Vec<RateRule>, default: Quota) -> Rate {
        Rate {
            rules: rules.into(),
            default,
            table: self.table.clone(),
            most: self.most,
        }
    }

    fn quota(&self, caller: &Caller, tool: &str) -> Quota {
        let any = |patterns: &[Pattern], name: &str| patterns.iter().any(|p| p.matches(name));
        let speaks = |rule: &&RateRule| {
            any(&rule.tools, tool) && (rule.callers.is_empty() || any(&rule.callers, caller.name()))
        };
        self.rules
            .iter()
            .find(speaks)
            .map_or(self.default, |rule| rule.quota)
    }

    fn take(&self, call: &Call, tool: String, now: Instant) -> Result<(), Error> {
        let quota = self.quota(&call.caller, &tool);
        let later = call.round.number > 0;
        let factor = if later { Rate::ROUNDS } else { 1 };
        let own = Quota {
            count: quota.count.max(1).saturating_mul(factor),
            per: quota.per,
        };
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (call.caller.clone(), tool, later);
        if !table.contains_key(&key) && table.len() >= self.most {
            table.retain(|_, bucket| !bucket.idle(now));
            if table.len() >= self.most {
                return Err(Error::new(
                    Kind::Busy(None),
                    "too many callers at once; try again later",
                ));
            }
        }
        let text = |wait| {
            format!(
                "rate limit of {}: {}; again in {}",
                key.1,
                quota.words(),
                words::span(wait)
            )
        };
        let bucket = table.entry(key.clone()).or_insert(Bucket {
            tokens: own.count(),
            at: now,
            quota: own,
        });
        bucket.quota = own;
        bucket
            .take(now)
            .map_err(|wait| Error::new(Kind::Busy(Some(wait)), text(wait)))
    }
}

impl Rule for Rate {
    fn name(&self) -> &'static str {
        "rate"
    }

    fn decide<'a>(&'a self, call: &'a Call, item: &'a Item) -> Decision<'a> {
        Decision::Now(match self.take(call, item.full_name(), Instant::now()) {
            Ok(()) => Verdict::Allow,
            Err(error) => Verdict::Refuse(error),
        })
    }
}
