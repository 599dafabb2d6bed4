//! Places of the servers in the text of a config, and edits of their lines.
//!
//! `toml_edit` finds the places. Lines outside of them are copied, so line endings and odd spacing stay.

use super::entry::ServerEntry;
use std::ops::Range;
use toml_edit::{Document, DocumentMut, InlineTable, Item, Table, TomlError, Value};

/// Key of the servers in a config.
const SERVERS_KEY: &str = "server";
/// Key that disables a server.
const ENABLED_KEY: &str = "enabled";
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Text of a config with the places of its parts.
pub(super) struct Layout<'t> {
    text: &'t str,
    /// Length of a byte order mark: places count from behind it.
    mark: usize,
    document: Document<&'t str>,
}

impl<'t> Layout<'t> {
    /// Parses a text.
    ///
    /// # Errors
    /// The text is not TOML.
    pub(super) fn parse(text: &'t str) -> Result<Layout<'t>, TomlError> {
        let body = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        Ok(Layout {
            text: body,
            mark: text.len() - body.len(),
            document: Document::parse(body)?,
        })
    }

    /// Returns the root of the document.
    pub(super) fn root(&self) -> &Table {
        self.document.as_table()
    }

    /// Returns a place of the document as a place of the text, which may begin with a byte order mark.
    pub(super) fn offset(&self, place: Range<usize>) -> Range<usize> {
        place.start + self.mark..place.end + self.mark
    }

    /// Returns the names of the servers, in the order of the file.
    pub(super) fn server_names(&self) -> Vec<String> {
        let servers = self.servers().and_then(Item::as_table_like);
        let names = servers.iter().flat_map(|servers| servers.iter());
        names.map(|(name, _)| name.to_owned()).collect()
    }

    /// Returns whether a server has no `enabled = false`.
    pub(super) fn is_enabled(&self, name: &str) -> bool {
        let server = self.server(name).and_then(Item::as_table_like);
        let enabled = server.and_then(|server| server.get(ENABLED_KEY)?.as_bool());
        enabled.unwrap_or(true)
    }

    /// Returns the text with a new server after the others; `None` if the layout is not supported.
    pub(super) fn add(&self, name: &str, entry: &ServerEntry) -> Option<String> {
        if self.servers().is_some_and(Item::is_inline_table) {
            return self.with_inline(&[], |servers| {
                servers.insert(name, Value::InlineTable(entry.inline()));
            });
        }
        let mut blocks = Vec::new();
        if let Some(servers) = self.servers().and_then(Item::as_table) {
            servers
                .iter()
                .for_each(|(_, server)| self.collect_blocks(server, &mut blocks));
        }
        let end = blocks.iter().map(|block| block.end).max();
        let at = end.unwrap_or(self.text.len());
        let (before, after) = self.text.split_at(at);
        let newline = self.newline();
        let mut section = entry.section(name);
        if !before.trim().is_empty() {
            let ended = before.ends_with('\n');
            section.insert_str(0, if ended { "\n" } else { "\n\n" });
        }
        if !after.is_empty() && !starts_with_blank_line(after) {
            section.push('\n');
        }
        Some(self.joined(&[before, &section.replace('\n', newline), after]))
    }

    /// Returns the text without a server; `None` if the layout is not supported.
    pub(super) fn remove(&self, name: &str) -> Option<String> {
        if self.servers()?.is_inline_table() {
            return self.with_inline(&[], |servers| {
                servers.remove(name);
            });
        }
        let server = self.server(name)?;
        let mut gone = Vec::new();
        self.collect_blocks(server, &mut gone);
        let sections = gone.len();
        self.collect_lines(self.key_start(name)?, server, &mut gone);
        for (n, range) in gone.iter_mut().enumerate() {
            if n < sections {
                *range = self.with_surroundings(range.clone());
            }
        }
        gone.sort_by_key(|range| range.start);
        let (mut parts, mut at) = (Vec::new(), 0);
        for range in &gone {
            if range.start > at {
                parts.push(&self.text[at..range.start]);
            }
            at = at.max(range.end);
        }
        parts.push(&self.text[at..]);
        Some(self.joined(&parts))
    }

    /// Returns the text with a server enabled or disabled; `None` if the layout is not supported.
    pub(super) fn set_enabled(&self, name: &str, enabled: bool) -> Option<String> {
        let change = |server: &mut InlineTable| match enabled {
            true => drop(server.remove(ENABLED_KEY)),
            false => drop(server.insert(ENABLED_KEY, false.into())),
        };
        if self.servers()?.is_inline_table() || self.server(name)?.is_inline_table() {
            return self.with_inline(&[name], change);
        }
        let server = self.server(name)?.as_table()?;
        if let Some((key, Item::Value(value))) = server.get_key_value(ENABLED_KEY) {
            let (key, value) = (key.span()?, value.span()?);
            let line = self.lines_of(key.start..value.end);
            // A line with a comment stays, so that the comment does.
            let comment = self.text[value.end..line.end].contains('#');
            return Some(match enabled && !comment {
                true => self.replaced(line, ""),
                false => self.replaced(value, if enabled { "true" } else { "false" }),
            });
        }
        let newline = self.newline();
        if is_section(server) {
            let header = self.lines_of(server.span()?);
            let ended = self.text[..header.end].ends_with('\n');
            let line = format!(
                "{}{ENABLED_KEY} = {enabled}{newline}",
                if ended { "" } else { newline }
            );
            return Some(self.replaced(header.end..header.end, &line));
        }
        // Dotted keys: a line like the first one of the server.
        let (key, value) = server.iter().find_map(|(key, item)| {
            let (key, value) = (server.key(key)?.span()?, item.as_value()?.span()?);
            Some((key, value))
        })?;
        let line = self.lines_of(key.start..value.end);
        let ended = self.text[..line.end].ends_with('\n');
        let prefix = &self.text[line.start..key.start];
        let text = format!(
            "{}{prefix}{ENABLED_KEY} = {enabled}{newline}",
            if ended { "" } else { newline }
        );
        Some(self.replaced(line.end..line.end, &text))
    }

    fn servers(&self) -> Option<&Item> {
        self.document.get(SERVERS_KEY)
    }

    fn server(&self, name: &str) -> Option<&Item> {
        self.servers()?.as_table_like()?.get(name)
    }

    /// Returns the start of a server's key.
    fn key_start(&self, name: &str) -> Option<usize> {
        let key = self.servers()?.as_table_like()?.key(name)?;
        Some(key.span()?.start)
    }

    /// Collects the lines of the sections of an item, each with its header and keys.
    fn collect_blocks(&self, item: &Item, blocks: &mut Vec<Range<usize>>) {
        match item {
            Item::Table(table) => {
                if is_section(table)
                    && let Some(header) = table.span()
                {
                    let end = last_value_end(table).unwrap_or(header.end).max(header.end);
                    blocks.push(self.with_comments_below(self.lines_of(header.start..end)));
                }
                table
                    .iter()
                    .for_each(|(_, item)| self.collect_blocks(item, blocks));
            }
            Item::ArrayOfTables(tables) => {
                for table in tables {
                    self.collect_blocks(&Item::Table(table.clone()), blocks);
                }
            }
            Item::Value(_) | Item::None => {}
        }
    }

    /// Collects the lines of the values of an item that are outside of its sections.
    fn collect_lines(&self, key: usize, item: &Item, lines: &mut Vec<Range<usize>>) {
        match item {
            Item::Value(value) => {
                let end = value.span().map(|span| span.end);
                lines.extend(end.map(|end| self.lines_of(key..end)));
            }
            Item::Table(table) if !is_section(table) => {
                for (name, item) in table {
                    if let Some(key) = table.key(name).and_then(|key| key.span()) {
                        self.collect_lines(key.start, item, lines);
                    }
                }
            }
            _ => {}
        }
    }

    /// Returns whole lines, with the end of the last one.
    fn lines_of(&self, range: Range<usize>) -> Range<usize> {
        let start = self.text[..range.start].rfind('\n').map_or(0, |at| at + 1);
        let end = self.text[range.end..].find('\n');
        start..end.map_or(self.text.len(), |at| range.end + at + 1)
    }

    /// Adds comment lines directly below, unless they belong to a header that follows.
    fn with_comments_below(&self, range: Range<usize>) -> Range<usize> {
        let mut end = range.end;
        for line in self.text[range.end..].split_inclusive('\n') {
            match line.trim_start() {
                comment if comment.starts_with('#') => end += line.len(),
                "" => break,
                _ => return range,
            }
        }
        range.start..end
    }

    /// Adds the comment lines directly above a section and the empty lines around it. Comments at the top of the file
    /// are about the file.
    fn with_surroundings(&self, range: Range<usize>) -> Range<usize> {
        let mut start = range.start;
        for line in self.text[..range.start].split_inclusive('\n').rev() {
            match line.trim_start().starts_with('#') {
                true => start -= line.len(),
                false => break,
            }
        }
        if start == 0 {
            start = range.start;
        }
        let blank = |line: &&str| line.trim().is_empty();
        let below = self.text[range.end..]
            .split_inclusive('\n')
            .take_while(blank);
        let end = range.end + below.map(str::len).sum::<usize>();
        if end == self.text.len() {
            let above = self.text[..start]
                .split_inclusive('\n')
                .rev()
                .take_while(blank);
            start -= above.map(str::len).sum::<usize>();
        }
        start..end
    }

    /// Returns the text with a change of the inline table at a path below the servers.
    fn with_inline(&self, path: &[&str], change: impl FnOnce(&mut InlineTable)) -> Option<String> {
        let mut copy: DocumentMut = self.text.parse().ok()?;
        let (mut item, mut place) = (copy.get_mut(SERVERS_KEY)?, self.servers()?);
        let mut keys = path.iter();
        // The outermost inline table is written again.
        while !place.is_inline_table() {
            let key = *keys.next()?;
            (item, place) = (item.get_mut(key)?, place.get(key)?);
        }
        let mut table = item.as_inline_table_mut()?;
        for key in keys {
            table = table.get_mut(key)?.as_inline_table_mut()?;
        }
        change(table);
        let value = item.as_value_mut()?;
        value.decor_mut().clear();
        let text = value.to_string().replace('\n', self.newline());
        Some(self.replaced(place.span()?, &text))
    }

    fn replaced(&self, range: Range<usize>, with: &str) -> String {
        self.joined(&[&self.text[..range.start], with, &self.text[range.end..]])
    }

    fn joined(&self, parts: &[&str]) -> String {
        let mark = if self.mark > 0 { "\u{feff}" } else { "" };
        format!("{mark}{}", parts.concat())
    }

    /// Returns the line ending of the file.
    fn newline(&self) -> &'static str {
        match self.text.split_once('\n') {
            Some((line, _)) if line.ends_with('\r') => "\r\n",
            _ => "\n",
        }
    }
}

/// Returns whether a table has a header, `[…]`, of its own.
fn is_section(table: &Table) -> bool {
    !table.is_implicit() && !table.is_dotted()
}

/// Returns the end of the last value of a section, without its sub-sections.
fn last_value_end(table: &Table) -> Option<usize> {
    let end = |(_, item): (&str, &Item)| match item {
        Item::Value(value) => Some(value.span()?.end),
        Item::Table(table) if table.is_dotted() => last_value_end(table),
        _ => None,
    };
    table.iter().filter_map(end).max()
}

fn starts_with_blank_line(text: &str) -> bool {
    text.split('\n')
        .next()
        .is_some_and(|line| line.trim().is_empty())
}
