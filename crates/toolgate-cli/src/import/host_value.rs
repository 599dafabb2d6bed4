//! Values of hosts' files, with their positions: one tree for JSON, JSON with comments, and TOML.

use jsonc_parser::{CollectOptions, ParseOptions, ast, common::Ranged, parse_to_ast};
use toml_edit::{Document, Item, TableLike, Value};

/// Value with its byte offset in the file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HostValue {
    /// Byte offset.
    pub(crate) at: usize,
    /// The value itself.
    pub(crate) kind: HostValueKind,
}

/// Kinds of values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum HostValueKind {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// Number as written; also the dates of TOML.
    Number(String),
    /// Text.
    Text(String),
    /// Array.
    List(Vec<HostValue>),
    /// Object or table, in the order of the file.
    Table(Vec<(String, HostValue)>),
}

/// Syntax error with its byte offset.
#[derive(Debug, PartialEq)]
pub(crate) struct HostSyntaxError {
    /// Byte offset.
    pub(crate) at: usize,
    /// Description of the error.
    pub(crate) text: String,
}

impl HostValue {
    fn new(at: usize, kind: HostValueKind) -> HostValue {
        HostValue { at, kind }
    }

    /// Parses JSON, with or without comments and trailing commas. `None` for a file without a value.
    ///
    /// # Errors
    /// The text is not JSON.
    pub(crate) fn parse_json(text: &str) -> Result<Option<HostValue>, HostSyntaxError> {
        let options = ParseOptions {
            allow_comments: true,
            allow_trailing_commas: true,
            allow_loose_object_property_names: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        match parse_to_ast(text, &CollectOptions::default(), &options) {
            Ok(parsed) => Ok(parsed.value.map(from_json)),
            Err(error) => Err(HostSyntaxError {
                at: error.range().start,
                text: format!("it is not valid JSON: {}", lower_first(error.kind())),
            }),
        }
    }

    /// Parses TOML.
    ///
    /// # Errors
    /// The text is not TOML.
    pub(crate) fn parse_toml(text: &str) -> Result<HostValue, HostSyntaxError> {
        match Document::parse(text) {
            Ok(document) => Ok(from_table(document.as_table(), 0)),
            Err(error) => Err(HostSyntaxError {
                at: error.span().map_or(0, |span| span.start),
                text: format!("it is not valid TOML: {}", error.message().trim()),
            }),
        }
    }

    /// Returns the entries of a table.
    pub(crate) fn table(&self) -> Option<&[(String, HostValue)]> {
        match &self.kind {
            HostValueKind::Table(entries) => Some(entries),
            _ => None,
        }
    }

    /// Returns the value of a key, if this is a table that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&HostValue> {
        let mut entries = self.table()?.iter();
        entries
            .find(|(name, _)| name == key)
            .map(|(_, value)| value)
    }

    /// Returns the text.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.kind {
            HostValueKind::Text(text) => Some(text),
            _ => None,
        }
    }
}

fn lower_first(text: impl ToString) -> String {
    let text = text.to_string();
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => text,
    }
}

fn from_json(value: ast::Value<'_>) -> HostValue {
    let at = value.range().start;
    let kind = match value {
        ast::Value::NullKeyword(_) => HostValueKind::Null,
        ast::Value::BooleanLit(literal) => HostValueKind::Bool(literal.value),
        ast::Value::NumberLit(literal) => HostValueKind::Number(literal.value.to_owned()),
        ast::Value::StringLit(literal) => HostValueKind::Text(literal.value.into_owned()),
        ast::Value::Array(array) => {
            HostValueKind::List(array.elements.into_iter().map(from_json).collect())
        }
        ast::Value::Object(object) => {
            let entry = |entry: ast::ObjectProp<'_>| {
                (entry.name.as_str().to_owned(), from_json(entry.value))
            };
            HostValueKind::Table(object.properties.into_iter().map(entry).collect())
        }
    };
    HostValue::new(at, kind)
}

fn from_table(table: &dyn TableLike, at: usize) -> HostValue {
    let entry = |(key, item): (&str, &Item)| {
        let at = item.span().map_or(at, |span| span.start);
        (key.to_owned(), from_item(item, at))
    };
    HostValue::new(at, HostValueKind::Table(table.iter().map(entry).collect()))
}

fn from_item(item: &Item, at: usize) -> HostValue {
    match item {
        Item::None => HostValue::new(at, HostValueKind::Null),
        Item::Value(value) => from_toml(value, at),
        Item::Table(table) => from_table(table, at),
        Item::ArrayOfTables(tables) => {
            let tables = tables.iter().map(|table| from_table(table, at));
            HostValue::new(at, HostValueKind::List(tables.collect()))
        }
    }
}

fn from_toml(value: &Value, around: usize) -> HostValue {
    let at = value.span().map_or(around, |span| span.start);
    let kind = match value {
        Value::String(text) => HostValueKind::Text(text.value().clone()),
        Value::Boolean(flag) => HostValueKind::Bool(*flag.value()),
        Value::Integer(_) | Value::Float(_) | Value::Datetime(_) => {
            HostValueKind::Number(value.to_string().trim().to_owned())
        }
        Value::Array(array) => {
            HostValueKind::List(array.iter().map(|one| from_toml(one, at)).collect())
        }
        Value::InlineTable(table) => return from_table(table, at),
    };
    HostValue::new(at, kind)
}
