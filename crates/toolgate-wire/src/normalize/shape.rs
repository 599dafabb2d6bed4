//! Shapes of optional members, and the removal of members that do not match their shape.

use super::{Repairs, uri::is_uri};
use crate::json::{ArrayWriter, Json, Kind};

/// Allowed shape of a value.
pub(super) enum Shape {
    Text,
    Uri,
    Bool,
    Integer,
    /// Number from 0 to 1.
    Share,
    Object,
    Word(&'static [&'static str]),
    /// Array; elements of another shape are removed.
    List(&'static Shape),
    Members(&'static [Member]),
}

/// Member of an object. An object without a required member does not match its shape.
pub(super) struct Member {
    key: &'static str,
    shape: Shape,
    required: bool,
}

const fn may(key: &'static str, shape: Shape) -> Member {
    Member {
        key,
        shape,
        required: false,
    }
}

const fn must(key: &'static str, shape: Shape) -> Member {
    Member {
        key,
        shape,
        required: true,
    }
}

const ROLE: Shape = Shape::Word(&["user", "assistant"]);
const ICONS: Shape = Shape::List(&Shape::Members(&[
    must("src", Shape::Uri),
    may("mimeType", Shape::Text),
    may("sizes", Shape::List(&Shape::Text)),
    may("theme", Shape::Word(&["light", "dark"])),
]));
const ANNOTATIONS: Shape = Shape::Members(&[
    may("audience", Shape::List(&ROLE)),
    may("priority", Shape::Share),
    may("lastModified", Shape::Text),
]);
const TITLE: Member = may("title", Shape::Text);
const DESCRIPTION: Member = may("description", Shape::Text);
const META: Member = may("_meta", Shape::Object);

/// Optional members of `Tool`, except its schemas.
pub(super) static TOOL: &[Member] = &[
    TITLE,
    DESCRIPTION,
    META,
    may("icons", ICONS),
    may(
        "annotations",
        Shape::Members(&[
            may("title", Shape::Text),
            may("readOnlyHint", Shape::Bool),
            may("destructiveHint", Shape::Bool),
            may("idempotentHint", Shape::Bool),
            may("openWorldHint", Shape::Bool),
        ]),
    ),
    may(
        "execution",
        Shape::Members(&[may(
            "taskSupport",
            Shape::Word(&["forbidden", "optional", "required"]),
        )]),
    ),
];

/// Optional members of `Resource`, and of `ResourceLink`.
pub(super) static RESOURCE: &[Member] = &[
    TITLE,
    DESCRIPTION,
    META,
    may("icons", ICONS),
    may("annotations", ANNOTATIONS),
    may("mimeType", Shape::Text),
    may("size", Shape::Integer),
];

/// Optional members of `ResourceTemplate`.
pub(super) static TEMPLATE: &[Member] = &[
    TITLE,
    DESCRIPTION,
    META,
    may("icons", ICONS),
    may("annotations", ANNOTATIONS),
    may("mimeType", Shape::Text),
];

/// Optional members of `Prompt`, except its arguments.
pub(super) static PROMPT: &[Member] = &[TITLE, DESCRIPTION, META, may("icons", ICONS)];

/// Optional members of `PromptArgument`.
pub(super) static ARGUMENT: &[Member] = &[TITLE, DESCRIPTION, may("required", Shape::Bool)];

/// Optional members of all content blocks.
pub(super) static BLOCK: &[Member] = &[META, may("annotations", ANNOTATIONS)];

/// Optional members of resource contents.
pub(super) static CONTENTS: &[Member] = &[META, may("mimeType", Shape::Text)];

/// Removes members that do not match their shape; `None` if all match.
pub(super) fn mend(
    object: &Json,
    members: &[Member],
    path: &str,
    repairs: &mut Repairs,
) -> Option<Json> {
    let mut mended = None;
    for member in members {
        let Some(value) = object.get(member.key) else {
            continue;
        };
        let at = format!("{path}{}", member.key);
        let new = match fit(&value, &member.shape, &at, repairs) {
            Fit::Good => continue,
            Fit::Mended(value) => mended.as_ref().unwrap_or(object).with(member.key, &value),
            Fit::Bad => {
                let what = word(&value);
                repairs.add(format!("\"{at}\" is {what}; it is left out"));
                mended.as_ref().unwrap_or(object).without(member.key)
            }
        };
        mended = Some(new);
    }
    mended
}

enum Fit {
    Good,
    Mended(Json),
    Bad,
}

fn fit(value: &Json, shape: &Shape, path: &str, repairs: &mut Repairs) -> Fit {
    let good = match shape {
        Shape::Text => value.kind() == Kind::String,
        Shape::Uri => value.str_cow().is_some_and(|text| is_uri(&text)),
        Shape::Bool => value.kind() == Kind::Bool,
        Shape::Integer => value.f64().is_some_and(|n| n.fract() == 0.0),
        Shape::Share => value.f64().is_some_and(|n| (0.0..=1.0).contains(&n)),
        Shape::Object => value.kind() == Kind::Object,
        Shape::Word(words) => value.str_cow().is_some_and(|text| words.contains(&&*text)),
        Shape::List(of) => return list(value, of, path, repairs),
        Shape::Members(members) => return object(value, members, path, repairs),
    };
    if good { Fit::Good } else { Fit::Bad }
}

fn object(value: &Json, members: &[Member], path: &str, repairs: &mut Repairs) -> Fit {
    if value.kind() != Kind::Object {
        return Fit::Bad;
    }
    let mended = mend(value, members, &format!("{path}."), repairs);
    let now = mended.as_ref().unwrap_or(value);
    let whole = members
        .iter()
        .all(|m| !m.required || now.get(m.key).is_some());
    match mended {
        _ if !whole => Fit::Bad,
        Some(mended) => Fit::Mended(mended),
        None => Fit::Good,
    }
}

fn list(value: &Json, of: &Shape, path: &str, repairs: &mut Repairs) -> Fit {
    if value.kind() != Kind::Array {
        return Fit::Bad;
    }
    let (mut same, mut kept) = (true, ArrayWriter::new());
    for (at, item) in value.items().enumerate() {
        let at = format!("{path}[{at}]");
        match fit(&item, of, &at, repairs) {
            Fit::Good => kept.raw(&item),
            Fit::Mended(item) => {
                same = false;
                kept.raw(&item);
            }
            Fit::Bad => {
                same = false;
                repairs.add(format!("\"{at}\" is not valid; it is left out"));
            }
        }
    }
    if same {
        Fit::Good
    } else {
        Fit::Mended(kept.finish())
    }
}

/// Describes a value for a message, without its content.
pub(super) fn word(value: &Json) -> &'static str {
    match value.kind() {
        Kind::Object => "an object that is not valid here",
        Kind::Array => "an array",
        Kind::String => "a string that is not valid here",
        Kind::Number => "a number",
        Kind::Bool => "a boolean",
        Kind::Null => "null",
    }
}
