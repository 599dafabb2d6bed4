//! Random ids of approvals and grants.

use ring::rand::{SecureRandom, SystemRandom};
use std::sync::Arc;
use toolgate_core::{Error, ErrorKind};

/// Base-32 alphabet without letters and digits that are easily confused when read aloud or typed.
const ID_ALPHABET: &[u8; 32] = b"abcdefghjkmnpqrstuvwxyz023456789";

/// Returns a random id such as `a-k3x9pq`: a letter and 30 random bits. The caller must check that it is unused.
pub(super) fn random_id(letter: char) -> Result<Arc<str>, Error> {
    let mut bytes = [0u8; 6];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| {
        Error::new(
            ErrorKind::Bug,
            "internal error: the system provides no random numbers",
        )
    })?;
    let name: String = bytes
        .iter()
        .map(|b| char::from(ID_ALPHABET[usize::from(b & 31)]))
        .collect();
    Ok(format!("{letter}-{name}").into())
}
