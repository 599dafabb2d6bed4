//! Laws of numbers, keys and the canonical form over random values.

use super::json;
use proptest::{prelude::*, sample::Index};
use serde_json::Value;
use std::fmt::Write;
use toolgate_protocol::json::{Json, JsonLimits, ReadErrorKind as K, write_string};

/// A value whose numbers are texts: no type between them and us.
#[derive(Clone, Debug)]
enum Tree {
    Word(&'static str),
    Number(String),
    Text(String),
    Array(Vec<Tree>),
    Object(Vec<(String, Tree)>),
}

fn number() -> impl Strategy<Value = String> {
    "-?(0|[1-9][0-9]{0,150})(\\.[0-9]{1,150})?([eE][+-]?[0-9]{1,90})?"
}

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        prop::sample::select(&["true", "false", "null"][..]).prop_map(Tree::Word),
        number().prop_map(Tree::Number),
        any::<String>().prop_map(Tree::Text),
    ];
    leaf.prop_recursive(5, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Tree::Array),
            prop::collection::btree_map("[^\0]{0,6}", inner, 0..6)
                .prop_map(|members| Tree::Object(members.into_iter().collect())),
        ]
    })
}

/// One of the many ways to write a tree. The seed says where spaces and escapes go, and how members are turned.
struct Spelling(u64);

impl Spelling {
    fn dice(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1);
        (self.0 >> 33) % sides
    }

    fn space(&mut self, out: &mut String) {
        out.push_str(["", "", " ", "\n\t", "\r\n  "][self.dice(5) as usize]);
    }

    fn text(&mut self, out: &mut String, text: &str) {
        out.push('"');
        for sign in text.chars() {
            if sign < ' ' || sign == '"' || sign == '\\' || self.dice(4) == 0 {
                for unit in sign.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04X}").unwrap();
                }
            } else {
                out.push(sign);
            }
        }
        out.push('"');
    }

    fn tree(&mut self, out: &mut String, tree: &Tree) {
        self.space(out);
        match tree {
            Tree::Word(word) => out.push_str(word),
            Tree::Number(number) => out.push_str(number),
            Tree::Text(text) => self.text(out, text),
            Tree::Array(items) => {
                out.push('[');
                for (n, item) in items.iter().enumerate() {
                    out.push_str(if n > 0 { "," } else { "" });
                    self.tree(out, item);
                }
                self.space(out);
                out.push(']');
            }
            Tree::Object(members) => self.object(out, members),
        }
        self.space(out);
    }

    fn object(&mut self, out: &mut String, members: &[(String, Tree)]) {
        let turn = self.dice(members.len().max(1) as u64) as usize;
        let (behind, before) = members.split_at(turn);
        let mut turned: Vec<_> = before.iter().chain(behind).collect();
        if self.dice(2) == 0 {
            turned.reverse();
        }
        out.push('{');
        for (n, (key, value)) in turned.into_iter().enumerate() {
            out.push_str(if n > 0 { "," } else { "" });
            self.space(out);
            self.text(out, key);
            self.space(out);
            out.push(':');
            self.tree(out, value);
        }
        self.space(out);
        out.push('}');
    }
}

fn spelled(tree: &Tree, seed: u64) -> String {
    let mut out = String::new();
    Spelling(seed).tree(&mut out, tree);
    out
}

/// The canonical form, worked out the simple way.
fn plain(out: &mut String, tree: &Tree) {
    match tree {
        Tree::Word(word) => out.push_str(word),
        Tree::Number(number) => out.push_str(number),
        Tree::Text(text) => write_string(out, text),
        Tree::Array(items) => {
            out.push('[');
            for (n, item) in items.iter().enumerate() {
                out.push_str(if n > 0 { "," } else { "" });
                plain(out, item);
            }
            out.push(']');
        }
        Tree::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(key, _)| key.as_bytes());
            out.push('{');
            for (n, (key, value)) in members.into_iter().enumerate() {
                out.push_str(if n > 0 { "," } else { "" });
                write_string(out, key);
                out.push(':');
                plain(out, value);
            }
            out.push('}');
        }
    }
}

fn limits() -> JsonLimits {
    JsonLimits::default()
}

proptest! {
    #[test]
    fn the_canonical_form_is_one_for_all_spellings(tree in tree(), a in any::<u64>(), b in any::<u64>()) {
        let mut expected = String::new();
        plain(&mut expected, &tree);
        for seed in [a, b] {
            let found = json(&spelled(&tree, seed)).canonical();
            prop_assert_eq!(&found, &expected);
        }
        prop_assert_eq!(json(&expected).canonical(), expected);
    }

    #[test]
    fn nothing_changes_where_nothing_is_changed(tree in tree(), seed in any::<u64>()) {
        let text = spelled(&tree, seed);
        let whole = json(&text);
        prop_assert_eq!(whole.as_str(), text.trim_matches([' ', '\n', '\r', '\t']));
        prop_assert!(whole.map_strings(&mut |_| None).is_none());
        prop_assert!(whole.map_strings(&mut |s| Some(s.text.to_owned())).is_none());
        let without = whole.without("no such key");
        prop_assert_eq!(without.as_str(), whole.as_str());
        // Each member is put where it was, and taken and added.
        for (key, value) in whole.members() {
            let same = whole.with(&key, &value);
            prop_assert_eq!(same.as_str(), whole.as_str());
            let less = json(whole.without(&key).as_str());
            prop_assert!(less.get(&key).is_none());
            prop_assert_eq!(less.members().count() + 1, whole.members().count());
            let again = json(less.with(&key, &value).as_str());
            prop_assert_eq!(again.canonical(), whole.canonical());
        }
    }

    #[test]
    fn what_we_take_means_the_same_to_another_reader(tree in tree(), seed in any::<u64>()) {
        let text = spelled(&tree, seed);
        let whole = json(&text);
        if !whole.is_lossy() {
            let theirs: Value = serde_json::from_str(&text).expect("theirs");
            // Their floats may be off by the last bit; ours are not.
            prop_assert_eq!(near(theirs), near(whole.to_value()));
        }
    }

    #[test]
    fn a_number_keeps_its_letters(number in number()) {
        prop_assume!(number.len() <= 400);
        let text = format!("{{\"a\":[ {number}],\"b\":\"x\"}}");
        let whole = json(&text);
        let part = whole.get("a").and_then(|a| a.items().next()).unwrap();
        prop_assert_eq!(part.as_str(), &number);
        prop_assert_eq!(part.canonical(), number.clone());
        let with = whole.with("b", &part);
        prop_assert_eq!(with.as_str(), format!("{{\"a\":[ {number}],\"b\":{number}}}"));
        let without = with.without("b");
        prop_assert_eq!(without.as_str(), format!("{{\"a\":[ {number}]}}"));
        let mapped = whole.map_strings(&mut |s| (!s.key).then(|| "y".to_owned())).expect("a change");
        prop_assert_eq!(mapped.as_str(), text.replace("\"x\"", "\"y\""));
    }

    /// If a number is not lossy, the tree has exactly its value: written out in full, both are the same digits.
    #[test]
    fn what_is_not_lossy_survives(number in "-?(0|[1-9][0-9]{0,19})(\\.[0-9]{1,18})?([eE][+-]?[0-9]{1,3})?") {
        let whole = json(&number);
        if !whole.is_lossy() {
            let n = match whole.to_value() {
                Value::Number(n) => n.to_string(),
                other => panic!("{number} became {other}"),
            };
            prop_assert_eq!(digits(&n), digits(&number));
        }
        if let Some(n) = whole.i64() {
            prop_assert_eq!(digits(&n.to_string()), digits(&number));
        }
    }

    #[test]
    fn a_key_twice_is_never_taken(keys in prop::collection::btree_set("[a-z\"\\\\é😀]{0,3}", 1..40), twice in any::<Index>(), seed in any::<u64>()) {
        let mut keys: Vec<String> = keys.into_iter().collect();
        let known = |keys: &[String]| Tree::Object(keys.iter().map(|k| (k.clone(), Tree::Word("1"))).collect());
        prop_assert!(Json::read(spelled(&known(&keys), seed).into_bytes(), &limits()).is_ok());
        keys.push(keys[twice.index(keys.len())].clone());
        let text = spelled(&Tree::Array(vec![known(&keys)]), seed);
        let error = Json::read(text.into_bytes(), &limits()).expect_err("a key twice");
        prop_assert_eq!(error.kind(), K::DuplicateKey);
    }
}

/// Sign, digits without noughts around them, and the power of ten of the last: the value, spelled one way.
fn digits(number: &str) -> (bool, String, i64) {
    let lower = number.to_ascii_lowercase();
    let (mantissa, exponent) = lower.split_once('e').unwrap_or((&lower, "0"));
    let (int, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{}{fraction}", int.trim_start_matches('-'));
    let cut = all.trim_end_matches('0');
    let power =
        exponent.parse::<i64>().unwrap() - fraction.len() as i64 + (all.len() - cut.len()) as i64;
    match cut.trim_start_matches('0') {
        "" => (false, String::new(), 0),
        digits => (number.starts_with('-'), digits.to_owned(), power),
    }
}

fn near(value: Value) -> Value {
    match value {
        Value::Number(n) if n.is_f64() => format!("{:.13e}", n.as_f64().unwrap()).into(),
        Value::Array(items) => items.into_iter().map(near).collect(),
        Value::Object(members) => members.into_iter().map(|(k, v)| (k, near(v))).collect(),
        other => other,
    }
}
