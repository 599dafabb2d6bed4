//! Location of the state: the data directory, or the database that several gateways share.

use crate::{
    config::{Config, GatewayLimits},
    event_log::{self, GatewayEvent},
};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};
use toolgate_policy::StateStore;
use toolgate_store::{
    DatabaseStore, StoreError, StoreLimits,
    postgres::{PostgresAddress, PostgresOptions, PostgresStore, STATE_SPACE, purge_shared},
};

/// File in the data directory of a gateway whose state is in a shared database. Without it, a command that cannot read
/// the config would take an empty directory for the state.
const SHARED_NOTE: &str = "shared-store";
/// Interval of the attempts to reach the database at the start.
const START_RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Interval of the messages about them.
const START_NOTICE_INTERVAL: Duration = Duration::from_secs(30);

/// Location of the state of a gateway.
#[derive(Clone, Debug)]
pub(crate) struct StoreLocation {
    data: PathBuf,
    shared: Option<PostgresAddress>,
    limits: SharedStoreLimits,
}

/// Limits of a shared store.
#[derive(Clone, Copy, Debug)]
struct SharedStoreLimits {
    timeout: Duration,
    stale_after: Duration,
}

impl SharedStoreLimits {
    fn of(limits: &GatewayLimits) -> SharedStoreLimits {
        SharedStoreLimits {
            timeout: Duration::from_millis(limits.store_timeout_milliseconds),
            stale_after: Duration::from_secs(limits.store_stale_seconds),
        }
    }
}

/// Open state.
pub(crate) struct OpenedState {
    pub(crate) store: Arc<dyn StateStore>,
    /// The same store, if it is a shared database.
    pub(crate) shared: Option<Arc<PostgresStore>>,
}

impl StoreLocation {
    /// Returns the location for a config and a data directory.
    ///
    /// # Errors
    /// The URL of the database cannot be read.
    pub(crate) fn of(config: &Config, data: &Path) -> Result<StoreLocation, String> {
        Ok(StoreLocation {
            data: data.to_owned(),
            shared: config.store.address()?,
            limits: SharedStoreLimits::of(&config.limits),
        })
    }

    /// Returns the location in a data directory whose config is unknown.
    ///
    /// # Errors
    /// The state of this directory is in a shared database.
    pub(crate) fn without_config(data: &Path) -> Result<StoreLocation, String> {
        match fs::read_to_string(data.join(SHARED_NOTE)) {
            Ok(place) => Err(format!(
                "the state of {} is in a shared store ({}), whose address is in the config; pass --config FILE",
                data.display(),
                place.trim()
            )),
            Err(_) => Ok(StoreLocation {
                data: data.to_owned(),
                shared: None,
                limits: SharedStoreLimits::of(&GatewayLimits::default()),
            }),
        }
    }

    /// Returns the address of the shared database, if there is one.
    pub(crate) fn shared(&self) -> Option<&PostgresAddress> {
        self.shared.as_ref()
    }

    /// Returns the directory of the state without a shared database.
    pub(crate) fn local(&self) -> PathBuf {
        self.data.join("state")
    }

    /// Returns whether there is stored state.
    pub(crate) fn exists(&self) -> bool {
        self.shared.is_some() || DatabaseStore::exists(&self.local())
    }

    /// Opens the state. Blocks.
    ///
    /// # Errors
    /// The state cannot be opened; the message is for the operator.
    pub(crate) fn open(&self) -> Result<OpenedState, StoreError> {
        match &self.shared {
            None => {
                let store = DatabaseStore::open(self.local(), StoreLimits::default())?;
                Ok(OpenedState {
                    store: Arc::new(store),
                    shared: None,
                })
            }
            Some(address) => {
                let mut options = PostgresOptions::new(address.clone(), STATE_SPACE);
                options.timeout = self.limits.timeout;
                options.stale_after = self.limits.stale_after;
                options.outbox = Some(self.data.join("outbox"));
                let store = Arc::new(PostgresStore::open(options)?);
                Ok(OpenedState {
                    store: store.clone(),
                    shared: Some(store),
                })
            }
        }
    }

    /// Removes what removed entries left in the files or tables of the state. Blocks.
    ///
    /// # Errors
    /// The state cannot be written; the message is for the operator.
    pub(crate) fn purge(&self) -> Result<(), String> {
        let done = match &self.shared {
            None => toolgate_store::purge(&self.local()),
            Some(address) => purge_shared(address),
        };
        done.map_err(|error| error.detail())
    }

    /// Opens the state of a gateway that starts. It waits for a shared database that is away, since without freezes and
    /// revoked keys it must not serve.
    ///
    /// # Errors
    /// The state cannot be opened; the message is for the operator.
    pub(crate) fn open_at_start(&self) -> Result<OpenedState, String> {
        self.check_local_state()?;
        let mut noticed: Option<Instant> = None;
        loop {
            match self.open() {
                Ok(opened) => {
                    self.write_note().map_err(|e| {
                        format!(
                            "cannot write {}: {e}",
                            self.data.join(SHARED_NOTE).display()
                        )
                    })?;
                    return Ok(opened);
                }
                Err(error @ StoreError::Away(_)) => {
                    if noticed.is_none_or(|at| at.elapsed() >= START_NOTICE_INTERVAL) {
                        noticed = Some(Instant::now());
                        let text = format!("not ready: {}; trying again", error.detail());
                        event_log::emit(GatewayEvent::Problem { text });
                    }
                    thread::sleep(START_RETRY_INTERVAL);
                }
                Err(error) => {
                    return Err(format!(
                        "cannot open the stored keys, approvals and pins: {}",
                        error.detail()
                    ));
                }
            }
        }
    }

    /// Refuses to start beside state that nobody moved to the shared database: its freezes and revocations would be
    /// missing.
    fn check_local_state(&self) -> Result<(), String> {
        match &self.shared {
            Some(address) if DatabaseStore::exists(&self.local()) => Err(format!(
                "the state in {} is not in the shared store ({address}); copy it with `toolgate store migrate`, or move that directory away to start without its keys, approvals, freezes and pins",
                self.local().display()
            )),
            _ => Ok(()),
        }
    }

    /// Notes where the state of this data directory is.
    fn write_note(&self) -> std::io::Result<()> {
        let note = self.data.join(SHARED_NOTE);
        match &self.shared {
            Some(address) => fs::write(note, format!("{address}\n")),
            None if note.exists() => fs::remove_file(note),
            None => Ok(()),
        }
    }
}

/// Prints when the shared database goes away and comes back. Never returns.
pub(crate) async fn report_status(store: Option<&PostgresStore>) {
    let Some(store) = store else {
        return std::future::pending().await;
    };
    let mut status = store.status();
    let mut was_away = false;
    while status.changed().await.is_ok() {
        let outage = status.borrow_and_update().outage.clone();
        match outage {
            Some(reason) if !was_away => {
                was_away = true;
                let text = format!(
                    "the shared store is away: {reason}; calls that need approval are refused until it is back"
                );
                event_log::emit(GatewayEvent::Problem { text });
            }
            None if was_away => {
                was_away = false;
                let text = "the shared store is back".to_owned();
                event_log::emit(GatewayEvent::Note { text });
            }
            _ => {}
        }
    }
    std::future::pending().await
}
