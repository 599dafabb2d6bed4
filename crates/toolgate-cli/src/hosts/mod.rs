//! Hosts: the applications that start MCP servers, and where and how they write them down.

mod codex_trust;
mod connection;
mod entry_style;
mod entry_value;
mod gateway_entry;
mod hook_call;
mod hook_file;
mod host_document;
mod host_paths;
mod table;

pub(crate) use codex_trust::CodexTrust;
pub(crate) use connection::{
    ConnectionRecord, ConnectionStore, EditedFile, HostTarget, StoredServer, digest_digits,
    unknown_home,
};
pub(crate) use entry_style::{CommandForm, EntryStyle, VariableForm};
pub(crate) use entry_value::HostEntryValue;
pub(crate) use gateway_entry::{http_entry, process_entry};
pub(crate) use hook_call::{HookAnswer, HookCall, HookHost, hook_tool_name};
pub(crate) use host_document::{HostDocument, TakenServer};
pub(crate) use host_paths::{HostPath, HostPlaces};
pub(crate) use table::HOSTS;

use std::path::PathBuf;

/// Host: an application that reads MCP servers from a file.
#[derive(Debug)]
pub(crate) struct Host {
    /// Id on the command line, such as `claude-code`.
    pub(crate) id: &'static str,
    /// Name to show, such as `Claude Code`.
    pub(crate) name: &'static str,
    /// Files with servers. The first one of a scope is the one to write new entries into.
    pub(crate) files: &'static [HostFile],
    /// Form of an entry.
    pub(crate) style: EntryStyle,
}

/// File of a host, and the place of the servers in it.
#[derive(Debug)]
pub(crate) struct HostFile {
    /// Servers that the file holds: for all projects of the user, or for one.
    pub(crate) scope: HostScope,
    /// Path on Linux.
    pub(crate) linux: HostPath,
    /// Path on macOS.
    pub(crate) macos: HostPath,
    /// Syntax of the file.
    pub(crate) syntax: HostSyntax,
    /// Keys that lead to the object of the servers. [`ANY_KEY`] stands for each key of an object.
    pub(crate) servers: &'static [&'static str],
}

/// Placeholder for any key in [`HostFile::servers`]. In `~/.claude.json`, it is the directory of a project.
pub(crate) const ANY_KEY: &str = "*";

/// Scope of the servers in a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum HostScope {
    /// All projects of the user.
    User,
    /// The project whose directory contains the file.
    Project,
    /// One project for this user only, in a file of the user.
    Local,
}

/// Syntax of a host's file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum HostSyntax {
    /// JSON without comments.
    Json,
    /// JSON with comments and trailing commas.
    Jsonc,
    /// TOML.
    Toml,
}

impl Host {
    /// Returns the host with this id.
    pub(crate) fn find(id: &str) -> Option<&'static Host> {
        HOSTS.iter().find(|host| host.id == id)
    }

    /// Returns the file to write a new entry of this scope into.
    pub(crate) fn file(&self, scope: HostScope) -> Option<&HostFile> {
        self.files.iter().find(|file| file.scope == scope)
    }
}

impl HostFile {
    /// Returns the path of the file on this system, or `None` if its directory is unknown.
    pub(crate) fn path(&self, places: &HostPlaces) -> Option<PathBuf> {
        let path = if places.macos {
            &self.macos
        } else {
            &self.linux
        };
        path.resolve(places)
    }
}

#[cfg(test)]
mod tests;
