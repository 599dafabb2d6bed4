//! Token bucket, also as the share of one of several gateways.

use super::RateQuota;
use std::time::Duration;
use tokio::time::Instant;

/// Validity of tokens that gateways lend each other.
pub(super) const LOAN_PERIOD: Duration = Duration::from_millis(250);
/// Time for which a bucket must be unused to lend all its tokens.
const IDLE_PERIOD: Duration = Duration::from_secs(1);
/// Sums of lent parts of a token miss a whole one by rounding.
const ROUNDING: f64 = 1e-9;

/// Token bucket that limits the rate of calls of one caller and tool, or to one server. It is full at first, and
/// refilled continuously.
///
/// ```
/// use std::time::Duration;
/// use tokio::time::Instant;
/// use toolgate_policy::{RateQuota, TokenBucket};
///
/// let start = Instant::now();
/// let mut bucket = TokenBucket::new(RateQuota { count: 1, per: Duration::from_secs(60) }, start);
/// assert_eq!(bucket.take(start), Ok(()));
/// let wait = bucket.take(start + Duration::from_secs(20)).unwrap_err();
/// assert_eq!(wait.as_secs_f64().round(), 40.0);
/// ```
pub struct TokenBucket {
    pub(super) tokens: f64,
    /// Time of the last refill.
    pub(super) at: Instant,
    pub(super) quota: RateQuota,
    /// Share of the quota; `None` for all of it.
    share: Option<Box<BucketShare>>,
}

/// Part of a quota that one of several gateways has, and the tokens that it lent and borrowed.
///
/// All parts together never have more tokens than one bucket would: lent tokens lower the capacity of the lender for
/// longer than the borrower may use them.
struct BucketShare {
    gateways: f64,
    lent: Vec<LentTokens>,
    borrowed: Vec<BorrowedTokens>,
    last_used: Instant,
    /// Time of the last request for tokens.
    asked: Option<Instant>,
}

struct LentTokens {
    tokens: f64,
    until: Instant,
}

/// Tokens that another gateway lent.
struct BorrowedTokens {
    lender: String,
    tokens: f64,
    until: Instant,
}

impl TokenBucket {
    /// Creates a full token bucket for this rate limit.
    pub fn new(quota: RateQuota, now: Instant) -> TokenBucket {
        TokenBucket {
            tokens: quota.count(),
            at: now,
            quota,
            share: None,
        }
    }

    /// Creates the full share of one of several gateways.
    pub(super) fn shared(quota: RateQuota, gateways: u32, now: Instant) -> TokenBucket {
        let gateways = f64::from(gateways.max(1));
        TokenBucket {
            tokens: quota.count() / gateways,
            at: now,
            quota,
            share: Some(Box::new(BucketShare {
                gateways,
                lent: Vec::new(),
                borrowed: Vec::new(),
                last_used: now.checked_sub(IDLE_PERIOD).unwrap_or(now),
                asked: None,
            })),
        }
    }

    fn gateways(&self) -> f64 {
        self.share.as_ref().map_or(1.0, |share| share.gateways)
    }

    /// Returns the refill rate of this gateway, in tokens per second.
    pub(super) fn tokens_per_second(&self) -> f64 {
        self.quota.tokens_per_second() / self.gateways()
    }

    /// Returns the maximum number of own tokens now.
    fn capacity(&self, now: Instant) -> f64 {
        let lent = self.share.as_ref().map_or(0.0, |share| {
            let active = share.lent.iter().filter(|loan| loan.until > now);
            active.map(|loan| loan.tokens).sum()
        });
        (self.quota.count() / self.gateways() - lent).max(0.0)
    }

    fn refill(&mut self, now: Instant) {
        let gained =
            now.saturating_duration_since(self.at).as_secs_f64() * self.tokens_per_second();
        self.tokens = (self.tokens + gained).min(self.capacity(now));
        self.at = now;
    }

    /// Takes a token from the bucket, or returns the time until one is available.
    ///
    /// # Errors
    /// The bucket is empty; the value is the time until a token is available.
    pub fn take(&mut self, now: Instant) -> Result<(), Duration> {
        self.refill(now);
        if self.share.is_some() {
            return self.take_shared(now);
        }
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            return Ok(());
        }
        Err(Duration::from_secs_f64(
            (1.0 - self.tokens) / self.tokens_per_second(),
        ))
    }

    /// Takes borrowed tokens first, since they expire.
    fn take_shared(&mut self, now: Instant) -> Result<(), Duration> {
        let available = self.tokens + self.borrowed_tokens(now);
        if available < 1.0 - ROUNDING {
            return Err(Duration::from_secs_f64(
                ((1.0 - available) / self.tokens_per_second()).max(0.001),
            ));
        }
        let mut missing = 1.0;
        if let Some(share) = &mut self.share {
            share.last_used = now;
            for loan in share.borrowed.iter_mut().filter(|loan| loan.until > now) {
                let used = loan.tokens.min(missing);
                loan.tokens -= used;
                missing -= used;
            }
        }
        self.tokens = (self.tokens - missing).max(0.0);
        Ok(())
    }

    /// Gives a token back that was taken for a call that does not take place.
    pub(super) fn give_back(&mut self) {
        self.tokens += 1.0;
    }

    fn borrowed_tokens(&self, now: Instant) -> f64 {
        self.share.as_ref().map_or(0.0, |share| {
            let valid = share.borrowed.iter().filter(|loan| loan.until > now);
            valid.map(|loan| loan.tokens).sum()
        })
    }

    /// Returns the tokens left at a time, without a refill.
    pub(super) fn left(&self, now: Instant) -> f64 {
        let since = now.saturating_duration_since(self.at).as_secs_f64();
        let own = (self.tokens + since * self.tokens_per_second()).min(self.capacity(now));
        own + self.borrowed_tokens(now)
    }

    /// Returns whether the bucket carries no state, so that a new one replaces it.
    pub(super) fn is_full(&self, now: Instant) -> bool {
        let gained =
            now.saturating_duration_since(self.at).as_secs_f64() * self.tokens_per_second();
        let has_loans = self
            .share
            .as_ref()
            .is_some_and(|share| !share.lent.is_empty() || !share.borrowed.is_empty());
        !has_loans && self.tokens + gained >= self.capacity(now)
    }

    /// Returns the number of tokens to ask the other gateways for, at most once in a loan period.
    pub(super) fn wanted_tokens(&mut self, now: Instant) -> Option<f64> {
        let part = self.quota.count() / self.gateways();
        let is_low = self.left(now) < (part / 2.0).max(1.0);
        let share = self.share.as_mut()?;
        let asked = share.asked.is_some_and(|at| now < at + LOAN_PERIOD);
        if asked || !is_low {
            return None;
        }
        share.asked = Some(now);
        Some(self.quota.count() - part)
    }

    /// Lends tokens to another gateway: all of an idle bucket, and half of one that is used.
    pub(super) fn lend(&mut self, wanted: f64, now: Instant) -> f64 {
        self.refill(now);
        let own = self.tokens;
        let Some(share) = &mut self.share else {
            return 0.0;
        };
        share.lent.retain(|loan| loan.until > now);
        let is_idle = now.saturating_duration_since(share.last_used) >= IDLE_PERIOD;
        let tokens = match is_idle {
            true => own.min(wanted),
            false => (own / 2.0).min(wanted),
        };
        if tokens <= 0.0 || !tokens.is_finite() {
            return 0.0;
        }
        share.lent.push(LentTokens {
            tokens,
            // The borrower counts from its request, which was earlier.
            until: now + LOAN_PERIOD,
        });
        self.tokens -= tokens;
        tokens
    }

    /// Adds tokens that another gateway lent, valid from the time of the request.
    pub(super) fn borrow(&mut self, lender: &str, tokens: f64, asked: Instant) {
        if let Some(share) = &mut self.share {
            share.borrowed.push(BorrowedTokens {
                lender: lender.to_owned(),
                tokens,
                until: asked + LOAN_PERIOD,
            });
        }
    }

    /// Removes expired loans. Returns the borrowed tokens that were not used, with their lenders.
    pub(super) fn expire_loans(&mut self, now: Instant) -> Vec<(String, f64)> {
        let Some(share) = &mut self.share else {
            return Vec::new();
        };
        share.lent.retain(|loan| loan.until > now);
        let expired = share.borrowed.extract_if(.., |loan| loan.until <= now);
        let unused = expired.filter(|loan| loan.tokens > ROUNDING);
        unused.map(|loan| (loan.lender, loan.tokens)).collect()
    }

    /// Takes back tokens that a borrower did not use, up to the capacity.
    pub(super) fn restore(&mut self, tokens: f64, now: Instant) {
        self.refill(now);
        if tokens.is_finite() && tokens > 0.0 {
            self.tokens = (self.tokens + tokens).min(self.capacity(now));
        }
    }
}
