//! Forms of possibly secret values: `"TEXT"`, `{ env = "NAME" }`, `{ file = "PATH" }`, `{ keyring = "NAME" }` or
//! `{ danger_clear = "TEXT" }`.

use super::{
    config_value::ConfigValue,
    env_name::EnvName,
    expand, plaintext,
    reader::{ConfigPath, ExpandedText, inline_schema},
};
use schemars::{Schema, json_schema};
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor, value::StrDeserializer},
};
use std::fmt;

/// Alternatives to a plaintext secret, for error messages.
pub(super) const SECRET_ALTERNATIVES: &str =
    "{ env = \"NAME\" }, { file = \"PATH\" } or { keyring = \"NAME\" }";
/// Key that marks a plaintext value as intended although it looks like a secret.
pub(super) const PLAINTEXT_KEY: &str = "danger_clear";

/// Value that is always secret: `{ env = "NAME" }`, `{ file = "PATH" }` or `{ keyring = "NAME" }`.
#[derive(Clone)]
pub(super) struct SecretSource(pub(super) ConfigValue);

/// Value that may be secret: text, or the source of a secret.
#[derive(Clone)]
pub(super) enum ValueSource {
    /// Text that must not look like a secret.
    Text(ExpandedText),
    /// Source of the value, or text that is marked with `danger_clear`.
    Source(ConfigValue),
}

/// Text that must not look like a secret unless it is marked: `"TEXT"` or `{ danger_clear = "TEXT" }`.
#[derive(Clone)]
pub(super) enum MarkableText {
    /// Text that must not look like a secret.
    Text(ExpandedText),
    /// Marked text.
    Marked(String),
}

impl ValueSource {
    /// Returns the value, unless it is plaintext that looks like a secret by its name or form.
    ///
    /// # Errors
    /// The text looks like a secret; the message says what to write instead.
    pub(super) fn check(self, name: &str) -> Result<ConfigValue, String> {
        let ExpandedText { written, text } = match self {
            ValueSource::Source(value) => return Ok(value),
            ValueSource::Text(text) => text,
        };
        let why = plaintext::secret_reason(name, &written)
            .or_else(|| plaintext::secret_reason(name, &text));
        match why {
            None => Ok(ConfigValue::Plaintext(text)),
            Some(why) if expand::has_reference(&written) => Err(format!(
                "{why}, and variables are not expanded into secrets; write {SECRET_ALTERNATIVES}"
            )),
            Some(why) => Err(plaintext_error(&why)),
        }
    }
}

impl MarkableText {
    /// Returns the text as written, unless it is marked.
    pub(super) fn written(&self) -> Option<&str> {
        match self {
            MarkableText::Text(text) => Some(&text.written),
            MarkableText::Marked(_) => None,
        }
    }

    /// Returns the expanded or marked text.
    pub(super) fn text(&self) -> &str {
        match self {
            MarkableText::Text(text) => &text.text,
            MarkableText::Marked(text) => text,
        }
    }
}

/// Returns the error text for a plaintext secret.
fn plaintext_error(why: &str) -> String {
    format!(
        "{why}, and would be in plaintext in this file; write {SECRET_ALTERNATIVES}; if it is not a secret, write {{ {PLAINTEXT_KEY} = \"…\" }}"
    )
}

impl<'de> Deserialize<'de> for SecretSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SecretSource, D::Error> {
        match ValueSource::deserialize(deserializer)? {
            ValueSource::Source(ConfigValue::Plaintext(_)) | ValueSource::Text(_) => {
                Err(D::Error::custom(format!(
                    "would store a secret in plaintext in this file; write {SECRET_ALTERNATIVES}"
                )))
            }
            ValueSource::Source(value) => Ok(SecretSource(value)),
        }
    }
}

impl<'de> Deserialize<'de> for MarkableText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<MarkableText, D::Error> {
        match ValueSource::deserialize(deserializer)? {
            ValueSource::Text(text) => Ok(MarkableText::Text(text)),
            ValueSource::Source(ConfigValue::Plaintext(text)) => Ok(MarkableText::Marked(text)),
            ValueSource::Source(_) => Err(D::Error::custom(format!(
                "is a table; write a string in quotes, or {{ {PLAINTEXT_KEY} = \"…\" }} if it looks like a secret but is not one"
            ))),
        }
    }
}

impl<'de> Deserialize<'de> for ValueSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ValueSource, D::Error> {
        deserializer.deserialize_any(ValueSourceVisitor)
    }
}

struct ValueSourceVisitor;

impl<'de> Visitor<'de> for ValueSourceVisitor {
    type Value = ValueSource;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a string in quotes, or {SECRET_ALTERNATIVES}")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<ValueSource, E> {
        ExpandedText::deserialize(StrDeserializer::new(text)).map(ValueSource::Text)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ValueSource, A::Error> {
        let form = || {
            A::Error::custom(format!(
                "must have exactly one key; write {SECRET_ALTERNATIVES}"
            ))
        };
        let key: String = map.next_key()?.ok_or_else(form)?;
        let value = match key.as_str() {
            PLAINTEXT_KEY => ConfigValue::Plaintext(map.next_value()?),
            "env" => ConfigValue::Env(map.next_value::<EnvName>()?.0),
            "file" => ConfigValue::File(map.next_value::<ConfigPath>()?.into()),
            "keyring" => ConfigValue::Keyring(map.next_value::<KeyringName>()?.0),
            _ => {
                return Err(A::Error::custom(format!(
                    "has the unknown key {key:?}; write {SECRET_ALTERNATIVES}"
                )));
            }
        };
        match map.next_key::<String>()? {
            None => Ok(ValueSource::Source(value)),
            Some(_) => Err(form()),
        }
    }
}

/// Name of an entry in the keyring.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct KeyringName(String);

impl TryFrom<String> for KeyringName {
    type Error = &'static str;

    fn try_from(name: String) -> Result<KeyringName, &'static str> {
        // No program may mistake the name for an option.
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-/@".contains(&b);
        let valid = (1..=128).contains(&name.len())
            && name.bytes().all(plain)
            && name.starts_with(|c: char| c.is_ascii_alphanumeric());
        match valid {
            true => Ok(KeyringName(name)),
            // Omit the value from the error: it may be the secret itself.
            false => Err(
                "is not a valid name for a keyring entry; write 1 to 128 letters, digits and any of \".\", \"_\", \"-\", \"/\" and \"@\", and begin with a letter or digit",
            ),
        }
    }
}

/// Returns the schema of a table with one key.
fn source_schema(key: &str, example: &str, description: &str) -> Schema {
    json_schema!({
        "type": "object",
        "description": description,
        "properties": {key: {"type": "string"}},
        "required": [key],
        "additionalProperties": false,
        "examples": [{key: example}],
    })
}

fn secret_schemas() -> Vec<Schema> {
    vec![
        source_schema(
            "env",
            "NAME",
            "Environment variable of the gateway that contains the value.",
        ),
        source_schema(
            "file",
            "PATH",
            "File that contains the value; only its owner may read it.",
        ),
        source_schema(
            "keyring",
            "NAME",
            "Entry of that name in the operating system's keyring.",
        ),
    ]
}

fn marked_schema() -> Schema {
    source_schema(
        PLAINTEXT_KEY,
        "TEXT",
        "Text that looks like a secret but is not one.",
    )
}

inline_schema!(SecretSource, |_| json_schema!({
    "title": "secret",
    "anyOf": secret_schemas(),
}));

inline_schema!(MarkableText, |_| json_schema!({
    "anyOf": [{"type": "string"}, marked_schema()],
}));

inline_schema!(ValueSource, |_| {
    let mut any = vec![json_schema!({"type": "string"})];
    any.extend(secret_schemas());
    any.push(marked_schema());
    json_schema!({"title": "string or secret", "anyOf": any})
});
