//! `toolgate login`: sign-in of a person to a server with OAuth.

use super::{
    CommandError, DataLocation, Result, explain::runtime, keys::valid_key_generation, offline,
    print,
};
use crate::{
    args::LoginOptions as Wanted,
    config::keyring,
    config::{Config, ConfigValue},
    oauth::{self, KeyGenerationCheck, SignInTarget},
    operator::api::sign_in_record,
    operator::control::{ControlResponse, GatewaySockets, person},
};
use serde_json::json;
use std::{
    path::Path,
    process::{ExitCode, Stdio},
    time::Duration,
};
use toolgate_auth::{
    Secret, Url,
    client::{LoopbackBrowser, OAuthClient},
};
use toolgate_core::{visible, visible_line};
use toolgate_guardian::Guardian;
use toolgate_policy::ApprovalChannel;

/// Signs in and stores the credentials.
pub(super) fn run(place: &DataLocation<'_>, wanted: &Wanted) -> Result<ExitCode> {
    let open = !wanted.no_browser;
    let for_whom = wanted.caller.as_deref();
    let config = place.config()?;
    let data = place.data_with(&config)?;
    let grants = oauth::credentials_dir(&data);
    let at = SignInTarget::find(&config, &grants, &wanted.server, for_whom)
        .map_err(CommandError::Usage)?;
    let keys = offline::location(place, &data)?;
    let key = KeyGenerationCheck::current(for_whom, move |name| valid_key_generation(&keys, name))?;
    let secret = client_credential(&config, at)?;
    let runtime = runtime()?;
    let room = oauth::caller_credentials::check_quota(&config, at);
    runtime.block_on(room).map_err(CommandError::Failure)?;
    if let Some(caller) = for_whom {
        eprintln!(
            "toolgate: only {} will use these credentials",
            visible_line(caller)
        );
    }
    let login = at.sign_in_client(secret, config.limits.callers_per_server, key)?;
    let browser = LoopbackBrowser::new(move |url| print_and_open(url, open)).on_issuer(|issuer| {
        let issuer = visible_line(issuer);
        eprintln!("toolgate: you will sign in at the authorization server {issuer}");
    });
    let browser = match wanted.port {
        Some(port) => browser.port(port),
        None => browser,
    };
    let login: OAuthClient = login.sign_in(browser).build();
    let grant = runtime.block_on(login.sign_in());
    let grant = grant.map_err(|error| CommandError::Failure(error.for_operator()))?;
    notify_gateways(place, &data, SignInChange::SignedIn, at.server_id, for_whom);
    let scopes = match grant.scopes.to_string() {
        none if none.is_empty() => String::new(),
        scopes => format!("; scopes: {}", visible(&scopes)),
    };
    print(&format!(
        "signed in to {} through {}{scopes}\n",
        server_and_caller(at.server_id, for_whom),
        visible(&grant.issuer),
    ))
}

/// Returns the client secret or private key, if the client has one. A separate process reads the keyring.
pub(super) fn client_credential(config: &Config, at: SignInTarget<'_>) -> Result<Option<Secret>> {
    let read = match at.address.client.credential_value() {
        None => return Ok(None),
        Some(given @ ConfigValue::Keyring(_)) => {
            let guardian = Guardian::start().map_err(|e| {
                format!("cannot start the guardian process, which reads keyrings: {e}; raise the limits on processes and open files of this user")
            })?;
            let within = Duration::from_secs(config.limits.start_seconds);
            runtime()?.block_on(keyring::read_secret(given, &guardian, within))
        }
        Some(given) => given.read(),
    };
    read.map(Some).map_err(|why| {
        CommandError::Failure(format!(
            "cannot read the client secret or private key for the server {}: {why}",
            at.server_id
        ))
    })
}

/// Notifies the running gateways, which record the change and use or drop the credentials at once. Prints the gateways
/// that cannot be reached: they notice the change at their next attempt. If no gateway knows the server, this process
/// writes the audit record.
pub(super) fn notify_gateways(
    place: &DataLocation<'_>,
    data: &Path,
    now: SignInChange,
    id: &str,
    caller: Option<&str>,
) {
    let (action, state) = match now {
        SignInChange::SignedIn => ("servers/signed-in", "signed_in"),
        SignInChange::SignedOut => ("servers/signed-out", "signed_out"),
    };
    let with = json!({"id": id, "caller": caller});
    let asked = match GatewaySockets::find_optional(data) {
        Ok(Some(gateways)) => gateways.request_all(action, &with),
        _ => Ok(Vec::new()),
    };
    let answers = asked.unwrap_or_else(|why| {
        eprintln!("toolgate: {}", visible(&why));
        Vec::new()
    });
    if answers
        .iter()
        .any(|answer| matches!(answer, ControlResponse::Ok(_)))
    {
        return;
    }
    let entry = sign_in_record(id, caller, state, &person::owner(ApprovalChannel::Terminal));
    if let Err(CommandError::Usage(why) | CommandError::Failure(why)) =
        offline::record(place, data, entry)
    {
        eprintln!(
            "toolgate: the stored credentials changed, but the change cannot be written to the audit log: {}",
            visible(&why)
        );
    }
}

/// Change of a sign-in.
#[derive(Clone, Copy)]
pub(super) enum SignInChange {
    SignedIn,
    SignedOut,
}

/// Formats server and caller for a sentence.
pub(super) fn server_and_caller(id: &str, caller: Option<&str>) -> String {
    match caller {
        None => id.to_owned(),
        Some(caller) => format!("{id} (caller {})", visible_line(caller)),
    }
}

/// Prints the sign-in URL, and opens it if a browser is available.
fn print_and_open(url: &Url, open: bool) {
    eprintln!(
        "toolgate: to sign in, open this URL within 5 minutes:\n  {}",
        url.as_str()
    );
    let Some(program) = open.then(browser_program).flatten() else {
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
        eprintln!("toolgate: no browser could be started; open the URL yourself");
    }
}

/// Returns the program that opens a URL: `BROWSER`, else the system's default if there is a display.
fn browser_program() -> Option<String> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    // Lists and command lines in `BROWSER` need a shell and are ignored.
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
