//! Options of `toolgate connect` and `disconnect`.

use clap::Args;

/// Options of `toolgate connect`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ConnectOptions {
    /// Host, as `toolgate connect` lists it
    #[arg(value_name = "HOST")]
    pub(crate) host: Option<String>,
    /// Print the list of hosts as JSON; `toolgate schema` describes it
    #[arg(long, conflicts_with = "host")]
    pub(crate) json: bool,
    /// Write into the host's file in the current directory, such as .mcp.json, for this project only
    #[arg(long, requires = "host")]
    pub(crate) project: bool,
    /// Connect to the running gateway over HTTP, instead of starting one
    #[arg(long, requires = "host")]
    pub(crate) http: bool,
    /// Environment variable with the host's API key, if the gateway requires one
    #[arg(long, value_name = "NAME", requires = "http")]
    pub(crate) token_env: Option<String>,
    /// Name of the entry
    #[arg(
        long,
        value_name = "NAME",
        default_value = "toolgate",
        requires = "host"
    )]
    pub(crate) name: String,
    /// Move the host's other servers behind the gateway
    ///
    /// Imports them into the config, as `toolgate import` does, and removes them from the host's file. `toolgate
    /// disconnect` puts them back.
    #[arg(long, requires = "host", conflicts_with = "hooks")]
    pub(crate) replace: bool,
    /// Send the host's own shell, file and fetch tools through the gateway
    ///
    /// Adds a hook to the host's settings, and the server `host` with rules to the config. For claude-code, codex and
    /// cursor.
    #[arg(long, requires = "host", conflicts_with_all = ["http", "name"])]
    pub(crate) hooks: bool,
    /// Print the change without writing it
    #[arg(long, requires = "host")]
    pub(crate) dry_run: bool,
}

/// Options of `toolgate disconnect`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DisconnectOptions {
    /// Host, as `toolgate connect` lists it
    #[arg(value_name = "HOST")]
    pub(crate) host: String,
    /// The host's file in the current directory
    #[arg(long)]
    pub(crate) project: bool,
    /// Name of the entry, if `toolgate connect` did not write it
    #[arg(long, value_name = "NAME", default_value = "toolgate")]
    pub(crate) name: String,
    /// Remove the hook, and not the entry
    #[arg(long)]
    pub(crate) hooks: bool,
    /// Print the change without writing it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Options of `toolgate hook`.
#[derive(Args, Clone, Debug)]
pub(crate) struct HookOptions {
    /// Host that runs the hook: claude-code, codex or cursor
    #[arg(value_name = "HOST")]
    pub(crate) host: String,
    /// Deny the call if it is not decided in this time, which must end before the time limit of the hook
    #[arg(long, value_name = "SECONDS", default_value_t = 590, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) wait: u64,
    /// Decision if no gateway can be reached
    #[arg(long, value_enum, value_name = "DECISION", default_value_t = HookUnavailable::Deny)]
    pub(crate) if_unavailable: HookUnavailable,
}

/// Decision of a hook that cannot reach a gateway.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub(crate) enum HookUnavailable {
    /// The host does not run its tool
    Deny,
    /// The host runs its tool under its own permissions, unchecked and unrecorded
    Allow,
}
