//! `toolgate service`: the gateway as a service of systemd or launchd.

use super::{
    CommandError, Result, connect::host_places, data_dir::DataLocation, lasting_program, print,
    service_unit::ServiceUnit,
};
use crate::{
    args::ServiceCommand,
    atomic_write::{create_directory, write_atomically},
    cli::output::print_json,
    hosts::HostPath,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

/// Name of the unit of systemd.
const UNIT_NAME: &str = "toolgate.service";
/// Label of the service in launchd.
const LAUNCHD_LABEL: &str = "dev.toolgate.gateway";
/// Unit of systemd for one account, in the directory of configs.
const USER_UNIT: &str = "systemd/user/toolgate.service";
/// Property list of launchd for one account, in the home directory.
const LAUNCHD_AGENT: &str = "Library/LaunchAgents/dev.toolgate.gateway.plist";
/// Directories of programs, if `PATH` is not set.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// System that runs the service.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ServiceManager {
    SystemdUser,
    SystemdSystem,
    Launchd,
}

/// Runs a command of `toolgate service`.
pub(super) fn run(place: &DataLocation<'_>, command: ServiceCommand) -> Result<ExitCode> {
    match command {
        ServiceCommand::Install { system, dry_run } => install(place, manager(system)?, dry_run),
        ServiceCommand::Status { system, json } => match json.json {
            true => print_status(manager(system)?),
            false => manager(system)?.show_status(),
        },
        ServiceCommand::Uninstall { system } => uninstall(manager(system)?),
    }
}

fn manager(system: bool) -> Result<ServiceManager> {
    match (cfg!(target_os = "macos"), system) {
        (true, true) => Err(CommandError::Usage(
            "on macOS, the service runs for your account only; leave out --system".to_owned(),
        )),
        (true, false) => Ok(ServiceManager::Launchd),
        (false, true) => Ok(ServiceManager::SystemdSystem),
        (false, false) => Ok(ServiceManager::SystemdUser),
    }
}

fn install(place: &DataLocation<'_>, manager: ServiceManager, dry_run: bool) -> Result<ExitCode> {
    if manager == ServiceManager::SystemdSystem && place.config.is_none() {
        return Err(CommandError::Usage(
            "--system needs --config FILE, because the account of the service has no config of its own"
                .to_owned(),
        ));
    }
    // A service with an invalid config would only fail later, where nobody looks.
    place.config()?;
    let file = manager.unit_file()?;
    let text = manager.unit_text(&unit(place)?, &file);
    if dry_run {
        return print(&format!("# {}\n{text}", file.display()));
    }
    create_directory(&file)?;
    write_atomically(&file, &text)?;
    for words in manager.install_commands(&file) {
        run_manager(&words).map_err(|why| {
            format!(
                "the unit {} is written, but the service is not running: {why}",
                file.display()
            )
        })?;
    }
    eprintln!(
        "the gateway runs as a service: {}\n  `toolgate service status` shows its state, `toolgate console` prints a link to the console",
        file.display()
    );
    if manager == ServiceManager::SystemdUser {
        eprintln!("  `loginctl enable-linger` keeps it running while you are logged out");
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the path of the unit of the service for this account.
pub(super) fn user_unit_file() -> Option<PathBuf> {
    manager(false).ok()?.unit_file().ok()
}

/// Stops the service of this account and deletes its unit.
pub(super) fn uninstall_user_service() -> Result<ExitCode> {
    uninstall(manager(false)?)
}

fn uninstall(manager: ServiceManager) -> Result<ExitCode> {
    let file = manager.unit_file()?;
    if !file.exists() {
        return Err(CommandError::Failure(format!(
            "there is no service: {} does not exist",
            file.display()
        )));
    }
    for words in manager.uninstall_commands() {
        if let Err(why) = run_manager(&words) {
            eprintln!("toolgate: {why}");
        }
    }
    fs::remove_file(&file)
        .map_err(|error| format!("{} cannot be deleted: {error}", file.display()))?;
    eprintln!("the service is stopped, and {} is deleted", file.display());
    Ok(ExitCode::SUCCESS)
}

/// State of the service.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct ServiceOutput {
    /// `systemd-user`, `systemd` or `launchd`.
    manager: &'static str,
    /// File of the unit.
    unit_file: PathBuf,
    /// True if that file exists.
    installed: bool,
    /// True if the service runs.
    running: bool,
    /// State that the service manager reports, such as `active`, `failed` or `not running`.
    state: String,
}

/// Prints the state as JSON. Exit code 1 if the service does not run.
fn print_status(manager: ServiceManager) -> Result<ExitCode> {
    let unit_file = manager.unit_file()?;
    let state = manager.state()?;
    let output = ServiceOutput {
        manager: manager.name(),
        installed: unit_file.exists(),
        unit_file,
        running: matches!(state.as_str(), "active" | "running"),
        state,
    };
    print_json(&output)?;
    Ok(match output.running {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn unit(place: &DataLocation<'_>) -> Result<ServiceUnit> {
    Ok(ServiceUnit {
        program: lasting_program()?,
        arguments: place.absolute_options(),
        path: env::var("PATH").unwrap_or_else(|_| DEFAULT_PATH.to_owned()),
    })
}

impl ServiceManager {
    fn name(self) -> &'static str {
        match self {
            ServiceManager::SystemdUser => "systemd-user",
            ServiceManager::SystemdSystem => "systemd",
            ServiceManager::Launchd => "launchd",
        }
    }

    /// Returns the state that the service manager reports.
    fn state(self) -> Result<String> {
        if self == ServiceManager::Launchd {
            // It fails for a service that is not loaded.
            let text = run_manager(&self.status_command()).unwrap_or_default();
            let state = text
                .lines()
                .find_map(|line| line.trim().strip_prefix("state = "));
            return Ok(state.unwrap_or("not loaded").to_owned());
        }
        let words = self.systemctl(&["show", "--property=ActiveState", "--value", UNIT_NAME]);
        Ok(run_manager(&words)?.trim().to_owned())
    }

    fn status_command(self) -> Vec<String> {
        match self {
            ServiceManager::Launchd => vec![
                "launchctl".to_owned(),
                "print".to_owned(),
                launchd_service(),
            ],
            _ => self.systemctl(&["status", "--no-pager", UNIT_NAME]),
        }
    }

    fn unit_file(self) -> Result<PathBuf> {
        let path = match self {
            ServiceManager::SystemdSystem => {
                return Ok(Path::new("/etc/systemd/system").join(UNIT_NAME));
            }
            ServiceManager::SystemdUser => HostPath::Config(USER_UNIT),
            ServiceManager::Launchd => HostPath::Home(LAUNCHD_AGENT),
        };
        path.resolve(&host_places()?).ok_or_else(|| {
            CommandError::Failure("HOME is not set to an absolute path; set it".to_owned())
        })
    }

    fn unit_text(self, unit: &ServiceUnit, file: &Path) -> String {
        match self {
            ServiceManager::SystemdUser => unit.systemd_user(),
            ServiceManager::SystemdSystem => unit.systemd_system(),
            ServiceManager::Launchd => {
                let library = file.parent().and_then(Path::parent).unwrap_or(file);
                let log = library.join("Logs/toolgate.log");
                unit.launchd(LAUNCHD_LABEL, &log.display().to_string())
            }
        }
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "a command of the operator, not of the gateway"
    )]
    fn show_status(self) -> Result<ExitCode> {
        let words = self.status_command();
        let status = Command::new(&words[0]).args(&words[1..]).status();
        let status = status.map_err(|error| format!("`{}` cannot be run: {error}", words[0]))?;
        Ok(match status.success() {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        })
    }

    fn install_commands(self, file: &Path) -> Vec<Vec<String>> {
        match self {
            ServiceManager::Launchd => vec![
                [
                    "launchctl",
                    "bootstrap",
                    &launchd_domain(),
                    &file.display().to_string(),
                ]
                .map(str::to_owned)
                .to_vec(),
            ],
            _ => vec![
                self.systemctl(&["daemon-reload"]),
                self.systemctl(&["enable", UNIT_NAME]),
                self.systemctl(&["restart", UNIT_NAME]),
            ],
        }
    }

    fn uninstall_commands(self) -> Vec<Vec<String>> {
        match self {
            ServiceManager::Launchd => vec![
                ["launchctl", "bootout", &launchd_service()]
                    .map(str::to_owned)
                    .to_vec(),
            ],
            _ => vec![self.systemctl(&["disable", "--now", UNIT_NAME])],
        }
    }

    fn systemctl(self, words: &[&str]) -> Vec<String> {
        let scope = (self == ServiceManager::SystemdUser).then_some("--user");
        let all = ["systemctl"]
            .into_iter()
            .chain(scope)
            .chain(words.iter().copied());
        all.map(str::to_owned).collect()
    }
}

fn launchd_domain() -> String {
    format!("gui/{}", rustix::process::getuid().as_raw())
}

fn launchd_service() -> String {
    format!("{}/{LAUNCHD_LABEL}", launchd_domain())
}

/// Runs a command of the service manager, and returns its output.
#[allow(
    clippy::disallowed_methods,
    reason = "a command of the operator, not of the gateway"
)]
fn run_manager(words: &[String]) -> std::result::Result<String, String> {
    let line = words.join(" ");
    let out = Command::new(&words[0]).args(&words[1..]).output();
    let out = out.map_err(|error| format!("`{line}` cannot be run: {error}"))?;
    match out.status.success() {
        true => Ok(String::from_utf8_lossy(&out.stdout).into_owned()),
        false => Err(format!(
            "`{line}` failed: {}",
            String::from_utf8_lossy(&out.stderr).trim()
        )),
    }
}
