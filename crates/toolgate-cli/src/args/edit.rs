//! Commands that edit the config, and `toolgate doctor`.

use super::JsonOption;
use clap::Args;
use std::path::PathBuf;

/// Options of `toolgate init`.
#[derive(Args, Clone, Debug)]
pub(crate) struct InitOptions {
    /// Replace an existing config; its old text is kept beside it, in a file that ends with .bak
    #[arg(long)]
    pub(crate) force: bool,
}

/// Options of `toolgate add`.
#[derive(Args, Clone, Debug)]
#[command(
    override_usage = "toolgate add [OPTIONS] [NAME] -- <PROGRAM>...\n       toolgate add [OPTIONS] [NAME] <URL>"
)]
pub(crate) struct AddOptions {
    /// Name of the server, and the URL of a remote server [default name: that of the package, or the host of the URL]
    #[arg(value_name = "NAME_OR_URL")]
    pub(crate) target: Vec<String>,
    /// Set an environment variable of the program; without a value, pass it on from the environment of toolgate
    ///
    /// The config rejects a value that looks like a secret. NAME alone writes { env = "NAME" }, and NAME='${OTHER}'
    /// writes { env = "OTHER" }. Can be repeated.
    #[arg(short, long, value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<String>,
    /// Set an HTTP header of the requests to the URL; can be repeated
    ///
    /// NAME='${VARIABLE}' reads the value from an environment variable of toolgate.
    #[arg(short = 'H', long, value_name = "NAME=VALUE")]
    pub(crate) header: Vec<String>,
    /// Store a secret value of a variable or header in a file of its own beside the config; can be repeated
    ///
    /// A terminal asks for the value without showing it. Otherwise each secret is one line of standard input, in the
    /// order of the options. Only you can read the file.
    #[arg(long, value_name = "NAME")]
    pub(crate) secret: Vec<String>,
    /// Working directory of the program
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Add the server without enabling it
    #[arg(long)]
    pub(crate) disabled: bool,
    /// Replace the server if the config has one of that name
    #[arg(long)]
    pub(crate) replace: bool,
    /// Program of the server and its arguments
    #[arg(last = true, value_name = "PROGRAM")]
    pub(crate) command: Vec<String>,
}

/// Servers of `toolgate remove`, `enable` and `disable`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ServerNames {
    /// Name of the server in the config
    #[arg(required = true, value_name = "NAME")]
    pub(crate) names: Vec<String>,
}

/// Options of `toolgate doctor`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DoctorOptions {
    /// Do not start the servers
    #[arg(long)]
    pub(crate) no_start: bool,
    /// Also write a file for a bug report, with known secrets removed
    ///
    /// The file has the checks, the program and its system, some variables such as PATH, the config without comments, the
    /// status of the running gateways, and the names of the files in the data directory. Read it before you share it. An
    /// existing file is not replaced. [default: toolgate-report-TIME.md]
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) bundle: Option<Option<PathBuf>>,
    #[command(flatten)]
    pub(crate) json: JsonOption,
}
