//! Shapes of optional members, and the removal of members that do not match their shape.

use super::{RepairLog, uri::is_uri};
use crate::json::{ArrayWriter, Json, JsonKind};

/// Allowed shape of a value.
pub(super) enum MemberShape {
    Text,
    Uri,
    Bool,
    Integer,
    /// Number from 0 to 1.
    Share,
    Object,
    Word(&'static [&'static str]),
    /// Array; elements of another shape are removed.
    List(&'static MemberShape),
    Members(&'static [ShapedMember]),
}

/// Member of an object. An object without a required member does not match its shape.
pub(super) struct ShapedMember {
    key: &'static str,
    shape: MemberShape,
    required: bool,
}

const fn may(key: &'static str, shape: MemberShape) -> ShapedMember {
    ShapedMember {
        key,
        shape,
        required: false,
    }
}

const fn must(key: &'static str, shape: MemberShape) -> ShapedMember {
    ShapedMember {
        key,
        shape,
        required: true,
    }
}

const ROLE: MemberShape = MemberShape::Word(&["user", "assistant"]);
const ICONS: MemberShape = MemberShape::List(&MemberShape::Members(&[
    must("src", MemberShape::Uri),
    may("mimeType", MemberShape::Text),
    may("sizes", MemberShape::List(&MemberShape::Text)),
    may("theme", MemberShape::Word(&["light", "dark"])),
]));
const ANNOTATIONS: MemberShape = MemberShape::Members(&[
    may("audience", MemberShape::List(&ROLE)),
    may("priority", MemberShape::Share),
    may("lastModified", MemberShape::Text),
]);
const TITLE: ShapedMember = may("title", MemberShape::Text);
const DESCRIPTION: ShapedMember = may("description", MemberShape::Text);
const META: ShapedMember = may("_meta", MemberShape::Object);

/// Optional members of `Tool`, except its schemas.
pub(super) static TOOL: &[ShapedMember] = &[
    TITLE,
    DESCRIPTION,
    META,
    may("icons", ICONS),
    may(
        "annotations",
        MemberShape::Members(&[
            may("title", MemberShape::Text),
            may("readOnlyHint", MemberShape::Bool),
            may("destructiveHint", MemberShape::Bool),
            may("idempotentHint", MemberShape::Bool),
            may("openWorldHint", MemberShape::Bool),
        ]),
    ),
    may(
        "execution",
        MemberShape::Members(&[may(
            "taskSupport",
            MemberShape::Word(&["forbidden", "optional", "required"]),
        )]),
    ),
];

/// Optional members of `Resource`, and of `ResourceLink`.
pub(super) static RESOURCE: &[ShapedMember] = &[
    TITLE,
    DESCRIPTION,
    META,
    may("icons", ICONS),
    may("annotations", ANNOTATIONS),
    may("mimeType", MemberShape::Text),
    may("size", MemberShape::Integer),
];

/// Optional members of `ResourceTemplate`.
pub(super) static TEMPLATE: &[ShapedMember] = &[
    TITLE,
    DESCRIPTION,
    META,
    may("icons", ICONS),
    may("annotations", ANNOTATIONS),
    may("mimeType", MemberShape::Text),
];

/// Optional members of `Prompt`, except its arguments.
pub(super) static PROMPT: &[ShapedMember] = &[TITLE, DESCRIPTION, META, may("icons", ICONS)];

/// Optional members of `PromptArgument`.
pub(super) static ARGUMENT: &[ShapedMember] =
    &[TITLE, DESCRIPTION, may("required", MemberShape::Bool)];

/// Optional members of all content blocks.
pub(super) static BLOCK: &[ShapedMember] = &[META, may("annotations", ANNOTATIONS)];

/// Optional members of resource contents.
pub(super) static CONTENTS: &[ShapedMember] = &[META, may("mimeType", MemberShape::Text)];

/// Removes members that do not match their shape; `None` if all match.
pub(super) fn mend(
    object: &Json,
    members: &[ShapedMember],
    path: &str,
    repairs: &mut RepairLog,
) -> Option<Json> {
    let mut mended = None;
    for member in members {
        let Some(value) = object.get(member.key) else {
            continue;
        };
        let at = format!("{path}{}", member.key);
        let new = match fit(&value, &member.shape, &at, repairs) {
            ShapeFit::Good => continue,
            ShapeFit::Mended(value) => mended.as_ref().unwrap_or(object).with(member.key, &value),
            ShapeFit::Bad => {
                let what = word(&value);
                repairs.add(format!("\"{at}\" is {what}; it is left out"));
                mended.as_ref().unwrap_or(object).without(member.key)
            }
        };
        mended = Some(new);
    }
    mended
}

enum ShapeFit {
    Good,
    Mended(Json),
    Bad,
}

fn fit(value: &Json, shape: &MemberShape, path: &str, repairs: &mut RepairLog) -> ShapeFit {
    let good = match shape {
        MemberShape::Text => value.kind() == JsonKind::String,
        MemberShape::Uri => value.str_cow().is_some_and(|text| is_uri(&text)),
        MemberShape::Bool => value.kind() == JsonKind::Bool,
        MemberShape::Integer => value.f64().is_some_and(|n| n.fract() == 0.0),
        MemberShape::Share => value.f64().is_some_and(|n| (0.0..=1.0).contains(&n)),
        MemberShape::Object => value.kind() == JsonKind::Object,
        MemberShape::Word(words) => value.str_cow().is_some_and(|text| words.contains(&&*text)),
        MemberShape::List(of) => return list(value, of, path, repairs),
        MemberShape::Members(members) => return object(value, members, path, repairs),
    };
    if good { ShapeFit::Good } else { ShapeFit::Bad }
}

fn object(value: &Json, members: &[ShapedMember], path: &str, repairs: &mut RepairLog) -> ShapeFit {
    if value.kind() != JsonKind::Object {
        return ShapeFit::Bad;
    }
    let mended = mend(value, members, &format!("{path}."), repairs);
    let now = mended.as_ref().unwrap_or(value);
    let whole = members
        .iter()
        .all(|m| !m.required || now.get(m.key).is_some());
    match mended {
        _ if !whole => ShapeFit::Bad,
        Some(mended) => ShapeFit::Mended(mended),
        None => ShapeFit::Good,
    }
}

fn list(value: &Json, of: &MemberShape, path: &str, repairs: &mut RepairLog) -> ShapeFit {
    if value.kind() != JsonKind::Array {
        return ShapeFit::Bad;
    }
    let (mut same, mut kept) = (true, ArrayWriter::new());
    for (at, item) in value.items().enumerate() {
        let at = format!("{path}[{at}]");
        match fit(&item, of, &at, repairs) {
            ShapeFit::Good => kept.raw(&item),
            ShapeFit::Mended(item) => {
                same = false;
                kept.raw(&item);
            }
            ShapeFit::Bad => {
                same = false;
                repairs.add(format!("\"{at}\" is not valid; it is left out"));
            }
        }
    }
    if same {
        ShapeFit::Good
    } else {
        ShapeFit::Mended(kept.finish())
    }
}

/// Describes a value for a message, without its content.
pub(super) fn word(value: &Json) -> &'static str {
    match value.kind() {
        JsonKind::Object => "an object that is not valid here",
        JsonKind::Array => "an array",
        JsonKind::String => "a string that is not valid here",
        JsonKind::Number => "a number",
        JsonKind::Bool => "a boolean",
        JsonKind::Null => "null",
    }
}
