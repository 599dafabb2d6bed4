//! `--json` of the commands that list or show, and `toolgate schema`.

use clap::Args;

/// Option for JSON instead of text.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct JsonOption {
    /// Print JSON; `toolgate schema` describes it
    #[arg(long)]
    pub(crate) json: bool,
}

/// Options of `toolgate schema`.
#[derive(Args, Clone, Debug)]
pub(crate) struct SchemaOptions {
    /// Command, such as `keys list` [default: list the commands]
    #[arg(value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}
