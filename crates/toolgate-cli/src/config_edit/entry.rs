//! New section of a server, `[server.NAME]`.

use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, Value};

/// Maximum length of a line with an inline table, in bytes. A longer one becomes a section.
const MAX_INLINE_BYTES: usize = 100;

/// Value of `env` or `headers`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum EntryValue {
    /// Text, which the config reader rejects if it looks like a secret.
    Text(String),
    /// Environment variable of the gateway, `{ env = "NAME" }`.
    Env(String),
    /// File that only its owner may read, `{ file = "PATH" }`.
    File(String),
    /// Entry of the operating system's keyring, `{ keyring = "NAME" }`.
    Keyring(String),
}

/// New section of a server: a program or a URL.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct ServerEntry {
    /// Program and arguments; empty for a remote server.
    pub(crate) command: Vec<String>,
    /// Address of a remote server.
    pub(crate) url: Option<String>,
    /// Environment variables of the program.
    pub(crate) env: Vec<(String, EntryValue)>,
    /// Names of variables to pass on to the program.
    pub(crate) env_pass: Vec<String>,
    /// HTTP headers of requests to the URL.
    pub(crate) headers: Vec<(String, EntryValue)>,
    /// Working directory of the program.
    pub(crate) cwd: Option<String>,
    /// True if the section has `enabled = false`.
    pub(crate) disabled: bool,
}

impl EntryValue {
    fn value(&self) -> Value {
        let source = |key: &str, text: &String| {
            let mut table = InlineTable::new();
            table.insert(key, text.into());
            Value::InlineTable(table)
        };
        match self {
            EntryValue::Text(text) => text.into(),
            EntryValue::Env(name) => source("env", name),
            EntryValue::File(path) => source("file", path),
            EntryValue::Keyring(name) => source("keyring", name),
        }
    }
}

impl ServerEntry {
    /// Returns keys and values in the order in which they are written.
    fn pairs(&self) -> Vec<(&'static str, Value)> {
        let table = |pairs: &[(String, EntryValue)]| {
            let pairs = pairs.iter().map(|(name, value)| (name, value.value()));
            Value::InlineTable(pairs.collect())
        };
        let mut pairs = Vec::new();
        if !self.command.is_empty() {
            let words = Array::from_iter(&self.command);
            pairs.push(("command", Value::Array(words)));
        }
        pairs.extend(self.url.iter().map(|url| ("url", url.into())));
        pairs.extend(self.cwd.iter().map(|cwd| ("cwd", cwd.into())));
        if !self.env_pass.is_empty() {
            let names = Array::from_iter(&self.env_pass);
            pairs.push(("env_pass", Value::Array(names)));
        }
        if self.disabled {
            pairs.push(("enabled", false.into()));
        }
        for (key, values) in [("env", &self.env), ("headers", &self.headers)] {
            if !values.is_empty() {
                pairs.push((key, table(values)));
            }
        }
        pairs
    }

    /// Returns the section `[server.NAME]`, with a section of its own for a long table.
    pub(crate) fn section(&self, name: &str) -> String {
        let mut section = Table::new();
        for (key, value) in self.pairs() {
            let long = key.len() + value.to_string().len() > MAX_INLINE_BYTES;
            let item = match value {
                Value::InlineTable(table) if long => Item::Table(table.into_table()),
                value => Item::Value(value),
            };
            section.insert(key, item);
        }
        let mut servers = Table::new();
        servers.set_implicit(true);
        servers.insert(name, Item::Table(section));
        let mut document = DocumentMut::new();
        document.insert("server", Item::Table(servers));
        document.to_string().trim_start().to_owned()
    }

    /// Returns the value of `NAME` for an inline table.
    pub(super) fn inline(&self) -> InlineTable {
        self.pairs().into_iter().collect()
    }
}
