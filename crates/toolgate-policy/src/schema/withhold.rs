//! Sanitizer that withholds tools with unusable schemas and marks those that are only partly checked.

use super::Bounds;
use crate::{arguments::Input, output_schema::Promised};
use std::sync::Arc;
use toolgate_core::{Error, Item, ItemKind, Kind, NoteAction, Origin, Returned, Scrub};

/// Withholds tools if their `inputSchema` or `outputSchema` cannot be compiled within bounds: nothing is used
/// unchecked. A keyword that cannot be checked is skipped, and the tool is marked as partly checked.
///
/// It runs below the rules, so it is the first to compile a schema, and its bounds apply.
#[derive(Clone, Copy, Debug, Default)]
pub struct Schemas(pub Bounds);

impl Scrub for Schemas {
    fn name(&self) -> &'static str {
        "schemas"
    }

    fn scrub(
        &self,
        _: Option<&Origin>,
        _: Option<&Arc<Item>>,
        value: Returned<'_>,
    ) -> Result<(), Error> {
        let Returned::Item(item) = value else {
            return Ok(());
        };
        if item.kind() != ItemKind::Tool {
            return Ok(());
        }
        let wrong = |which: &str, why: &str| {
            Error::new(Kind::Upstream, format!("its {which} cannot be used: {why}"))
        };
        let input = item.memo(|item| Input::of(item, &self.0));
        let promised = item.memo(|item| Promised::of(item, &self.0));
        let mut skipped = Vec::new();
        match input.0.as_ref() {
            Err(why) => return Err(wrong("inputSchema", why)),
            Ok(schema) => skipped.extend(schema.skipped.iter().map(|at| ("inputSchema", at))),
        }
        match promised.0.as_deref() {
            Some(Err(why)) => return Err(wrong("outputSchema", why)),
            Some(Ok(schema)) => {
                skipped.extend(schema.skipped.iter().map(|at| ("outputSchema", at)));
            }
            None => {}
        }
        if skipped.is_empty() {
            return Ok(());
        }
        let mut noted = item.with_def(item.def.clone());
        for (which, at) in skipped {
            let reason = format!("{which} at {at}");
            noted = noted.noted(NoteAction::PartlyChecked, &reason);
        }
        // The new item is compiled with these bounds too.
        noted.memo(|item| Input::of(item, &self.0));
        noted.memo(|item| Promised::of(item, &self.0));
        *item = Arc::new(noted);
        Ok(())
    }
}
