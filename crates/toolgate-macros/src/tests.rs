//! Tests of rejected input: the error message, and the source text that it points to.

use crate::{
    free,
    kind::ItemKind,
    options::AttributeOptions,
    set::{self, BlockOptions},
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
    item(ItemKind::Tool, "", function, place, sentence);
}

/// Asserts that the attribute with these options on this function is rejected, at `place`.
#[track_caller]
fn item(kind: ItemKind, options: &str, function: &str, place: &str, sentence: &str) {
    let options = AttributeOptions::of_item(options.parse().unwrap(), kind).unwrap();
    let made = free::expand(&options, parse_str(function).unwrap(), kind);
    refused(made, place, sentence);
}

/// Asserts that `#[tools]` on this block is rejected, at `place`.
#[track_caller]
fn tools(block: &str, place: &str, sentence: &str) {
    refused(
        set::tools(&BlockOptions::default(), parse_str(block).unwrap()),
        place,
        sentence,
    );
}

/// Asserts that `#[tool(…)]` with these options is rejected, at `place`.
#[track_caller]
fn option(options: &str, place: &str, sentence: &str) {
    option_of(ItemKind::Tool, options, place, sentence);
}

/// Asserts that the attribute of an item with these options is rejected, at `place`.
#[track_caller]
fn option_of(kind: ItemKind, options: &str, place: &str, sentence: &str) {
    let read = AttributeOptions::of_item(options.parse().unwrap(), kind);
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
        "put `#[tools]` on the `impl` block",
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
        "unknown option; use one of `name`, `title`, ",
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
        "`task` must be \"optional\" or \"required\"",
    );
    option("a::b", "a::b", "unknown option");
    for duration in ["\"5\"", "\"5 days\"", "\"s\"", "\"0s\""] {
        let options = format!("timeout = {duration}");
        option(&options, duration, "a duration is a number with a unit");
    }
    for rate in ["\"5\"", "\"0/s\"", "\"5/day\"", "\"x/s\""] {
        option(
            &format!("rate = {rate}"),
            rate,
            "a rate is a number of calls",
        );
    }
    option("concurrency = \"4\"", "\"4\"", "expected integer literal");
}

#[test]
fn rejects_uris_that_do_not_match_the_parameters() {
    let resource = |options: &str, function: &str, place: &str, sentence: &str| {
        item(ItemKind::Resource, options, function, place, sentence);
    };
    let template = |options: &str, function: &str, place: &str, sentence: &str| {
        item(ItemKind::Template, options, function, place, sentence);
    };
    resource(
        r#""a:b""#,
        "fn f(day: u8) {}",
        "day",
        "use `#[template]` with the variable `{day}`",
    );
    resource(
        r#""a:{day}""#,
        "fn f() {}",
        r#""a:{day}""#,
        "use `#[template]`",
    );
    template(r#""a:b""#, "fn f() {}", r#""a:b""#, "use `#[resource]`");
    template(
        r#""a:{day}", mime = "text/plain""#,
        "fn f(day: u8, cx: Cx, month: u8) {}",
        "month",
        "no variable `{month}`",
    );
    template(
        r#""a:{day}{?page,size*}""#,
        "fn f(day: u8, size: u8) {}",
        r#""a:{day}{?page,size*}""#,
        "no parameter for the variable `{page}`",
    );
    for (uri, sentence) in [
        (r#""a:{day""#, "`{` has no `}`"),
        (r#""a:day}""#, "`}` has no `{`"),
        (r#""a:}{day}""#, "`}` has no `{`"),
        (r#""a:{}""#, "has a name"),
        (r#""a:{a b}""#, "has a name"),
        (r#""a:{a,b}""#, "only in a query"),
        (r#""a:{a}/{a}""#, "only once"),
    ] {
        template(uri, "fn f(a: u8) {}", uri, sentence);
    }
}

#[test]
fn rejects_invalid_completions() {
    let prompt = |options: &str, place: &str, sentence: &str| {
        let function = "fn f(city: String, #[serde(flatten)] others: Map, cx: Cx) {}";
        item(ItemKind::Prompt, options, function, place, sentence);
    };
    prompt(
        "complete(citty = cities)",
        "citty",
        "the prompt has no argument `citty`; use one of `city`",
    );
    prompt("complete(others = all)", "others", "no argument `others`");
    prompt("complete(cx = all)", "cx", "no argument `cx`");
    prompt(
        "complete(city = Self::cities)",
        "Self",
        "only in an `impl` block",
    );
    item(
        ItemKind::Prompt,
        "complete(city = cities)",
        "fn f() {}",
        "city",
        "it declares no arguments",
    );
    item(
        ItemKind::Template,
        r#""a:{day}", complete(month = months)"#,
        "fn f(day: u8) {}",
        "month",
        "the template has no variable `month`; use one of `day`",
    );
    for (options, place, sentence) in [
        (
            "complete(city = a, city = b)",
            "city",
            "`city` has two completion functions",
        ),
        ("complete = a", "=", "expected parentheses"),
        ("complete(city: a)", ":", "expected `=`"),
        ("complete(city = 7)", "7", "expected identifier"),
    ] {
        option_of(ItemKind::Prompt, options, place, sentence);
    }
    option("complete(a = b)", "complete", "unknown option");
    tools(
        "impl A { #[prompt(complete(a = Self::list))] fn f(&self, a: String) {} }",
        "list",
        "this block has no function `list`",
    );
    tools(
        "impl A { #[prompt(complete(a = Self::list))] fn f(a: String) {} fn list(&self, cx: Cx) {} }",
        "list",
        "a completion function takes the text",
    );
    tools(
        "impl A { #[prompt(complete(a = Self::list))] fn f(a: String) {} fn list(self, _: String) {} }",
        "self",
        "a completion function takes the text",
    );
}

/// A completion function gets the name of the argument that clients send.
#[test]
fn completions_follow_renamed_arguments() {
    for (rename, name) in [
        ("rename = \"for\"", "for"),
        (
            "default, rename(serialize = \"a\", deserialize = \"b\")",
            "b",
        ),
        ("default", "whom"),
    ] {
        let function = format!("fn f(#[serde({rename})] whom: String) -> String {{ whom }}");
        let options = "complete(whom = people)".parse().unwrap();
        let options = AttributeOptions::of_item(options, ItemKind::Prompt).unwrap();
        let made = free::expand(&options, parse_str(&function).unwrap(), ItemKind::Prompt);
        let made = made.unwrap().to_string();
        let expected = format!("complete (\"{name}\" , people)");
        assert!(made.contains(&expected), "{made}");
    }
}

#[test]
fn rejects_invalid_options_of_blocks() {
    let rejected = |options: &str, place: &str, sentence: &str| {
        let read = BlockOptions::of(options.parse().unwrap());
        refused(read.map(|_| TokenStream::new()), place, sentence);
    };
    rejected("pub admin", "admin", "expected `fn`");
    rejected("fn admin crate", "crate", "expected `,`");
    rejected("fn admin, name = \"a\"", "name", "unknown option");
}

#[test]
fn rejects_invalid_blocks() {
    tools(
        "impl A { #[tool] #[prompt] fn f(&self) {} }",
        "#[prompt]",
        "its second attribute",
    );
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
        "a method must take `&self`",
    );
    tools(
        "impl A { #[tool] fn f(self) {} }",
        "self",
        "a method must take `&self`",
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
    let options = AttributeOptions::default();
    let made = free::expand(&options, parse_str(function).unwrap(), ItemKind::Tool).unwrap();
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
