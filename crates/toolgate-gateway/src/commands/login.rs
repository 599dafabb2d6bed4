//! `toolgate login` and `toolgate logout`: a person signs in at a server, or takes that back.

use super::{Failed, Result, data_dir, explain::runtime, print, usage};
use crate::{
    cli::{Login as Wanted, Logout},
    config::Config,
    control::Gateways,
    signing_in,
};
use serde_json::json;
use std::{
    path::Path,
    process::{ExitCode, Stdio},
};
use toolgate::visible;
use toolgate_auth::{
    Url,
    client::{Browser, Login, LoginBuilder, SignedOut},
};

/// Signs in, and keeps what was granted.
pub(super) fn run(given: Option<&Path>, wanted: &Wanted) -> Result<ExitCode> {
    let open = !wanted.no_browser;
    let login = of(given, wanted.config.as_deref(), &wanted.server)?;
    let login: Login = login
        .sign_in(Browser::new(move |url| show(url, open)))
        .build();
    let grant = runtime()?.block_on(login.sign_in());
    let grant = grant.map_err(|error| Failed::Work(error.to_string()))?;
    tell(
        given,
        wanted.config.as_deref(),
        "servers/signed-in",
        &wanted.server,
    )?;
    let scopes = match grant.scopes.to_string() {
        none if none.is_empty() => String::new(),
        scopes => format!(", for {}", visible(&scopes)),
    };
    print(&format!(
        "signed in at {} for {}{scopes}\n",
        visible(&grant.issuer),
        wanted.server
    ))
}

/// Gateways that run record it, and take what was granted at once. Those that cannot be reached take it at their next try.
fn tell(given: Option<&Path>, config: Option<&Path>, action: &str, id: &str) -> Result<()> {
    let config = Config::load(config).map_err(usage)?;
    let data = data_dir(given, config.data.as_deref())?;
    if let Ok(Some(gateways)) = Gateways::any(&data) {
        let _ = gateways.ask_all(action, &json!({"id": id}));
    }
    Ok(())
}

/// Forgets what was granted, and gives it back where that is possible.
pub(super) fn forget(given: Option<&Path>, wanted: &Logout) -> Result<ExitCode> {
    let login = of(given, wanted.config.as_deref(), &wanted.server)?.build();
    let out = runtime()?.block_on(login.sign_out());
    let id = &wanted.server;
    let still = "what it gave out is good until it ends";
    let words = match out.map_err(|error| Failed::Work(error.to_string()))? {
        SignedOut::Nothing => return Err(Failed::Work(format!("nothing was granted for {id}"))),
        SignedOut::Revoked(issuer) => format!("{} took it back", visible(&issuer)),
        SignedOut::Forgotten(issuer) => {
            format!("{} takes nothing back: {still}", visible(&issuer))
        }
        SignedOut::Unsaid(issuer, error) => {
            format!("{} was not told ({error}): {still}", visible(&issuer))
        }
        _ => "it is forgotten".to_owned(),
    };
    tell(given, wanted.config.as_deref(), "servers/signed-out", id)?;
    print(&format!("nothing is granted for {id} any more; {words}\n"))
}

fn of(given: Option<&Path>, config: Option<&Path>, id: &str) -> Result<LoginBuilder> {
    let config = Config::load(config).map_err(usage)?;
    let server = config.servers.iter().find(|server| server.id == id);
    let server = server.ok_or_else(|| {
        let known: Vec<&str> = config
            .servers
            .iter()
            .map(|server| server.id.as_str())
            .collect();
        Failed::Usage(format!(
            "the config has no server {id:?}; it has: {}",
            known.join(", ")
        ))
    })?;
    let Some(address) = &server.address else {
        let words = format!("the server {id} is started here; there is nobody to sign in to");
        return Err(Failed::Usage(words));
    };
    if address.has_authorization() {
        let words = format!(
            "the server {id} gets an Authorization header from the config; remove that to sign in"
        );
        return Err(Failed::Usage(words));
    }
    let data = data_dir(given, config.data.as_deref())?;
    let folder = signing_in::folder(&data);
    let env = |name: &str| std::env::var(name).ok();
    Ok(signing_in::login(id, address, &folder, None, env)
        .map_err(|why| format!("the server {id}: {why}"))?)
}

/// Prints the address, and opens it where there is a browser.
fn show(url: &Url, open: bool) {
    eprintln!(
        "toolgate: sign in here, within 5 minutes:\n  {}",
        url.as_str()
    );
    let Some(program) = open.then(program).flatten() else {
        return;
    };
    #[allow(
        clippy::disallowed_methods,
        reason = "a command that a person typed, not the gateway: one program, one argument that begins with http, no shell"
    )]
    let started = std::process::Command::new(program)
        .arg(url.as_str())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if started.is_err() {
        eprintln!("toolgate: no browser could be started; open the address yourself");
    }
}

/// What opens a page: what the person named, else what the system has, where it can show anything.
fn program() -> Option<String> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    // A list or a command line is for a shell, and is not read here.
    let named = set("BROWSER").filter(|name| !name.contains([':', ' ', '%']));
    let shows =
        cfg!(target_os = "macos") || set("DISPLAY").or_else(|| set("WAYLAND_DISPLAY")).is_some();
    let usual = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    named.or_else(|| shows.then(|| usual.to_owned()))
}
