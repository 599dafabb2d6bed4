//! Text from servers holds nothing that a person would not see.

mod classes;
mod clean;
#[cfg(test)]
mod tests;

pub use clean::clean;

use crate::edit::{Edit, Place, edit};
use std::{borrow::Cow, sync::Arc};
use toolgate_core::{Error, Item, Json, Origin, Returned, Scrub};

/// Takes control characters, terminal sequences and invisible characters out of all that comes back.
///
/// What may stay though it is invisible is told in the tests: joiners, marks of direction and variation selectors
/// where a script or an emoji needs them. Private use characters are taken out, German ligature breaks too.
pub struct Text;

impl Scrub for Text {
    fn name(&self) -> &'static str {
        "text"
    }

    fn scrub(
        &self,
        _: Option<&Origin>,
        _: Option<&Arc<Item>>,
        value: Returned<'_>,
    ) -> Result<(), Error> {
        edit(value, &mut Cleaning)
    }
}

struct Cleaning;

impl Edit for Cleaning {
    fn text(&mut self, text: &str) -> Option<String> {
        match clean(text) {
            Cow::Borrowed(_) => None,
            Cow::Owned(text) => Some(text),
        }
    }

    fn json(&mut self, _: Place, json: &Json) -> Option<(Json, bool)> {
        // Nearly all there is.
        if clean::is_clean(json.as_str()) {
            return None;
        }
        let mut keys = false;
        let clean = json.map_strings(&mut |at| {
            let clean = self.text(at.text)?;
            keys |= at.key;
            Some(clean)
        });
        clean.map(|clean| (clean, keys))
    }

    fn flaw(&self) -> &'static str {
        "control or invisible characters"
    }
}
