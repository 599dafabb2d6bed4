//! `[[rule]]`: the operator's rules for tools and callers.

use super::{
    auth::AuthSettings,
    error::{ConfigError, suggestion},
    glob::NameGlob,
    limits::GatewayLimits,
    rate::RateSetting,
    section::{ConfigField, ConfigSection},
    server::ServerSettings,
};
use toolgate_policy::{CelCondition, CelLimits};

/// Rule of the operator. Of all rules that match a call, the strictest action wins.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct ConfigRule {
    /// Line in the config, from 1.
    pub(crate) line: usize,
    /// Globs of matching tools, as `server.tool`.
    pub(crate) tools: Vec<NameGlob>,
    /// Globs of matching callers; empty for all.
    pub(crate) callers: Vec<NameGlob>,
    /// Globs of excluded tools.
    pub(crate) except: Vec<NameGlob>,
    /// CEL condition; `None` for always.
    pub(crate) condition: Option<CelCondition>,
    /// Action for matching calls.
    pub(crate) action: ConfigRuleAction,
    /// Rate limit per caller and tool; the default of the limits if absent.
    pub(crate) rate: Option<RateSetting>,
    /// Number of required approvals, from 1 to 8; one if absent.
    pub(crate) approvals: Option<u32>,
}

/// Action of a rule, ordered by strictness.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum ConfigRuleAction {
    /// Allow the call.
    Allow,
    /// Ask an approver.
    Ask,
    /// Deny the call.
    Deny,
}

/// Every key of a rule.
pub(super) const KEYS: &[&str] = &[
    "tools",
    "callers",
    "except",
    "action",
    "rate",
    "approvals",
    "when",
];

const ACTION_WORDS: &[(&str, ConfigRuleAction)] = &[
    ("allow", ConfigRuleAction::Allow),
    ("ask", ConfigRuleAction::Ask),
    ("deny", ConfigRuleAction::Deny),
];

impl ConfigRule {
    /// Reads all `[[rule]]` sections, in the order of the file.
    pub(super) fn read_all(
        field: &ConfigField<'_>,
        servers: &[ServerSettings],
        limits: &GatewayLimits,
        search: bool,
        auth: &AuthSettings,
    ) -> Result<Vec<ConfigRule>, ConfigError> {
        let rules = field.list("[[rule]] for each rule")?;
        rules
            .iter()
            .map(|field| ConfigRule::read(field, servers, limits, search, auth))
            .collect()
    }

    fn read(
        field: &ConfigField<'_>,
        servers: &[ServerSettings],
        limits: &GatewayLimits,
        search: bool,
        auth: &AuthSettings,
    ) -> Result<ConfigRule, ConfigError> {
        let section = field.section("[[rule]]", "a section that begins with [[rule]]", KEYS)?;
        let tools = read_tools(
            &section.require("tools", "[\"server.*\"]")?,
            servers,
            search,
        )?;
        let then = section
            .require("action", "\"allow\", \"ask\" or \"deny\"")?
            .one_of(ACTION_WORDS)?;
        let except = section.get("except").map_or(Ok(Vec::new()), |field| {
            read_tool_globs(&field, servers, search)
        })?;
        let line = section.doc.line_and_column(section.at).0;
        Ok(ConfigRule {
            line,
            tools,
            callers: read_callers(&section, auth)?,
            except,
            condition: read_condition(&section, limits)?,
            action: then,
            rate: read_rate(&section)?,
            approvals: read_approvals(&section, then)?,
        })
    }
}

pub(super) fn read_tools(
    field: &ConfigField<'_>,
    servers: &[ServerSettings],
    search: bool,
) -> Result<Vec<NameGlob>, ConfigError> {
    match read_tool_globs(field, servers, search)? {
        empty if empty.is_empty() => {
            Err(field
                .key_error("is empty, so the rule matches nothing; write [\"*\"] for every tool"))
        }
        tools => Ok(tools),
    }
}

/// Reads a list of globs for tools of these servers, and of `[search]` if enabled.
pub(super) fn read_tool_globs(
    field: &ConfigField<'_>,
    servers: &[ServerSettings],
    search: bool,
) -> Result<Vec<NameGlob>, ConfigError> {
    let ours = |id: &str| search && id == super::search::SEARCH_SERVER;
    let glob = |item: ConfigField<'_>| {
        let glob = NameGlob::parse_tools(item.text()?).map_err(|text| item.error(text))?;
        match glob.server() {
            // A typo here would silently disable a deny rule.
            Some(id) if !ours(id) && !servers.iter().any(|server| server.id == id) => {
                Err(item.error(unknown_server(&glob, id, servers)))
            }
            _ => Ok(glob),
        }
    };
    field
        .list("an array such as [\"server.*\"]")?
        .into_iter()
        .map(glob)
        .collect()
}

fn unknown_server(glob: &NameGlob, id: &str, servers: &[ServerSettings]) -> String {
    let hint = suggestion(id, servers.iter().map(|server| server.id.as_str()));
    format!(
        "glob {:?} names the server {id:?}, which is not configured{hint}",
        glob.as_str()
    )
}

/// Reads `callers`: globs, each of which matches a possible caller.
pub(super) fn read_callers(
    section: &ConfigSection<'_>,
    auth: &AuthSettings,
) -> Result<Vec<NameGlob>, ConfigError> {
    let Some(field) = section.get("callers") else {
        return Ok(Vec::new());
    };
    let list = field.list("an array such as [\"key:ci\"]")?;
    if list.is_empty() {
        return Err(field.key_error("is empty; remove it to match every caller"));
    }
    list.into_iter()
        .map(|item| {
            let glob = NameGlob::parse(item.text()?).map_err(|text| item.error(text))?;
            auth.check_caller_name(glob.as_str())
                .map_err(|text| item.error(text))?;
            Ok(glob)
        })
        .collect()
}

fn read_condition(
    section: &ConfigSection<'_>,
    limits: &GatewayLimits,
) -> Result<Option<CelCondition>, ConfigError> {
    let Some(field) = section.get("when") else {
        return Ok(None);
    };
    let limits = CelLimits {
        bytes: limits.when_bytes,
        depth: limits.when_depth,
        steps: limits.when_steps,
    };
    CelCondition::compile_within(field.text()?, &limits)
        .map(Some)
        .map_err(|wrong| field.key_error(format!("is invalid: {wrong}")))
}

fn read_rate(section: &ConfigSection<'_>) -> Result<Option<RateSetting>, ConfigError> {
    let Some(field) = section.get("rate") else {
        return Ok(None);
    };
    RateSetting::parse(field.text()?)
        .map(Some)
        .map_err(|text| field.error(text))
}

fn read_approvals(
    section: &ConfigSection<'_>,
    then: ConfigRuleAction,
) -> Result<Option<u32>, ConfigError> {
    let Some(field) = section.get("approvals") else {
        return Ok(None);
    };
    if then != ConfigRuleAction::Ask {
        return Err(
            field.key_error("has no effect without action = \"ask\"; change action or remove it")
        );
    }
    let persons = field.number(1..=MAX_RULE_APPROVALS)?;
    Ok(u32::try_from(persons).ok())
}

/// Maximum number of required approvals.
const MAX_RULE_APPROVALS: u64 = 8;
