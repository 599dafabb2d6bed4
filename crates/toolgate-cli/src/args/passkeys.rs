//! `toolgate passkeys`: passkeys of approvers.

use super::JsonOption;
use clap::Subcommand;

/// Commands of `toolgate passkeys`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum PasskeysCommand {
    /// List the enrolled passkeys, and the digests of changes for the anchor of the config
    ///
    /// Passkeys are enrolled and removed at the console, with the signature of an enrolled passkey.
    List(JsonOption),
    /// Print the changes of the list with their signatures, for `toolgate-verify --passkeys`
    Export,
}
