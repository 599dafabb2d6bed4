//! Revocation of deleted credentials at their authorization servers.

use super::ServerSupervisor;
use crate::{
    config::{Config, ConfigValue},
    oauth::{
        SignInTarget,
        caller_credentials::{DeletedCredentials, split_key},
    },
};
use futures_util::future::join_all;
use std::{path::Path, time::Duration};
use tokio::time::timeout;

/// Timeout for revoking deleted credentials.
const REVOCATION_TIMEOUT: Duration = Duration::from_secs(30);

/// Revokes deleted credentials at their authorization servers, as far as these are reachable. Without a supervisor,
/// the keyring is not read.
pub(crate) async fn revoke_credentials(
    config: &Config,
    grants: &Path,
    forgotten: &DeletedCredentials,
    servers: Option<&ServerSupervisor>,
) {
    let each = forgotten.iter().filter_map(|(key, grant)| {
        let (id, url, caller) = split_key(key);
        let caller = caller?;
        let server = config.servers.iter().find(|server| server.id == id)?;
        let address = server.address.as_ref().filter(|at| at.url == url)?;
        let at = SignInTarget {
            server_id: id,
            address,
            credentials_dir: grants,
            caller: Some(caller),
        };
        Some(async move {
            let secret = match (servers, address.client.credential_value()) {
                (Some(servers), _) => servers.client_secret(config, address).await,
                (None, given) => given.map(ConfigValue::read).transpose(),
            };
            if let Ok(login) = secret.and_then(|secret| at.oauth_client(secret)) {
                login.build().revoke(grant).await;
            }
        })
    });
    let _ = timeout(REVOCATION_TIMEOUT, join_all(each)).await;
}
