//! Who we are to servers that want to know: what `toolgate login` was granted, kept in the data directory.

mod by_caller;
mod by_console;
pub(crate) mod callers;
mod need;
mod users;
mod visits;

pub(crate) use by_caller::{BACK, FOLDER, Lacking, Links, Pages, ShownBy};
pub(crate) use by_console::{PATH, SignIns, Signed};
pub(crate) use need::{Need, SignInIsWhy, Watched};
pub(crate) use users::{Showing, Users};

use crate::{
    config::{Address, Config},
    startup::shell,
};
use std::path::{Path, PathBuf};
use toolgate_auth::{
    Url,
    client::{Authenticate, FileStore, Login, LoginBuilder, OauthClient},
};

/// Where grants are kept.
pub(crate) fn folder(data: &Path) -> PathBuf {
    data.join("grants")
}

/// Where the server is at which a person signs in, for that caller or for all.
///
/// # Errors
/// A sentence why nobody can do that.
pub(crate) fn address<'a>(
    config: &'a Config,
    id: &str,
    caller: Option<&str>,
) -> Result<&'a Address, String> {
    let server = config.servers.iter().find(|server| server.id == id);
    let server = server.ok_or_else(|| {
        let known: Vec<&str> = config.servers.iter().map(|s| s.id.as_str()).collect();
        format!(
            "the config has no server {id:?}; it has: {}",
            known.join(", ")
        )
    })?;
    let Some(address) = &server.address else {
        return Err(format!(
            "the server {id} is started here; there is nobody to sign in to"
        ));
    };
    if address.has_authorization() {
        return Err(format!(
            "the server {id} gets an Authorization header from the config; remove that to sign in"
        ));
    }
    match (caller, address.a_grant_each()) {
        (Some(_), true) | (None, false) => Ok(address),
        (Some(_), false) => Err(format!(
            "what is granted for {id} is used by all its callers; write grants = \"caller\" in [server.{id}] to sign in for one of them"
        )),
        (None, true) => Err(format!(
            "each caller of {id} has a sign-in of its own; say for whom this one is, such as --caller key:NAME"
        )),
    }
}

/// The way to the tokens of a server. A grant belongs to the name and the address together: under another address the
/// same name is somebody else. One for a caller belongs to that as well; of those, so many are kept.
///
/// # Errors
/// Its address cannot be used for this, or the secret of its client is not set.
pub(crate) fn login(
    id: &str,
    address: &Address,
    grants: &Path,
    console: Option<&str>,
    caller: Option<(&str, usize)>,
    env: impl Fn(&str) -> Option<String>,
) -> Result<LoginBuilder, String> {
    let url = Url::parse(&address.url).map_err(|bad| format!("its url cannot be used: {bad}"))?;
    let (name, store) = (caller.map(|(name, _)| name), FileStore::new(grants));
    let store = match caller {
        Some((_, most)) => store.at_most(&callers::key(id, address, Some("")), most),
        None => store,
    };
    let login = Login::builder(url)
        .key(&callers::key(id, address, name))
        .name("Toolgate")
        .how(&how(id, console, name))
        .by_hand(&format!("write its client_id in [server.{id}]"))
        .store(store);
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
pub(crate) fn how(id: &str, console: Option<&str>, caller: Option<&str>) -> String {
    let (mut run, mut page) = (format!("toolgate login {id}"), format!("#/servers/{id}"));
    if let Some(caller) = caller {
        // An issuer chose part of the name, and a person puts this into a shell.
        run.push_str(&format!(" --caller {}", shell(caller)));
        page.push('/');
        page.extend(form_urlencoded::byte_serialize(caller.as_bytes()));
    }
    match console {
        Some(console) => format!("open {console}{page} or run: {run}"),
        None => format!("run: {run}"),
    }
}
