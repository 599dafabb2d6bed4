//! A sign-in for the caller of a key is for that key: whoever has its name afterwards is somebody else.

use std::sync::Arc;
use toolgate::visible_line;
use toolgate_auth::client::StoreError;

/// Tells who has a name now, if its key opens.
type Now = dyn Fn(&str) -> Result<Option<u64>, String> + Send + Sync;

/// Who had the key of the caller when a sign-in was begun; nothing where its caller has none.
#[derive(Clone)]
pub(crate) struct SameKey(Option<Begun>);

#[derive(Clone)]
struct Begun {
    name: String,
    holder: u64,
    now: Arc<Now>,
}

impl SameKey {
    /// Who has the key of a caller now.
    ///
    /// # Errors
    /// There is none that opens, or it cannot be read.
    pub(crate) fn of(
        caller: Option<&str>,
        now: impl Fn(&str) -> Result<Option<u64>, String> + Send + Sync + 'static,
    ) -> Result<SameKey, String> {
        let Some(name) = caller.and_then(|caller| caller.strip_prefix("key:")) else {
            return Ok(SameKey(None));
        };
        // Nothing could be kept for it.
        let Some(holder) = now(name)? else {
            let name = visible_line(name);
            return Err(format!(
                "there is no key {name} that is valid; run: toolgate keys create {name}"
            ));
        };
        Ok(SameKey(Some(Begun {
            name: name.to_owned(),
            holder,
            now: Arc::new(now),
        })))
    }

    /// Whether it is the same yet.
    ///
    /// # Errors
    /// It is not, or that cannot be read.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let Some(Begun { name, holder, now }) = &self.0 else {
            return Ok(());
        };
        match now(name).map_err(StoreError::new)? == Some(*holder) {
            true => Ok(()),
            false => Err(StoreError::refused(format!(
                "the key {name} is not the one that it was when the sign-in began: it was revoked or has expired meanwhile, or is somebody else's now; nothing is kept"
            ))),
        }
    }
}
