//! The skills.

use toolgate::handlers::Skill;

const FORMS: &str = "---
name: read-forms
description: Reads the fields of a form, one after the other
license: Apache-2.0
metadata:
  version: \"1.0\"
---

# Read a form

Pick a list of fields from `templates/`, then follow `references/order.md`.
";

const GREETING: &str = "---
name: greet
description: Greets somebody politely
---

Say the name and the time of day.
";

/// Every skill: one with folders, one alone, below a prefix.
pub(crate) fn all() -> Vec<Skill> {
    let forms = Skill::new(FORMS)
        .file("references/order.md", "From top to bottom.\n")
        .file("templates/invoice.json", "[\"number\", \"sum\"]\n")
        .file("templates/dot.bin", vec![0_u8, 159, 146, 150]);
    vec![forms, Skill::new(GREETING).under("house/manners")]
}
