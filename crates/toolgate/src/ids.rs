//! Short names for calls, long ones for secrets.

use ring::rand::{SecureRandom, SystemRandom};

/// 32 signs that are not mistaken for each other.
const SIGNS: &[u8; 32] = b"abcdefghjkmnpqrstuvwxyz023456789";

/// `prefix-xxxxxxxx`: 40 random bits, for people to type. Not a secret.
pub fn short(prefix: &str) -> String {
    format!("{prefix}-{}", signs(8))
}

/// 160 random bits, for session ids and tokens.
pub fn secret() -> String {
    signs(32)
}

fn signs(count: usize) -> String {
    let mut bytes = vec![0; count];
    // Without random bytes nothing here is safe; the operating systems we run on give them or do not start.
    if SystemRandom::new().fill(&mut bytes).is_err() {
        panic!("the operating system gives no random bytes");
    }
    bytes
        .iter()
        .filter_map(|b| SIGNS.get(usize::from(b % 32)))
        .map(|s| char::from(*s))
        .collect()
}

#[cfg(test)]
#[allow(clippy::print_stdout, reason = "the figures of the tests")]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// T25: no session id comes twice, and each sign of it is as likely as any other.
    #[test]
    fn t25_a_million_ids_are_all_different_and_even() {
        const COUNT: usize = 1_000_000;
        let (mut seen, mut counts) = (HashSet::with_capacity(COUNT), [[0_u32; 32]; 32]);
        let mut place_of = [usize::MAX; 256];
        for (at, sign) in SIGNS.iter().enumerate() {
            place_of[usize::from(*sign)] = at;
        }
        for _ in 0..COUNT {
            let id = secret();
            for (place, sign) in id.bytes().enumerate() {
                counts[place][place_of[usize::from(sign)]] += 1;
            }
            assert!(seen.insert(id), "an id came twice");
        }
        // Chi-square with 31 degrees of freedom: 31 is expected, and 120 comes less than once in 10^11.
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
