//! `cargo xtask examples`: public items that no example uses, against limits.
//!
//! An example is Rust code in a doc comment, in an example program, or in a page of the book. The items are those of the
//! snapshots in `api/`.

mod corpus;
mod items;

use std::fs;

use crate::run::root;
use corpus::Corpus;
use items::{ItemShape, PublicItem};

/// Maximum numbers of public items without an example, by crate: of types, traits, macros and free functions, and of
/// methods of the types in [`items::AUTHOR_TYPES`]. The goal is 0.
const LIMITS: [(&str, usize, usize); 3] = [
    ("toolgate", 0, 0),
    ("toolgate-core", 0, 0),
    ("toolgate-policy", 0, 0),
];

/// Compares the items without an example with the limits, and lists them.
///
/// # Errors
/// There are more than a limit allows.
pub(crate) fn check() -> Result<(), String> {
    let mut corpus = Corpus::read(&root())?;
    let mut wrong = Vec::new();
    for (name, max_items, max_methods) in LIMITS {
        let file = root().join("api").join(format!("{name}.txt"));
        let snapshot =
            fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let all = items::read(&snapshot);
        corpus.add_returned_types(&all);
        let (methods, items): (Vec<PublicItem>, Vec<PublicItem>) = all
            .into_iter()
            .filter(|item| !corpus.uses(item))
            .partition(|item| item.shape == ItemShape::Method);
        for (what, found, most) in [
            ("items", items, max_items),
            ("methods", methods, max_methods),
        ] {
            for item in &found {
                println!("no example uses {}", item.path);
            }
            println!(
                "{name}: {} {what} without an example, {most} allowed",
                found.len()
            );
            if found.len() > most {
                wrong.push(format!("{} {what} of {name}, {most} allowed", found.len()));
            }
        }
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "public items without an example: {}; write an example that uses several of them",
            wrong.join("; ")
        )),
    }
}
