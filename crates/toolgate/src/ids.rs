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
