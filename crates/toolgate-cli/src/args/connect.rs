//! Options of `toolgate connect` and `disconnect`.

use clap::Args;

/// Options of `toolgate connect`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ConnectOptions {
    /// Host, as `toolgate connect` lists it
    #[arg(value_name = "HOST")]
    pub(crate) host: Option<String>,
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
    /// Print the change without writing it
    #[arg(long)]
    pub(crate) dry_run: bool,
}
