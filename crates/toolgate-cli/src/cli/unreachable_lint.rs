//! Lint for rules that can never decide, for `toolgate check`: a stricter rule matches wherever they do.

use crate::config::{ConfigRule, NameGlob};
use toolgate_policy::GlobPattern;

/// Returns a note for each unreachable rule. Only certain cases count: a rule with a condition covers no other rule.
pub(crate) fn notes(rules: &[ConfigRule]) -> Vec<String> {
    let mut notes = Vec::new();
    for (n, rule) in rules.iter().enumerate() {
        if all_covered(&rule.tools, &rule.except) {
            let place = rule.label();
            notes.push(format!(
                "{place} matches nothing: its \"except\" excludes all of its \"tools\"; correct one of the two"
            ));
            continue;
        }
        // A rule with a rate has an effect of its own.
        if rule.rate.is_some() {
            continue;
        }
        let mut others = rules.iter().enumerate();
        let stricter = others.find(|(m, other)| {
            let first = other.action > rule.action || (other.action == rule.action && *m < n);
            *m != n && first && covers(other, rule)
        });
        if let Some((_, other)) = stricter {
            let why = if other.action == rule.action {
                "has the same action"
            } else {
                "is stricter"
            };
            let (this, that) = (rule.label(), other.label());
            notes.push(format!(
                "{this} never decides: {that} matches the same calls and {why}; correct or remove one of them"
            ));
        }
    }
    notes
}

/// Returns whether one rule matches wherever another does.
fn covers(one: &ConfigRule, other: &ConfigRule) -> bool {
    one.condition.is_none()
        && (one.view.is_none() || one.view == other.view)
        && one.approvals == other.approvals
        && (one.callers.is_empty()
            || (!other.callers.is_empty() && all_covered(&other.callers, &one.callers)))
        && all_covered(&other.tools, &one.tools)
        && all_covered(&one.except, &other.except)
}

fn all_covered(these: &[NameGlob], by: &[NameGlob]) -> bool {
    these
        .iter()
        .all(|this| by.iter().any(|glob| covers_glob(glob, this)))
}

/// Returns whether one glob matches everything that another matches. A `?` of the wider one could stand for the `*`
/// of the other, which is longer. So a glob with `?` covers only an equal glob.
fn covers_glob(one: &NameGlob, other: &NameGlob) -> bool {
    let plain = !one.as_str().contains('?');
    one == other || (plain && GlobPattern::new(one.as_str()).matches(other.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    fn noted(rules: &[&str]) -> Vec<String> {
        let rules: String = rules
            .iter()
            .map(|rule| format!("[[rule]]\n{rule}\n"))
            .collect();
        let text = format!("[server.s]\ncommand = [\"x\"]\n[server.t]\ncommand = [\"x\"]\n{rules}");
        static FILES: AtomicU32 = AtomicU32::new(0);
        let number = FILES.fetch_add(1, Relaxed);
        let name = format!("toolgate-unreachable-{}-{number}.toml", std::process::id());
        let file = std::env::temp_dir().join(name);
        std::fs::write(&file, text).unwrap();
        let config = Config::load(Some(&file)).unwrap();
        std::fs::remove_file(&file).unwrap();
        notes(&config.rules)
    }

    #[test]
    fn reports_a_rule_below_a_stricter_one() {
        let allow = "tools = [\"s.read_*\"]\naction = \"allow\"";
        let deny = "tools = [\"s.*\"]\naction = \"deny\"";
        let told = [
            "rule 1 (line 5) never decides: rule 2 (line 8) matches the same calls and is stricter; correct or remove one of them",
        ];
        assert_eq!(noted(&[allow, deny]), told);
        let told = [
            "rule 2 (line 8) never decides: rule 1 (line 5) matches the same calls and is stricter; correct or remove one of them",
        ];
        assert_eq!(noted(&[deny, allow]), told);
        let told = [
            "rule 2 (line 8) never decides: rule 1 (line 5) matches the same calls and has the same action; correct or remove one of them",
        ];
        assert_eq!(noted(&[deny, "tools = [\"s.x\"]\naction = \"deny\""]), told);
        let told = [
            "rule 1 (line 5) matches nothing: its \"except\" excludes all of its \"tools\"; correct one of the two",
        ];
        assert_eq!(
            noted(&["tools = [\"s.a\"]\nexcept = [\"s.*\"]\naction = \"deny\""]),
            told
        );
    }

    #[test]
    fn does_not_report_a_rule_that_may_decide() {
        let allow = "tools = [\"s.read_*\"]\naction = \"allow\"";
        for other in [
            "tools = [\"t.*\"]\naction = \"deny\"",
            "tools = [\"s.*\"]\ncallers = [\"key:a\"]\naction = \"deny\"",
            "tools = [\"s.*\"]\nexcept = [\"s.read_x\"]\naction = \"deny\"",
            "tools = [\"s.*\"]\nwhen = \"args.a == 1\"\naction = \"deny\"",
            "tools = [\"s.read_?\"]\naction = \"deny\"",
            "tools = [\"s.read_a\"]\naction = \"ask\"",
        ] {
            assert_eq!(noted(&[allow, other]), [""; 0], "{other}");
        }
        let rated = format!("{allow}\nrate = \"9/min\"");
        assert_eq!(
            noted(&[&rated, "tools = [\"s.*\"]\naction = \"deny\""]),
            [""; 0]
        );
    }
}
