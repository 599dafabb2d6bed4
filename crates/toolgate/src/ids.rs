//! Random identifiers: short ids of calls and other items, and long unguessable ids.

use ring::rand::{SecureRandom, SystemRandom};
use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

/// Alphabet of 32 characters without look-alikes.
const ID_ALPHABET: &[u8; 32] = b"abcdefghjkmnpqrstuvwxyz023456789";

/// Number of random characters in a short id.
const SHORT_ID_CHARS: usize = 8;

/// Returns a random short id, `prefix-xxxxxxxx` (40 bits), for people to type. Not a secret.
pub fn short_id(prefix: &str) -> String {
    let mut name = String::with_capacity(prefix.len() + 1 + SHORT_ID_CHARS);
    name.push_str(prefix);
    name.push('-');
    name.extend(random_chars().map(char::from));
    name
}

/// Returns a call id, `c-xxxxxxxx`, with 40 random bits.
pub(crate) fn call_id() -> Arc<str> {
    let mut name = *b"c-xxxxxxxx";
    if let Some(signs) = name.last_chunk_mut::<SHORT_ID_CHARS>() {
        *signs = random_chars();
    }
    // The alphabet is ASCII.
    std::str::from_utf8(&name).unwrap_or("c-").into()
}

/// Returns a number that no other session of this process has.
pub(crate) fn session_number() -> u64 {
    static LAST_SESSION: AtomicU64 = AtomicU64::new(0);
    LAST_SESSION.fetch_add(1, Ordering::Relaxed)
}

fn random_chars() -> [u8; SHORT_ID_CHARS] {
    let mut drawn = SHORT_ID_BUFFER
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    drawn.next_id()
}

/// Returns an unguessable random id (160 bits), for session ids and tokens.
pub fn secret_id() -> String {
    let mut bytes = [0; 32];
    fill_random(&mut bytes);
    bytes
        .map(|byte| char::from(alphabet_char(byte)))
        .iter()
        .collect()
}

/// Buffer of random bytes for short ids: one system call serves 128 ids. Secrets never use it.
struct RandomIdBuffer {
    bytes: [u8; 128 * SHORT_ID_CHARS],
    used: usize,
}

static SHORT_ID_BUFFER: Mutex<RandomIdBuffer> = Mutex::new(RandomIdBuffer {
    bytes: [0; 128 * SHORT_ID_CHARS],
    used: 128 * SHORT_ID_CHARS,
});

impl RandomIdBuffer {
    /// Returns the characters of one id. Each byte is used once.
    fn next_id(&mut self) -> [u8; SHORT_ID_CHARS] {
        if self.used + SHORT_ID_CHARS > self.bytes.len() {
            fill_random(&mut self.bytes);
            self.used = 0;
        }
        let rest = self.bytes.get(self.used..).unwrap_or_default();
        let taken = rest.first_chunk().copied().unwrap_or_default();
        self.used += SHORT_ID_CHARS;
        <[u8; SHORT_ID_CHARS]>::map(taken, alphabet_char)
    }
}

fn fill_random(bytes: &mut [u8]) {
    // No id is safe without random bytes. The supported operating systems provide them or do not boot.
    if SystemRandom::new().fill(bytes).is_err() {
        panic!("the operating system provides no random numbers");
    }
}

fn alphabet_char(byte: u8) -> u8 {
    ID_ALPHABET[usize::from(byte % 32)]
}

#[cfg(test)]
#[allow(clippy::print_stdout, reason = "the figures of the tests")]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn short_names_do_not_repeat_what_was_drawn() {
        let names: HashSet<String> = (0..1000).map(|_| short_id("c")).collect();
        // A collision among 1,000 ids is expected once in two million runs.
        assert_eq!(names.len(), 1000);
        assert!(names.iter().all(|name| name.len() == 2 + SHORT_ID_CHARS));
        let calls: HashSet<Arc<str>> = (0..1000).map(|_| call_id()).collect();
        assert_eq!(calls.len(), 1000);
        let fits = |name: &Arc<str>| name.len() == 2 + SHORT_ID_CHARS && name.starts_with("c-");
        assert!(calls.iter().all(fits));
    }

    /// T25: no session id repeats, and each character is equally likely.
    ///
    /// Holds: SEC-02, SEC-08, XTASK-13
    #[test]
    fn t25_a_million_ids_are_all_different_and_even() {
        const COUNT: usize = 1_000_000;
        let (mut seen, mut counts) = (HashSet::with_capacity(COUNT), [[0_u32; 32]; 32]);
        let mut place_of = [usize::MAX; 256];
        for (at, sign) in ID_ALPHABET.iter().enumerate() {
            place_of[usize::from(*sign)] = at;
        }
        for _ in 0..COUNT {
            let id = secret_id();
            for (place, sign) in id.bytes().enumerate() {
                counts[place][place_of[usize::from(sign)]] += 1;
            }
            assert!(seen.insert(id), "an id came twice");
        }
        // Chi-square with 31 degrees of freedom: 31 is expected, and 120 occurs less than once in 10^11 runs.
        let expected = COUNT as f64 / 32.0;
        let chi = |signs: &[u32; 32]| -> f64 {
            signs
                .iter()
                .map(|n| (f64::from(*n) - expected).powi(2) / expected)
                .sum()
        };
        let worst = counts.iter().map(chi).fold(0.0, f64::max);
        println!(
            "T25: {COUNT} ids of 160 bits, 0 repeats, worst chi-square of 32 places {worst:.1}"
        );
        assert!(worst < 120.0, "{worst}");
    }
}
