//! Expansion of `#[tool]`, `#[prompt]`, `#[resource]` and `#[template]` on a function.

use crate::{
    arguments::{self, FunctionArguments, ReturnSpans},
    docs,
    kind::ItemKind,
    options::AttributeOptions,
    uri,
};
use proc_macro2::{Delimiter, Group, Span, TokenStream};
use quote::{format_ident, quote};
use syn::{Attribute, Error, FnArg, ItemFn, LitStr, Result, Signature};

/// Expands the attribute of an item on a function.
pub(crate) fn expand(
    options: &AttributeOptions,
    mut function: ItemFn,
    kind: ItemKind,
) -> Result<TokenStream> {
    if let Some(FnArg::Receiver(receiver)) = function.sig.inputs.first() {
        let text = format!(
            "a method cannot be a {} by itself; put `#[tools]` on the `impl` block",
            kind.word()
        );
        return Err(Error::new_spanned(receiver, text));
    }
    let arguments = FunctionArguments::extract(&mut function.sig)?;
    let (told, others) = std::mem::take(&mut function.attrs)
        .into_iter()
        .partition::<Vec<_>, _>(|attribute| attribute.path().is_ident("doc"));
    let cfgs = cfg_attributes(&others);
    let name = function.sig.ident.clone();
    let visibility = function.vis.clone();
    let making = constructor(options, &function, &arguments, &told, kind)?;
    function.sig.ident = format_ident!("call", span = name.span());
    // A parameter may have the same name as a function, but not as a unit struct; hence an enum.
    let behind = format!("The function of the {} `{name}`.", kind.word());
    Ok(quote! {
        #(#cfgs)*
        #making

        #(#cfgs)*
        #[doc = #behind]
        #[allow(non_camel_case_types, unreachable_pub, reason = "it has the same name as the function")]
        #[derive(Debug)]
        #visibility enum #name {}

        #(#cfgs)*
        #[allow(
            missing_docs,
            unreachable_pub,
            clippy::needless_pass_by_value,
            clippy::too_many_arguments,
            clippy::unused_async,
            reason = "its parameters are arguments out of JSON"
        )]
        impl #name {
            #(#told)*
            #(#others)*
            #function
        }
    })
}

/// Returns the `cfg` attributes, which the generated items share.
pub(crate) fn cfg_attributes(attributes: &[Attribute]) -> Vec<&Attribute> {
    let is = |a: &&Attribute| a.path().is_ident("cfg");
    attributes.iter().filter(is).collect()
}

/// Generates the function that builds the definition and has the name of the annotated function.
fn constructor(
    options: &AttributeOptions,
    function: &ItemFn,
    arguments: &FunctionArguments,
    told: &[Attribute],
    kind: ItemKind,
) -> Result<TokenStream> {
    let (private, name, visibility) = (options.private_path(), &function.sig.ident, &function.vis);
    let target = TargetFunction {
        options,
        signature: &function.sig,
        arguments,
        docs: docs::text(told),
        block: None,
    };
    let passed = arguments.call_arguments();
    let call = quote!(#name::call(#passed));
    let (ty, made) = (kind.ty(), target.item(kind, &call, &TokenStream::new())?);
    Ok(quote! {
        #(#told)*
        #[allow(missing_docs, unreachable_pub, reason = "follows the visibility and documentation of the annotated function")]
        #[allow(clippy::all, clippy::pedantic, reason = "generated code")]
        #[must_use]
        #visibility fn #name() -> #private::#ty { #made }
    })
}

/// A function for which a definition is generated.
pub(crate) struct TargetFunction<'a> {
    pub(crate) options: &'a AttributeOptions,
    pub(crate) signature: &'a Signature,
    pub(crate) arguments: &'a FunctionArguments,
    pub(crate) docs: Option<String>,
    /// Signatures of the functions in the `impl` block of the function, if it is in one.
    pub(crate) block: Option<&'a [Signature]>,
}

impl TargetFunction<'_> {
    fn name(&self) -> String {
        let own = self.signature.ident.to_string();
        let own = own.strip_prefix("r#").unwrap_or(&own).to_owned();
        self.options.name.as_ref().map_or(own, syn::LitStr::value)
    }

    /// Generates an expression of the item's type. `before` runs in the closure, ahead of the future.
    pub(crate) fn item(
        &self,
        kind: ItemKind,
        call: &TokenStream,
        before: &TokenStream,
    ) -> Result<TokenStream> {
        Ok(match kind {
            ItemKind::Tool => self.tool(call, before),
            ItemKind::Prompt => self.prompt(call, before)?,
            ItemKind::Resource => {
                let uri = uri::check(kind, self.options, self.arguments)?;
                self.resource(&uri, call, before)
            }
            ItemKind::Template => {
                let uri = uri::check(kind, self.options, self.arguments)?;
                self.template(&uri, call, before)?
            }
        })
    }

    fn tool(&self, call: &TokenStream, before: &TokenStream) -> TokenStream {
        let (private, name) = (self.options.private_path(), self.name());
        let definition = self.arguments.definition(&private, &name);
        let mut result = self.result(call, &quote!(tool_value));
        if !self.options.declares_output() {
            result = quote!(#private::WithoutOutputSchema(#result));
        }
        let chain = self.options.chain(self.docs.as_deref());
        quote! {{
            #definition
            #private::Tool::new(#name, move |__arguments: Arguments, __context: #private::Cx| {
                #before
                async move {
                    let _ = (&__arguments, &__context);
                    ::core::result::Result::<_, #private::HandlerExit>::Ok(#result)
                }
            })
            #chain
        }}
    }

    fn prompt(&self, call: &TokenStream, before: &TokenStream) -> Result<TokenStream> {
        let (private, name) = (self.options.private_path(), self.name());
        let definition = self.arguments.text_definition(&private, &name);
        let result = self.result(call, &quote!(prompt_value));
        let order = self.arguments.external_names();
        let chain = self.options.chain(self.docs.as_deref());
        let completions = self.completions(ItemKind::Prompt)?;
        Ok(quote! {{
            #definition
            #private::Prompt::typed(#name, move |__arguments: Arguments, __context: #private::Cx| {
                #before
                async move {
                    let _ = (&__arguments, &__context);
                    ::core::result::Result::<_, #private::HandlerExit>::Ok(#result)
                }
            })
            .in_order(&[#(#order),*])
            #chain
            #completions
        }})
    }

    fn resource(&self, uri: &LitStr, call: &TokenStream, before: &TokenStream) -> TokenStream {
        let (private, name) = (self.options.private_path(), self.name());
        let result = self.result(call, &quote!(resource_value));
        let chain = self.options.chain(self.docs.as_deref());
        quote! {{
            #private::Resource::new(#uri, #name, move |__context: #private::Cx| {
                #before
                async move {
                    let _ = &__context;
                    ::core::result::Result::<_, #private::HandlerExit>::Ok(#result)
                }
            })
            #chain
        }}
    }

    fn template(
        &self,
        uri: &LitStr,
        call: &TokenStream,
        before: &TokenStream,
    ) -> Result<TokenStream> {
        let (private, name) = (self.options.private_path(), self.name());
        let definition = self.arguments.text_definition(&private, &name);
        let result = self.result(call, &quote!(resource_value));
        let chain = self.options.chain(self.docs.as_deref());
        let completions = self.completions(ItemKind::Template)?;
        Ok(quote! {{
            #definition
            #private::ResourceTemplate::typed(#uri, #name, move |__arguments: Arguments, __context: #private::Cx| {
                #before
                async move {
                    let _ = (&__arguments, &__context);
                    ::core::result::Result::<_, #private::HandlerExit>::Ok(#result)
                }
            })
            #chain
            #completions
        }})
    }

    fn result(&self, call: &TokenStream, checked: &TokenStream) -> TokenStream {
        let private = self.options.private_path();
        checked_result(&private, self.signature, call, checked)
    }
}

/// Generates the call, awaited if the function is async, with errors propagated. `checked` is the function that accepts
/// its value; a compile error about the value or the error points to its type.
pub(crate) fn checked_result(
    private: &TokenStream,
    signature: &Signature,
    call: &TokenStream,
    checked: &TokenStream,
) -> TokenStream {
    let waits = signature.asyncness.map(|_| quote!(.await));
    let ReturnSpans { value, error } = arguments::return_spans(signature);
    let result = quote!(#call #waits);
    let result = match error {
        None => result,
        Some(error) => {
            let path = quote!(#private::handler_result);
            let checked = spanned_call(&path, result, error);
            quote!(#checked?)
        }
    };
    spanned_call(&quote!(#private::#checked), result, value)
}

/// Generates a call with one argument, where compile errors point to `span`.
fn spanned_call(function: &TokenStream, argument: TokenStream, span: Span) -> TokenStream {
    let function = function.clone().into_iter().map(|mut token| {
        token.set_span(span);
        token
    });
    let function: TokenStream = function.collect();
    let mut block = Group::new(Delimiter::Brace, argument);
    block.set_span(span);
    let mut list = Group::new(Delimiter::Parenthesis, quote!(#block));
    list.set_span(span);
    quote!(#function #list)
}
