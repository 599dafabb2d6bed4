//! A tool whose schemas cannot be checked is kept from callers.

use super::Bounds;
use crate::{arguments::Input, output_schema::Promised};
use std::sync::Arc;
use toolgate_core::{Error, Item, ItemKind, Kind, Origin, Returned, Scrub};

/// Withholds tools whose `inputSchema` or `outputSchema` cannot be compiled within bounds: nothing is used unchecked.
///
/// It stands below the rules, so it is the first to compile a schema, and its bounds are the ones that count.
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
        if let Err(why) = item.memo(|item| Input::of(item, &self.0)).0.as_ref() {
            return Err(wrong("inputSchema", why));
        }
        match item.memo(|item| Promised::of(item, &self.0)).0.as_deref() {
            Some(Err(why)) => Err(wrong("outputSchema", why)),
            _ => Ok(()),
        }
    }
}
