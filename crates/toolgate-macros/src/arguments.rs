//! Conversion of function parameters to the fields of an arguments struct.

use crate::rename;
use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{
    Attribute, Error, FnArg, GenericArgument, Ident, Meta, Pat, PatType, PathArguments,
    PathSegment, ReceiverKind, Result, ReturnType, Safety, Signature, Type, ext::IdentExt,
    spanned::Spanned,
};

/// The parameters of the function of an item.
pub(crate) struct FunctionArguments {
    fields: Vec<ArgumentField>,
    /// For each parameter in order, its index in `fields`; `None` for the context.
    order: Vec<Option<usize>>,
    has_self: bool,
}

struct ArgumentField {
    attributes: Vec<Attribute>,
    name: Ident,
    ty: Type,
}

impl FunctionArguments {
    /// Moves the attributes from the parameters, where the compiler rejects them, to the fields.
    pub(crate) fn extract(signature: &mut Signature) -> Result<FunctionArguments> {
        plain(signature)?;
        let mut arguments = FunctionArguments {
            fields: Vec::new(),
            order: Vec::new(),
            has_self: false,
        };
        for input in &mut signature.inputs {
            match input {
                FnArg::Receiver(receiver) if is_shared(receiver) => arguments.has_self = true,
                FnArg::Receiver(receiver) => {
                    return Err(Error::new_spanned(
                        receiver,
                        "a method must take `&self`, because calls run concurrently; put mutable state behind a lock",
                    ));
                }
                FnArg::Typed(parameter) => arguments.add(parameter)?,
            }
        }
        Ok(arguments)
    }

    fn add(&mut self, parameter: &mut PatType) -> Result<()> {
        let attributes = std::mem::take(&mut parameter.attrs);
        let name = name(&parameter.pat)?;
        if is_context(&parameter.ty)? {
            if self.order.contains(&None) {
                let text = "a call has only one context, but this is the second parameter of type `Cx`; remove one of the two";
                return Err(Error::new_spanned(parameter, text));
            }
            self.order.push(None);
            return Ok(());
        }
        self.order.push(Some(self.fields.len()));
        self.fields.push(ArgumentField {
            attributes,
            name,
            ty: Type::clone(&parameter.ty),
        });
        Ok(())
    }

    pub(crate) fn has_self(&self) -> bool {
        self.has_self
    }

    /// Returns the argument names in order, with their locations.
    pub(crate) fn names(&self) -> impl Iterator<Item = (String, Span)> {
        let name = |field: &ArgumentField| (field.name.unraw().to_string(), field.name.span());
        self.fields.iter().map(name)
    }

    /// Returns whether a parameter accepts all further arguments.
    fn is_open(&self) -> bool {
        self.fields.iter().any(ArgumentField::is_flat)
    }

    /// Returns whether an argument has another name than its parameter.
    pub(crate) fn are_renamed(&self) -> bool {
        let words = ["rename", "flatten"];
        let renamed = |field: &ArgumentField| has_option(&field.attributes, "serde", &words);
        self.fields.iter().any(renamed)
    }

    /// Generates `struct Arguments`, deserialized from the arguments of a call. Error messages name it `of`.
    pub(crate) fn definition(&self, private: &TokenStream, of: &str) -> TokenStream {
        let fields = self.fields.iter().map(|field| {
            let ArgumentField {
                attributes,
                name,
                ty,
            } = field;
            quote!(#(#attributes)* #name: #ty)
        });
        arguments_struct(private, of, self.is_open(), fields)
    }

    /// Generates `struct Arguments` for arguments that are text, as of a prompt or template, and the functions that read
    /// its fields.
    pub(crate) fn text_definition(&self, private: &TokenStream, of: &str) -> TokenStream {
        let fields = self.fields.iter().map(ArgumentField::text_field);
        let definition = arguments_struct(private, of, self.is_open(), fields);
        let fields = self.fields.iter().filter(|field| !field.is_flat());
        let readers = fields.map(|field| field.reader(private));
        quote!(#(#readers)* #definition)
    }

    /// Returns the names of the declared arguments in order, as clients send them.
    pub(crate) fn external_names(&self) -> impl Iterator<Item = String> {
        self.fields.iter().filter_map(ArgumentField::external_name)
    }

    /// Returns the name of the argument of a parameter, as clients send it; `None` if no argument has that parameter.
    pub(crate) fn external_name(&self, parameter: &Ident) -> Option<String> {
        let parameter = parameter.unraw();
        let mut fields = self.fields.iter();
        let field = fields.find(|field| field.name.unraw() == parameter);
        field.and_then(ArgumentField::external_name)
    }

    /// Returns the names of the parameters that are one argument each.
    pub(crate) fn named_parameters(&self) -> Vec<String> {
        let fields = self.fields.iter().filter(|field| !field.is_flat());
        fields.map(|field| field.name.unraw().to_string()).collect()
    }

    /// Generates the parameters of the function call, from `__arguments` and `__context`.
    pub(crate) fn call_arguments(&self) -> TokenStream {
        let one = |place: &Option<usize>| match place {
            None => quote!(__context),
            Some(at) => {
                let name = &self.fields[*at].name;
                quote!(__arguments.#name)
            }
        };
        let all = self.order.iter().map(one);
        quote!(#(#all),*)
    }
}

fn arguments_struct(
    private: &TokenStream,
    of: &str,
    open: bool,
    fields: impl Iterator<Item = TokenStream>,
) -> TokenStream {
    let closed = match open {
        true => TokenStream::new(),
        false => quote!(, deny_unknown_fields),
    };
    let serde = quote!(#private::serde).to_string();
    let schemars = quote!(#private::schemars).to_string();
    quote! {
        #[derive(#private::serde::Deserialize, #private::schemars::JsonSchema)]
        #[serde(crate = #serde #closed)]
        #[schemars(crate = #schemars, rename = #of)]
        struct Arguments { #(#fields,)* }
    }
}

impl ArgumentField {
    /// Returns whether the parameter accepts all further arguments.
    fn is_flat(&self) -> bool {
        has_option(&self.attributes, "serde", &["flatten"])
    }

    /// Returns the name of the argument as clients send it; `None` if the parameter accepts all further arguments.
    fn external_name(&self) -> Option<String> {
        if self.is_flat() {
            return None;
        }
        let renamed = rename::new_name(&self.attributes);
        Some(renamed.unwrap_or_else(|| self.name.unraw().to_string()))
    }

    fn reader_name(&self) -> Ident {
        format_ident!("__read_{}", self.name.unraw())
    }

    /// Generates the field of an argument that is text. Attributes of the author win.
    fn text_field(&self) -> TokenStream {
        let ArgumentField {
            attributes,
            name,
            ty,
        } = self;
        if self.is_flat() {
            return quote!(#(#attributes)* #name: #ty);
        }
        let has = |path: &str, words: &[&str]| has_option(attributes, path, words);
        let mut own = TokenStream::new();
        if !has("serde", &["with", "deserialize_with"]) {
            let reader = self.reader_name().to_string();
            own.extend(quote!(#[serde(deserialize_with = #reader)]));
            if optional(ty).is_some() && !has("serde", &["default"]) {
                own.extend(quote!(#[serde(default)]));
            }
        }
        if !has("schemars", &["with", "schema_with"]) {
            let text = match optional(ty) {
                Some(_) => "::core::option::Option<::std::string::String>",
                None => "::std::string::String",
            };
            own.extend(quote!(#[schemars(with = #text)]));
        }
        quote!(#(#attributes)* #own #name: #ty)
    }

    /// Generates the function that reads the field. Compile errors point to the type.
    fn reader(&self, private: &TokenStream) -> TokenStream {
        let (name, ty) = (self.reader_name(), &self.ty);
        let (inner, some) = match optional(ty) {
            Some(inner) => (inner, quote!(.map(::core::option::Option::Some))),
            None => (ty, TokenStream::new()),
        };
        let span = ty.span().resolved_at(Span::call_site());
        let read =
            quote_spanned!(span=> (&&&#private::ArgumentReader::<#inner>::new()).read(__from));
        quote! {
            #[allow(dead_code, reason = "an attribute of the argument may replace it")]
            fn #name<'de, D: #private::serde::Deserializer<'de>>(
                __from: D,
            ) -> ::core::result::Result<#ty, D::Error> {
                #[allow(unused_imports, reason = "one of them applies")]
                use #private::{ReadDeserialized as _, ReadParsed as _, ReadUnsupported as _};
                #read #some
            }
        }
    }
}

/// Returns whether attributes with this path contain one of the options.
fn has_option(attributes: &[Attribute], path: &str, words: &[&str]) -> bool {
    let is = |token: TokenTree| matches!(token, TokenTree::Ident(word) if words.iter().any(|w| word == w));
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident(path) => list.tokens.clone().into_iter().any(is),
        _ => false,
    })
}

/// Returns the type in an `Option`.
fn optional(ty: &Type) -> Option<&Type> {
    let option = last_segment(ty).filter(|segment| segment.ident == "Option")?;
    match &option.arguments {
        PathArguments::AngleBracketed(list) => match list.args.first()? {
            GenericArgument::Type(inner) => Some(inner),
            _ => None,
        },
        _ => None,
    }
}

/// Return type of a function, as far as its signature shows: the places that compile errors about it point to.
pub(crate) struct ReturnSpans {
    /// Location of the value's type.
    pub(crate) value: Span,
    /// Location of the error type, if the function returns a `Result`.
    pub(crate) error: Option<Span>,
}

/// Returns the location of tokens, for generated code that a compile error shall point to.
pub(crate) fn location(tokens: &impl ToTokens) -> Span {
    let span = tokens.to_token_stream().span();
    span.resolved_at(Span::call_site())
}

/// Returns the locations of the types that a function returns.
pub(crate) fn return_spans(signature: &Signature) -> ReturnSpans {
    let ReturnType::Type(_, ty) = &signature.output else {
        return ReturnSpans {
            value: Span::call_site(),
            error: None,
        };
    };
    let whole = location(ty);
    let Some(result) = last_segment(ty).filter(|segment| segment.ident == "Result") else {
        return ReturnSpans {
            value: whole,
            error: None,
        };
    };
    let arguments: Vec<Span> = match &result.arguments {
        PathArguments::AngleBracketed(list) => list.args.iter().map(location).collect(),
        _ => Vec::new(),
    };
    ReturnSpans {
        value: arguments.first().copied().unwrap_or(whole),
        error: Some(arguments.get(1).copied().unwrap_or(whole)),
    }
}

fn last_segment(ty: &Type) -> Option<&PathSegment> {
    match ty {
        Type::Path(path) => path.path.segments.last(),
        Type::Group(group) => last_segment(&group.elem),
        Type::Paren(paren) => last_segment(&paren.elem),
        _ => None,
    }
}

/// Rejects signatures that cannot be called with values from JSON.
fn plain(signature: &Signature) -> Result<()> {
    let generics = &signature.generics;
    if !generics.params.is_empty() {
        let text = "this function cannot be generic, because the schema of its arguments must be known before a call; use concrete types";
        return Err(Error::new_spanned(&generics.params, text));
    }
    if let Some(clause) = &generics.where_clause {
        return Err(Error::new_spanned(
            clause,
            "this function cannot have a `where` clause, because it cannot be generic; remove the clause",
        ));
    }
    let odd: [(&dyn ToTokens, bool, &str); 3] = [
        (
            &signature.safety,
            !matches!(signature.safety, Safety::Default),
            "unsafe",
        ),
        (&signature.abi, signature.abi.is_some(), "extern"),
        (
            &signature.variadic,
            signature.variadic.is_some(),
            "variadic",
        ),
    ];
    match odd.into_iter().find(|(_, is, _)| *is) {
        Some((tokens, _, word)) => {
            let text = format!("this function cannot be {word}; use an ordinary function");
            Err(Error::new(tokens.to_token_stream().span(), text))
        }
        None => Ok(()),
    }
}

pub(crate) fn is_shared(receiver: &syn::Receiver) -> bool {
    matches!(receiver.kind, ReceiverKind::Reference(_, _, None))
}

fn name(pattern: &Pat) -> Result<Ident> {
    match pattern {
        Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => {
            Ok(name.ident.clone())
        }
        _ => Err(Error::new_spanned(
            pattern,
            "a parameter needs a name, which becomes the name of the argument; destructure it in the function",
        )),
    }
}

pub(crate) fn is_context(ty: &Type) -> Result<bool> {
    match ty {
        Type::Reference(reference)
            if last_segment(&reference.elem).is_some_and(|s| s.ident == "Cx") =>
        {
            let text = "take the context by value, as `Cx`; it is cheap to clone";
            Err(Error::new_spanned(ty, text))
        }
        Type::Reference(_) => {
            let text = "an argument cannot be a reference, because the function owns it; use `String` for text and `Vec` for lists";
            Err(Error::new_spanned(ty, text))
        }
        Type::ImplTrait(_) => {
            let text = "this function cannot be generic, because the schema of its arguments must be known before a call; use concrete types";
            Err(Error::new_spanned(ty, text))
        }
        ty => Ok(last_segment(ty).is_some_and(|segment| segment.ident == "Cx")),
    }
}
