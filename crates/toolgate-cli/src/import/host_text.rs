//! Texts of hosts' entries: literal text and references, such as `${NAME}`, `${env:NAME}` or `${input:id}`.

use crate::config::check_env_name;

/// Text of an entry, split at its references.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct HostText(pub(crate) Vec<TextPart>);

/// Part of a text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum TextPart {
    /// Literal text.
    Literal(String),
    /// Environment variable, with the default for an unset or empty one.
    Variable {
        /// Name of the variable.
        name: String,
        /// Default.
        default: Option<String>,
    },
    /// Input that the host asks the user for.
    Input(String),
    /// Contents of a file.
    File(String),
    /// Reference that only the host can resolve, as written.
    Unknown(String),
}

/// Syntax of references, and the values that the host itself knows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReferenceSyntax<'a> {
    /// True if `$NAME` is a reference.
    pub(crate) bare: bool,
    /// True if `{env:NAME}` and `{file:PATH}` are references, and `${…}` is not.
    pub(crate) braces: bool,
    /// Directory of the project, for `${workspaceFolder}`.
    pub(crate) project: Option<&'a str>,
    /// Values of inputs that need no user.
    pub(crate) inputs: &'a [(String, String)],
}

impl HostText {
    /// Returns a text without references.
    pub(crate) fn literal(text: impl Into<String>) -> HostText {
        HostText(vec![TextPart::Literal(text.into())])
    }

    /// Returns a reference to a variable.
    pub(crate) fn variable(name: &str) -> HostText {
        HostText(vec![TextPart::Variable {
            name: name.to_owned(),
            default: None,
        }])
    }

    /// Parses a text.
    pub(crate) fn parse(text: &str, syntax: ReferenceSyntax<'_>) -> HostText {
        let (mut parts, mut literal, mut rest) = (Vec::new(), String::new(), text);
        while let Some(first) = rest.chars().next() {
            match reference_at(rest, syntax) {
                Some((part, length)) => {
                    if !literal.is_empty() {
                        parts.push(TextPart::Literal(std::mem::take(&mut literal)));
                    }
                    match part {
                        TextPart::Literal(text) => literal = text,
                        part => parts.push(part),
                    }
                    rest = &rest[length..];
                }
                None => {
                    literal.push(first);
                    rest = &rest[first.len_utf8()..];
                }
            }
        }
        if !literal.is_empty() || parts.is_empty() {
            parts.push(TextPart::Literal(literal));
        }
        HostText(parts).merged()
    }

    /// Joins neighboring literals.
    fn merged(self) -> HostText {
        let mut parts: Vec<TextPart> = Vec::new();
        for part in self.0 {
            match (parts.last_mut(), part) {
                (Some(TextPart::Literal(before)), TextPart::Literal(text)) => {
                    before.push_str(&text);
                }
                (_, part) => parts.push(part),
            }
        }
        HostText(parts)
    }

    /// Turns references to these variables into literal text: the program itself replaces them.
    pub(crate) fn keep_literal(self, is_literal: impl Fn(&str) -> bool) -> HostText {
        let part = |part| match part {
            TextPart::Variable {
                name,
                default: None,
            } if is_literal(&name) => TextPart::Literal(format!("${{{name}}}")),
            part => part,
        };
        HostText(self.0.into_iter().map(part).collect()).merged()
    }

    /// Returns the text in the syntax of `toolgate.toml`.
    ///
    /// # Errors
    /// A part cannot be written there; the text says which.
    pub(crate) fn in_config_syntax(&self) -> Result<String, String> {
        let mut text = String::new();
        for part in &self.0 {
            match part {
                // A literal `${` is written as `$${`.
                TextPart::Literal(literal) => text.push_str(&literal.replace("${", "$${")),
                TextPart::Variable { name, .. } if text.ends_with('$') => {
                    return Err(format!(
                        "has a \"$\" before the variable {name}, which a toolgate.toml cannot have"
                    ));
                }
                TextPart::Variable { name, default } => {
                    let default = default.as_ref().map(|default| format!(":-{default}"));
                    text.push_str(&format!("${{{name}{}}}", default.unwrap_or_default()));
                }
                TextPart::Input(id) => {
                    return Err(format!(
                        "asks for the input {id:?}, which only the host can ask for"
                    ));
                }
                TextPart::File(path) => {
                    return Err(format!("contains the text of the file {path:?}"));
                }
                TextPart::Unknown(written) => {
                    return Err(format!("has {written:?}, which only the host can replace"));
                }
            }
        }
        Ok(text)
    }

    /// Returns the text with the values of its variables; `None` if a part has no value.
    pub(crate) fn resolve(&self, env: impl Fn(&str) -> Option<String>) -> Option<String> {
        let value = |part: &TextPart| match part {
            TextPart::Literal(text) => Some(text.clone()),
            TextPart::Variable { name, default } => match (env(name), default) {
                (Some(value), None) => Some(value),
                (Some(value), Some(_)) if !value.is_empty() => Some(value),
                (_, default) => default.clone(),
            },
            TextPart::Input(_) | TextPart::File(_) | TextPart::Unknown(_) => None,
        };
        self.0.iter().map(value).collect()
    }

    /// Returns the names of what has to be known for the value, such as `the variable TOKEN`.
    pub(crate) fn sources(&self) -> Vec<String> {
        let source = |part: &TextPart| match part {
            TextPart::Literal(_) => None,
            TextPart::Variable { name, .. } => Some(format!("the variable {name}")),
            TextPart::Input(id) => Some(format!("the input {id:?}")),
            TextPart::File(path) => Some(format!("the file {path:?}")),
            TextPart::Unknown(written) => Some(written.clone()),
        };
        self.0.iter().filter_map(source).collect()
    }
}

/// Returns the reference at the start of a text, and its length in bytes.
fn reference_at(text: &str, syntax: ReferenceSyntax<'_>) -> Option<(TextPart, usize)> {
    if syntax.braces {
        let (body, length) = enclosed(text, "{")?;
        let part = match body.split_once(':')? {
            ("env", name) if check_env_name(name).is_ok() => variable(name, None),
            ("file", path) => TextPart::File(path.to_owned()),
            _ => return None,
        };
        return Some((part, length));
    }
    if let Some((body, length)) = enclosed(text, "${") {
        let written = &text[..length];
        return Some((reference(body, written, syntax), length));
    }
    let rest = text.strip_prefix('$').filter(|_| syntax.bare)?;
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let name = &rest[..end.unwrap_or(rest.len())];
    check_env_name(name).ok()?;
    Some((variable(name, None), name.len() + 1))
}

/// Returns the text between `open` and the next `}`, and the length of all three.
fn enclosed<'t>(text: &'t str, open: &str) -> Option<(&'t str, usize)> {
    let (body, _) = text.strip_prefix(open)?.split_once('}')?;
    Some((body, open.len() + body.len() + 1))
}

fn variable(name: &str, default: Option<&str>) -> TextPart {
    TextPart::Variable {
        name: name.to_owned(),
        default: default.map(str::to_owned),
    }
}

fn reference(body: &str, written: &str, syntax: ReferenceSyntax<'_>) -> TextPart {
    let unknown = || TextPart::Unknown(written.to_owned());
    let (name, default) = match body.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (body, None),
    };
    let name = name.strip_prefix("env:").unwrap_or(name);
    match (body, body.split_once(':')) {
        ("userHome", _) => variable("HOME", None),
        ("pathSeparator" | "/", _) => TextPart::Literal("/".to_owned()),
        ("workspaceFolder" | "workspaceRoot" | "cwd", _) => match syntax.project {
            Some(project) => TextPart::Literal(project.to_owned()),
            None => unknown(),
        },
        (_, Some(("input", id))) => {
            let mut inputs = syntax.inputs.iter();
            match inputs.find(|(known, _)| known == id) {
                Some((_, value)) => TextPart::Literal(value.clone()),
                None => TextPart::Input(id.to_owned()),
            }
        }
        (_, Some(("file", path))) => TextPart::File(path.to_owned()),
        _ if default.is_some_and(|default| default.contains("${")) => unknown(),
        _ if check_env_name(name).is_ok() => variable(name, default),
        _ => unknown(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str, syntax: ReferenceSyntax<'_>) -> Result<String, String> {
        HostText::parse(text, syntax).in_config_syntax()
    }

    #[test]
    fn references_of_every_host() {
        let inputs = [("region".to_owned(), "eu".to_owned())];
        let common = ReferenceSyntax {
            project: Some("/p"),
            inputs: &inputs,
            ..ReferenceSyntax::default()
        };
        for (text, expected) in [
            ("plain $HOME {env:A}", "plain $HOME {env:A}"),
            ("${A}", "${A}"),
            ("a${A:-x y}b", "a${A:-x y}b"),
            ("${env:A}", "${A}"),
            ("${env:A:-x}", "${A:-x}"),
            ("${userHome}/a", "${HOME}/a"),
            ("${workspaceFolder}${/}a", "/p/a"),
            ("${input:region}-1", "eu-1"),
            ("open ${A", "open $${A"),
        ] {
            assert_eq!(written(text, common).as_deref(), Ok(expected), "{text}");
        }
        for text in [
            "${input:token}",
            "${command:x.y}",
            "${file:/k}",
            "${}",
            "${A:-${B}}",
            "$${A}",
        ] {
            assert!(written(text, common).is_err(), "{text}");
        }
        let gemini = ReferenceSyntax {
            bare: true,
            ..ReferenceSyntax::default()
        };
        assert_eq!(written("$A/${B} $5", gemini).as_deref(), Ok("${A}/${B} $5"));
        let opencode = ReferenceSyntax {
            braces: true,
            ..ReferenceSyntax::default()
        };
        assert_eq!(
            written("{env:A} {x} ${B}", opencode).as_deref(),
            Ok("${A} {x} $${B}")
        );
    }

    #[test]
    fn a_variable_that_the_program_replaces_stays() {
        let text = HostText::parse("Authorization:${AUTH}", ReferenceSyntax::default());
        let kept = text.keep_literal(|name| name == "AUTH");
        assert_eq!(
            kept.in_config_syntax().as_deref(),
            Ok("Authorization:$${AUTH}")
        );
    }

    #[test]
    fn values_of_variables() {
        let env = |name: &str| (name == "A").then(|| "1".to_owned());
        let value = |text| HostText::parse(text, ReferenceSyntax::default()).resolve(env);
        assert_eq!(value("x${A}").as_deref(), Some("x1"));
        assert_eq!(value("${B:-2}").as_deref(), Some("2"));
        assert_eq!(value("${B}"), None);
        assert_eq!(value("${input:b}"), None);
    }
}
