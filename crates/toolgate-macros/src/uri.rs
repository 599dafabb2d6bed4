//! Checks of URIs and URI templates (RFC 6570) against the parameters of a function.

use crate::{arguments::FunctionArguments, kind::ItemKind, options::AttributeOptions};
use proc_macro2::Span;
use syn::{Error, LitStr, Result};

/// Checks the URI of a resource or template, and that the variables and the parameters are the same.
pub(crate) fn check(
    kind: ItemKind,
    options: &AttributeOptions,
    arguments: &FunctionArguments,
) -> Result<LitStr> {
    let Some(uri) = &options.uri else {
        let word = kind.word();
        let text = format!("a {word} begins with its URI: `#[{word}(\"notes://…\")]`");
        return Err(Error::new(Span::call_site(), text));
    };
    let variables = variables(uri)?;
    match kind {
        ItemKind::Resource => check_resource(uri, &variables, arguments)?,
        _ => check_template(uri, &variables, arguments)?,
    }
    Ok(uri.clone())
}

fn check_resource(uri: &LitStr, variables: &[String], arguments: &FunctionArguments) -> Result<()> {
    if !variables.is_empty() {
        let text = "a URI with variables is that of a template; use `#[template]`";
        return Err(Error::new(uri.span(), text));
    }
    match arguments.names().next() {
        None => Ok(()),
        Some((name, span)) => {
            let text = format!(
                "a resource has no arguments; use `#[template]` with the variable `{{{name}}}`"
            );
            Err(Error::new(span, text))
        }
    }
}

fn check_template(uri: &LitStr, variables: &[String], arguments: &FunctionArguments) -> Result<()> {
    if variables.is_empty() {
        let text = "a template has variables, such as `{name}`; use `#[resource]`";
        return Err(Error::new(uri.span(), text));
    }
    if arguments.are_renamed() {
        return Ok(());
    }
    for (name, span) in arguments.names() {
        if !variables.contains(&name) {
            let text = format!("the URI template has no variable `{{{name}}}`");
            return Err(Error::new(span, text));
        }
    }
    for variable in variables {
        if !arguments.names().any(|(name, _)| name == *variable) {
            let text = format!("the function has no parameter for the variable `{{{variable}}}`");
            return Err(Error::new(uri.span(), text));
        }
    }
    Ok(())
}

/// Returns the names of the variables in a URI template.
fn variables(uri: &LitStr) -> Result<Vec<String>> {
    let fault = |text: &str| Error::new(uri.span(), text);
    let value = uri.value();
    let (mut rest, mut found) = (value.as_str(), Vec::new());
    while let Some((before, after)) = rest.split_once('{') {
        let Some((expression, after)) = after.split_once('}') else {
            return Err(fault("`{` has no `}`"));
        };
        if before.contains('}') {
            break;
        }
        rest = after;
        let names = expression.trim_start_matches(['+', '#', '.', '/', ';', '?', '&']);
        if names.contains(',') && !expression.starts_with(['?', '&']) {
            return Err(fault(
                "several variables in one expression are possible only in a query: `{?a,b}`",
            ));
        }
        for name in names.split(',') {
            let name = name.trim_end_matches('*').split(':').next().unwrap_or(name);
            let is_valid = |c: char| c.is_ascii_alphanumeric() || "_.%".contains(c);
            if name.is_empty() || !name.chars().all(is_valid) {
                return Err(fault(
                    "a variable has a name of letters, digits and `_`: `{name}`",
                ));
            }
            if found.iter().any(|known| known == name) {
                return Err(fault("a variable occurs only once in a template"));
            }
            found.push(name.to_owned());
        }
    }
    match rest.contains('}') {
        true => Err(fault("`}` has no `{`")),
        false => Ok(found),
    }
}
