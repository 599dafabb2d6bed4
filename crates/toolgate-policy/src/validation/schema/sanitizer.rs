//! Sanitizer that withholds tools with unusable schemas and marks those that are only partly checked.

use super::{SchemaBounds, USER_ADVICE};
use crate::{
    validation::arguments::CompiledInputSchema, validation::output_schema::DeclaredOutputSchema,
};
use std::sync::Arc;
use toolgate_core::{
    Error, ErrorKind, Item, ItemKind, NoteAction, Origin, Sanitizer, UntrustedContent,
};

/// Sanitizer that withholds tools if their `inputSchema` or `outputSchema` cannot be compiled within bounds: nothing is
/// used unchecked. A keyword that cannot be checked is skipped, and the tool is marked as partly checked.
///
/// It runs below the rules, so it is the first to compile a schema, and its bounds apply.
#[derive(Clone, Copy, Debug, Default)]
pub struct SchemaSanitizer(pub SchemaBounds);

impl Sanitizer for SchemaSanitizer {
    fn name(&self) -> &'static str {
        "schemas"
    }

    fn sanitize(
        &self,
        _: Option<&Origin>,
        _: Option<&Arc<Item>>,
        value: UntrustedContent<'_>,
    ) -> Result<(), Error> {
        let UntrustedContent::Item(item) = value else {
            return Ok(());
        };
        if item.kind() != ItemKind::Tool {
            return Ok(());
        }
        let wrong = |which: &str, why: &str| {
            Error::new(
                ErrorKind::Upstream,
                format!("its {which} cannot be used: {why}; {USER_ADVICE}"),
            )
        };
        let input = item.cached(|item| CompiledInputSchema::of(item, &self.0));
        let promised = item.cached(|item| DeclaredOutputSchema::of(item, &self.0));
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
            noted = noted.with_note(NoteAction::PartlyChecked, &reason);
        }
        // The new item is compiled with these bounds too.
        noted.cached(|item| CompiledInputSchema::of(item, &self.0));
        noted.cached(|item| DeclaredOutputSchema::of(item, &self.0));
        *item = Arc::new(noted);
        Ok(())
    }
}
