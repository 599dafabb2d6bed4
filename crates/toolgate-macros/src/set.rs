//! Expansion of `#[tools]` on an `impl` block.

use crate::{
    arguments::FunctionArguments,
    docs,
    free::{TargetFunction, cfg_attributes},
    kind::ItemKind,
    options::{self, AttributeOptions},
};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{
    Attribute, Error, Ident, ImplItem, ImplItemFn, ItemImpl, Meta, Result, Signature, Token,
    Visibility,
    parse::{ParseStream, Parser},
};

/// Options of `#[tools]`.
#[derive(Default)]
pub(crate) struct BlockOptions {
    options: AttributeOptions,
    /// Visibility and name of the function that returns the items of the block.
    function: Option<(Visibility, Ident)>,
}

impl BlockOptions {
    /// Parses the options, for example `pub fn admin`.
    pub(crate) fn of(tokens: TokenStream) -> Result<BlockOptions> {
        let parser = |input: ParseStream<'_>| {
            let visibility: Visibility = input.parse()?;
            let function = match &visibility {
                Visibility::Inherited if !input.peek(Token![fn]) => None,
                _ => {
                    input.parse::<Token![fn]>()?;
                    Some((visibility, input.parse()?))
                }
            };
            if function.is_some() && !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
            Ok(BlockOptions {
                options: AttributeOptions::of(input.parse()?, options::TOOLS)?,
                function,
            })
        };
        parser.parse2(tokens)
    }
}

/// Generates the unchanged block, and the function that returns the items in it.
pub(crate) fn tools(options: &BlockOptions, mut block: ItemImpl) -> Result<TokenStream> {
    if let Some((path, _)) = &block.trait_ {
        let text =
            "`#[tools]` must be on an `impl` block of the type itself, not on one of a trait";
        return Err(Error::new_spanned(path, text));
    }
    let functions: Vec<Signature> = block.items.iter().filter_map(signature).collect();
    let mut additions = Vec::new();
    for item in &mut block.items {
        if let ImplItem::Fn(method) = item
            && let Some((kind, attribute)) = ItemKind::take(&mut method.attrs)?
        {
            additions.push(addition(
                &options.options,
                &functions,
                (kind, &attribute),
                method,
            )?);
        }
    }
    if additions.is_empty() {
        let text = "no method in this block has `#[tool]`, `#[prompt]`, `#[resource]` or `#[template]`; add one of them to each method that is an item";
        return Err(Error::new_spanned(&block.self_ty, text));
    }
    let private = options.options.private_path();
    let (generics, _, clause) = block.generics.split_for_impl();
    let (conditions, ty) = (cfg_attributes(&block.attrs), &block.self_ty);
    let (trait_for, signature) = match &options.function {
        None => (
            quote!(#private::ItemSource for),
            quote!(fn items(self: ::std::sync::Arc<Self>)),
        ),
        Some((visibility, name)) => (
            TokenStream::new(),
            quote! {
                /// Returns the items that a block with `#[tools]` declares.
                #[must_use]
                #visibility fn #name(self: &::std::sync::Arc<Self>)
            },
        ),
    };
    Ok(quote! {
        #block

        #(#conditions)*
        #[automatically_derived]
        #[allow(clippy::all, clippy::pedantic, reason = "generated code")]
        impl #generics #trait_for #ty #clause {
            #signature -> #private::ItemSet {
                let __state: &::std::sync::Arc<Self> = &self;
                let __items = #private::ItemSet::new();
                #(#additions)*
                __items
            }
        }
    })
}

/// Returns the signature of a function in the block.
fn signature(item: &ImplItem) -> Option<Signature> {
    match item {
        ImplItem::Fn(method) => Some(method.sig.clone()),
        _ => None,
    }
}

/// Generates the statement that adds the item of a method.
fn addition(
    block: &AttributeOptions,
    functions: &[Signature],
    (kind, attribute): (ItemKind, &Attribute),
    method: &mut ImplItemFn,
) -> Result<TokenStream> {
    let tokens = match &attribute.meta {
        Meta::List(list) => list.tokens.clone(),
        _ => TokenStream::new(),
    };
    let mut options = AttributeOptions::of_item(tokens, kind)?;
    if options.krate.is_none() {
        options.krate.clone_from(&block.krate);
    }
    let arguments = FunctionArguments::extract(&mut method.sig)?;
    let (name, passed) = (&method.sig.ident, arguments.call_arguments());
    let target = TargetFunction {
        options: &options,
        signature: &method.sig,
        arguments: &arguments,
        docs: docs::text(&method.attrs),
        block: Some(functions),
    };
    let item = if arguments.has_self() {
        let before = quote!(let __this = ::std::sync::Arc::clone(&__this););
        let item = target.item(kind, &quote!(__this.#name(#passed)), &before)?;
        quote!({ let __this = ::std::sync::Arc::clone(__state); #item })
    } else {
        target.item(kind, &quote!(Self::#name(#passed)), &TokenStream::new())?
    };
    let (conditions, add) = (
        cfg_attributes(&method.attrs),
        format_ident!("{}", kind.word()),
    );
    Ok(quote!(#(#conditions)* let __items = __items.#add(#item);))
}
