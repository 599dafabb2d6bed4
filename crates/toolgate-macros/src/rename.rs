//! New names of arguments, by `#[serde(rename)]`.

use proc_macro2::TokenStream;
use syn::{Attribute, Expr, Lit, Meta, Token, parse::Parser, punctuated::Punctuated};

/// Returns the new name that the `serde` attributes of a parameter give to its argument.
pub(crate) fn new_name(attributes: &[Attribute]) -> Option<String> {
    let mut serde = attributes.iter().filter(|a| a.path().is_ident("serde"));
    serde.find_map(|attribute| renamed(attribute.parse_args().ok()?))
}

/// Returns the new name in options: `rename = "…"`, or `rename(deserialize = "…")`.
fn renamed(options: TokenStream) -> Option<String> {
    let list = Punctuated::<Meta, Token![,]>::parse_terminated;
    list.parse2(options).ok()?.iter().find_map(|option| {
        let is = |name: &str| option.path().is_ident(name);
        match option {
            Meta::List(list) if is("rename") => renamed(list.tokens.clone()),
            Meta::NameValue(pair) if is("rename") || is("deserialize") => text(&pair.value),
            _ => None,
        }
    })
}

fn text(value: &Expr) -> Option<String> {
    match value {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Str(text) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}
