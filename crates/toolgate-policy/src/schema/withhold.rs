//! A tool whose schemas cannot be checked is kept from callers.

use crate::{arguments::Input, output_schema::Promised};
use std::sync::Arc;
use toolgate_core::{Error, Item, Kind, Origin, Returned, Scrub};

/// Withholds tools whose `inputSchema` or `outputSchema` cannot be compiled within bounds: nothing is used unchecked.
pub struct Schemas;

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
        let wrong = |which: &str, why: &str| {
            Error::new(Kind::Upstream, format!("its {which} cannot be used: {why}"))
        };
        if let Err(why) = &item.memo(Input::of).0 {
            return Err(wrong("inputSchema", why));
        }
        if let Err(why) = &item.memo(Promised::of).0 {
            return Err(wrong("outputSchema", why));
        }
        Ok(())
    }
}
