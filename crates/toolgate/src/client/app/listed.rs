//! One thing of a list.

use std::{fmt, ops::Deref, sync::Arc};
use toolgate_core::{Definition, Hints, Item};

/// One thing that the server offers: its [`Definition`], with how far its claims may be believed.
///
/// It reads as the definition: `name()`, `title()`, `description()`, `input_schema()`, `output_schema()`, and `json()`
/// for all members as they came, `_meta` and icons among them.
#[derive(Clone)]
pub struct Listed(pub(super) Arc<Item>);

impl Listed {
    /// What it does: its claims where [`ClientBuilder::trust_annotations`](super::ClientBuilder::trust_annotations)
    /// says so, else the most careful reading.
    pub fn hints(&self) -> Hints {
        self.0.hints()
    }

    /// What it claims to do. Only a claim.
    pub fn claims(&self) -> Hints {
        self.0.def.hints()
    }

    /// The definition.
    pub fn definition(&self) -> &Definition {
        &self.0.def
    }
}

impl Deref for Listed {
    type Target = Definition;

    fn deref(&self) -> &Definition {
        &self.0.def
    }
}

impl fmt::Debug for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Listed({})", self.0.full_name())
    }
}
