//! `[view.NAME]`: a set of servers and rules with an endpoint of its own, `/mcp/NAME`.

use super::{
    auth::AuthSettings,
    error::suggestion,
    glob::NameGlob,
    limits::GatewayLimits,
    reader::{ConfigTree, NamedSettings, SettingError, SettingPath},
    rule::{ConfigRule, RuleSection},
    server::ServerSettings,
    server_names,
    tool_targets::ToolTargets,
};
use schemars::JsonSchema;
use serde::Deserialize;

/// View, `[view.NAME]`: a set of servers and rules with an endpoint of its own. The rules before the views apply in every
/// view.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ViewSection {
    /// Names of the servers in the view. The endpoint offers nothing of any other server. Default: every server.
    #[schemars(example = ["files"])]
    servers: Option<Vec<String>>,
    /// Globs over the callers that may use the endpoint, as in rules. For any other caller, it does not exist. Default:
    /// every caller.
    #[schemars(example = ["group:oncall"])]
    callers: Option<Vec<String>>,
    /// Further rules for calls at this endpoint, besides the rules of the config. Of all rules that match a call, the
    /// strictest action wins.
    #[serde(default)]
    rule: Vec<RuleSection>,
}

/// Settings of a view.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct ViewSettings {
    /// Name, the last segment of its endpoint.
    pub(crate) name: String,
    /// Servers in the view; `None` for all.
    pub(crate) servers: Option<Vec<String>>,
    /// Callers that may use the view; empty for all.
    pub(crate) callers: Vec<NameGlob>,
}

impl ViewSettings {
    /// Checks all views, in the order of the file, and their rules.
    pub(super) fn check_all(
        sections: NamedSettings<ViewSection>,
        limits: &GatewayLimits,
        tools: ToolTargets<'_>,
        auth: &AuthSettings,
        tree: &ConfigTree<'_>,
    ) -> Result<(Vec<ViewSettings>, Vec<ConfigRule>), SettingError> {
        let (mut views, mut rules) = (Vec::new(), Vec::new());
        for (name, section) in sections.0 {
            let path = SettingPath::new(&["view", &name]);
            server_names::check_view(&name)
                .map_err(|text| SettingError::at_key(path.clone(), text))?;
            let servers = section
                .servers
                .map(|servers| check_servers(servers, tools, &path.key("servers")));
            let view = ViewSettings {
                callers: auth.check_callers(section.callers.as_deref(), &path.key("callers"))?,
                servers: servers.transpose()?,
                name,
            };
            let inside: Vec<ServerSettings> = tools
                .servers
                .iter()
                .filter(|server| view.contains(&server.id))
                .cloned()
                .collect();
            let tools = ToolTargets {
                servers: &inside,
                ..tools
            };
            let own = ConfigRule::check_all(
                section.rule,
                limits,
                tools,
                auth,
                (tree, &path.key("rule")),
            )?;
            rules.extend(own.into_iter().map(|rule| ConfigRule {
                view: Some(view.name.clone()),
                ..rule
            }));
            views.push(view);
        }
        Ok((views, rules))
    }

    /// Returns true if the view contains the server.
    pub(crate) fn contains(&self, server: &str) -> bool {
        let servers = self.servers.as_ref();
        servers.is_none_or(|servers| servers.iter().any(|one| one == server))
    }
}

fn check_servers(
    servers: Vec<String>,
    tools: ToolTargets<'_>,
    path: &SettingPath,
) -> Result<Vec<String>, SettingError> {
    if servers.is_empty() {
        return Err(SettingError::about(
            path.clone(),
            "is empty, so the view would offer nothing; name servers of this config, or remove it for all of them",
        ));
    }
    let known = || tools.servers.iter().map(|server| server.id.as_str());
    for (at, name) in servers.iter().enumerate() {
        if !known().any(|id| id == name) {
            let hint = suggestion(name, known());
            let text = format!("there is no server {name:?} in this config{hint}");
            return Err(SettingError::message(path.index(at), text));
        }
    }
    Ok(servers)
}

/// Checks `default_view`.
pub(super) fn check_default_view(
    name: Option<String>,
    views: &[ViewSettings],
) -> Result<Option<String>, SettingError> {
    let Some(name) = name else {
        return Ok(None);
    };
    let mut known = views.iter().map(|view| view.name.as_str());
    if known.any(|view| view == name) {
        return Ok(Some(name));
    }
    let hint = suggestion(&name, views.iter().map(|view| view.name.as_str()));
    Err(SettingError::message(
        SettingPath::new(&["default_view"]),
        format!("there is no view {name:?}{hint}; add [view.{name}], or correct the name"),
    ))
}
