//! Values of the options that limit a tool.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, LitStr, Result};

/// Units of durations, in milliseconds.
const UNITS: [(&str, u64); 5] = [
    ("ms", 1),
    ("s", 1000),
    ("min", 60 * 1000),
    ("m", 60 * 1000),
    ("h", 3600 * 1000),
];

/// Generates a `Duration` from text such as `5s`.
pub(crate) fn duration(text: &LitStr) -> Result<TokenStream> {
    let wrong = || {
        let text_of_error =
            "a duration is a number with a unit: \"500ms\", \"5s\", \"2min\" or \"1h\"";
        Error::new(text.span(), text_of_error)
    };
    let value = text.value();
    let end = value
        .find(|c: char| !c.is_ascii_digit())
        .ok_or_else(wrong)?;
    let (number, unit) = value.split_at(end);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let unit = UNITS.iter().find(|(name, _)| *name == unit.trim());
    let millis = unit.and_then(|(_, millis)| number.checked_mul(*millis));
    let millis = millis.filter(|millis| *millis > 0).ok_or_else(wrong)?;
    Ok(quote!(::core::time::Duration::from_millis(#millis)))
}

/// Generates a `RateQuota` from text such as `10/min`.
pub(crate) fn rate(text: &LitStr, private: &TokenStream) -> Result<TokenStream> {
    let wrong = || {
        let text_of_error =
            "a rate is a number of calls in a period: \"2/s\", \"10/min\" or \"100/h\"";
        Error::new(text.span(), text_of_error)
    };
    let value = text.value();
    let (count, unit) = value.split_once('/').ok_or_else(wrong)?;
    let count: u32 = count.trim().parse().map_err(|_| wrong())?;
    let unit = UNITS.iter().find(|(name, _)| *name == unit.trim());
    let (_, millis) = unit.filter(|_| count > 0).ok_or_else(wrong)?;
    Ok(quote! {
        #private::RateQuota { count: #count, per: ::core::time::Duration::from_millis(#millis) }
    })
}
