//! Generation of the completion functions of an item.

use crate::{
    arguments::{is_context, is_shared, location},
    complete::ArgumentCompletion,
    free::{TargetFunction, checked_result},
    kind::ItemKind,
};
use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::{Error, FnArg, Path, Result, Signature};

impl TargetFunction<'_> {
    /// Generates the builder calls for the completion functions of the item.
    pub(crate) fn completions(&self, kind: ItemKind) -> Result<TokenStream> {
        let mut chain = TokenStream::new();
        for completion in &self.options.completions {
            let ArgumentCompletion { argument, function } = completion;
            let Some(name) = self.arguments.external_name(argument) else {
                return Err(self.unknown_argument(argument, kind));
            };
            let handler = match self.block_function(function)? {
                Some(signature) => self.completion_handler(signature)?,
                None => quote!(#function),
            };
            chain.extend(quote!(.complete(#name, #handler)));
        }
        Ok(chain)
    }

    fn unknown_argument(&self, argument: &Ident, kind: ItemKind) -> Error {
        let noun = match kind {
            ItemKind::Template => "variable",
            _ => "argument",
        };
        let parameters = self.arguments.named_parameters();
        let advice = match parameters.is_empty() {
            true => format!("it declares no {noun}s"),
            false => format!("use one of `{}`", parameters.join("`, `")),
        };
        let text = format!("the {} has no {noun} `{argument}`; {advice}", kind.word());
        Error::new_spanned(argument, text)
    }

    /// Returns the signature of a function that the path names as `Self::function`; `None` for other paths.
    fn block_function(&self, path: &Path) -> Result<Option<&Signature>> {
        let mut segments = path.segments.iter();
        let (Some(first), Some(name)) = (segments.next(), segments.next()) else {
            return Ok(None);
        };
        if first.ident != "Self" || segments.next().is_some() {
            return Ok(None);
        }
        let Some(functions) = self.block else {
            let text =
                "`Self` exists only in an `impl` block with `#[tools]`; name a function instead";
            return Err(Error::new_spanned(&first.ident, text));
        };
        let found = functions
            .iter()
            .find(|function| function.ident == name.ident);
        let missing = || {
            let text = format!(
                "this block has no function `{}`; a completion function is in the same block, or is a function outside of `impl` blocks",
                name.ident
            );
            Error::new_spanned(&name.ident, text)
        };
        found.map(Some).ok_or_else(missing)
    }

    /// Generates the closure that calls a completion function of the block.
    fn completion_handler(&self, signature: &Signature) -> Result<TokenStream> {
        let (has_self, passed) = parameters(signature)?;
        let (private, name) = (self.options.private_path(), &signature.ident);
        let (shared, before, this) = match has_self {
            true => (
                quote!(let __this = ::std::sync::Arc::clone(__state);),
                quote!(let __this = ::std::sync::Arc::clone(&__this);),
                quote!(&__this,),
            ),
            false => Default::default(),
        };
        let call = quote!(Self::#name(#this #passed));
        let result = checked_result(&private, signature, &call, &quote!(completion_values));
        Ok(quote!({
            #shared
            move |__typed: ::std::string::String, __context: #private::Cx| {
                #before
                async move {
                    let _ = (&__typed, &__context);
                    ::core::result::Result::<_, #private::HandlerExit>::Ok(#result)
                }
            }
        }))
    }
}

/// Returns whether a completion function takes `&self`, and generates the parameters of its call: the text typed so far
/// and the context.
fn parameters(signature: &Signature) -> Result<(bool, TokenStream)> {
    let wrong = |place: &dyn ToTokens| {
        let text = "a completion function takes the text typed so far as a `String`, and optionally `&self` and `Cx`";
        Error::new_spanned(place, text)
    };
    let (mut has_self, mut texts, mut passed) = (false, 0, TokenStream::new());
    for input in &signature.inputs {
        match input {
            FnArg::Receiver(receiver) if is_shared(receiver) => has_self = true,
            FnArg::Receiver(receiver) => return Err(wrong(receiver)),
            FnArg::Typed(parameter) if is_context(&parameter.ty)? => {
                passed.extend(quote!(__context,));
            }
            FnArg::Typed(parameter) => {
                texts += 1;
                // A compile error about another type points to it.
                let typed = Ident::new("__typed", location(&parameter.ty));
                passed.extend(quote!(#typed,));
            }
        }
    }
    match texts {
        1 => Ok((has_self, passed)),
        _ => Err(wrong(&signature.ident)),
    }
}
