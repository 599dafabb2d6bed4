//! Text of a config with its secrets masked, for a page of the console, and back.

use super::layout::Layout;
use crate::config::secret_reason;
use std::ops::Range;
use toml_edit::{Item, Value};

/// Text of a config in which each secret is a numbered placeholder.
pub(crate) struct MaskedConfig {
    pub(crate) text: String,
    /// The masked values as the file has them, with quotes.
    secrets: Vec<String>,
}

impl MaskedConfig {
    /// Masks the strings that look like secrets by their name or their form. `None` if the text is not TOML: then the
    /// places of its values are unknown.
    pub(crate) fn new(text: &str) -> Option<MaskedConfig> {
        let layout = Layout::parse(text).ok()?;
        let mut places = Vec::new();
        for (name, item) in layout.root().iter() {
            find_secrets(name, item, &mut places);
        }
        places.sort_by_key(|place| place.start);
        let (mut masked, mut secrets, mut at) = (String::new(), Vec::new(), 0);
        for place in places {
            let place = layout.offset(place);
            masked.push_str(&text[at..place.start]);
            secrets.push(text[place.clone()].to_owned());
            masked.push_str(&placeholder(secrets.len()));
            at = place.end;
        }
        masked.push_str(&text[at..]);
        Some(MaskedConfig {
            text: masked,
            secrets,
        })
    }

    /// Returns the number of masked values.
    pub(crate) fn count(&self) -> usize {
        self.secrets.len()
    }

    /// Returns an edited text with the secrets in the places of their placeholders.
    ///
    /// # Errors
    /// A placeholder occurs twice: a copy could put a secret where it is shown, for example into a rule.
    pub(crate) fn unmask(&self, edited: &str) -> Result<String, String> {
        let mut text = edited.to_owned();
        // From the last one: the placeholder of the first is not a part of that of the tenth, as both end with a bracket.
        for (at, secret) in self.secrets.iter().enumerate().rev() {
            let placeholder = placeholder(at + 1);
            if edited.matches(&placeholder).count() > 1 {
                return Err(format!(
                    "{placeholder} stands for one secret of the file and occurs more than once; remove the copy"
                ));
            }
            text = text.replace(&placeholder, secret);
        }
        Ok(text)
    }
}

fn placeholder(number: usize) -> String {
    format!("\"[secret {number}]\"")
}

fn find_secrets(name: &str, item: &Item, places: &mut Vec<Range<usize>>) {
    match item {
        Item::Value(value) => find_in_value(name, value, places),
        Item::Table(table) => {
            for (name, item) in table.iter() {
                find_secrets(name, item, places);
            }
        }
        Item::ArrayOfTables(tables) => {
            for (name, item) in tables.iter().flat_map(|table| table.iter()) {
                find_secrets(name, item, places);
            }
        }
        Item::None => {}
    }
}

fn find_in_value(name: &str, value: &Value, places: &mut Vec<Range<usize>>) {
    match value {
        Value::String(text) => {
            // The mark says that a value that looks like a secret stands in the file on purpose.
            let is_secret = name == "danger_clear" || secret_reason(name, text.value()).is_some();
            places.extend(value.span().filter(|_| is_secret));
        }
        Value::Array(values) => {
            for value in values {
                find_in_value(name, value, places);
            }
        }
        Value::InlineTable(table) => {
            for (name, value) in table.iter() {
                find_in_value(name, value, places);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "[auth]\ntoken = \"sesame-1\"\n[server.a]\ncommand = [\"x\", \"--key=ghp_1234567890abcdefghijABCDEFGHIJ123456\"]\nenv = { API_KEY = { danger_clear = 'k-2' }, MODE = \"fast\" } # a comment\n";

    #[test]
    fn secrets_are_masked_and_come_back_exactly() {
        let masked = MaskedConfig::new(CONFIG).unwrap();
        assert_eq!(masked.count(), 3, "{}", masked.text);
        for secret in ["sesame-1", "ghp_", "k-2"] {
            assert!(!masked.text.contains(secret), "{}", masked.text);
        }
        assert!(masked.text.contains("MODE = \"fast\"") && masked.text.contains("# a comment"));
        assert_eq!(masked.unmask(&masked.text).unwrap(), CONFIG);
        let edited = masked.text.replace("fast", "slow");
        assert_eq!(
            masked.unmask(&edited).unwrap(),
            CONFIG.replace("fast", "slow")
        );
        let copied = format!("{}\n[[rule]]\nwhen = \"[secret 1]\"\n", masked.text);
        assert!(
            masked
                .unmask(&copied)
                .unwrap_err()
                .contains("more than once")
        );
    }

    #[test]
    fn a_text_that_is_not_toml_cannot_be_masked() {
        assert!(MaskedConfig::new("[[[").is_none());
        let marked = format!("\u{feff}{CONFIG}");
        let masked = MaskedConfig::new(&marked).unwrap();
        assert_eq!(masked.unmask(&masked.text).unwrap(), marked);
    }
}
