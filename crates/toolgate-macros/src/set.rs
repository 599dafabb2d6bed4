//! Expansion of `#[tools]` on an `impl` block.

use crate::{
    arguments::FunctionArguments,
    docs,
    free::{TargetFunction, cfg_attributes},
    options::{self, AttributeOptions},
};
use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Error, ImplItem, ImplItemFn, ItemImpl, Meta, Result};

/// Generates the unchanged block and a `ToolSet` of the tools in it.
pub(crate) fn tools(options: &AttributeOptions, mut block: ItemImpl) -> Result<TokenStream> {
    if let Some((_, path, _)) = &block.trait_ {
        let text = "`#[tools]` belongs on an `impl` block of the type itself, not of a trait";
        return Err(Error::new_spanned(path, text));
    }
    let mut pushes = Vec::new();
    for item in &mut block.items {
        if let ImplItem::Fn(method) = item
            && let Some(attribute) = take_tool(&mut method.attrs)
        {
            pushes.push(push(options, &attribute, method)?);
        }
    }
    if pushes.is_empty() {
        let text = "no method in this block has `#[tool]`, so there are no tools";
        return Err(Error::new_spanned(&block.self_ty, text));
    }
    let private = options.private_path();
    let (generics, _, clause) = block.generics.split_for_impl();
    let (conditions, ty) = (cfg_attributes(&block.attrs), &block.self_ty);
    Ok(quote! {
        #block

        #(#conditions)*
        #[automatically_derived]
        #[allow(clippy::all, clippy::pedantic, reason = "generated code")]
        impl #generics #private::ToolSet for #ty #clause {
            fn tools(self: ::std::sync::Arc<Self>) -> ::std::vec::Vec<#private::Tool> {
                let mut __tools = ::std::vec::Vec::new();
                #(#pushes)*
                __tools
            }
        }
    })
}

/// Removes `#[tool]` from a method and returns it.
fn take_tool(attributes: &mut Vec<Attribute>) -> Option<Attribute> {
    let is = |a: &Attribute| a.path().segments.last().is_some_and(|s| s.ident == "tool");
    let at = attributes.iter().position(is)?;
    Some(attributes.remove(at))
}

fn push(
    block: &AttributeOptions,
    attribute: &Attribute,
    method: &mut ImplItemFn,
) -> Result<TokenStream> {
    let mut options = AttributeOptions::default();
    if let Meta::List(_) = &attribute.meta {
        attribute.parse_nested_meta(|meta| options.read(&meta, options::TOOL))?;
    }
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
    };
    let tool = if arguments.has_self() {
        let before = quote!(let __this = ::std::sync::Arc::clone(&__this););
        let tool = target.tool(&quote!(__this.#name(#passed)), &before);
        quote!({ let __this = ::std::sync::Arc::clone(&self); #tool })
    } else {
        target.tool(&quote!(Self::#name(#passed)), &TokenStream::new())
    };
    let conditions = cfg_attributes(&method.attrs);
    Ok(quote!(#(#conditions)* __tools.push(#tool);))
}
