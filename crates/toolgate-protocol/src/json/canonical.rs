//! Canonical JSON, the input of digests.

use super::{
    JsonKind,
    lexer::{JsonLexer, JsonToken},
    text::{unescape, write_string},
};
use std::borrow::Cow;

/// Object or array that is being written.
struct CanonicalFrame<'a> {
    object: bool,
    /// Position of its opening bracket in the output.
    start: usize,
    empty: bool,
    /// Keys, and the positions of their members in the output.
    members: Vec<(Cow<'a, str>, usize)>,
}

/// Writes members in their original order; an object that is not sorted is sorted when it closes.
pub(super) fn canonical(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut open: Vec<CanonicalFrame<'_>> = Vec::new();
    for (token, _) in JsonLexer::new(text) {
        match token {
            JsonToken::Close => close(&mut out, open.pop()),
            JsonToken::Key(key) => begin_member(&mut out, open.last_mut(), unescape(key)),
            value => {
                if let Some(array) = open.last_mut().filter(|o| !o.object) {
                    comma(&mut out, array);
                }
                match value {
                    JsonToken::Open(kind) => open.push(begin(&mut out, kind)),
                    JsonToken::String(inner) => write_string(&mut out, &unescape(inner)),
                    JsonToken::Scalar(scalar) => out.push_str(scalar),
                    JsonToken::Close | JsonToken::Key(_) => {}
                }
            }
        }
    }
    out
}

fn begin<'a>(out: &mut String, kind: JsonKind) -> CanonicalFrame<'a> {
    let object = kind == JsonKind::Object;
    let start = out.len();
    out.push(if object { '{' } else { '[' });
    CanonicalFrame {
        object,
        start,
        empty: true,
        members: Vec::new(),
    }
}

fn comma(out: &mut String, open: &mut CanonicalFrame<'_>) {
    if !open.empty {
        out.push(',');
    }
    open.empty = false;
}

fn begin_member<'a>(out: &mut String, open: Option<&mut CanonicalFrame<'a>>, key: Cow<'a, str>) {
    if let Some(object) = open {
        comma(out, object);
        let start = out.len();
        write_string(out, &key);
        out.push(':');
        object.members.push((key, start));
    }
}

fn close(out: &mut String, open: Option<CanonicalFrame<'_>>) {
    let Some(open) = open else { return };
    if !open.members.is_sorted_by(|a, b| a.0 <= b.0) {
        let sorted = sorted_members(out, &open);
        out.truncate(open.start + 1);
        out.push_str(&sorted);
    }
    out.push(if open.object { '}' } else { ']' });
}

/// Returns the members of a just written object, sorted by key.
fn sorted_members(out: &str, open: &CanonicalFrame<'_>) -> String {
    // Each member ends before the comma of the next one.
    let ends = open.members.iter().skip(1).map(|(_, start)| start - 1);
    let ends = ends.chain([out.len()]);
    let mut members: Vec<(&str, &str)> = open
        .members
        .iter()
        .zip(ends)
        .map(|((key, start), end)| (&**key, out.get(*start..end).unwrap_or_default()))
        .collect();
    members.sort_by(|a, b| a.0.cmp(b.0));
    let members: Vec<&str> = members.into_iter().map(|(_, member)| member).collect();
    members.join(",")
}
