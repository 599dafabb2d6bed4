//! The hosts that `toolgate connect` connected: their files still have the gateway's entry.

use super::{CheckResult, DoctorContext};
use crate::hosts::{ConnectionStore, HOSTS, HostPlaces, HostScope, HostTarget};
use std::env;

pub(super) fn check(context: &DoctorContext) -> Vec<CheckResult> {
    let (Ok(data), Ok(project)) = (&context.data, env::current_dir()) else {
        return Vec::new();
    };
    let (store, places) = (
        ConnectionStore::new(data),
        HostPlaces::of_this_user(project),
    );
    let scopes = [HostScope::User, HostScope::Project];
    let targets = HOSTS
        .iter()
        .flat_map(|host| scopes.map(|scope| HostTarget::find(host, scope, &places)))
        .flatten();
    let found: Vec<CheckResult> = targets
        .filter_map(|target| connection(&store, &target))
        .collect();
    match found.is_empty() {
        true => vec![CheckResult::ok(
            "",
            "no host is connected; `toolgate connect` lists the hosts",
        )],
        false => found,
    }
}

/// Returns the state of a connection; `None` if `toolgate connect` did not make it.
fn connection(store: &ConnectionStore, target: &HostTarget) -> Option<CheckResult> {
    let (id, file) = (target.host.id, target.file.path.display());
    let record = match store.load(&target.file) {
        Ok(record) => record?,
        Err(why) => return Some(CheckResult::problem(id, why)),
    };
    let text = target.file.read();
    let entry = text.and_then(|text| Ok(target.parse(text.as_deref())?.entry_text(&record.name)));
    Some(match entry {
        Ok(Some(_)) => CheckResult::ok(id, format!("connected: {file}")),
        Ok(None) => CheckResult::problem(
            id,
            format!(
                "{file} no longer has the server {:?}; run `toolgate connect {id}` again, or `toolgate disconnect {id}`",
                record.name
            ),
        ),
        Err(why) => CheckResult::problem(id, why),
    })
}
