//! VAPID key (RFC 8292): push services know the gateway by it, and browsers subscribe for it.

use serde_json::json;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use toolgate_auth::{
    Secret,
    jose::{self, SigningKey},
};
use toolgate_policy::{StateStore, WritePrecondition};

/// Table of the key in the state of the data directory.
const VAPID_TABLE: &str = "vapid";
const VAPID_ROW: &str = "key";
/// Lifetime of a token for a push service; at most 24 hours (RFC 8292, section 2).
const TOKEN_LIFETIME: Duration = Duration::from_secs(12 * 3600);

/// Private VAPID key of the data directory.
pub(super) struct VapidKey {
    key: SigningKey,
    /// Public key as an uncompressed point, in base64url.
    public: String,
}

impl VapidKey {
    /// Returns the key of the data directory. It is created at the first use.
    ///
    /// # Errors
    /// The key cannot be created, read or stored.
    pub(super) async fn open(store: &dyn StateStore) -> Result<VapidKey, String> {
        if store.row(VAPID_TABLE, VAPID_ROW).is_none() {
            let (_, kept) = SigningKey::generate().map_err(|error| error.to_string())?;
            let row = Some(json!({"pkcs8": kept.reveal()}));
            // Another process may have created the key first; then that one counts.
            let written = store.write(VAPID_TABLE, VAPID_ROW, row, WritePrecondition::Absent);
            written.await.map_err(|e| e.public_message().to_owned())?;
        }
        let row = store.row(VAPID_TABLE, VAPID_ROW);
        let kept = row.and_then(|row| Some(Secret::new(row.value["pkcs8"].as_str()?)));
        let key = kept.and_then(|kept| SigningKey::from_stored(&kept).ok());
        let key = key.and_then(|key| Some((public_key(&key)?, key)));
        let (public, key) = key.ok_or_else(|| {
            "the stored VAPID key is invalid; stop the gateways, run `toolgate store clear vapid`, and subscribe again in each browser"
                .to_owned()
        })?;
        Ok(VapidKey { key, public })
    }

    /// Returns the public key, with which a browser subscribes.
    pub(super) fn public(&self) -> &str {
        &self.public
    }

    /// Returns the value of `Authorization` for a push service.
    ///
    /// # Errors
    /// The system provides no random numbers.
    pub(super) fn authorization(&self, audience: &str, contact: &str) -> Result<String, String> {
        let end = SystemTime::now() + TOKEN_LIFETIME;
        let end = end.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let claims = json!({"aud": audience, "exp": end, "sub": contact});
        let token = self.key.sign(json!({"typ": "JWT"}), &claims);
        let token = token.map_err(|error| error.to_string())?;
        Ok(format!("vapid t={token}, k={}", self.public))
    }
}

fn public_key(key: &SigningKey) -> Option<String> {
    let jwk = key.public_jwk()?;
    let part = |name: &str| jose::decode(jwk[name].as_str()?);
    Some(jose::encode([vec![4], part("x")?, part("y")?].concat()))
}
