//! Renamed settings. Former names are errors that give the new name; they are never accepted as aliases.

/// Setting with a former key or former values.
pub(super) struct RenamedSetting {
    /// Section of the setting, with `NAME` for a name that the operator chose.
    section: &'static str,
    /// Current key.
    pub(super) key: &'static str,
    /// Former key; the current one if only values were renamed.
    pub(super) old_key: &'static str,
    /// Former values, each with the current one.
    pub(super) values: &'static [(&'static str, &'static str)],
}

/// Every renamed setting.
const RENAMED_SETTINGS: &[RenamedSetting] = &[
    key("[[rule]]", "then", "action"),
    key("[server.NAME]", "leaks", "outbound_secrets"),
    key("[server.NAME]", "forms", "elicitation_forms"),
    key("[server.NAME]", "pages", "elicitation_urls"),
    RenamedSetting {
        values: &[("server", "shared"), ("caller", "per_caller")],
        ..key("[server.NAME]", "grants", "credentials")
    },
    RenamedSetting {
        values: &[("words", "message")],
        ..key("[server.NAME]", "error_text", "error_text")
    },
    key("[server.NAME]", "mark_foreign", "mark_untrusted"),
    key("[search]", "from", "min_tools"),
    key("[[auth.scope]]", "needs", "scopes"),
    key(
        "[limits]",
        "introspect_again_seconds",
        "introspection_recheck_seconds",
    ),
    key("[limits]", "task_looks", "task_polls"),
];

const fn key(section: &'static str, old_key: &'static str, key: &'static str) -> RenamedSetting {
    RenamedSetting {
        section,
        key,
        old_key,
        values: &[],
    }
}

impl RenamedSetting {
    /// Returns the current value for a former one.
    pub(super) fn new_value(&self, old: &str) -> Option<&'static str> {
        let found = self.values.iter().find(|(former, _)| *former == old);
        found.map(|(_, now)| *now)
    }
}

/// Returns the renamed settings of a section such as `[server.files]`.
pub(super) fn settings_of(section: &str) -> impl Iterator<Item = &'static RenamedSetting> {
    RENAMED_SETTINGS
        .iter()
        .filter(move |setting| is_section(setting.section, section))
}

/// Returns true if the section has this form.
fn is_section(form: &str, section: &str) -> bool {
    let part = |(form, part): (&str, &str)| form == part || form == "NAME]" && part.ends_with(']');
    form.split('.').count() == section.split('.').count()
        && form.split('.').zip(section.split('.')).all(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use std::path::Path;

    /// Returns the message of an invalid config, or an empty one.
    fn message(text: &str) -> String {
        let config = Config::parse(Path::new("t.toml"), text);
        config.err().map(|e| e.to_string()).unwrap_or_default()
    }

    /// Returns a config up to the section of a setting, which is open at the end.
    fn head(section: &str) -> &'static str {
        match section {
            "[[rule]]" => "[server.s]\ncommand = [\"x\"]\n[[rule]]\ntools = [\"s.*\"]\n",
            "[server.NAME]" => "[server.s]\nurl = \"https://s.test/mcp\"\n",
            "[search]" => "[server.s]\ncommand = [\"x\"]\n[search]\n",
            "[[auth.scope]]" => {
                "[server.s]\ncommand = [\"x\"]\n[auth]\nresource = \"https://t.test/mcp\"\n\
                [auth.issuer.corp]\nurl = \"https://l.test\"\n[[auth.scope]]\ntools = [\"s.*\"]\n"
            }
            "[limits]" => "[server.s]\ncommand = [\"x\"]\n[limits]\n",
            other => panic!("no example of {other}"),
        }
    }

    /// Returns a valid value of a setting.
    fn valid(setting: &RenamedSetting) -> String {
        match (setting.values, setting.key) {
            ([(_, now), ..], _) => format!("{now:?}"),
            (_, "action") => "\"deny\"".to_owned(),
            (_, "outbound_secrets" | "elicitation_forms" | "elicitation_urls") => {
                "\"off\"".to_owned()
            }
            (_, "mark_untrusted") => "true".to_owned(),
            (_, "scopes") => "[\"read\"]".to_owned(),
            (_, "min_tools" | "task_polls" | "introspection_recheck_seconds") => "60".to_owned(),
            (_, other) => panic!("no value of {other}"),
        }
    }

    #[test]
    fn rejects_each_former_key_and_accepts_the_current_one_in_the_same_place() {
        for setting in RENAMED_SETTINGS {
            let (head, value) = (head(setting.section), valid(setting));
            let line = head.lines().count() + 1;
            let (old, now) = (setting.old_key, setting.key);
            assert_eq!(message(&format!("{head}{now} = {value}\n")), "", "{now}");
            let label = setting.section.replace("NAME", "s");
            if old != now {
                assert_eq!(
                    message(&format!("{head}{old} = {value}\n")),
                    format!("t.toml:{line}:1: {old:?} in {label} is called {now:?} now; rename it")
                );
            }
            for (former, value) in setting.values {
                let column = now.len() + 4;
                assert_eq!(
                    message(&format!("{head}{now} = {former:?}\n")),
                    format!(
                        "t.toml:{line}:{column}: {now:?} in {label} is {former:?}, which is called {value:?} now; rename it"
                    )
                );
                if old != now {
                    assert_eq!(
                        message(&format!("{head}{old} = {former:?}\n")),
                        format!(
                            "t.toml:{line}:1: {old:?} in {label} is called {now:?} now; write {now} = {value:?}"
                        )
                    );
                }
            }
        }
    }

    #[test]
    fn a_former_key_is_only_known_in_its_section() {
        for (form, section, same) in [
            ("[server.NAME]", "[server.files]", true),
            ("[server.NAME]", "[server.files.exchange]", false),
            ("[server.NAME]", "[server]", false),
            ("[search]", "[search]", true),
            ("[search]", "[[search.direct]]", false),
            ("[[rule]]", "", false),
        ] {
            assert_eq!(is_section(form, section), same, "{form} {section}");
        }
    }
}
