//! `[search]`: tool search instead of tool lists.

use super::{
    auth::AuthSettings,
    error::ConfigError,
    glob::NameGlob,
    rule,
    section::{ConfigField, ConfigSection},
    server::ServerSettings,
};

/// Server name of the search tools in rules and audit records.
pub(crate) const SEARCH_SERVER: &str = "toolgate";
/// Maximum number of results of one search.
pub(crate) const MAX_SEARCH_RESULTS: u64 = 50;

/// Tool search settings.
#[derive(Clone, Debug)]
pub(crate) struct SearchSettings {
    /// Number of visible tools from which search replaces the list; 0 for always.
    pub(crate) min_tools: usize,
    /// Default number of results of one search.
    pub(crate) default_results: u64,
    /// Maximum size of a search result in bytes, from 1 KiB to 1 GiB; default 64 KiB.
    pub(crate) max_result_bytes: usize,
    /// Tools that stay in the list.
    pub(crate) direct: Vec<DirectToolsSettings>,
}

/// Tools that stay in the list of some callers.
#[derive(Clone, Debug)]
pub(crate) struct DirectToolsSettings {
    pub(crate) tools: Vec<NameGlob>,
    /// Empty for every caller.
    pub(crate) callers: Vec<NameGlob>,
    pub(crate) except: Vec<NameGlob>,
}

const KEYS: &[&str] = &["min_tools", "results", "bytes", "direct"];
const DIRECT_KEYS: &[&str] = &["tools", "callers", "except"];

impl SearchSettings {
    /// Reads `[search]`.
    pub(super) fn read(
        field: &ConfigField<'_>,
        servers: &[ServerSettings],
        auth: &AuthSettings,
    ) -> Result<SearchSettings, ConfigError> {
        let section = field.section("[search]", "a section that begins with [search]", KEYS)?;
        if servers.iter().any(|server| server.id == SEARCH_SERVER) {
            return Err(field.error(format!(
                "[search] and [server.{SEARCH_SERVER}] conflict: rules name the tools of [search] {SEARCH_SERVER}.*; give the server another name"
            )));
        }
        let number = |key: &str, range, default| match section.get(key) {
            Some(field) => field.number(range),
            None => Ok(default),
        };
        let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let direct = match section.get("direct") {
            Some(field) => field.list("[[search.direct]] for each list")?,
            None => Vec::new(),
        };
        let direct = direct
            .iter()
            .map(|field| DirectToolsSettings::read(field, servers, auth));
        Ok(SearchSettings {
            min_tools: size(number("min_tools", 0..=1_000_000, 0)?),
            default_results: number("results", 1..=MAX_SEARCH_RESULTS, 8)?,
            max_result_bytes: size(number("bytes", 1024..=1_073_741_824, 65_536)?),
            direct: direct.collect::<Result<_, _>>()?,
        })
    }
}

impl DirectToolsSettings {
    fn read(
        field: &ConfigField<'_>,
        servers: &[ServerSettings],
        auth: &AuthSettings,
    ) -> Result<DirectToolsSettings, ConfigError> {
        let section: ConfigSection<'_> = field.section(
            "[[search.direct]]",
            "a section that begins with [[search.direct]]",
            DIRECT_KEYS,
        )?;
        let tools = section.require("tools", "[\"server.*\"]")?;
        Ok(DirectToolsSettings {
            tools: rule::read_tool_globs(&tools, servers, true)?,
            callers: rule::read_callers(&section, auth)?,
            except: section.get("except").map_or(Ok(Vec::new()), |field| {
                rule::read_tool_globs(&field, servers, true)
            })?,
        })
    }
}
