//! Changes of an import, as `toolgate import --dry-run --json` prints them.

use crate::{
    file_diff::unified_diff,
    hosts::Host,
    import::import_plan::{ConfigBefore, ImportPlan},
};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Changes that an import would make.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct ImportOutput {
    /// Config that would be written.
    config: PathBuf,
    /// Files with servers.
    files: Vec<ImportedFileOutput>,
    /// Number of servers in these files.
    found: u64,
    /// Number of those that the config already has.
    known: u64,
    /// Names of the servers that would be added to the config.
    servers: Vec<String>,
    /// Places in which secrets would be stored.
    new_secrets: Vec<String>,
    /// Parts that are changed or left out, and what to do.
    notes: Vec<String>,
    /// Change of the config as a unified diff; empty if there is nothing to add.
    diff: String,
}

/// File of a host.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct ImportedFileOutput {
    file: String,
    /// Host, as `toolgate connect` takes it; `null` if it is unknown.
    host: Option<&'static str>,
}

impl ImportOutput {
    pub(super) fn new(
        plan: &ImportPlan,
        files: &[(String, Option<&'static Host>)],
        found: usize,
        before: Option<&ConfigBefore>,
        target: &Path,
    ) -> ImportOutput {
        let files = files.iter().map(|(file, host)| ImportedFileOutput {
            file: file.clone(),
            host: host.map(|host| host.id),
        });
        let before = before.map(|before| before.text.as_str());
        let shown = target.display().to_string();
        ImportOutput {
            config: target.to_owned(),
            files: files.collect(),
            found: found as u64,
            known: plan.known as u64,
            servers: plan
                .servers
                .iter()
                .map(|server| server.id.clone())
                .collect(),
            new_secrets: plan
                .new_secrets()
                .map(|(secret, _)| secret.place.clone())
                .collect(),
            notes: plan.notes.clone(),
            diff: match plan.servers.is_empty() {
                true => String::new(),
                false => unified_diff(&shown, before, &plan.text),
            },
        }
    }
}
