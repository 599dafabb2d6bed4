//! Matches in the strings of a call's arguments, such as secrets, with the place of each.

use crate::{SecretRedactor, sanitize_text, validation::schema};
use std::borrow::Cow;
use toolgate_core::{Call, Json, Op};
use toolgate_protocol::json::JsonKind;

/// Matches that a reason names; the search ends soon after.
const MAX_NAMED_MATCHES: usize = 8;

/// A search for one kind of text in the arguments of calls.
pub(crate) trait ArgumentSearch {
    /// Returns whether the JSON text of the arguments may contain a match. May err on the side of yes.
    fn may_match(&self, json: &str) -> bool;

    /// Returns the names of the matches in a string, which is the value of this key or an element of its array; the key is
    /// empty for keys themselves and for URIs.
    fn matches(&self, key: &str, text: &str) -> Vec<Cow<'static, str>>;
}

/// Searches all strings and keys of a call's arguments, at any depth, and the URI of a resource. Returns the places and
/// names of the matches for a reason, or `None` without a match.
pub(crate) fn search_arguments(call: &Call, search: &impl ArgumentSearch) -> Option<String> {
    let mut found = FoundMatches::default();
    if call.op == Op::Resource {
        found.add("the URI", search.matches("", call.name()));
    }
    let raw = call.arguments().raw();
    if search.may_match(raw.as_str()) {
        found.search_value(raw, search);
    }
    found.described()
}

/// Places, as JSON pointers or `URI`, and names of matches.
#[derive(Default)]
struct FoundMatches(Vec<(String, Cow<'static, str>)>);

impl FoundMatches {
    fn add(&mut self, at: &str, names: Vec<Cow<'static, str>>) {
        self.0
            .extend(names.into_iter().map(|name| (at.to_owned(), name)));
    }

    /// Uses a list of open values instead of the stack, so that deep arguments cannot overflow it.
    fn search_value(&mut self, value: &Json, search: &impl ArgumentSearch) {
        let mut open = vec![(String::new(), String::new(), value.clone())];
        while let Some((at, key, value)) = open.pop() {
            if self.0.len() > MAX_NAMED_MATCHES {
                return;
            }
            match value.kind() {
                JsonKind::Object => {
                    for (key, member) in value.members() {
                        let place = match at.as_str() {
                            "" => "the name of an argument".to_owned(),
                            at => format!("a key in {at}"),
                        };
                        self.add(&place, search.matches("", &key));
                        let at = schema::pointer_step(&at, &SecretRedactor::redact_text(&key));
                        open.push((at, key.into_owned(), member));
                    }
                }
                JsonKind::Array => {
                    let items = value.items().enumerate();
                    open.extend(items.map(|(n, item)| (format!("{at}/{n}"), key.clone(), item)));
                }
                JsonKind::String => {
                    let text = value.string().unwrap_or_default();
                    self.add(&at, search.matches(&key, &text));
                }
                _ => {}
            }
        }
    }

    fn described(&self) -> Option<String> {
        let named = self.0.iter().take(MAX_NAMED_MATCHES).map(|(at, name)| {
            let at = schema::truncate(&sanitize_text(at));
            format!("{at} ({name})")
        });
        let mut named: Vec<String> = named.collect();
        if self.0.len() > MAX_NAMED_MATCHES {
            named.push("and more".to_owned());
        }
        (!named.is_empty()).then(|| named.join(", "))
    }
}
