//! Removal of secrets from a report for others.

use crate::{
    cli::{commands::explain::runtime, server_start::start_guardian},
    config::{
        Config, ConfigValue, ServerSettings,
        keyring::read_secret,
        plaintext::{secret_reason, secrets_in_command},
    },
};
use serde_json::Value;
use std::{borrow::Cow, env, time::Duration};
use toolgate_policy::SecretRedactor;

/// Replacement of a removed text.
const REMOVED: &str = "[removed]";
/// Length of the shortest value that is removed wherever it occurs. A shorter one occurs by chance.
const MIN_VALUE_LENGTH: usize = 4;
/// Time to read an entry of the keyring.
const KEYRING_TIMEOUT: Duration = Duration::from_secs(10);
/// Keys of a config whose values are for a server alone: only the names in them are shown.
const PRIVATE_TABLES: &[&str] = &["env", "headers"];

/// Secrets to remove: those that the config names, the values of its variables and headers, and what the built-in
/// rules find. The home directory becomes `~`.
pub(super) struct ReportRedaction {
    values: Vec<String>,
    home: Option<String>,
}

impl ReportRedaction {
    pub(super) fn new(config: Option<&Config>) -> ReportRedaction {
        let mut values = config.map(secret_values).unwrap_or_default();
        values.retain(|value| value.len() >= MIN_VALUE_LENGTH);
        // A secret that contains another one goes first, so that no rest of it stays.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        let home = env::var("HOME").ok().filter(|home| home.len() > 1);
        ReportRedaction { values, home }
    }

    /// Returns a text without secrets.
    pub(super) fn text(&self, text: &str) -> String {
        let mut text = Cow::Borrowed(text);
        for value in &self.values {
            if text.contains(value.as_str()) {
                text = text.replace(value.as_str(), REMOVED).into();
            }
        }
        let text = SecretRedactor::redact_text(&text);
        match &self.home {
            Some(home) => without_home(&text, home),
            None => text.into_owned(),
        }
    }

    /// Returns a config, or another JSON value, without secrets and without the values for servers.
    pub(super) fn json(&self, value: &Value) -> Value {
        self.member("", value)
    }

    fn member(&self, name: &str, value: &Value) -> Value {
        match value {
            Value::String(text) if secret_reason(name, text).is_some() => REMOVED.into(),
            Value::String(text) => self.text(&without_paths(text)).into(),
            Value::Array(list) if name == "command" || name == "args" => self.command(list),
            Value::Array(list) => list.iter().map(|one| self.member(name, one)).collect(),
            Value::Object(members) => {
                let is_private = PRIVATE_TABLES.contains(&name);
                let members = members.iter().map(|(key, value)| {
                    let value = match value {
                        // A secret that the operator wrote into the config on purpose.
                        _ if key == "danger_clear" => REMOVED.into(),
                        Value::String(_) if is_private => REMOVED.into(),
                        // A reference to a secret, such as `{ env = "NAME" }`, is no secret.
                        Value::Object(_) if is_private => self.member("", value),
                        value => self.member(key, value),
                    };
                    (self.text(key), value)
                });
                Value::Object(members.collect())
            }
            other => other.clone(),
        }
    }

    /// Returns a command without the arguments that look like secrets, such as the one after `--token`.
    fn command(&self, words: &[Value]) -> Value {
        let texts: Vec<String> = words
            .iter()
            .map(|word| word.as_str().unwrap_or_default().to_owned())
            .collect();
        let secrets: Vec<usize> = secrets_in_command(&texts).map(|(at, _)| at).collect();
        let words = words
            .iter()
            .enumerate()
            .map(|(at, word)| match secrets.contains(&at) {
                true => REMOVED.into(),
                false => self.member("", word),
            });
        words.collect()
    }
}

/// Returns the values that the config names or contains for its servers.
fn secret_values(config: &Config) -> Vec<String> {
    let read = |value: &ConfigValue| Some(value.read().ok()?.reveal().to_owned());
    // The uses of the servers include the values that the config itself contains.
    let of_servers = config.servers.iter().flat_map(ServerSettings::secret_uses);
    let of_gateway = config.secret_uses().into_iter();
    let of_gateway = of_gateway.filter(|used| used.server.is_none());
    let used: Vec<_> = of_gateway.chain(of_servers).collect();
    let mut values: Vec<String> = used.iter().filter_map(|used| read(used.value)).collect();
    let keyring = used
        .iter()
        .filter(|used| matches!(used.value, ConfigValue::Keyring(_)));
    let keyring: Vec<_> = keyring.collect();
    if !keyring.is_empty()
        && let (Ok(guardian), Ok(runtime)) = (start_guardian(), runtime())
    {
        let entries = keyring.iter().filter_map(|used| {
            let read = read_secret(used.value, &guardian, KEYRING_TIMEOUT);
            Some(runtime.block_on(read).ok()?.reveal().to_owned())
        });
        values.extend(entries);
    }
    for server in &config.servers {
        let passed = server.env_pass.iter().filter_map(|name| {
            let value = env::var(name).ok()?;
            secret_reason(name, &value).map(|_| value)
        });
        values.extend(passed);
    }
    values
}

/// Returns a text with `~` for the home directory, but not for a directory whose name only begins like it.
fn without_home(text: &str, home: &str) -> String {
    let mut parts = text.split(home);
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let continues = |c: char| c.is_alphanumeric() || "-_.".contains(c);
        let is_longer = part.starts_with(continues);
        shown.push_str(if is_longer { home } else { "~" });
        shown.push_str(part);
    }
    shown
}

/// Returns a text whose URLs end with their host: a path or a query may be a secret.
fn without_paths(text: &str) -> String {
    let words = text.split_inclusive(char::is_whitespace);
    words.map(without_path).collect()
}

fn without_path(word: &str) -> Cow<'_, str> {
    let Some((before, rest)) = word.split_once("://") else {
        return Cow::Borrowed(word);
    };
    let (rest, space) = rest.split_at(rest.trim_end().len());
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let (user, host) = match authority.rsplit_once('@') {
        Some((_, host)) => (format!("{REMOVED}@"), host),
        None => (String::new(), authority),
    };
    let path = match path {
        "" | "/" => path.to_owned(),
        _ => format!("/{REMOVED}"),
    };
    Cow::Owned(format!("{before}://{user}{host}{path}{space}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn redaction(values: &[&str]) -> ReportRedaction {
        ReportRedaction {
            values: values.iter().map(ToString::to_string).collect(),
            home: Some("/home/ada".to_owned()),
        }
    }

    #[test]
    fn secrets_and_the_home_directory_are_removed() {
        let redaction = redaction(&["correct horse"]);
        assert_eq!(
            redaction.text("open /home/ada/x with correct horse: failed"),
            "open ~/x with [removed]: failed"
        );
        assert_eq!(redaction.text("/home/ada /home/adam"), "~ /home/adam");
        let token = "ghp_0123456789abcdefABCDEF0123456789abcd";
        assert!(!redaction.text(token).contains(token));
    }

    #[test]
    fn a_config_keeps_its_form() {
        let config = json!({"listen": "127.0.0.1:1", "server": {"git": {
            "command": ["/home/ada/bin/git", "--x", "--api-key", "hunter2hunter2", "https://a.example/s/1?t=2"],
            "url": "https://ada:pw@example.com/mcp?key=1",
            "header": {"danger_clear": "plain"},
            "api_key": "short",
            "env": {"MODE": "fast", "KEY": {"env": "GIT_KEY"}},
            "start_seconds": 5}}});
        assert_eq!(
            redaction(&[]).json(&config),
            json!({"listen": "127.0.0.1:1", "server": {"git": {
                "command": ["~/bin/git", "--x", "--api-key", "[removed]", "https://a.example/[removed]"],
                "url": "https://[removed]@example.com/[removed]",
                "header": {"danger_clear": "[removed]"},
                "api_key": "[removed]",
                "env": {"MODE": "[removed]", "KEY": {"env": "GIT_KEY"}},
                "start_seconds": 5}}})
        );
    }
}
