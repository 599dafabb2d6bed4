//! Tools that rules and scopes may name.

use super::{
    error::suggestion,
    glob::NameGlob,
    reader::{SettingError, SettingPath},
    server::ServerSettings,
};

/// Server name of the search tools in rules and audit records.
pub(crate) const SEARCH_SERVER: &str = "toolgate";
/// Tools that rules and scopes may name: those of the configured servers and of tool search.
#[derive(Clone, Copy)]
pub(super) struct ToolTargets<'c> {
    /// Configured servers.
    pub(super) servers: &'c [ServerSettings],
    /// True if tool search is enabled.
    pub(super) search: bool,
}

impl ToolTargets<'_> {
    /// Checks a list of at least one glob for tools.
    pub(super) fn check_required(
        &self,
        globs: &[String],
        path: &SettingPath,
    ) -> Result<Vec<NameGlob>, SettingError> {
        match globs.is_empty() {
            true => Err(SettingError::about(
                path.clone(),
                "is empty, so the rule matches nothing; write [\"*\"] for every tool",
            )),
            false => self.check(globs, path),
        }
    }

    /// Checks a list of globs for tools.
    pub(super) fn check(
        &self,
        globs: &[String],
        path: &SettingPath,
    ) -> Result<Vec<NameGlob>, SettingError> {
        let glob = |(at, text): (usize, &String)| {
            self.check_glob(text)
                .map_err(|text| SettingError::message(path.index(at), text))
        };
        globs.iter().enumerate().map(glob).collect()
    }

    fn check_glob(&self, text: &str) -> Result<NameGlob, String> {
        let glob = NameGlob::parse_tools(text)?;
        let Some(id) = glob.server() else {
            return Ok(glob);
        };
        if self.search && id == SEARCH_SERVER || self.servers.iter().any(|server| server.id == id) {
            return Ok(glob);
        }
        // A typo here would silently disable a deny rule.
        let hint = suggestion(id, self.servers.iter().map(|server| server.id.as_str()));
        Err(format!(
            "glob {text:?} names the server {id:?}, which is not configured{hint}"
        ))
    }
}
