//! The file of a host as a document: servers are added and removed in place, and every other byte stays.

use super::{HostSyntax, entry_value::HostEntryValue};
use jsonc_parser::{
    ParseOptions,
    cst::{CstInputValue, CstNode, CstObject, CstRootNode},
};
use toml_edit::{DocumentMut, InlineTable, Item, Table, TableLike};

const BYTE_ORDER_MARK: char = '\u{feff}';

/// Text of a host's file that can be edited in place.
pub(crate) struct HostDocument {
    syntax: DocumentSyntax,
    has_byte_order_mark: bool,
    /// Keys that lead to the servers.
    path: &'static [&'static str],
}

enum DocumentSyntax {
    Json(CstRootNode),
    Toml(Box<DocumentMut>),
}

/// Server that was taken out of a host's file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct TakenServer {
    /// Name of the server.
    pub(crate) name: String,
    /// Text of its entry, in the syntax of the file.
    pub(crate) text: String,
}

impl HostDocument {
    /// Parses a file whose servers are at `path`. An empty text is an empty file.
    ///
    /// # Errors
    /// The text is not in the syntax of the host. The message has the line and column.
    pub(crate) fn parse(
        text: &str,
        syntax: HostSyntax,
        path: &'static [&'static str],
    ) -> Result<HostDocument, String> {
        let plain = text.strip_prefix(BYTE_ORDER_MARK);
        let body = plain.unwrap_or(text);
        let parsed = match syntax {
            HostSyntax::Json | HostSyntax::Jsonc => DocumentSyntax::Json(parse_json(body)?),
            HostSyntax::Toml => DocumentSyntax::Toml(Box::new(
                body.parse()
                    .map_err(|error: toml_edit::TomlError| invalid_toml(body, &error))?,
            )),
        };
        Ok(HostDocument {
            syntax: parsed,
            has_byte_order_mark: plain.is_some(),
            path,
        })
    }

    /// Returns the text of the file.
    pub(crate) fn text(&self) -> String {
        let body = match &self.syntax {
            DocumentSyntax::Json(root) => root.to_string(),
            DocumentSyntax::Toml(document) => document.to_string(),
        };
        match self.has_byte_order_mark {
            true => format!("{BYTE_ORDER_MARK}{body}"),
            false => body,
        }
    }

    /// Returns the names of the servers, in the order of the file.
    pub(crate) fn names(&self) -> Vec<String> {
        match &self.syntax {
            DocumentSyntax::Json(root) => {
                let servers = json_servers(root, self.path);
                let properties = servers.map(|servers| servers.properties());
                let properties = properties.unwrap_or_default();
                let names = properties.iter().filter_map(|one| one.decoded_name());
                names.collect()
            }
            DocumentSyntax::Toml(document) => {
                let servers = toml_servers(document, self.path);
                let names = servers.map(|servers| servers.iter().map(|(name, _)| name.to_owned()));
                names.map(Iterator::collect).unwrap_or_default()
            }
        }
    }

    /// Returns the text of a server's entry.
    pub(crate) fn entry_text(&self, name: &str) -> Option<String> {
        match &self.syntax {
            DocumentSyntax::Json(root) => {
                let servers = json_servers(root, self.path)?;
                Some(servers.get(name)?.value()?.to_string())
            }
            DocumentSyntax::Toml(document) => {
                let item = toml_servers(document, self.path)?.get(name)?.clone();
                Some(section_text(self.path, name, item))
            }
        }
    }

    /// Returns true if a server's entry has this value, however it is formatted.
    pub(crate) fn has_entry(&self, name: &str, entry: &HostEntryValue) -> bool {
        let HostEntryValue::Object(wanted) = entry else {
            return false;
        };
        match &self.syntax {
            DocumentSyntax::Json(root) => json_servers(root, self.path)
                .and_then(|servers| servers.get(name)?.value()?.to_serde_value())
                .is_some_and(|found| found == entry.to_json()),
            DocumentSyntax::Toml(document) => toml_servers(document, self.path)
                .and_then(|servers| servers.get(name)?.as_table_like())
                .is_some_and(|found| {
                    let same = |(key, value): &(String, HostEntryValue)| {
                        let item = found.get(key).and_then(Item::as_value);
                        item.is_some_and(|item| plain_toml(item) == plain_toml(&value.to_toml()))
                    };
                    found.len() == wanted.len() && wanted.iter().all(same)
                }),
        }
    }

    /// Adds a server after the others. Returns how many keys of the path to the servers it created.
    ///
    /// # Errors
    /// A value on the path to the servers is not an object.
    pub(crate) fn add(&mut self, name: &str, entry: &HostEntryValue) -> Result<usize, String> {
        let path = self.path;
        match &mut self.syntax {
            DocumentSyntax::Json(root) => add_json(root, path, name, entry.to_cst()),
            DocumentSyntax::Toml(document) => {
                let item = Item::Table(entry.to_toml_table());
                add_toml(document, path, name, item)
            }
        }
    }

    /// Takes a server out.
    pub(crate) fn take(&mut self, name: &str) -> Option<TakenServer> {
        let text = self.entry_text(name)?;
        match &mut self.syntax {
            DocumentSyntax::Json(root) => json_servers(root, self.path)?.get(name)?.remove(),
            DocumentSyntax::Toml(document) => {
                toml_servers_mut(document, self.path)?.remove(name)?;
            }
        }
        Some(TakenServer {
            name: name.to_owned(),
            text,
        })
    }

    /// Puts a server back after the others, unless the file has one of that name.
    ///
    /// # Errors
    /// The stored text cannot be read, or a value on the path to the servers is not an object.
    pub(crate) fn put_back(&mut self, taken: &TakenServer) -> Result<(), String> {
        let unreadable = || format!("the stored entry of {:?} cannot be read", taken.name);
        if self.entry_text(&taken.name).is_some() {
            return Ok(());
        }
        let path = self.path;
        match &mut self.syntax {
            DocumentSyntax::Json(root) => {
                let stored = CstRootNode::parse(&taken.text, &ParseOptions::default());
                let value = stored.ok().and_then(|stored| stored.value());
                let value = value.as_ref().and_then(input_value);
                add_json(root, path, &taken.name, value.ok_or_else(unreadable)?)?;
            }
            DocumentSyntax::Toml(document) => {
                let stored: DocumentMut = taken.text.parse().map_err(|_| unreadable())?;
                let item = toml_servers(&stored, path).and_then(|all| all.get(&taken.name));
                let item = item.cloned().ok_or_else(unreadable)?;
                add_toml(document, path, &taken.name, item)?;
            }
        }
        Ok(())
    }

    /// Removes the innermost `count` keys of the path to the servers, as far as they hold nothing.
    pub(crate) fn remove_empty(&mut self, count: usize) {
        for depth in (self.path.len().saturating_sub(count)..self.path.len()).rev() {
            let (above, key) = (&self.path[..depth], self.path[depth]);
            match &mut self.syntax {
                DocumentSyntax::Json(root) => {
                    let property = json_servers(root, above).and_then(|above| above.get(key));
                    let is_empty = |object: CstObject| object.properties().is_empty();
                    let Some(property) = property else { return };
                    if !property.object_value().is_some_and(is_empty) {
                        return;
                    }
                    property.remove();
                }
                DocumentSyntax::Toml(document) => {
                    let Some(above) = toml_servers_mut(document, above) else {
                        return;
                    };
                    let inner = above.get(key).and_then(Item::as_table_like);
                    if !inner.is_some_and(TableLike::is_empty) {
                        return;
                    }
                    above.remove(key);
                }
            }
        }
    }
}

/// Parses JSON with comments.
///
/// # Errors
/// The text is not valid; the message has the line and column.
pub(super) fn parse_json(text: &str) -> Result<CstRootNode, String> {
    CstRootNode::parse(text, &ParseOptions::default()).map_err(|error| {
        format!(
            "is not valid JSON (line {}, column {}: {})",
            error.line_display(),
            error.column_display(),
            error.kind()
        )
    })
}

fn invalid_toml(text: &str, error: &toml_edit::TomlError) -> String {
    let start = error.span().map_or(0, |span| span.start);
    let line = text[..start.min(text.len())].matches('\n').count() + 1;
    format!("is not valid TOML (line {line}: {})", error.message())
}

fn json_servers(root: &CstRootNode, path: &[&str]) -> Option<CstObject> {
    let mut object = root.object_value()?;
    for key in path {
        object = object.object_value(key)?;
    }
    Some(object)
}

fn add_json(
    root: &CstRootNode,
    path: &[&str],
    name: &str,
    value: CstInputValue,
) -> Result<usize, String> {
    let mut object = root
        .object_value_or_create()
        .ok_or("contains a value that is not a JSON object")?;
    let mut created = 0;
    for key in path {
        created += usize::from(object.get(key).is_none());
        object = object
            .object_value_or_create(key)
            .ok_or_else(|| format!("has a {key:?} that is not an object"))?;
    }
    object.append(name, value);
    Ok(created)
}

/// Returns a value that can be inserted into another document. Comments in it are left out.
fn input_value(node: &CstNode) -> Option<CstInputValue> {
    if let Some(object) = node.as_object() {
        let property = |one: &jsonc_parser::cst::CstObjectProp| {
            Some((one.decoded_name()?, input_value(&one.value()?)?))
        };
        let all: Option<Vec<_>> = object.properties().iter().map(property).collect();
        return all.map(CstInputValue::Object);
    }
    if let Some(array) = node.as_array() {
        let all: Option<Vec<_>> = array.elements().iter().map(input_value).collect();
        return all.map(CstInputValue::Array);
    }
    if let Some(text) = node.as_string_lit() {
        return text.decoded_value().ok().map(CstInputValue::String);
    }
    if let Some(number) = node.as_number_lit() {
        return Some(CstInputValue::Number(number.to_string()));
    }
    if let Some(value) = node.as_boolean_lit() {
        return Some(CstInputValue::Bool(value.value()));
    }
    node.as_null_keyword().map(|_| CstInputValue::Null)
}

fn toml_servers<'d>(document: &'d DocumentMut, path: &[&str]) -> Option<&'d dyn TableLike> {
    let mut table: &dyn TableLike = document.as_table();
    for key in path {
        table = table.get(key)?.as_table_like()?;
    }
    Some(table)
}

fn toml_servers_mut<'d>(
    document: &'d mut DocumentMut,
    path: &[&str],
) -> Option<&'d mut dyn TableLike> {
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for key in path {
        table = table.get_mut(key)?.as_table_like_mut()?;
    }
    Some(table)
}

fn add_toml(
    document: &mut DocumentMut,
    path: &[&str],
    name: &str,
    item: Item,
) -> Result<usize, String> {
    let mut table: &mut dyn TableLike = document.as_table_mut();
    let (mut created, mut is_inline) = (0, false);
    for key in path {
        if table.get(key).is_none() {
            let mut section = Table::new();
            section.set_implicit(true);
            table.insert(key, Item::Table(section));
            created += 1;
        }
        let inner = table.get_mut(key).filter(|item| item.is_table_like());
        let inner = inner.ok_or_else(|| format!("has a {key:?} that is not a table"))?;
        is_inline = inner.is_inline_table();
        table = inner
            .as_table_like_mut()
            .ok_or_else(|| format!("has a {key:?} that is not a table"))?;
    }
    let item = match item {
        Item::Table(table) if is_inline => Item::Value(table.into_inline_table().into()),
        item => item,
    };
    table.insert(name, item);
    Ok(created)
}

/// Returns a document with this one server.
fn section_text(path: &[&str], name: &str, item: Item) -> String {
    let mut document = DocumentMut::new();
    // The path is new in this document, so nothing on it can be in the way.
    let _ = add_toml(&mut document, path, name, item);
    document.to_string()
}

/// Returns a value without its formatting.
fn plain_toml(value: &toml_edit::Value) -> String {
    let mut table = InlineTable::new();
    table.insert("value", value.clone());
    table.fmt();
    table.to_string().parse::<toml::Table>().map_or_else(
        |_| value.to_string().trim().to_owned(),
        |table| table.to_string(),
    )
}

#[cfg(test)]
#[path = "host_document/tests.rs"]
mod tests;
