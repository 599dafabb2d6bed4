//! Options in the parentheses of an attribute.

use crate::{
    complete::{self, ArgumentCompletion},
    kind::ItemKind,
    limits,
};
use proc_macro2::TokenStream;
use quote::quote;
use syn::{
    LitBool, LitInt, LitStr, Path, Result, Token,
    meta::ParseNestedMeta,
    parse::{ParseStream, Parser},
};

/// The options of `#[tool]`.
const TOOL: &[&str] = &[
    "name",
    "title",
    "description",
    "read_only",
    "destructive",
    "idempotent",
    "open_world",
    "task",
    "output",
    "icon",
    "timeout",
    "concurrency",
    "rate",
    "max_result_bytes",
    "ui",
    "app_only",
    "crate",
];
/// The options of `#[tools]`.
pub(crate) const TOOLS: &[&str] = &["crate"];
/// The options of `#[resource]`.
const RESOURCE: &[&str] = &["name", "title", "description", "icon", "mime", "crate"];
/// The options of `#[template]`.
const TEMPLATE: &[&str] = &[
    "name",
    "title",
    "description",
    "icon",
    "mime",
    "complete",
    "crate",
];
/// The options of `#[prompt]`.
const PROMPT: &[&str] = &["name", "title", "description", "icon", "complete", "crate"];

/// Returns the names of the options of an item's attribute.
fn option_names(kind: ItemKind) -> &'static [&'static str] {
    match kind {
        ItemKind::Tool => TOOL,
        ItemKind::Prompt => PROMPT,
        ItemKind::Resource => RESOURCE,
        ItemKind::Template => TEMPLATE,
    }
}

/// Parsed options of an attribute.
#[derive(Default)]
pub(crate) struct AttributeOptions {
    /// URI of a resource, or URI template.
    pub(crate) uri: Option<LitStr>,
    pub(crate) name: Option<LitStr>,
    title: Option<LitStr>,
    description: Option<LitStr>,
    read_only: Option<LitBool>,
    destructive: Option<LitBool>,
    idempotent: Option<LitBool>,
    open_world: Option<LitBool>,
    task: Option<LitStr>,
    output: Option<LitBool>,
    mime: Option<LitStr>,
    icon: Option<LitStr>,
    ui: Option<LitStr>,
    app_only: Option<LitBool>,
    /// Builder calls of the limits of a tool.
    limits: TokenStream,
    rate: Option<LitStr>,
    pub(crate) completions: Vec<ArgumentCompletion>,
    pub(crate) krate: Option<Path>,
    seen: Vec<String>,
}

impl AttributeOptions {
    /// Parses the options; only those in `known` are allowed.
    pub(crate) fn of(tokens: TokenStream, known: &[&str]) -> Result<AttributeOptions> {
        let mut options = AttributeOptions::default();
        syn::meta::parser(|meta| options.read(&meta, known)).parse2(tokens)?;
        Ok(options)
    }

    /// Parses the options of an item's attribute, which may begin with a URI.
    pub(crate) fn of_item(tokens: TokenStream, kind: ItemKind) -> Result<AttributeOptions> {
        let parser = |input: ParseStream<'_>| {
            let uri: Option<LitStr> = match kind.has_uri() && input.peek(LitStr) {
                true => Some(input.parse()?),
                false => None,
            };
            if uri.is_some() && !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
            let mut options = AttributeOptions::of(input.parse()?, option_names(kind))?;
            options.uri = uri;
            Ok(options)
        };
        parser.parse2(tokens)
    }

    /// Parses one option.
    fn read(&mut self, meta: &ParseNestedMeta<'_>, known: &[&str]) -> Result<()> {
        let name = meta.path.get_ident().map(ToString::to_string);
        let name = name.filter(|name| known.contains(&name.as_str()));
        let Some(name) = name else {
            let known = known.join("`, `");
            return Err(meta.error(format!("unknown option; use one of `{known}`")));
        };
        if self.seen.contains(&name) {
            return Err(meta.error(format!("`{name}` is given twice; remove one of the two")));
        }
        match name.as_str() {
            "name" => self.name = Some(meta.value()?.parse()?),
            "title" => self.title = Some(meta.value()?.parse()?),
            "description" => self.description = Some(meta.value()?.parse()?),
            "read_only" => self.read_only = Some(flag(meta)?),
            "destructive" => self.destructive = Some(flag(meta)?),
            "idempotent" => self.idempotent = Some(flag(meta)?),
            "open_world" => self.open_world = Some(flag(meta)?),
            "task" => self.task = Some(support(meta.value()?.parse()?)?),
            "output" => self.output = Some(flag(meta)?),
            "icon" => self.icon = Some(meta.value()?.parse()?),
            "ui" => self.ui = Some(meta.value()?.parse()?),
            "app_only" => self.app_only = Some(flag(meta)?),
            "timeout" => {
                let timeout = limits::duration(&meta.value()?.parse()?)?;
                self.limits.extend(quote!(.timeout(#timeout)));
            }
            "concurrency" => {
                let calls: LitInt = meta.value()?.parse()?;
                self.limits.extend(quote!(.concurrency(#calls)));
            }
            "max_result_bytes" => {
                let bytes: LitInt = meta.value()?.parse()?;
                self.limits.extend(quote!(.max_result_bytes(#bytes)));
            }
            "rate" => {
                let rate: LitStr = meta.value()?.parse()?;
                limits::rate(&rate, &TokenStream::new())?;
                self.rate = Some(rate);
            }
            "complete" => self.completions = complete::parse_list(meta)?,
            "mime" => self.mime = Some(meta.value()?.parse()?),
            _ => self.krate = Some(meta.value()?.parse::<LitStr>()?.parse()?),
        }
        self.seen.push(name);
        Ok(())
    }

    /// Returns the path of the items that the generated code refers to.
    pub(crate) fn private_path(&self) -> TokenStream {
        match &self.krate {
            Some(path) => quote!(#path::__private),
            None => quote!(::toolgate::__private),
        }
    }

    /// Returns whether the tool declares an output schema.
    pub(crate) fn declares_output(&self) -> bool {
        self.output.as_ref().is_none_or(LitBool::value)
    }

    /// Generates the builder calls for a definition that already has its name.
    pub(crate) fn chain(&self, docs: Option<&str>) -> TokenStream {
        let mut chain = TokenStream::new();
        if let Some(title) = &self.title {
            chain.extend(quote!(.title(#title)));
        }
        match (&self.description, docs) {
            (Some(text), _) => chain.extend(quote!(.description(#text))),
            (None, Some(text)) => chain.extend(quote!(.description(#text))),
            (None, None) => {}
        }
        let private = self.private_path();
        if let Some(icon) = &self.icon {
            chain.extend(quote!(.icon(#private::Icon::new(#icon))));
        }
        if let Some(page) = &self.ui {
            chain.extend(quote!(.ui(#page)));
        }
        // The value was checked when it was read.
        if let Some(Ok(rate)) = self.rate.as_ref().map(|rate| limits::rate(rate, &private)) {
            chain.extend(quote!(.rate_limit(#rate)));
        }
        chain.extend(self.limits.clone());
        if let Some(mime) = &self.mime {
            chain.extend(quote!(.mime(#mime)));
        }
        let is_on = |flag: &Option<LitBool>| flag.as_ref().is_some_and(LitBool::value);
        if is_on(&self.read_only) {
            chain.extend(quote!(.read_only()));
        }
        if is_on(&self.app_only) {
            chain.extend(quote!(.app_only()));
        }
        if is_on(&self.idempotent) {
            chain.extend(quote!(.idempotent()));
        }
        if let Some(destroys) = &self.destructive {
            chain.extend(quote!(.destructive(#destroys)));
        }
        if let Some(reaches) = &self.open_world {
            chain.extend(quote!(.open_world(#reaches)));
        }
        if let Some(support) = &self.task {
            let word = match support.value().as_str() {
                "required" => quote!(Required),
                _ => quote!(Optional),
            };
            chain.extend(quote!(.task(#private::TaskSupport::#word)));
        }
        chain
    }
}

/// Validates the value of `task`: `optional` or `required`.
fn support(word: LitStr) -> Result<LitStr> {
    match word.value().as_str() {
        "optional" | "required" => Ok(word),
        _ => Err(syn::Error::new(
            word.span(),
            "`task` must be \"optional\" or \"required\"",
        )),
    }
}

/// Parses `read_only`, or `read_only = true`.
fn flag(meta: &ParseNestedMeta<'_>) -> Result<LitBool> {
    if meta.input.peek(syn::Token![=]) {
        return meta.value()?.parse();
    }
    Ok(LitBool::new(true, proc_macro2::Span::call_site()))
}
