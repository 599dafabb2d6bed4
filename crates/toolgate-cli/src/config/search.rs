//! `[search]`: tool search instead of tool lists.

use super::{
    auth::AuthSettings,
    glob::NameGlob,
    reader::{IntRange, SettingError, SettingPath},
    tool_targets::{SEARCH_SERVER, ToolTargets},
};
use schemars::JsonSchema;
use serde::Deserialize;

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

/// Tool search instead of tool lists.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct SearchSection {
    /// Search replaces the tool list for a caller who can see at least this many tools. 0: always.
    #[serde(with = "IntRange::<0, 1_000_000>")]
    min_tools: usize,
    /// Number of tools that `find_tools` returns if its caller passes no `limit`.
    #[serde(with = "IntRange::<1, MAX_SEARCH_RESULTS>")]
    results: u64,
    /// Maximum bytes of definitions that `find_tools` returns. One longer definition is returned alone.
    #[serde(with = "IntRange::<1024, 1_073_741_824>")]
    bytes: usize,
    /// Tools that stay listed.
    direct: Vec<DirectToolsSection>,
}

/// Tools that stay in the list of some callers, `[[search.direct]]`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DirectToolsSection {
    /// Globs over full names of tools that stay listed, as in a rule.
    #[schemars(example = ["server.*"])]
    tools: Vec<String>,
    /// Globs over names of the callers for whom they stay listed. Default: every caller.
    #[schemars(example = ["key:ci"])]
    callers: Option<Vec<String>>,
    /// Globs over full names that the entry does not match.
    #[serde(default)]
    #[schemars(example = ["server.*"])]
    except: Vec<String>,
}

impl Default for SearchSection {
    fn default() -> SearchSection {
        SearchSection {
            min_tools: 0,
            results: 8,
            bytes: 65_536,
            direct: Vec::new(),
        }
    }
}

impl SearchSettings {
    /// Checks `[search]`.
    pub(super) fn check(
        section: &SearchSection,
        tools: ToolTargets<'_>,
        auth: &AuthSettings,
    ) -> Result<SearchSettings, SettingError> {
        let path = SettingPath::new(&["search"]);
        if tools
            .servers
            .iter()
            .any(|server| server.id == SEARCH_SERVER)
        {
            return Err(SettingError::message(
                path,
                format!(
                    "[search] and [server.{SEARCH_SERVER}] conflict: rules name the tools of [search] {SEARCH_SERVER}.*; give the server another name"
                ),
            ));
        }
        let direct = |(at, section): (usize, &DirectToolsSection)| {
            let path = path.key("direct").index(at);
            Ok(DirectToolsSettings {
                tools: tools.check(&section.tools, &path.key("tools"))?,
                callers: auth.check_callers(section.callers.as_deref(), &path.key("callers"))?,
                except: tools.check(&section.except, &path.key("except"))?,
            })
        };
        Ok(SearchSettings {
            min_tools: section.min_tools,
            default_results: section.results,
            max_result_bytes: section.bytes,
            direct: section
                .direct
                .iter()
                .enumerate()
                .map(direct)
                .collect::<Result<_, SettingError>>()?,
        })
    }
}
