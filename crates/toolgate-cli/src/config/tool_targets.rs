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
                "is empty, so it matches nothing; write [\"*\"] for every tool",
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
        let glob = NameGlob::parse(text)?;
        let search = self.search.then_some(SEARCH_SERVER);
        let mut ids = self.server_ids().chain(search);
        // A typo here would silently disable a deny rule.
        match ids.any(|id| glob.can_begin_with(&format!("{id}."))) {
            true => Ok(glob),
            false => Err(self.no_server_error(&glob)),
        }
    }

    fn server_ids(&self) -> impl Iterator<Item = &str> {
        self.servers.iter().map(|server| server.id.as_str())
    }

    /// Returns the error for a glob that matches nothing of any server.
    fn no_server_error(&self, glob: &NameGlob) -> String {
        let text = glob.as_str();
        if let Some(id) = glob.server() {
            let hint = suggestion(id, self.server_ids());
            return format!(
                "the glob {text:?} names the server {id:?}, which is not configured{hint}"
            );
        }
        if text.contains('.') {
            return format!(
                "the glob {text:?} matches no configured server; correct the part before the dot"
            );
        }
        let advice = match self.servers {
            servers if servers.iter().any(|server| server.id == text) => format!("{text}.*"),
            [server] => format!("{}.{text}", server.id),
            _ => format!("*.{text}"),
        };
        format!(
            "the glob {text:?} matches nothing, because full names begin with the server, as in server.tool; write {advice:?}"
        )
    }
}
