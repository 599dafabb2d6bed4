//! Differences between two definitions, by JSON path.

use toolgate_core::Json;
use toolgate_protocol::json::JsonKind;

/// Difference between two definitions of an item (the pinned and the current one), at one JSON path.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct DefinitionDifference {
    /// Path of the JSON member that differs between two item definitions, for example
    /// `inputSchema.properties.path.description`; empty for the whole document.
    pub path: String,
    /// Old value of the JSON member that differs between two item definitions; `None` if there was none.
    pub old: Option<String>,
    /// New value of the JSON member that differs between two item definitions; `None` if there is none.
    pub new: Option<String>,
    /// True for a difference without meaning: white space, the case of a title, the order of icons.
    pub cosmetic: bool,
}

/// Maximum number of reported differences.
const MAX_DIFFERENCES: usize = 200;
/// Arrays without a significant order.
const UNORDERED: [&str; 2] = ["icons", "required"];

/// Returns the differences between two item definitions, given as JSON texts. Texts that are not JSON are compared as a
/// whole.
///
/// ```
/// use toolgate_policy::pins::{DefinitionDifference, diff};
///
/// let old = r#"{"name": "send", "description": "Sends a mail."}"#;
/// let new = r#"{"name": "send", "description": "Sends a mail and a copy."}"#;
/// let differences: Vec<DefinitionDifference> = diff(old, new);
/// assert_eq!(differences[0].path, "description");
/// assert!(!differences[0].cosmetic);
/// ```
pub fn diff(old: &str, new: &str) -> Vec<DefinitionDifference> {
    let read = |text: &str| Json::read(text.as_bytes().to_vec(), &Default::default());
    let mut found = DifferenceCollector(Vec::new());
    match (read(old), read(new)) {
        (Ok(a), Ok(b)) => found.compare("", &a, &b),
        _ if old != new => found.add("", Some(old), Some(new), differ_in_white_space(old, new)),
        _ => {}
    }
    found.0
}

struct DifferenceCollector(Vec<DefinitionDifference>);

impl DifferenceCollector {
    fn add(&mut self, place: &str, old: Option<&str>, new: Option<&str>, cosmetic: bool) {
        if self.0.len() < MAX_DIFFERENCES {
            self.0.push(DefinitionDifference {
                path: place.to_owned(),
                old: old.map(str::to_owned),
                new: new.map(str::to_owned),
                cosmetic,
            });
        }
    }

    fn compare(&mut self, place: &str, a: &Json, b: &Json) {
        match (a.kind(), b.kind()) {
            (JsonKind::Object, JsonKind::Object) => self.members(place, a, b),
            (JsonKind::Array, JsonKind::Array) => self.items(place, a, b),
            _ if a.canonical() == b.canonical() => {}
            (JsonKind::String, JsonKind::String) => {
                let (old, new) = (a.str_cow(), b.str_cow());
                let same = old
                    .zip(new)
                    .is_some_and(|(old, new)| match is_title(place) {
                        true => fold_title(&old) == fold_title(&new),
                        false => differ_in_white_space(&old, &new),
                    });
                self.add(place, Some(a.as_str()), Some(b.as_str()), same);
            }
            _ => self.add(place, Some(a.as_str()), Some(b.as_str()), a.same_number(b)),
        }
    }

    fn members(&mut self, place: &str, a: &Json, b: &Json) {
        let at = |key: &str| match place {
            "" => key.to_owned(),
            _ => format!("{place}.{key}"),
        };
        for (key, old) in a.members() {
            match b.get(&key) {
                Some(new) => self.compare(&at(&key), &old, &new),
                None => self.add(&at(&key), Some(old.as_str()), None, false),
            }
        }
        for (key, new) in b.members() {
            if a.get(&key).is_none() {
                self.add(&at(&key), None, Some(new.as_str()), false);
            }
        }
    }

    fn items(&mut self, place: &str, a: &Json, b: &Json) {
        let (old, new): (Vec<Json>, Vec<Json>) = (a.items().collect(), b.items().collect());
        let last = place.rsplit('.').next().unwrap_or_default();
        if UNORDERED.contains(&last) && sorted(&old) == sorted(&new) {
            if a.canonical() != b.canonical() {
                self.add(place, Some(a.as_str()), Some(b.as_str()), true);
            }
            return;
        }
        for at in 0..old.len().max(new.len()) {
            let place = format!("{place}[{at}]");
            match (old.get(at), new.get(at)) {
                (Some(a), Some(b)) => self.compare(&place, a, b),
                (a, b) => self.add(&place, a.map(Json::as_str), b.map(Json::as_str), false),
            }
        }
    }
}

/// Reports whether a path is the title of the definition itself; a `title` in a schema may be the name of an argument.
fn is_title(place: &str) -> bool {
    matches!(place, "title" | "annotations.title")
}

fn sorted(items: &[Json]) -> Vec<String> {
    let mut all: Vec<String> = items.iter().map(Json::canonical).collect();
    all.sort();
    all
}

/// Reports whether two texts differ in white space only.
fn differ_in_white_space(old: &str, new: &str) -> bool {
    old.split_whitespace().eq(new.split_whitespace())
}

/// Returns the letters and digits of a title in lower case: a title with other words is a real difference.
fn fold_title(text: &str) -> String {
    let kept = text.chars().filter(|c| c.is_alphanumeric());
    kept.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(old: &str, new: &str) -> Vec<(String, bool)> {
        let all = diff(old, new).into_iter();
        all.map(|one| (one.path, one.cosmetic)).collect()
    }

    #[test]
    fn each_place_is_told_with_its_weight() {
        for (old, new, place, cosmetic) in [
            (r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#, None, true),
            (
                r#"{"description":"a b"}"#,
                r#"{"description":"a\n b "}"#,
                Some("description"),
                true,
            ),
            (
                r#"{"description":"a b"}"#,
                r#"{"description":"a c"}"#,
                Some("description"),
                false,
            ),
            (
                r#"{"title":"Read file"}"#,
                r#"{"title":"Read File!"}"#,
                Some("title"),
                true,
            ),
            (
                r#"{"title":"Read"}"#,
                r#"{"title":"Read all first"}"#,
                Some("title"),
                false,
            ),
            (
                r#"{"icons":[{"src":"a"},{"src":"b"}]}"#,
                r#"{"icons":[{"src":"b"},{"src":"a"}]}"#,
                Some("icons"),
                true,
            ),
            (
                r#"{"enum":[1,2]}"#,
                r#"{"enum":[1,3]}"#,
                Some("enum[1]"),
                false,
            ),
            (
                r#"{"enum":[1]}"#,
                r#"{"enum":[1,3]}"#,
                Some("enum[1]"),
                false,
            ),
            (r#"{"n":1}"#, r#"{"n":1.0}"#, Some("n"), true),
            (r#"{"n":1}"#, r#"{"n":"1"}"#, Some("n"), false),
            (
                r#"{"s":{"p":{"d":"x"}}}"#,
                r#"{"s":{"p":{}}}"#,
                Some("s.p.d"),
                false,
            ),
            (r#"{}"#, r#"{"_meta":{}}"#, Some("_meta"), false),
        ] {
            let want: Vec<(String, bool)> = place
                .map(|p| (p.to_owned(), cosmetic))
                .into_iter()
                .collect();
            assert_eq!(told(old, new), want, "{old} {new}");
        }
        // Instructions are not JSON.
        assert_eq!(told("use a", "use  b"), [(String::new(), false)]);
    }

    #[test]
    fn many_differences_are_cut() {
        let list = |n: u32| {
            let all: Vec<String> = (0..1000).map(|i| (i + n).to_string()).collect();
            format!("[{}]", all.join(","))
        };
        assert_eq!(diff(&list(0), &list(1)).len(), MAX_DIFFERENCES);
    }
}
