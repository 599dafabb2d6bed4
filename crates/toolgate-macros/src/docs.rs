//! Extraction of doc comments as text.

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// Returns the text of the doc comments among attributes.
pub(crate) fn text(attributes: &[Attribute]) -> Option<String> {
    let lines: Vec<String> = attributes.iter().filter_map(line).collect();
    let text = lines.join("\n");
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn line(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else {
        return None;
    };
    let Expr::Lit(ExprLit {
        lit: Lit::Str(text),
        ..
    }) = &pair.value
    else {
        return None;
    };
    let text = pair.path.is_ident("doc").then(|| text.value())?;
    Some(
        text.strip_prefix(' ')
            .unwrap_or(&text)
            .trim_end()
            .to_owned(),
    )
}
