//! Tests of rejected input: the error message, and the source text that it points to.

use crate::{
    free,
    options::{self, AttributeOptions},
    set,
};
use proc_macro2::TokenStream;
use syn::{Error, Result, parse_str};

#[track_caller]
fn refused(made: Result<TokenStream>, place: &str, sentence: &str) {
    let error: Error = made.expect_err("it was not refused");
    assert!(error.to_string().contains(sentence), "{error}");
    assert_eq!(error.span().source_text().as_deref(), Some(place));
}

/// Asserts that `#[tool]` on this function is rejected, at `place`.
#[track_caller]
fn tool(function: &str, place: &str, sentence: &str) {
    refused(
        free::tool(&AttributeOptions::default(), parse_str(function).unwrap()),
        place,
        sentence,
    );
}

/// Asserts that `#[tools]` on this block is rejected, at `place`.
#[track_caller]
fn tools(block: &str, place: &str, sentence: &str) {
    refused(
        set::tools(&AttributeOptions::default(), parse_str(block).unwrap()),
        place,
        sentence,
    );
}

/// Asserts that `#[tool(…)]` with these options is rejected, at `place`.
#[track_caller]
fn option(options: &str, place: &str, sentence: &str) {
    let read = AttributeOptions::of(options.parse().unwrap(), options::TOOL);
    refused(read.map(|_| TokenStream::new()), place, sentence);
}

#[test]
fn rejects_unsupported_signatures() {
    tool("async fn f<T>(a: T) {}", "T", "cannot be generic");
    tool("async fn f<'a>(a: &'a str) {}", "'a", "cannot be generic");
    tool(
        "fn f(a: u8) where u8: Copy {}",
        "where u8: Copy",
        "cannot be generic",
    );
    tool("fn f(a: impl Copy) {}", "impl Copy", "cannot be generic");
    tool("unsafe fn f() {}", "unsafe", "cannot be unsafe");
    tool("extern \"C\" fn f() {}", "extern \"C\"", "cannot be extern");
    tool(
        "async fn f(&self) {}",
        "&self",
        "only in an `impl` block with `#[tools]`",
    );
}

#[test]
fn rejects_unsupported_parameters() {
    tool(
        "fn f((a, b): (u8, u8)) {}",
        "(a, b)",
        "a parameter needs a name",
    );
    tool("fn f(_: u8) {}", "_", "a parameter needs a name");
    tool("fn f(ref a: u8) {}", "ref a", "a parameter needs a name");
    tool("fn f(a: &str) {}", "&str", "use `String` for text");
    tool("fn f(cx: &Cx) {}", "&Cx", "take the context by value");
    tool(
        "fn f(a: Cx, b: toolgate::Cx) {}",
        "b: toolgate::Cx",
        "the second parameter of type `Cx`",
    );
}

#[test]
fn rejects_invalid_options() {
    option(
        "readonly",
        "readonly",
        "unknown option; there are `name`, `title`, ",
    );
    option(
        "read_only, read_only",
        "read_only",
        "`read_only` is given twice",
    );
    option("name = 1", "1", "expected string literal");
    option("destructive = \"no\"", "\"no\"", "expected boolean literal");
    option(
        "task = \"often\"",
        "\"often\"",
        "`task` is \"optional\" or \"required\"",
    );
    option("a::b", "a::b", "unknown option");
}

#[test]
fn rejects_invalid_blocks() {
    tools(
        "impl A { fn f(&self) {} }",
        "A",
        "no method in this block has `#[tool]`",
    );
    tools(
        "impl T for A { #[tool] fn f(&self) {} }",
        "T",
        "of the type itself",
    );
    tools(
        "impl A { #[tool] fn f(&mut self) {} }",
        "&mut self",
        "a tool takes `&self`",
    );
    tools(
        "impl A { #[tool] fn f(self) {} }",
        "self",
        "a tool takes `&self`",
    );
    tools(
        "impl A { #[tool] fn f<T>(&self, t: T) {} }",
        "T",
        "cannot be generic",
    );
    tools(
        "impl A { #[tool(colour)] fn f(&self) {} }",
        "colour",
        "unknown option",
    );
}

/// Attributes that the compiler rejects on parameters are moved.
#[test]
fn attributes_move_to_the_fields() {
    let function = "/// F.\n#[inline] fn f(/** A. */ #[serde(default)] a: u8) -> String { g(a) }";
    let made = free::tool(&AttributeOptions::default(), parse_str(function).unwrap()).unwrap();
    let made: syn::File = syn::parse2(made).unwrap();
    let syn::Item::Impl(block) = &made.items[2] else {
        panic!("an impl block is last");
    };
    let syn::ImplItem::Fn(call) = &block.items[0] else {
        panic!("with the function");
    };
    assert_eq!(call.sig.ident, "call");
    assert_eq!(call.attrs.len(), 2);
    assert!(
        call.sig
            .inputs
            .iter()
            .all(|i| matches!(i, syn::FnArg::Typed(t) if t.attrs.is_empty()))
    );
}
