//! Who we are to servers that want to know: what `toolgate login` was granted, kept in the data directory.

mod by_console;
mod need;

pub(crate) use by_console::{PATH, SignIns};
pub(crate) use need::{Need, Watched};

use crate::config::Address;
use std::path::{Path, PathBuf};
use toolgate_auth::{
    Url,
    client::{Authenticate, FileStore, Login, LoginBuilder, OauthClient},
};

/// Where grants are kept.
pub(crate) fn folder(data: &Path) -> PathBuf {
    data.join("grants")
}

/// The way to the tokens of a server. A grant belongs to the name and the address together: under another address the
/// same name is somebody else.
///
/// # Errors
/// Its address cannot be used for this, or the secret of its client is not set.
pub(crate) fn login(
    id: &str,
    address: &Address,
    grants: &Path,
    console: Option<&str>,
    env: impl Fn(&str) -> Option<String>,
) -> Result<LoginBuilder, String> {
    let url = Url::parse(&address.url).map_err(|bad| format!("its url cannot be used: {bad}"))?;
    let login = Login::builder(url)
        .key(&format!("{id} {}", address.url))
        .name("Toolgate")
        .how(&how(id, console))
        .store(FileStore::new(grants));
    let Some(client) = &address.client else {
        return Ok(login);
    };
    let authenticate = match &client.secret {
        None => Authenticate::None,
        Some(given) => {
            let secret = given.read_with(env);
            let secret = secret.map_err(|why| format!("the secret of its client_id: {why}"))?;
            Authenticate::Secret(secret)
        }
    };
    Ok(login.client(None, OauthClient::new(client.id.as_str(), authenticate)))
}

/// What a person does to sign in.
fn how(id: &str, console: Option<&str>) -> String {
    match console {
        Some(console) => format!("open {console}#/servers/{id} or run: toolgate login {id}"),
        None => format!("run: toolgate login {id}"),
    }
}
