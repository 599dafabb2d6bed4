//! Ranking of tools for a query: BM25 over their names, titles and descriptions, with one index for each list.

use std::collections::HashMap;
use toolgate_core::Catalog;

/// BM25 field weights of name, title and description.
const FIELD_WEIGHTS: [f32; 3] = [3.0, 2.0, 1.0];
/// BM25 `k1`: saturation of repeated words.
const BM25_K1: f32 = 1.2;
/// BM25 `b`: normalization by text length.
const BM25_B: f32 = 0.75;
/// Weight of a prefix match relative to a whole word.
const PREFIX_MATCH_WEIGHT: f32 = 0.5;
/// Maximum number of words of a query.
const MAX_QUERY_WORDS: usize = 64;

/// BM25 search index of a tool list.
pub(super) struct SearchIndex {
    /// Tools that contain a word, as positions in the list, and the weight of the word there.
    postings: HashMap<String, Vec<(usize, f32)>>,
    /// Total weight of all words of each tool.
    lengths: Vec<f32>,
    mean: f32,
}

impl SearchIndex {
    pub(super) fn of(list: &Catalog) -> SearchIndex {
        let mut places: HashMap<String, Vec<(usize, f32)>> = HashMap::new();
        let mut lengths = Vec::with_capacity(list.items().len());
        for (at, item) in list.items().iter().enumerate() {
            let mut own: HashMap<String, f32> = HashMap::new();
            if super::is_for_apps(item) {
                lengths.push(0.0);
                continue;
            }
            let title = item.def.title();
            let texts = [
                item.def.name().to_owned(),
                match title == item.def.name() {
                    true => String::new(),
                    false => title.into_owned(),
                },
                item.def.description().unwrap_or_default(),
            ];
            for (text, weight) in texts.iter().zip(FIELD_WEIGHTS) {
                for word in split_words(text) {
                    *own.entry(word).or_default() += weight;
                }
            }
            lengths.push(own.values().sum());
            for (word, weight) in own {
                places.entry(word).or_default().push((at, weight));
            }
        }
        let mean = lengths.iter().sum::<f32>() / (lengths.len().max(1) as f32);
        SearchIndex {
            postings: places,
            lengths,
            mean: mean.max(1.0),
        }
    }

    /// Returns the positions of matching tools, best first; ties keep the order of the list.
    pub(super) fn find(&self, query: &str) -> Vec<usize> {
        let mut asked: Vec<String> = split_words(query).take(MAX_QUERY_WORDS).collect();
        asked.sort();
        asked.dedup();
        let mut scores: HashMap<usize, f32> = HashMap::new();
        for word in &asked {
            match self.postings.get(word) {
                Some(of) => self.add(&mut scores, of, 1.0),
                None => self.add_prefix_matches(&mut scores, word),
            }
        }
        let mut found: Vec<(usize, f32)> = scores.into_iter().collect();
        found.sort_by(|(a, one), (b, other)| other.total_cmp(one).then(a.cmp(b)));
        found.into_iter().map(|(at, _)| at).collect()
    }

    /// Adds the scores of longer words if no tool has the exact word.
    fn add_prefix_matches(&self, scores: &mut HashMap<usize, f32>, word: &str) {
        if word.chars().count() < 3 {
            return;
        }
        let longer = self
            .postings
            .iter()
            .filter(|(other, _)| other.starts_with(word));
        for (_, of) in longer {
            self.add(scores, of, PREFIX_MATCH_WEIGHT);
        }
    }

    fn add(&self, scores: &mut HashMap<usize, f32>, of: &[(usize, f32)], share: f32) {
        let (all, with) = (self.lengths.len() as f32, of.len() as f32);
        let rare = (1.0 + (all - with + 0.5) / (with + 0.5)).ln();
        for (at, weight) in of {
            let long = 1.0 - BM25_B + BM25_B * self.lengths[*at] / self.mean;
            let often = weight * (BM25_K1 + 1.0) / (weight + BM25_K1 * long);
            *scores.entry(*at).or_default() += share * rare * often;
        }
    }
}

/// Splits a text into words: runs of letters and digits, split at capitals, in lower case and without a plural `s`.
fn split_words(text: &str) -> impl Iterator<Item = String> {
    let mut words = Vec::new();
    for run in text.split(|c: char| !c.is_alphanumeric()) {
        let mut word = String::new();
        let mut small = false;
        for c in run.chars() {
            if c.is_uppercase() && small {
                words.push(std::mem::take(&mut word));
            }
            small = c.is_lowercase() || c.is_numeric();
            word.extend(c.to_lowercase());
        }
        words.push(word);
    }
    let words = words.into_iter().filter(|word| !word.is_empty());
    words.map(|mut word| {
        if word.len() > 3 && word.ends_with('s') && !word.ends_with("ss") {
            word.pop();
        }
        word
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Arc;
    use toolgate_core::{Definition, Item, Json, Origin};

    fn list(tools: &[(&str, &str)]) -> Catalog {
        let item = |(name, text): &(&str, &str)| {
            let def = json!({"name": name, "description": text, "inputSchema": {"type": "object"}});
            let origin = Origin {
                server: "s".into(),
                trusted: false,
            };
            let def = Definition::tool(Json::from_value(&def)).unwrap();
            Arc::new(Item::new(origin, def))
        };
        Catalog::new(tools.iter().map(item).collect())
    }

    fn found(tools: &[(&str, &str)], query: &str) -> Vec<String> {
        let list = list(tools);
        let found = SearchIndex::of(&list).find(query);
        let name = |at: usize| list.items()[at].def.name().to_owned();
        found.into_iter().map(name).collect()
    }

    const TOOLS: &[(&str, &str)] = &[
        ("fs_read_file", "Reads a file of the disk."),
        ("fs_writeFile", "Writes a file."),
        (
            "git_log",
            "Shows what changed, file by file, with the author.",
        ),
        ("mail_send", "Sends a message. Übermittelt Nachrichten."),
    ];

    #[test]
    fn names_count_more_than_descriptions_and_rare_words_more_than_usual_ones() {
        assert_eq!(found(TOOLS, "write a file")[0], "fs_writeFile");
        assert_eq!(found(TOOLS, "files")[..2], ["fs_writeFile", "fs_read_file"]);
        assert_eq!(found(TOOLS, "who is the author")[0], "git_log");
        assert_eq!(found(TOOLS, "ÜBERMITTELT"), ["mail_send"]);
        assert_eq!(found(TOOLS, "mess"), ["mail_send"], "the begin of a word");
        assert!(found(TOOLS, "weather").is_empty());
        assert!(found(TOOLS, "?!").is_empty() && found(&[], "x").is_empty());
    }

    #[test]
    fn ties_keep_the_order_of_the_list() {
        let same = [("b_x", "same"), ("a_x", "same"), ("c_x", "same")];
        assert_eq!(found(&same, "same"), ["b_x", "a_x", "c_x"]);
    }

    #[test]
    fn splits_words_at_capitals() {
        let of = |text: &str| split_words(text).collect::<Vec<_>>();
        assert_eq!(
            of("getHTTPStatus2 for-users_is"),
            ["get", "httpstatus2", "for", "user", "is"]
        );
    }
}
