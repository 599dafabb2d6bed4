//! The config at the console: its text with masked secrets, checks, what a change does to past calls, and undo.

use super::{ActionError, ActionResult, OperatorApi, action_input::ActionInput};
use crate::{
    config::{Config, ConfigRule, ConfigSource, NameGlob},
    config_edit::{ConfigDocument, MaskedConfig},
    config_versions::ConfigVersion,
    file_diff::{LineChanges, unified_diff},
    history::{self, HistoryFilter, ReplayResult},
    runtime::{
        offline::{DefinitionChoice, OfflineView},
        reload::ReloadTrigger,
    },
    timestamp::micros,
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use toolgate_journal::{AuditEntry, AuditEvent};
use toolgate_policy::{Approver, sanitize_entry};

/// Maximum number of distinct changes in a preview.
const MAX_CHANGES: usize = 200;
/// Maximum number of versions in a list.
const MAX_LISTED_VERSIONS: usize = 20;
/// Maximum number of days of a preview.
const MAX_DAYS: u64 = 30;
/// Keys that the console may change without `danger_edit_config`. The others start programs, reach other hosts, or decide
/// who gets in and what is recorded.
const HARMLESS_KEYS: &[&str] = &["rule", "limits", "pins", "search", "tool_names"];

/// Reason for which the console changes no config with an anchor of passkeys: a program that can open the console could
/// remove the rules that need them.
const PINNED_CONFIG: &str =
    "the config has an anchor of passkeys, so the console does not change it; edit the file";

fn is_pinned(config: &Config) -> bool {
    let passkeys = config.passkeys.as_ref();
    passkeys.is_some_and(|passkeys| passkeys.anchor.is_some())
}

impl OperatorApi {
    /// Executes an action on the config; `None` for any other action.
    pub(super) async fn settings_action(
        &self,
        action: &str,
        with: &Value,
        who: &Approver,
    ) -> Option<ActionResult> {
        let input = ActionInput(with);
        Some(match action {
            "config/get" => self.config_text(),
            "config/check" => self.check_config(input.text("text")),
            "config/preview" => self.preview_config(with).await,
            "config/save" => self.save_config(with, who).await,
            "config/version" => self.config_version(input.text("id")),
            _ => return None,
        })
    }

    fn config_file(&self) -> Result<PathBuf, ActionError> {
        match &self.active.snapshot().config.source {
            ConfigSource::File(path) => Ok(path.clone()),
            _ => Err(ActionError::Refused(
                "this gateway has no config file: start it with --config".to_owned(),
            )),
        }
    }

    /// Returns the text of the config file with masked secrets, and its rules.
    fn config_text(&self) -> ActionResult {
        let snapshot = self.active.snapshot();
        let versions = self.reloader.versions.list();
        let versions = self.versions_json(&versions);
        let active: Vec<Value> = snapshot.config.rules.iter().map(rule_json).collect();
        let mut value = json!({
            "rules": active, "versions": versions, "may_change_all": snapshot.config.console.danger_edit_config,
            "harmless": HARMLESS_KEYS, "policy": self.reloader.status(),
        });
        let read = self.config_file().and_then(|path| {
            let text = Config::read_text(&path)
                .map_err(|error| ActionError::Refused(error.to_string()))?;
            Ok((path, text))
        });
        let (path, text) = match read {
            Ok(read) => read,
            Err(why) => {
                value["why_not"] = json!(why.into_message());
                return Ok(value);
            }
        };
        value["file"] = json!(path.display().to_string());
        value["digest"] = json!(Config::text_hash(&text));
        value["disk_differs"] = json!(snapshot.config.hash != Some(Config::text_hash(&text)));
        match MaskedConfig::new(&text) {
            Some(masked) => {
                if is_pinned(&snapshot.config) {
                    value["why_not"] = json!(PINNED_CONFIG);
                }
                value["masked"] = json!(masked.count());
                value["text"] = json!(masked.text);
            }
            None => {
                value["why_not"] = json!(
                    "the file is not valid TOML, so its secrets cannot be masked; correct it with an editor"
                )
            }
        }
        Ok(value)
    }

    /// Returns the versions, newest first, each with what it changed in the one before it.
    fn versions_json(&self, versions: &[ConfigVersion]) -> Vec<Value> {
        let shown = &versions[..versions.len().min(MAX_LISTED_VERSIONS)];
        let mut after = shown.first().and_then(|newest| self.masked_version(newest));
        let one = |(at, version): (usize, &ConfigVersion)| {
            let before = versions
                .get(at + 1)
                .and_then(|version| self.masked_version(version));
            let change = before.as_ref().zip(after.as_ref());
            let change = change.and_then(|(before, after)| LineChanges::between(before, after));
            after = before;
            json!({
                "id": version.id, "at": version.at, "by": version.by,
                "change": change.map(|change| json!({"added": change.added, "removed": change.removed, "first": change.first})),
            })
        };
        shown.iter().enumerate().map(one).collect()
    }

    fn masked_version(&self, version: &ConfigVersion) -> Option<String> {
        let text = self.reloader.versions.read(&version.id).ok()?;
        MaskedConfig::new(&text).map(|masked| masked.text)
    }

    /// Returns the text that an edited one stands for, with the secrets of the file.
    fn unmasked(&self, edited: &str) -> Result<(PathBuf, String, String), ActionError> {
        let path = self.config_file()?;
        let before =
            Config::read_text(&path).map_err(|error| ActionError::Refused(error.to_string()))?;
        let masked = MaskedConfig::new(&before).ok_or_else(|| {
            "the file is not valid TOML; correct it with an editor first".to_owned()
        })?;
        Ok((path, masked.unmask(edited)?, before))
    }

    /// Checks an edited text. An error of the config is a result, with its line.
    fn check_config(&self, edited: &str) -> ActionResult {
        let (path, text, before) = self.unmasked(edited)?;
        Ok(match self.accepted_config(&path, &text, &before) {
            Ok(config) => {
                json!({"ok": true, "rules": config.rules.iter().map(rule_json).collect::<Vec<_>>()})
            }
            Err(why) => {
                let shown = path.display().to_string();
                let place = why.strip_prefix(&format!("{shown}:"));
                let mut parts = place.into_iter().flat_map(|place| place.splitn(3, ':'));
                let line = parts.next().and_then(|line| line.parse::<u64>().ok());
                let column = parts.next().and_then(|column| column.parse::<u64>().ok());
                json!({"ok": false, "error": null, "why": why, "line": line, "column": column})
            }
        })
    }

    /// Reads an edited config, which may change only what the console may change.
    fn accepted_config(&self, path: &Path, text: &str, before: &str) -> Result<Config, String> {
        let config = Config::check_text(path, text).map_err(|error| error.to_string())?;
        let snapshot = self.active.snapshot();
        if is_pinned(&snapshot.config) {
            return Err(PINNED_CONFIG.to_owned());
        }
        if snapshot.config.console.danger_edit_config {
            return Ok(config);
        }
        let parse = |text: &str| {
            text.trim_start_matches('\u{feff}')
                .parse::<toml::Table>()
                .unwrap_or_default()
        };
        let (before, after) = (parse(before), parse(text));
        let keys = before.keys().chain(after.keys());
        let mut changed: Vec<&String> = keys
            .filter(|key| {
                !HARMLESS_KEYS.contains(&key.as_str()) && before.get(*key) != after.get(*key)
            })
            .collect();
        changed.sort();
        changed.dedup();
        match changed.first() {
            None => Ok(config),
            Some(key) => Err(format!(
                "the console must not change \"{key}\"; edit the file, or set danger_edit_config = true in [console]"
            )),
        }
    }

    /// Returns the differences of an edited text, and what it does to the calls of the last days.
    async fn preview_config(&self, with: &Value) -> ActionResult {
        let input = ActionInput(with);
        let edited = input.text("text");
        let days = input.number("days").unwrap_or(7).min(MAX_DAYS);
        let (path, text, before) = self.unmasked(edited)?;
        let config = self.accepted_config(&path, &text, &before)?;
        let since = SystemTime::now()
            .checked_sub(Duration::from_secs(days * 24 * 3600))
            .unwrap_or(UNIX_EPOCH);
        let view =
            OfflineView::over(config, self.store.clone(), DefinitionChoice::Accepted).await?;
        let runtime = tokio::runtime::Handle::current();
        let preview = self.history.read(move |dir| {
            let filter = HistoryFilter {
                since: micros(since),
                ..HistoryFilter::default()
            };
            let mut effect = RuleEffect::default();
            let judged = history::evaluate_records(
                dir,
                &filter,
                &view,
                |_| {},
                |call, judged| {
                    effect.add(call, &judged);
                },
            );
            runtime.block_on(judged).map(|()| effect.into_json())
        });
        let mut preview = preview.await?.map_err(|error| {
            format!("cannot read the audit log: {error}; check its permissions")
        })?;
        preview["diff"] = json!(masked_diff(&path, &before, edited));
        preview["days"] = json!(days);
        Ok(preview)
    }

    /// Writes an edited text, or an earlier version, and puts it in force. A config that the gateway rejects is taken back.
    async fn save_config(&self, with: &Value, who: &Approver) -> ActionResult {
        let word = |key: &str| with.get(key).and_then(Value::as_str);
        let (path, text, before) = match word("version") {
            Some(id) => {
                let (path, _, before) = self.unmasked("")?;
                (path, self.reloader.versions.read(id)?, before)
            }
            None => self.unmasked(word("text").unwrap_or_default())?,
        };
        if word("digest") != Some(Config::text_hash(&before).as_str()) {
            return Err(ActionError::Refused(
                "the config file was changed meanwhile, so nothing was written; reload the page"
                    .to_owned(),
            ));
        }
        self.accepted_config(&path, &text, &before)?;
        self.record_save(&before, &text, who).await?;
        self.write_config(&path, &text)?;
        let by = who.name.as_deref().unwrap_or(who.channel.as_str());
        let reloaded = self
            .reloader
            .reload(ReloadTrigger::Requested("console"))
            .await;
        if let Err(why) = reloaded {
            self.write_config(&path, &before)?;
            let _ = self
                .reloader
                .reload(ReloadTrigger::Requested("console"))
                .await;
            return Err(ActionError::Refused(format!(
                "the gateway rejects this config, so the file is as it was: {why}"
            )));
        }
        let kept = self.reloader.versions.keep(&text, by);
        Ok(json!({"ok": true, "note": kept.err()}))
    }

    /// Records who changes the config, before it changes.
    async fn record_save(&self, before: &str, text: &str, who: &Approver) -> Result<(), String> {
        let entry = AuditEntry::new(AuditEvent::from("config.saved"))
            .with("old", Config::text_hash(before))
            .with("new", Config::text_hash(text));
        let entry = who.add_to(entry);
        let recorded = self.journal.append(sanitize_entry(entry)).await;
        recorded.map(drop).map_err(|error| {
            format!("nothing was written, because the audit log cannot record the change: {error}")
        })
    }

    fn write_config(&self, path: &Path, text: &str) -> Result<(), String> {
        let mut document = ConfigDocument::open(path).map_err(|error| error.to_string())?;
        document.replace(text);
        document.save().map(drop).map_err(|error| error.to_string())
    }

    /// Returns the differences between the config file and an earlier version.
    fn config_version(&self, id: &str) -> ActionResult {
        let (path, _, before) = self.unmasked("")?;
        let text = self.reloader.versions.read(id)?;
        let error = self.accepted_config(&path, &text, &before).err();
        Ok(json!({
            "diff": masked_diff(&path, &before, &mask(&text)),
            "digest": Config::text_hash(&before), "why_not": error,
        }))
    }
}

/// Returns the text with its secrets masked; nothing if their places are unknown.
fn mask(text: &str) -> String {
    MaskedConfig::new(text).map_or_else(String::new, |masked| masked.text)
}

/// Returns the differences between the file and a masked text. Secrets of the file are masked in it.
fn masked_diff(path: &Path, before: &str, after: &str) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    unified_diff(&name.to_string_lossy(), Some(&mask(before)), after)
}

/// Calls of the past under an edited config.
#[derive(Default)]
struct RuleEffect {
    calls: u64,
    same: u64,
    unknown: u64,
    /// Number of calls by the rule that decides them.
    hits: BTreeMap<String, u64>,
    changes: BTreeMap<(String, String, &'static str, &'static str, String), u64>,
    more: u64,
}

impl RuleEffect {
    fn add(&mut self, call: &history::RecordedCall, judged: &history::ReplayedCall) {
        self.calls += 1;
        let now = match &judged.result {
            ReplayResult::Unknown(_) => {
                self.unknown += 1;
                return;
            }
            ReplayResult::Decided(now) => now,
        };
        if now.by == "access" {
            *self.hits.entry(now.reason()).or_default() += 1;
        }
        let Some(then) = &call.decision else { return };
        let (before, after) = (then.word(), now.word());
        if before == after {
            self.same += 1;
            return;
        }
        let key = (
            judged.tool.clone(),
            call.caller.name().to_owned(),
            before,
            after,
            now.reason(),
        );
        if self.changes.len() < MAX_CHANGES || self.changes.contains_key(&key) {
            *self.changes.entry(key).or_default() += 1;
        } else {
            self.more += 1;
        }
    }

    fn into_json(self) -> Value {
        let mut changes: Vec<_> = self.changes.into_iter().collect();
        changes.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        let one = |((tool, caller, before, after, why), n): (
            (String, String, &str, &str, String),
            u64,
        )| {
            json!({"tool": tool, "caller": caller, "before": before, "after": after, "why": why, "n": n})
        };
        json!({
            "calls": self.calls, "same": self.same, "unknown": self.unknown, "hits": self.hits, "more": self.more,
            "changes": changes.into_iter().map(one).collect::<Vec<_>>(),
        })
    }
}

fn rule_json(rule: &ConfigRule) -> Value {
    json!({
        "line": rule.line, "tools": NameGlob::texts(&rule.tools), "callers": NameGlob::texts(&rule.callers), "except": NameGlob::texts(&rule.except),
        "when": rule.condition.as_ref().map(toolgate_policy::CelCondition::as_str), "action": rule.action.as_str(),
        "rate": rule.rate.as_ref().map(ToString::to_string), "approvals": rule.approvals.as_ref().map(|needs| needs.approvers()),
        "approval_groups": rule.approvals.as_ref().map(|needs| &needs.groups),
    })
}
