//! Sanitizers from functions over texts.

use super::edit::{ContentLocation, StringEditor, edit_strings};
use toolgate_core::{Json, Sanitizer, UntrustedContent, sanitizer::from_fn};

/// Creates a sanitizer from a function that replaces texts: every string of results, errors, progress and log messages.
/// `None` leaves a text as it is. Keys of objects and definitions stay unchanged.
///
/// The name is one word, for the list of policies.
///
/// A structured result also has a copy as text: the function gets this JSON as one string. So replace only what you
/// look for, and not up to the next space. The output schema is checked afterwards: a result with a replacement that
/// does not match a `pattern` of the schema is withheld. The guide "Extend the pipeline" redacts e-mail addresses.
///
/// ```
/// use toolgate_policy::text_from_fn;
///
/// /// Redacts the name of an internal host.
/// let hosts = text_from_fn("hosts", |text| {
///     let internal = "build.corp.example.com";
///     text.contains(internal).then(|| text.replace(internal, "[host]"))
/// });
/// # let _ = hosts;
/// ```
pub fn text_from_fn<F>(name: &'static str, replace: F) -> impl Sanitizer
where
    F: Fn(&str) -> Option<String> + Send + Sync + 'static,
{
    from_fn(name, move |content| match content {
        UntrustedContent::Output(_) | UntrustedContent::Error(_) | UntrustedContent::Event(_) => {
            edit_strings(content, &mut TextFnEditor(&replace))
        }
        _ => Ok(()),
    })
}

struct TextFnEditor<'f, F>(&'f F);

impl<F: Fn(&str) -> Option<String>> StringEditor for TextFnEditor<'_, F> {
    fn text(&mut self, text: &str) -> Option<String> {
        (self.0)(text)
    }

    fn json(&mut self, _: ContentLocation, json: &Json) -> Option<(Json, bool)> {
        let replaced = json.map_strings(&mut |at| match at.key {
            true => None,
            false => (self.0)(at.text),
        });
        replaced.map(|json| (json, false))
    }

    fn flaw(&self) -> &'static str {
        "text that a sanitizer replaced"
    }
}
