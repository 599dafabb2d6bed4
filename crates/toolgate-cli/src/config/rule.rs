//! `[[rule]]`: the operator's rules for tools and callers.

use super::{
    approvals::ApprovalsSetting,
    auth::AuthSettings,
    glob::NameGlob,
    limits::GatewayLimits,
    rate::RateSetting,
    reader::{ConfigTree, SettingError, SettingPath},
    tool_targets::ToolTargets,
};
use schemars::JsonSchema;
use serde::Deserialize;
use toolgate_policy::{ApprovalRequirement, CelCondition, CelLimits};

/// Rule of the operator. Of all rules that match a call, the strictest action wins.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct ConfigRule {
    /// Line in the config, from 1.
    pub(crate) line: usize,
    /// Position among the rules of the config or of its view, from 1.
    pub(crate) number: usize,
    /// View at whose endpoint the rule applies; `None` for everywhere.
    pub(crate) view: Option<String>,
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
    /// Required approvers; one if absent.
    pub(crate) approvals: Option<ApprovalRequirement>,
}

/// Action of a rule, ordered by strictness.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum ConfigRuleAction {
    /// Allow the call.
    Allow,
    /// Ask an approver.
    Ask,
    /// Deny the call.
    Deny,
}

impl ConfigRuleAction {
    /// Returns the word of the action in the config.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            ConfigRuleAction::Allow => "allow",
            ConfigRuleAction::Ask => "ask",
            ConfigRuleAction::Deny => "deny",
        }
    }
}

/// Rule for calls, `[[rule]]`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RuleSection {
    /// Globs over full names of matching items: `server.tool`, `server.resource:URI`, `server.prompt:NAME`,
    /// `server.skill:URI`.
    #[schemars(example = ["server.*"])]
    tools: Vec<String>,
    /// Globs over full names that the rule does not match.
    #[serde(default)]
    #[schemars(example = ["server.*"])]
    except: Vec<String>,
    /// Globs over names of matching callers: `key:NAME`, `ISSUER:SUBJECT` with an issuer of this config, `token@http`,
    /// `anonymous@http`, `local@stdio`, `operator@NAME`, `hook@HOST`. `group:NAME` and `role:NAME` match callers by their
    /// groups and roles. A glob that no caller can match is an error.
    /// Default: every caller.
    #[schemars(example = ["key:ci", "group:oncall"])]
    callers: Option<Vec<String>>,
    /// CEL condition over the call; the rule matches only calls for which it is true.
    when: Option<String>,
    /// Action for matching calls: `allow` them, `ask` a person, or `deny` them. A denied item is not listed either,
    /// unless `when` depends on the call.
    action: ConfigRuleAction,
    /// Rate limit of each caller for each of these items, whatever `when` says. Everything that a template reads counts
    /// as one item. If several rules with a `rate` match, all their rates apply. Default: `rate` of `[limits]`.
    rate: Option<RateSetting>,
    /// Number of different people who have to approve a matching call that needs approval, whatever `when` says; with
    /// `action = "ask"` only. Or a table with `count`, `groups` and `passkey`: each entry of `groups` needs a person of its
    /// own who signed in to the console and is in one of the groups of the entry. With `passkey = true`, each person signs
    /// the call with a passkey. If several rules match, an approval has to meet all of them.
    #[schemars(extend("default" = 1))]
    approvals: Option<ApprovalsSetting>,
}

impl ConfigRule {
    /// Checks all `[[rule]]` sections, in the order of the file.
    pub(super) fn check_all(
        sections: Vec<RuleSection>,
        limits: &GatewayLimits,
        tools: ToolTargets<'_>,
        auth: &AuthSettings,
        (tree, all): (&ConfigTree<'_>, &SettingPath),
    ) -> Result<Vec<ConfigRule>, SettingError> {
        let check = |(at, section)| {
            let path = all.index(at);
            let line = tree.line(&path);
            let rule = ConfigRule::check(section, limits, tools, auth, (&path, line))?;
            Ok(ConfigRule {
                number: at + 1,
                ..rule
            })
        };
        sections.into_iter().enumerate().map(check).collect()
    }

    /// Returns the name of the rule in messages and audit records, such as `rule 2 (line 14)`.
    pub(crate) fn label(&self) -> String {
        match &self.view {
            Some(view) => format!("rule {} of view {view} (line {})", self.number, self.line),
            None => format!("rule {} (line {})", self.number, self.line),
        }
    }

    fn check(
        section: RuleSection,
        limits: &GatewayLimits,
        tools: ToolTargets<'_>,
        auth: &AuthSettings,
        (path, line): (&SettingPath, usize),
    ) -> Result<ConfigRule, SettingError> {
        if section.approvals.is_some() && section.action != ConfigRuleAction::Ask {
            return Err(SettingError::about(
                path.key("approvals"),
                "has no effect without action = \"ask\"; write that action, or remove it",
            ));
        }
        let groups = section
            .approvals
            .iter()
            .any(|approvals| !approvals.0.groups.is_empty());
        let mut issuers = auth.issuers.iter();
        if groups && !issuers.any(|one| one.sign_in.is_some() && one.claims.groups.is_some()) {
            return Err(SettingError::about(
                path.key("approvals"),
                "can never be met, because nobody who signs in to the console is in a group: set groups_claim and [auth.issuer.NAME.sign_in] of an issuer, and give roles in [console.role]",
            ));
        }
        let condition = section.when.map(|text| {
            compile_condition(&text, limits)
                .map_err(|text| SettingError::about(path.key("when"), text))
        });
        Ok(ConfigRule {
            line,
            number: 0,
            view: None,
            tools: tools.check_required(&section.tools, &path.key("tools"))?,
            callers: auth.check_callers(section.callers.as_deref(), &path.key("callers"))?,
            except: tools.check(&section.except, &path.key("except"))?,
            condition: condition.transpose()?,
            action: section.action,
            rate: section.rate,
            approvals: section.approvals.map(|approvals| approvals.0),
        })
    }
}

fn compile_condition(text: &str, limits: &GatewayLimits) -> Result<CelCondition, String> {
    let mut cel_limits = CelLimits::default();
    cel_limits.bytes = limits.when_bytes;
    cel_limits.depth = limits.when_depth;
    cel_limits.steps = limits.when_steps;
    CelCondition::compile_within(text, &cel_limits)
        .map_err(|wrong| format!("is not a valid condition: {wrong}"))
}
