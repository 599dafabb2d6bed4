//! `toolgate login`: a person signs in at a server.

use super::{Failed, Place, Result, explain::runtime, here, print};
use crate::{
    cli::Login as Wanted,
    config::{Address, Config},
    control::{Gateways, Reached, person},
    operator::sign_in,
    signing_in,
};
use serde_json::json;
use std::{
    path::{Path, PathBuf},
    process::{ExitCode, Stdio},
};
use toolgate::{visible, visible_line};
use toolgate_auth::{
    Url,
    client::{Browser, Login, LoginBuilder},
};
use toolgate_policy::By;

/// Signs in, and keeps what was granted.
pub(super) fn run(place: &Place<'_>, wanted: &Wanted) -> Result<ExitCode> {
    let open = !wanted.no_browser;
    let for_whom = wanted.caller.as_deref();
    let of = Of::read(place, &wanted.server, for_whom)?;
    let runtime = runtime()?;
    if let Some(caller) = for_whom {
        let at = (&*wanted.server, &of.address);
        let room = signing_in::callers::room(&of.config, &of.grants, at, caller);
        runtime.block_on(room).map_err(Failed::Work)?;
        eprintln!(
            "toolgate: what you grant will be used by {}, and by nobody else",
            visible_line(caller)
        );
    }
    let login: Login = of
        .login
        .sign_in(Browser::new(move |url| show(url, open)))
        .build();
    let grant = runtime.block_on(login.sign_in());
    let grant = grant.map_err(|error| Failed::Work(error.to_string()))?;
    tell(place, &of.data, Now::In, &wanted.server, for_whom);
    let scopes = match grant.scopes.to_string() {
        none if none.is_empty() => String::new(),
        scopes => format!(", for {}", visible(&scopes)),
    };
    print(&format!(
        "signed in at {} for {}{scopes}\n",
        visible(&grant.issuer),
        named(&wanted.server, for_whom)
    ))
}

/// Tells the gateways that run: they record it, and take what was granted at once; those that cannot be reached take it at
/// their next try. Where none of them knows the server, it is recorded here. It has happened in any case.
pub(super) fn tell(place: &Place<'_>, data: &Path, now: Now, id: &str, caller: Option<&str>) {
    let (action, state) = match now {
        Now::In => ("servers/signed-in", "signed_in"),
        Now::Out => ("servers/signed-out", "signed_out"),
    };
    let with = json!({"id": id, "caller": caller});
    let gateways = Gateways::any(data).ok().flatten();
    let answers = gateways.and_then(|gateways| gateways.ask_all(action, &with).ok());
    let mut answers = answers.into_iter().flatten();
    if answers.any(|answer| matches!(answer, Reached::Ok(_))) {
        return;
    }
    let entry = sign_in(id, caller, state, &person::owner(By::Terminal));
    if let Err(Failed::Usage(why) | Failed::Work(why)) = here::record(place, data, entry) {
        eprintln!("toolgate: this is not in the record: {}", visible(&why));
    }
}

/// What somebody did.
#[derive(Clone, Copy)]
pub(super) enum Now {
    In,
    Out,
}

/// The server and the caller, for a sentence.
pub(super) fn named(id: &str, caller: Option<&str>) -> String {
    match caller {
        None => id.to_owned(),
        Some(caller) => format!("{id}, for {} alone", visible_line(caller)),
    }
}

/// What a sign-in is about.
struct Of {
    login: LoginBuilder,
    address: Address,
    data: PathBuf,
    grants: PathBuf,
    config: Config,
}

impl Of {
    fn read(place: &Place<'_>, id: &str, caller: Option<&str>) -> Result<Of> {
        let config = place.config()?;
        let address = signing_in::address(&config, id, caller).map_err(Failed::Usage)?;
        let data = place.of(&config)?;
        let grants = signing_in::folder(&data);
        let env = |name: &str| std::env::var(name).ok();
        let of = caller.map(|caller| (caller, config.limits.callers_per_server));
        let login = signing_in::login(id, address, &grants, None, of, env);
        Ok(Of {
            login: login.map_err(|why| format!("the server {id}: {why}"))?,
            address: address.clone(),
            data,
            grants,
            config,
        })
    }
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
