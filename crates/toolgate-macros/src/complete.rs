//! Option `complete` of `#[prompt]` and `#[template]`: the names of completion functions.

use proc_macro2::Ident;
use syn::{
    Error, Path, Result, Token,
    ext::IdentExt,
    meta::ParseNestedMeta,
    parenthesized,
    parse::{Parse, ParseStream},
    punctuated::Punctuated,
};

/// Completion function of one argument, for example `city = Self::cities`.
pub(crate) struct ArgumentCompletion {
    pub(crate) argument: Ident,
    pub(crate) function: Path,
}

impl Parse for ArgumentCompletion {
    fn parse(input: ParseStream<'_>) -> Result<ArgumentCompletion> {
        let argument = input.call(Ident::parse_any)?;
        input.parse::<Token![=]>()?;
        let function = input.parse()?;
        Ok(ArgumentCompletion { argument, function })
    }
}

/// Parses the list in the parentheses of the option.
pub(crate) fn parse_list(meta: &ParseNestedMeta<'_>) -> Result<Vec<ArgumentCompletion>> {
    let content;
    parenthesized!(content in meta.input);
    let list = Punctuated::<ArgumentCompletion, Token![,]>::parse_terminated(&content)?;
    let list: Vec<ArgumentCompletion> = list.into_iter().collect();
    for (at, completion) in list.iter().enumerate() {
        let argument = &completion.argument;
        if list
            .iter()
            .take(at)
            .any(|first| first.argument == *argument)
        {
            let text = format!("`{argument}` has two completion functions; remove one of the two");
            return Err(Error::new_spanned(argument, text));
        }
    }
    Ok(list)
}
