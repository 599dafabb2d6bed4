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
    UnitInterval,
    Object,
    OneOf(&'static [&'static str]),
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

impl MemberShape {
    /// Returns a noun phrase for the values of this shape.
    fn noun(&self) -> String {
        match self {
            MemberShape::Text => "a string".to_owned(),
            MemberShape::Uri => "a URI".to_owned(),
            MemberShape::Bool => "true or false".to_owned(),
            MemberShape::Integer => "a whole number".to_owned(),
            MemberShape::UnitInterval => "a number from 0 to 1".to_owned(),
            MemberShape::Object => "an object".to_owned(),
            MemberShape::OneOf(words) => {
                let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
                words.join(" or ")
            }
            MemberShape::List(_) => "an array".to_owned(),
            MemberShape::Members(members) => {
                let required = members.iter().filter(|member| member.required);
                let required: Vec<String> = required
                    .map(|member| format!("\"{}\" that is {}", member.key, member.shape.noun()))
                    .collect();
                match required.is_empty() {
                    true => "an object".to_owned(),
                    false => format!("an object with a {}", required.join(" and a ")),
                }
            }
        }
    }
}

const fn optional_member(key: &'static str, shape: MemberShape) -> ShapedMember {
    ShapedMember {
        key,
        shape,
        required: false,
    }
}

const fn required_member(key: &'static str, shape: MemberShape) -> ShapedMember {
    ShapedMember {
        key,
        shape,
        required: true,
    }
}

const ROLE: MemberShape = MemberShape::OneOf(&["user", "assistant"]);
const ICONS: MemberShape = MemberShape::List(&MemberShape::Members(&[
    required_member("src", MemberShape::Uri),
    optional_member("mimeType", MemberShape::Text),
    optional_member("sizes", MemberShape::List(&MemberShape::Text)),
    optional_member("theme", MemberShape::OneOf(&["light", "dark"])),
]));
const ANNOTATIONS: MemberShape = MemberShape::Members(&[
    optional_member("audience", MemberShape::List(&ROLE)),
    optional_member("priority", MemberShape::UnitInterval),
    optional_member("lastModified", MemberShape::Text),
]);
const TITLE: ShapedMember = optional_member("title", MemberShape::Text);
const DESCRIPTION: ShapedMember = optional_member("description", MemberShape::Text);
const META: ShapedMember = optional_member("_meta", MemberShape::Object);

/// Optional members of `Tool`, except its schemas.
pub(super) static TOOL: &[ShapedMember] = &[
    TITLE,
    DESCRIPTION,
    META,
    optional_member("icons", ICONS),
    optional_member(
        "annotations",
        MemberShape::Members(&[
            optional_member("title", MemberShape::Text),
            optional_member("readOnlyHint", MemberShape::Bool),
            optional_member("destructiveHint", MemberShape::Bool),
            optional_member("idempotentHint", MemberShape::Bool),
            optional_member("openWorldHint", MemberShape::Bool),
        ]),
    ),
    optional_member(
        "execution",
        MemberShape::Members(&[optional_member(
            "taskSupport",
            MemberShape::OneOf(&["forbidden", "optional", "required"]),
        )]),
    ),
];

/// Optional members of `Resource`, and of `ResourceLink`.
pub(super) static RESOURCE: &[ShapedMember] = &[
    TITLE,
    DESCRIPTION,
    META,
    optional_member("icons", ICONS),
    optional_member("annotations", ANNOTATIONS),
    optional_member("mimeType", MemberShape::Text),
    optional_member("size", MemberShape::Integer),
];

/// Optional members of `ResourceTemplate`.
pub(super) static TEMPLATE: &[ShapedMember] = &[
    TITLE,
    DESCRIPTION,
    META,
    optional_member("icons", ICONS),
    optional_member("annotations", ANNOTATIONS),
    optional_member("mimeType", MemberShape::Text),
];

/// Optional members of `Prompt`, except its arguments.
pub(super) static PROMPT: &[ShapedMember] =
    &[TITLE, DESCRIPTION, META, optional_member("icons", ICONS)];

/// Optional members of `PromptArgument`.
pub(super) static ARGUMENT: &[ShapedMember] = &[
    TITLE,
    DESCRIPTION,
    optional_member("required", MemberShape::Bool),
];

/// Optional members of all content blocks.
pub(super) static BLOCK: &[ShapedMember] = &[META, optional_member("annotations", ANNOTATIONS)];

/// Optional members of resource contents.
pub(super) static CONTENTS: &[ShapedMember] =
    &[META, optional_member("mimeType", MemberShape::Text)];

/// Removes members that do not match their shape; `None` if all match.
pub(super) fn repair_members(
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
            ShapeFit::Matches => continue,
            ShapeFit::Repaired(value) => mended.as_ref().unwrap_or(object).with(member.key, &value),
            ShapeFit::Mismatch => {
                repairs.add(format!(
                    "\"{at}\" is not {}; it is ignored",
                    member.shape.noun()
                ));
                mended.as_ref().unwrap_or(object).without(member.key)
            }
        };
        mended = Some(new);
    }
    mended
}

enum ShapeFit {
    Matches,
    Repaired(Json),
    Mismatch,
}

fn fit(value: &Json, shape: &MemberShape, path: &str, repairs: &mut RepairLog) -> ShapeFit {
    let good = match shape {
        MemberShape::Text => value.kind() == JsonKind::String,
        MemberShape::Uri => value.str_cow().is_some_and(|text| is_uri(&text)),
        MemberShape::Bool => value.kind() == JsonKind::Bool,
        MemberShape::Integer => value.f64().is_some_and(|n| n.fract() == 0.0),
        MemberShape::UnitInterval => value.f64().is_some_and(|n| (0.0..=1.0).contains(&n)),
        MemberShape::Object => value.kind() == JsonKind::Object,
        MemberShape::OneOf(words) => value.str_cow().is_some_and(|text| words.contains(&&*text)),
        MemberShape::List(of) => return list(value, of, path, repairs),
        MemberShape::Members(members) => return object(value, members, path, repairs),
    };
    if good {
        ShapeFit::Matches
    } else {
        ShapeFit::Mismatch
    }
}

fn object(value: &Json, members: &[ShapedMember], path: &str, repairs: &mut RepairLog) -> ShapeFit {
    if value.kind() != JsonKind::Object {
        return ShapeFit::Mismatch;
    }
    let mended = repair_members(value, members, &format!("{path}."), repairs);
    let now = mended.as_ref().unwrap_or(value);
    let whole = members
        .iter()
        .all(|m| !m.required || now.get(m.key).is_some());
    match mended {
        _ if !whole => ShapeFit::Mismatch,
        Some(mended) => ShapeFit::Repaired(mended),
        None => ShapeFit::Matches,
    }
}

fn list(value: &Json, of: &MemberShape, path: &str, repairs: &mut RepairLog) -> ShapeFit {
    if value.kind() != JsonKind::Array {
        return ShapeFit::Mismatch;
    }
    let (mut same, mut kept) = (true, ArrayWriter::new());
    for (at, item) in value.items().enumerate() {
        let at = format!("{path}[{at}]");
        match fit(&item, of, &at, repairs) {
            ShapeFit::Matches => kept.raw(&item),
            ShapeFit::Repaired(item) => {
                same = false;
                kept.raw(&item);
            }
            ShapeFit::Mismatch => {
                same = false;
                repairs.add(format!("\"{at}\" is not {}; it is ignored", of.noun()));
            }
        }
    }
    if same {
        ShapeFit::Matches
    } else {
        ShapeFit::Repaired(kept.finish())
    }
}

/// Describes a value for a message, without its content.
pub(super) fn describe(value: &Json) -> &'static str {
    match value.kind() {
        JsonKind::Object => "an object",
        JsonKind::Array => "an array",
        JsonKind::String => "a string",
        JsonKind::Number => "a number",
        JsonKind::Bool => "a boolean",
        JsonKind::Null => "null",
    }
}
