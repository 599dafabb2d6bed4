//! Kinds of items that attributes declare.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Error, Result};

/// Kind of item that an attribute makes from a function.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) enum ItemKind {
    Tool,
    Prompt,
    Resource,
    Template,
}

impl ItemKind {
    const ALL: [ItemKind; 4] = [
        ItemKind::Tool,
        ItemKind::Prompt,
        ItemKind::Resource,
        ItemKind::Template,
    ];

    /// Returns the name of the attribute, which is also the word in messages and the method that adds an item.
    pub(crate) fn word(self) -> &'static str {
        match self {
            ItemKind::Tool => "tool",
            ItemKind::Prompt => "prompt",
            ItemKind::Resource => "resource",
            ItemKind::Template => "template",
        }
    }

    /// Returns true if the attribute begins with a URI or a URI template.
    pub(crate) fn has_uri(self) -> bool {
        matches!(self, ItemKind::Resource | ItemKind::Template)
    }

    /// Returns the type of the item in the crate `toolgate`.
    pub(crate) fn ty(self) -> TokenStream {
        match self {
            ItemKind::Tool => quote!(Tool),
            ItemKind::Prompt => quote!(Prompt),
            ItemKind::Resource => quote!(Resource),
            ItemKind::Template => quote!(ResourceTemplate),
        }
    }

    /// Returns the kind that an attribute declares.
    fn of(attribute: &Attribute) -> Option<ItemKind> {
        let last = attribute.path().segments.last()?;
        ItemKind::ALL
            .into_iter()
            .find(|kind| last.ident == kind.word())
    }

    /// Removes the attribute of an item from a method, and returns it with its kind.
    pub(crate) fn take(attributes: &mut Vec<Attribute>) -> Result<Option<(ItemKind, Attribute)>> {
        let Some(at) = attributes.iter().position(|a| ItemKind::of(a).is_some()) else {
            return Ok(None);
        };
        let attribute = attributes.remove(at);
        if let Some(second) = attributes.iter().find(|a| ItemKind::of(a).is_some()) {
            let text = "a method is one item; this is its second attribute";
            return Err(Error::new_spanned(second, text));
        }
        Ok(ItemKind::of(&attribute).map(|kind| (kind, attribute)))
    }
}
