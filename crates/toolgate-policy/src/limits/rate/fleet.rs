//! Rate limits of several gateways: each has an equal part of a quota, and they lend tokens to each other.
//!
//! A gateway whose bucket runs low asks all others. A gateway that has tokens lends some for a quarter of a second, and
//! what the borrower does not use goes back. Each token exists once, so the gateways together never let more calls pass
//! than one gateway alone would. Without messages, each gateway keeps its part.

use super::{BucketKey, BucketTable, RateLimiter, RateQuota, TokenBucket};
use foldhash::HashMap as FoldHashMap;
use ring::digest::{Context, SHA256};
use serde_json::{Value, json};
use std::{
    fmt,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;
use toolgate_protocol::hex;

/// Maximum number of buckets that only other gateways use.
const MAX_FOREIGN_BUCKETS: usize = 10_000;
/// Maximum number of requests whose answers are awaited.
const MAX_OPEN_REQUESTS: usize = 1024;

/// Sends a message about rate limits to all other gateways, if that is possible now. It must not block.
pub type RateMessageSender = Box<dyn Fn(String) + Send + Sync>;

/// Sharing of rate limits with other gateways: their number, and the way to reach them.
///
/// ```
/// use std::sync::{Arc, mpsc};
/// use toolgate_policy::{RateLimiter, RateQuota, RateSharing};
///
/// // A task of the program sends the messages to the other gateways, and passes theirs to the rate limiter.
/// let (sender, messages) = mpsc::channel();
/// let send = Box::new(move |message| drop(sender.send(message)));
/// let sharing = Arc::new(RateSharing::new(3, "gateway-a", send));
/// let limiter = RateLimiter::new(Vec::new(), RateQuota::per_minute(600)).shared(sharing);
/// # drop((limiter, messages));
/// ```
pub struct RateSharing {
    /// Number of gateways among which each quota is divided.
    gateways: u32,
    /// Name of this gateway in messages.
    name: String,
    send: RateMessageSender,
    next_request: AtomicU64,
    /// Requests of this gateway, with their time.
    requests: Mutex<FoldHashMap<u64, OpenRequest>>,
}

/// Request for tokens whose answers may still come.
struct OpenRequest {
    bucket: String,
    asked: Instant,
    lenders: Vec<String>,
}

impl fmt::Debug for RateSharing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateSharing")
            .field("gateways", &self.gateways)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Buckets by the name that all gateways use for them.
#[derive(Default)]
pub(super) struct SharedBuckets {
    keys: FoldHashMap<String, BucketKey>,
    names: FoldHashMap<BucketKey, String>,
    /// Buckets that no call of this gateway has used.
    foreign: FoldHashMap<String, TokenBucket>,
}

impl SharedBuckets {
    pub(super) fn forget(&mut self, key: &BucketKey) {
        if let Some(name) = self.names.remove(key) {
            self.keys.remove(&name);
        }
    }
}

impl RateSharing {
    /// Creates the sharing of rate limits among a number of gateways.
    pub fn new(gateways: u32, name: impl Into<String>, send: RateMessageSender) -> RateSharing {
        RateSharing {
            gateways: gateways.max(1),
            name: name.into(),
            send,
            next_request: AtomicU64::new(0),
            requests: Mutex::default(),
        }
    }

    fn requests(&self) -> std::sync::MutexGuard<'_, FoldHashMap<u64, OpenRequest>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the other gateways for tokens if a bucket runs low.
    pub(super) fn ask_if_low(
        &self,
        shared: &SharedBuckets,
        key: &BucketKey,
        bucket: &mut TokenBucket,
        now: Instant,
    ) {
        let Some(name) = shared.names.get(key) else {
            return;
        };
        let Some(wanted) = bucket.wanted_tokens(now) else {
            return;
        };
        let request = self.next_request.fetch_add(1, Ordering::Relaxed);
        {
            let mut requests = self.requests();
            requests.retain(|_, open| now < open.asked + super::bucket::LOAN_PERIOD);
            if requests.len() >= MAX_OPEN_REQUESTS {
                return;
            }
            let open = OpenRequest {
                bucket: name.clone(),
                asked: now,
                lenders: Vec::new(),
            };
            requests.insert(request, open);
        }
        let per = u64::try_from(bucket.quota.per.as_millis()).unwrap_or(u64::MAX);
        let message = json!({
            "ask": name, "from": self.name, "id": request, "tokens": wanted,
            "count": bucket.quota.count, "per": per,
        });
        (self.send)(message.to_string());
    }

    /// Returns the time of a request that a lender answers for the first time.
    fn accept(&self, request: u64, bucket: &str, lender: &str) -> Option<Instant> {
        let mut requests = self.requests();
        let open = requests.get_mut(&request)?;
        if open.bucket != bucket || open.lenders.iter().any(|known| known == lender) {
            return None;
        }
        open.lenders.push(lender.to_owned());
        Some(open.asked)
    }
}

/// Returns the name of a bucket that all gateways use, as a digest: a name of a caller may be long or personal.
fn bucket_name(key: &BucketKey, subject: &str, quota: RateQuota) -> String {
    let mut digest = Context::new(&SHA256);
    for part in [
        subject.as_bytes(),
        key.1.as_bytes(),
        &[u8::from(key.2)],
        &key.3.to_be_bytes(),
        &quota.count.to_be_bytes(),
        &quota.per.as_nanos().to_be_bytes(),
    ] {
        digest.update(&part.len().to_be_bytes());
        digest.update(part);
    }
    hex::encode(&digest.finish().as_ref()[..16])
}

impl RateLimiter {
    /// Returns a new bucket. Its part may have been lent before its first call.
    pub(super) fn new_bucket(
        &self,
        table: &mut BucketTable,
        key: &BucketKey,
        quota: RateQuota,
        now: Instant,
    ) -> TokenBucket {
        // The session of an anonymous caller is at one gateway, so its quota is not shared.
        let shared = self.sharing.as_ref().zip(key.0.without_session());
        let Some((sharing, subject)) = shared else {
            return TokenBucket::new(quota, now);
        };
        let name = bucket_name(key, subject, quota);
        let bucket = table.shared.foreign.remove(&name);
        table.shared.keys.insert(name.clone(), key.clone());
        table.shared.names.insert(key.clone(), name);
        bucket.unwrap_or_else(|| TokenBucket::shared(quota, sharing.gateways, now))
    }

    /// Handles a message of another gateway about rate limits. Messages that cannot be read have no effect.
    pub fn receive(&self, message: &str) {
        self.receive_at(message, Instant::now());
    }

    pub(super) fn receive_at(&self, message: &str, now: Instant) {
        let Some(sharing) = &self.sharing else {
            return;
        };
        let Ok(message) = serde_json::from_str::<Value>(message) else {
            return;
        };
        let text = |name: &str| message.get(name).and_then(Value::as_str);
        let number = |name: &str| message.get(name).and_then(Value::as_u64);
        let (Some(from), Some(tokens)) =
            (text("from"), message.get("tokens").and_then(Value::as_f64))
        else {
            return;
        };
        if from == sharing.name || !tokens.is_finite() || tokens <= 0.0 {
            return;
        }
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(name) = text("ask") {
            let (Some(id), Some(count), Some(per)) = (number("id"), number("count"), number("per"))
            else {
                return;
            };
            let quota = RateQuota {
                count: u32::try_from(count).unwrap_or(u32::MAX),
                per: Duration::from_millis(per),
            };
            let Some(bucket) = table.lender(name, quota, sharing.gateways, now) else {
                return;
            };
            let lent = bucket.lend(tokens, now);
            drop(table);
            if lent > 0.0 {
                let answer = json!({
                    "lend": name, "to": from, "from": sharing.name, "id": id, "tokens": lent,
                });
                (sharing.send)(answer.to_string());
            }
            return;
        }
        if text("to") != Some(&*sharing.name) {
            return;
        }
        if let (Some(name), Some(id)) = (text("lend"), number("id"))
            && let Some(asked) = sharing.accept(id, name, from)
            && let Some(bucket) = table.known(name)
        {
            bucket.borrow(from, tokens, asked);
        }
        if let Some(name) = text("return")
            && let Some(bucket) = table.known(name)
        {
            bucket.restore(tokens, now);
        }
    }

    /// Sends back borrowed tokens that expired unused. Call it a few times in a second.
    pub fn return_loans(&self) {
        self.return_loans_at(Instant::now());
    }

    pub(super) fn return_loans_at(&self, now: Instant) {
        let Some(sharing) = &self.sharing else {
            return;
        };
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let mut returns = Vec::new();
        let BucketTable { buckets, shared } = &mut *table;
        for (key, name) in &shared.names {
            if let Some(bucket) = buckets.get_mut(key) {
                let unused = bucket.expire_loans(now).into_iter();
                returns.extend(unused.map(|(lender, tokens)| (name.clone(), lender, tokens)));
            }
        }
        // A full bucket carries no state.
        shared.foreign.retain(|_, bucket| {
            bucket.expire_loans(now);
            !bucket.is_full(now)
        });
        drop(table);
        for (name, lender, tokens) in returns {
            let message =
                json!({"return": name, "to": lender, "from": sharing.name, "tokens": tokens});
            (sharing.send)(message.to_string());
        }
    }
}

impl BucketTable {
    /// Returns a bucket by the name that all gateways use.
    fn known(&mut self, name: &str) -> Option<&mut TokenBucket> {
        match self.shared.keys.get(name) {
            Some(key) => self.buckets.get_mut(key),
            None => self.shared.foreign.get_mut(name),
        }
    }

    /// Returns the bucket that another gateway wants to borrow from. One that no call here has used is full.
    fn lender(
        &mut self,
        name: &str,
        quota: RateQuota,
        gateways: u32,
        now: Instant,
    ) -> Option<&mut TokenBucket> {
        if self.shared.keys.contains_key(name) {
            return self.known(name);
        }
        if !self.shared.foreign.contains_key(name) {
            if self.shared.foreign.len() >= MAX_FOREIGN_BUCKETS {
                return None;
            }
            let bucket = TokenBucket::shared(quota, gateways, now);
            self.shared.foreign.insert(name.to_owned(), bucket);
        }
        self.shared.foreign.get_mut(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use toolgate_core::{Call, Caller, Json};

    /// Messages on their way: time of arrival, receiver and text.
    type Network = Arc<Mutex<Vec<(usize, String)>>>;

    struct TestFleet {
        gateways: Vec<RateLimiter>,
        network: Network,
        quota: RateQuota,
    }

    fn fleet(count: u32, quota: RateQuota) -> TestFleet {
        let network = Network::default();
        let gateways = (0..count).map(|at| {
            let network = network.clone();
            let send: RateMessageSender = Box::new(move |message| {
                let others = (0..count).filter(|other| *other != at);
                let mut network = network.lock().unwrap();
                network.extend(others.map(|to| (to as usize, message.clone())));
            });
            let sharing = RateSharing::new(count, format!("gateway-{at}"), send);
            RateLimiter::new(Vec::new(), quota).shared(Arc::new(sharing))
        });
        TestFleet {
            gateways: gateways.collect(),
            network,
            quota,
        }
    }

    fn call() -> Call {
        let arguments = Json::from_value(&json!({}));
        Call::tool("c", Caller::new("key:a"), "s.t", arguments)
    }

    impl TestFleet {
        fn take(&self, at: usize, now: Instant) -> bool {
            let quota = [(0, self.quota)];
            let taken = self.gateways[at].take(&call(), "s", "s.t".into(), &quota, now);
            taken.is_ok()
        }

        /// Delivers all messages, also the answers to them.
        fn deliver(&self, now: Instant) {
            loop {
                let messages = std::mem::take(&mut *self.network.lock().unwrap());
                if messages.is_empty() {
                    return;
                }
                for (to, message) in messages {
                    self.gateways[to].receive_at(&message, now);
                }
            }
        }
    }

    #[test]
    fn a_caller_at_one_gateway_gets_what_the_others_do_not_use() {
        let fleet = fleet(3, RateQuota::per_minute(30));
        let now = Instant::now();
        let mut passed = 0;
        for _ in 0..40 {
            passed += u32::from(fleet.take(0, now));
            fleet.deliver(now);
        }
        assert_eq!(passed, 30);
        // What one borrowed is not there for another.
        assert!(!fleet.take(1, now));
    }

    #[test]
    fn without_messages_each_gateway_has_its_part() {
        let fleet = fleet(3, RateQuota::per_minute(30));
        let now = Instant::now();
        for at in 0..3 {
            let passed = (0..40).filter(|_| fleet.take(at, now)).count();
            assert_eq!(passed, 10);
        }
    }

    #[test]
    fn tokens_that_are_not_used_go_back() {
        let fleet = fleet(3, RateQuota::per_minute(30));
        let now = Instant::now();
        // It borrows, uses nothing of it, and calls again much later than a loan lasts.
        let used = (0..6).filter(|_| fleet.take(0, now)).count();
        fleet.deliver(now);
        assert_eq!(used, 6);
        let later = now + Duration::from_millis(300);
        for gateway in &fleet.gateways {
            gateway.return_loans_at(later);
        }
        fleet.deliver(later);
        let passed = (0..40).filter(|_| fleet.take(1, later)).count();
        assert_eq!(passed, 10, "its own part is back");
    }

    #[test]
    fn a_message_counts_once() {
        let fleet = fleet(2, RateQuota::per_minute(20));
        let now = Instant::now();
        let mut passed = (0..20).filter(|_| fleet.take(0, now)).count();
        let ask = std::mem::take(&mut *fleet.network.lock().unwrap());
        fleet.gateways[1].receive_at(&ask[0].1, now);
        let answer = std::mem::take(&mut *fleet.network.lock().unwrap());
        for _ in 0..3 {
            fleet.gateways[0].receive_at(&answer[0].1, now);
        }
        passed += (0..40).filter(|_| fleet.take(0, now)).count();
        assert_eq!(passed, 20);
        for bad in [
            "",
            "{}",
            "[1]",
            "{\"ask\": \"x\", \"from\": \"y\", \"tokens\": -1}",
        ] {
            fleet.gateways[0].receive_at(bad, now);
        }
    }

    /// Small generator of pseudo-random numbers (xorshift64).
    fn next(seed: &mut u64) -> u64 {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        *seed
    }

    /// For the same arrival times, gateways that lend each other never let more calls pass than one gateway alone,
    /// whatever happens to their messages.
    #[test]
    fn several_gateways_never_pass_more_than_one_alone() {
        let rounds =
            std::env::var("TOOLGATE_RATE_ROUNDS").map_or(100, |rounds| rounds.parse().unwrap());
        let (mut passed, mut alone_passed) = (0_u64, 0_u64);
        for round in 0..rounds {
            let mut seed = 0x9E37_79B9_7F4A_7C15 ^ (round + 1);
            let count = [1, 3, 10, 60][(next(&mut seed) % 4) as usize];
            let per = Duration::from_millis([500, 5_000, 60_000][(next(&mut seed) % 3) as usize]);
            let quota = RateQuota { count, per };
            let fleet = fleet(3, quota);
            let start = Instant::now();
            let mut alone = TokenBucket::new(quota, start);
            let mut now = start;
            let (mut by_fleet, mut by_one) = (0, 0);
            for _ in 0..400 {
                now += Duration::from_micros(next(&mut seed) % 40_000);
                let at = match next(&mut seed) % 3 {
                    0 => (next(&mut seed) % 3) as usize,
                    _ => 0,
                };
                by_one += u64::from(alone.take(now).is_ok());
                by_fleet += u64::from(fleet.take(at, now));
                assert!(
                    by_fleet <= by_one,
                    "round {round}: {by_fleet} instead of {by_one}"
                );
                // Messages arrive late, in any order, twice or not at all.
                let mut messages = std::mem::take(&mut *fleet.network.lock().unwrap());
                let mut kept = Vec::new();
                while !messages.is_empty() {
                    let one = (next(&mut seed) % messages.len() as u64) as usize;
                    let (to, message) = messages.swap_remove(one);
                    match next(&mut seed) % 8 {
                        0 => {}
                        1 | 2 => kept.push((to, message)),
                        3 => {
                            // `NOTIFY` never repeats a return.
                            if !message.contains("return") {
                                kept.push((to, message.clone()));
                            }
                            fleet.gateways[to].receive_at(&message, now);
                        }
                        _ => fleet.gateways[to].receive_at(&message, now),
                    }
                }
                fleet.network.lock().unwrap().extend(kept);
                if next(&mut seed).is_multiple_of(8) {
                    fleet
                        .gateways
                        .iter()
                        .for_each(|one| one.return_loans_at(now));
                }
            }
            passed += by_fleet;
            alone_passed += by_one;
        }
        // A fleet that passes nothing would show nothing.
        assert!(passed * 2 > alone_passed, "{passed} of {alone_passed}");
    }
}
