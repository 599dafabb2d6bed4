//! `toolgate keys`: the callers that show a key. Where no gateway runs, the data directory is written here.

use super::{Failed, Place, Result, decide::stamp, print};
use crate::{
    board::millis,
    cli::Keys as Wanted,
    config::Audit,
    control::{Gateways, person},
    signing_in::{
        callers::{forget_key, give_back},
        folder,
    },
};
use serde_json::json;
use std::{path::Path, process::ExitCode, sync::Arc, time::SystemTime};
use toolgate_journal::{
    Journal,
    state::{State, StateLimits},
};
use toolgate_policy::{
    By, Recorder,
    keys::{KeyView, Keys, NewKey},
};

/// Does what is asked of the keys of a data directory.
pub(super) fn run(place: &Place<'_>, wanted: &Wanted) -> Result<ExitCode> {
    let data = &place.data()?;
    match wanted {
        Wanted::Create {
            name,
            expires,
            until,
        } => create(
            place,
            data,
            name,
            expires.map(|span| SystemTime::now() + span).or(*until),
        ),
        Wanted::List => list(data),
        Wanted::Revoke { name } => revoke(place, data, name),
    }
}

fn create(
    place: &Place<'_>,
    data: &Path,
    name: &str,
    expires: Option<SystemTime>,
) -> Result<ExitCode> {
    let key = match Gateways::any(data)? {
        Some(gateways) => {
            let with = json!({"name": name, "expires": expires.map(millis)});
            let made = gateways.ask_any("keys/create", &with)?;
            made["key"].as_str().unwrap_or_default().to_owned()
        }
        None => {
            let who = person::owner(By::Terminal);
            let made = {
                // Where no config can be read, that is told by what needs it.
                let limits = place.config().map(|config| config.limits);
                let most = limits.unwrap_or_default().caller_keys;
                here(data, async |keys| {
                    let made = keys.create(name, expires, &who, most).await;
                    let made = made.map_err(|error| error.to_string())?;
                    // One of that name may have expired before, and what was granted for it is not for this one.
                    forget_key(&folder(data), name).await?;
                    Ok(made)
                })?
            };
            NewKey::reveal(&made).to_owned()
        }
    };
    eprintln!(
        "This key is shown this once. Its caller is key:{name}, and sends: Authorization: Bearer KEY"
    );
    print(&format!("{key}\n"))
}

fn revoke(place: &Place<'_>, data: &Path, name: &str) -> Result<ExitCode> {
    match Gateways::any(data)? {
        Some(gateways) => {
            gateways.ask_any("keys/revoke", &json!({"name": name}))?;
        }
        None => {
            let who = person::owner(By::Terminal);
            here(data, async |keys| {
                let revoked = keys.revoke(name, &who).await;
                revoked.map_err(|error| error.to_string())?;
                let forgotten = forget_key(&folder(data), name).await;
                let forgotten =
                    forgotten.map_err(|why| format!("the key is revoked, but {why}"))?;
                // Who granted it, is told where a config says how.
                if let Ok(config) = place.config() {
                    give_back(&config, &folder(data), &forgotten).await;
                }
                Ok(())
            })?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Works on the data directory itself, with a record as a gateway would write it.
fn here<T>(
    data: &Path,
    work: impl AsyncFnOnce(&Keys) -> std::result::Result<T, String>,
) -> Result<T> {
    let state = open(data)?;
    let mut options = Audit::default().options(data);
    options.product = format!("toolgate {}", env!("CARGO_PKG_VERSION"));
    let journal = Journal::open(options).map_err(|e| format!("cannot open the audit log: {e}"))?;
    let recorder = Recorder::new(Arc::new(journal));
    let keys = Keys::new(Arc::new(recorder), Arc::new(state));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| e.to_string())?;
    let done = runtime.block_on(work(&keys));
    done.map_err(Failed::Work)
}

fn open(data: &Path) -> Result<State> {
    let state = State::open(data.join("state"), StateLimits::default());
    state.map_err(|e| Failed::Work(format!("cannot open the state: {e}")))
}

fn list(data: &Path) -> Result<ExitCode> {
    let keys = Keys::new(Arc::new(Recorder::log()), Arc::new(open(data)?));
    let keys = keys.list();
    if keys.is_empty() {
        eprintln!("there are no keys; `toolgate keys create NAME` makes one");
    }
    let now = SystemTime::now();
    print(&keys.iter().map(|key| line(key, now)).collect::<String>())
}

fn line(key: &KeyView, now: SystemTime) -> String {
    let stamp = |at: SystemTime| stamp(&json!(millis(at)));
    let holds = match (key.revoked, key.over(now), key.expires) {
        (Some(at), ..) => format!("revoked {}", stamp(at)),
        (None, Some(_), Some(at)) => format!("expired {}", stamp(at)),
        (None, _, Some(at)) => format!("valid until {}", stamp(at)),
        (None, _, None) => "valid".to_owned(),
    };
    let made = stamp(key.created);
    let by = toolgate::visible_line(&key.by);
    let used = match key.used {
        Some(at) => format!("last used {}", stamp(at)),
        None => "never used".to_owned(),
    };
    format!(
        "key:{:<24} {holds}; {used}; made {made} by {by}\n",
        key.name
    )
}
