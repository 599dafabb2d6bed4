//! Paths of settings, from the top of the file.

/// Path of a setting, such as `server`, `files`, `command`, element 0.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(in crate::config) struct SettingPath(Vec<PathStep>);

/// Step of a path: a key of a table, or the position of an element in an array.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum PathStep {
    /// Key of a table.
    Key(String),
    /// Position in an array, from 0.
    Index(usize),
}

impl SettingPath {
    /// Returns the path of these keys.
    pub(in crate::config) fn new(keys: &[&str]) -> SettingPath {
        SettingPath(
            keys.iter()
                .map(|key| PathStep::Key((*key).to_owned()))
                .collect(),
        )
    }

    /// Returns the path of a key below this path.
    pub(in crate::config) fn key(&self, key: &str) -> SettingPath {
        self.step(PathStep::Key(key.to_owned()))
    }

    /// Returns the path of an array element below this path.
    pub(in crate::config) fn index(&self, at: usize) -> SettingPath {
        self.step(PathStep::Index(at))
    }

    fn step(&self, step: PathStep) -> SettingPath {
        let mut path = self.clone();
        path.0.push(step);
        path
    }

    /// Returns the steps.
    pub(super) fn steps(&self) -> &[PathStep] {
        &self.0
    }

    /// Returns the key of the setting and the path of its section. An element belongs to the key of its array.
    pub(super) fn split(&self) -> Option<(&str, SettingPath)> {
        let elements = self
            .0
            .iter()
            .rev()
            .take_while(|step| matches!(step, PathStep::Index(_)));
        let setting = &self.0[..self.0.len() - elements.count()];
        match setting.split_last() {
            Some((PathStep::Key(key), section)) => Some((key, SettingPath(section.to_vec()))),
            _ => None,
        }
    }

    /// Returns the label of the setting in messages, such as `"cwd" in [server.files]`.
    pub(in crate::config) fn label(&self) -> String {
        match self.split() {
            Some((key, section)) if section.0.is_empty() => format!("{key:?}"),
            Some((key, section)) => format!("{key:?} in {}", section.section()),
            None => "the file".to_owned(),
        }
    }

    /// Returns the name of the table at this path: `[limits]`, `[[rule]]`, or an empty text for the top level.
    pub(in crate::config) fn section(&self) -> String {
        let keys: Vec<&str> = self
            .0
            .iter()
            .filter_map(|step| match step {
                PathStep::Key(key) => Some(key.as_str()),
                PathStep::Index(_) => None,
            })
            .collect();
        match (keys.is_empty(), self.0.last()) {
            (true, _) => String::new(),
            (false, Some(PathStep::Index(_))) => format!("[[{}]]", keys.join(".")),
            (false, _) => format!("[{}]", keys.join(".")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sections_and_settings() {
        let server = SettingPath::new(&["server", "files"]);
        assert_eq!(server.section(), "[server.files]");
        assert_eq!(
            server.key("command").index(1).label(),
            "\"command\" in [server.files]"
        );
        let rule = SettingPath::new(&["rule"]).index(2);
        assert_eq!(
            (rule.section().as_str(), rule.label().as_str()),
            ("[[rule]]", "\"rule\"")
        );
        assert_eq!(rule.key("tools").label(), "\"tools\" in [[rule]]");
        assert_eq!(SettingPath::new(&["listen"]).label(), "\"listen\"");
        assert_eq!(SettingPath::default().section(), "");
    }
}
