//! Entry of the gateway in the file of a host.

use super::{CommandForm, Host, HostEntryValue};

/// Returns the entry with which a host starts the gateway.
pub(crate) fn process_entry(host: &Host, program: &str, arguments: &[String]) -> HostEntryValue {
    let style = &host.style;
    let mut fields = type_field(style.process_type);
    let words = || std::iter::once(program.to_owned()).chain(arguments.iter().cloned());
    match style.command {
        CommandForm::OneList => fields.push((
            "command".to_owned(),
            HostEntryValue::List(words().collect()),
        )),
        CommandForm::ProgramAndArgs => {
            fields.push((
                "command".to_owned(),
                HostEntryValue::Text(program.to_owned()),
            ));
            fields.push(("args".to_owned(), HostEntryValue::List(arguments.to_vec())));
        }
    }
    with_required(host, fields)
}

/// Returns the entry with which a host connects to a gateway that runs at a URL. `token_variable` is the environment
/// variable with the host's API key.
///
/// # Errors
/// The host cannot connect over HTTP, or it does not replace variables.
pub(crate) fn http_entry(
    host: &Host,
    url: &str,
    token_variable: Option<&str>,
) -> Result<HostEntryValue, String> {
    let style = &host.style;
    let url_key = style.url.ok_or_else(|| {
        format!(
            "{} only starts servers and does not connect over HTTP; leave out --http",
            host.name
        )
    })?;
    let mut fields = type_field(style.http_type);
    fields.push((url_key.to_owned(), HostEntryValue::Text(url.to_owned())));
    match (token_variable, style.token_variable, style.variables) {
        (None, ..) => {}
        (Some(name), Some(key), _) => {
            fields.push((key.to_owned(), HostEntryValue::Text(name.to_owned())));
        }
        (Some(name), None, Some(form)) => {
            let header = format!("Bearer {}", form.reference(name));
            let headers = HostEntryValue::object([("Authorization", HostEntryValue::Text(header))]);
            fields.push((style.headers.to_owned(), headers));
        }
        (Some(_), None, None) => {
            return Err(format!(
                "{} does not replace variables in its file; let it start the gateway instead (leave out --http), which needs no key",
                host.name
            ));
        }
    }
    Ok(with_required(host, fields))
}

fn type_field(word: Option<&str>) -> Vec<(String, HostEntryValue)> {
    let field = word.map(|word| ("type".to_owned(), HostEntryValue::Text(word.to_owned())));
    field.into_iter().collect()
}

fn with_required(host: &Host, mut fields: Vec<(String, HostEntryValue)>) -> HostEntryValue {
    for (key, texts) in host.style.required {
        let texts = texts.iter().map(|text| (*text).to_owned()).collect();
        fields.push(((*key).to_owned(), HostEntryValue::List(texts)));
    }
    HostEntryValue::Object(fields)
}
