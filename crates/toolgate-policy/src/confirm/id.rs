//! Short names that nobody can guess into.

use ring::rand::{SecureRandom, SystemRandom};
use std::sync::Arc;
use toolgate_core::{Error, Kind};

/// Letters and digits that are not mistaken for each other when read aloud or typed.
const ALPHABET: &[u8; 32] = b"abcdefghjkmnpqrstuvwxyz023456789";

/// `a-k3x9pq`: a letter and 30 random bits. The caller looks that it is not taken.
pub(super) fn fresh(letter: char) -> Result<Arc<str>, Error> {
    let mut bytes = [0u8; 6];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| {
        Error::new(
            Kind::Bug,
            "internal error: the system gives no random numbers",
        )
    })?;
    let name: String = bytes
        .iter()
        .map(|b| char::from(ALPHABET[usize::from(b & 31)]))
        .collect();
    Ok(format!("{letter}-{name}").into())
}
