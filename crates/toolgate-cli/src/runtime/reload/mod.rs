//! Reload of the config while the gateway runs: applied as a whole, or not at all.
//!
//! - [`ConfigReloader`]: reads the config, audits the result, and swaps the snapshot.
//! - `certificate`: the certificate of the listener.
//! - `config_changes`: differences between the old and the new config.
//! - `start_only`: settings that stay as they were at the start.
//! - `watch`: triggers of a reload.

mod certificate;
mod config_changes;
mod start_only;
mod watch;

use crate::{
    config::{Config, ConfigSource},
    config_versions::ConfigVersions,
    event_log::{self, GatewayEvent},
    runtime::active::ActiveSnapshot,
    runtime::snapshot::{ConfigSnapshot, GatewayResources},
    timestamp::millis,
};
use certificate::NewIdentity;
use serde_json::{Value, json};
use std::{
    net::SocketAddr,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};
use toolgate_journal::{AuditEntry, AuditEvent};
use toolgate_policy::{SecretRedactor, sanitize_entry};

/// Reloads the config.
pub(crate) struct ConfigReloader {
    resources: GatewayResources,
    active: Arc<ActiveSnapshot>,
    /// Listen address of the config, which the command line may override.
    config_listen: SocketAddr,
    /// Config at the start, for the settings that stay as they were.
    start_config: Config,
    reload_lock: tokio::sync::Mutex<()>,
    last: Mutex<LastReload>,
    /// Configs that were in force.
    pub(crate) versions: ConfigVersions,
}

/// Result of the last reload.
struct LastReload {
    at: SystemTime,
    by: &'static str,
    /// Reason for which the config was rejected.
    rejection: Option<String>,
    notes: Vec<String>,
}

/// A config that was read again, ready to be activated.
struct ReloadedConfig {
    snapshot: ConfigSnapshot,
    notes: Vec<String>,
    /// New identity of the listener, if it has changed.
    identity: Option<NewIdentity>,
}

/// Trigger of a reload.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ReloadTrigger {
    /// The file has changed.
    File,
    /// A reload was requested: by SIGHUP, in a terminal, or in the console.
    Requested(&'static str),
}

impl ReloadTrigger {
    fn name(self) -> &'static str {
        match self {
            ReloadTrigger::File => "file",
            ReloadTrigger::Requested(by) => by,
        }
    }
}

impl ConfigReloader {
    /// Creates the reloader of the config from which `active` was made. `config_listen` is the listen address of the config.
    pub(crate) fn new(
        shared: GatewayResources,
        live: Arc<ActiveSnapshot>,
        listen: SocketAddr,
        versions: ConfigVersions,
    ) -> ConfigReloader {
        let reloader = ConfigReloader {
            versions,
            resources: shared,
            start_config: live.snapshot().config.clone(),
            active: live,
            config_listen: listen,
            reload_lock: tokio::sync::Mutex::default(),
            last: Mutex::new(LastReload {
                at: SystemTime::now(),
                by: "start",
                rejection: None,
                notes: Vec::new(),
            }),
        };
        reloader.keep_version("start");
        reloader
    }

    /// Keeps the text of the config that is in force, so that an operator can put it back. The file may have changed
    /// since it was read; then a reload follows, which keeps the new text.
    fn keep_version(&self, by: &str) {
        let hash = self.active.snapshot().config.hash.clone();
        let text = self
            .file()
            .ok()
            .and_then(|path| Config::read_text(path).ok());
        let text = text.filter(|text| Some(Config::text_hash(text)) == hash);
        if let Some(Err(why)) = text.map(|text| self.versions.keep(&text, by)) {
            let text = format!("the config cannot be kept for an undo: {why}");
            event_log::emit(GatewayEvent::Problem { text });
        }
    }

    /// Reads the config again and activates it. Running calls keep the policies with which they began.
    ///
    /// # Errors
    /// The config was rejected; the message says why. Nothing has changed in that case.
    pub(crate) async fn reload(&self, because: ReloadTrigger) -> Result<Value, String> {
        let _one = self.reload_lock.lock().await;
        let before = self.active.snapshot();
        let read = self.read_config();
        let new = read.as_ref().ok().and_then(|config| config.hash.clone());
        if because == ReloadTrigger::File && new.as_deref() == Some(before.config_hash()) {
            return Ok(self.status());
        }
        let made = match read {
            Ok(config) => self.build_snapshot(config, &before).await,
            Err(why) => Err(why),
        };
        let taken = self.apply(made, new, &before, because).await;
        if taken.is_ok() {
            self.keep_version(because.name());
        }
        // The last reference may be this one; dropping it ends servers that are no longer used.
        drop(before);
        let feed = &self.resources.backends.feed;
        feed.send_with("policy", || self.status());
        taken.map(|()| self.status())
    }

    /// Returns the active policy, and the result of the last reload.
    pub(crate) fn status(&self) -> Value {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        json!({
            "hash": self.active.snapshot().config_hash(), "at": millis(last.at), "by": last.by,
            "refused": last.rejection, "notes": last.notes, "file": self.file().ok(),
        })
    }

    /// Returns whether the newest version of the config was rejected, so that an older one is in use.
    pub(crate) fn is_config_rejected(&self) -> bool {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.rejection.is_some()
    }

    /// Returns the file of the config.
    fn file(&self) -> Result<&Path, String> {
        match &self.start_config.source {
            ConfigSource::File(path) => Ok(path),
            ConfigSource::BuiltIn => Err("there is no config file to reload: this is the demo; start toolgate with --config".to_owned()),
            ConfigSource::CommandLine => Err("there is no config file to reload: the server is given on the command line of `toolgate run`".to_owned()),
        }
    }

    fn read_config(&self) -> Result<Config, String> {
        let config = Config::load_file(self.file()?).map_err(|error| error.to_string())?;
        // Check the address on which the gateway actually listens.
        if let Some(address) = self.resources.address {
            let here = Config {
                listen: address,
                ..config.clone()
            };
            here.check_listen().map_err(|error| error.to_string())?;
        }
        Ok(config)
    }

    async fn build_snapshot(
        &self,
        config: Config,
        before: &ConfigSnapshot,
    ) -> Result<ReloadedConfig, String> {
        let mut notes = config.notes.clone();
        notes.extend(start_only::notes(
            self.config_listen,
            &self.start_config,
            &config,
        ));
        let identity = self.read_identity(&config)?;
        let snapshot = self.resources.build_snapshot(config, Some(before)).await?;
        Ok(ReloadedConfig {
            snapshot,
            notes,
            identity,
        })
    }

    /// Activates a snapshot after the reload is audited.
    async fn apply(
        &self,
        made: Result<ReloadedConfig, String>,
        new: Option<String>,
        before: &ConfigSnapshot,
        because: ReloadTrigger,
    ) -> Result<(), String> {
        let entry = AuditEntry::new(AuditEvent::POLICY_RELOAD)
            .with("by", because.name())
            .with("old", before.config_hash())
            .with("new", new.unwrap_or_default());
        let entry = match &made {
            Ok(new) => entry
                .with("verdict", "taken")
                .with("notes", new.notes.join("; ")),
            Err(why) => entry.with("verdict", "refused").with("why", why.as_str()),
        };
        let recorded = match self.resources.backends.recorder.journal() {
            Some(journal) => journal.append(sanitize_entry(entry)).await.map(|_| ()),
            None => Ok(()),
        };
        let unrecorded = |error| format!("the reload cannot be recorded in the audit log: {error}");
        let taken = match (made, recorded.map_err(unrecorded)) {
            (Ok(new), Ok(())) => {
                self.activate(new.snapshot);
                if let Some(identity) = new.identity {
                    self.activate_identity(identity);
                }
                Ok(new.notes)
            }
            (Err(why), _) | (Ok(_), Err(why)) => Err(why),
        };
        print_result(&taken, because.name(), before, &self.active.snapshot());
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = LastReload {
            at: SystemTime::now(),
            by: because.name(),
            rejection: taken.as_ref().err().cloned(),
            notes: taken.as_ref().cloned().unwrap_or_default(),
        };
        taken.map(|_| ())
    }

    fn activate(&self, plan: ConfigSnapshot) {
        let leases = plan.leases();
        let policy = plan.config_hash().to_owned();
        SecretRedactor::install(&plan.config.secret_rules.files);
        self.resources.configure_passkeys(&plan.config);
        self.active.activate(plan);
        // Pending calls are decided by the new policies.
        self.resources.backends.approvals.policy_changed(&policy);
        self.resources.supervisor.replace_servers(leases);
    }
}

/// Prints the result of a reload.
fn print_result(
    taken: &Result<Vec<String>, String>,
    by: &'static str,
    before: &ConfigSnapshot,
    now: &ConfigSnapshot,
) {
    event_log::emit(match taken {
        Ok(notes) => GatewayEvent::ConfigReloaded {
            by,
            servers: now.config.servers.len(),
            rules: now.config.rules.len(),
            changes: config_changes::describe(&before.config, &now.config),
            notes: notes.clone(),
        },
        Err(why) => GatewayEvent::ConfigRefused {
            by,
            why: why.clone(),
        },
    });
}
