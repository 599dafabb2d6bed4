//! Key generation check: a sign-in for the caller of a key belongs to that key, not to a later key of the same name.

use std::sync::Arc;
use toolgate_auth::client::StoreError;
use toolgate_core::visible_line;

/// Returns the current generation of a key name, if the key is valid.
type GenerationLookup = dyn Fn(&str) -> Result<Option<u64>, String> + Send + Sync;

/// Key generation at the start of a sign-in; nothing for a caller without a key.
#[derive(Clone)]
pub(crate) struct KeyGenerationCheck(Option<StartGeneration>);

#[derive(Clone)]
struct StartGeneration {
    name: String,
    generation: u64,
    lookup: Arc<GenerationLookup>,
}

impl KeyGenerationCheck {
    /// Reads the current generation of the caller's key.
    ///
    /// # Errors
    /// There is no valid key, or it cannot be read.
    pub(crate) fn current(
        caller: Option<&str>,
        now: impl Fn(&str) -> Result<Option<u64>, String> + Send + Sync + 'static,
    ) -> Result<KeyGenerationCheck, String> {
        let Some(name) = caller.and_then(|caller| caller.strip_prefix("key:")) else {
            return Ok(KeyGenerationCheck(None));
        };
        // Nothing could be stored for it.
        let Some(holder) = now(name)? else {
            let name = visible_line(name);
            return Err(format!(
                "there is no valid key {name}; run: toolgate keys create {name}"
            ));
        };
        Ok(KeyGenerationCheck(Some(StartGeneration {
            name: name.to_owned(),
            generation: holder,
            lookup: Arc::new(now),
        })))
    }

    /// Checks that the key generation is unchanged.
    ///
    /// # Errors
    /// It has changed, or cannot be read.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let Some(StartGeneration {
            name,
            generation: holder,
            lookup: now,
        }) = &self.0
        else {
            return Ok(());
        };
        match now(name).map_err(StoreError::new)? == Some(*holder) {
            true => Ok(()),
            false => Err(StoreError::refused(format!(
                "the key {name} has changed since the sign-in began: it was revoked, has expired, or belongs to another owner now; no credentials were stored, so sign in again"
            ))),
        }
    }
}
