//! Text from servers holds nothing that a person would not see.

mod classes;
mod clean;
#[cfg(test)]
mod tests;

pub use clean::clean;

use serde_json::Value;
use std::sync::Arc;
use toolgate_core::{
    AskKind, Content, Definition, Error, Event, Item, Json, Kind, Origin, Output, Problem,
    Questions, Refusal, Returned, Scrub,
};
use toolgate_wire::json::Limits;

/// Takes control characters, terminal sequences and invisible characters out of all that comes back.
///
/// What may stay though it is invisible is told in the tests: joiners, marks of direction and variation selectors
/// where a script or an emoji needs them. Private use characters are taken out, German ligature breaks too.
pub struct Text;

impl Scrub for Text {
    fn name(&self) -> &'static str {
        "text"
    }

    fn scrub(
        &self,
        _: Option<&Origin>,
        _: Option<&Arc<Item>>,
        value: Returned<'_>,
    ) -> Result<(), Error> {
        match value {
            Returned::About(text) => string(text),
            Returned::Error(error) => return_error(error),
            Returned::Event(Event::Progress(progress)) => {
                progress.message.iter_mut().for_each(string)
            }
            Returned::Event(Event::Log(log)) => {
                string(&mut log.level);
                log.logger.iter_mut().for_each(string);
                json(&mut log.data)?;
            }
            Returned::Item(item) => return definition(item),
            Returned::Output(result) => return output(result),
            Returned::Questions(asked) => return questions(asked),
        }
        Ok(())
    }
}

fn string(text: &mut String) {
    if let std::borrow::Cow::Owned(cleaned) = clean(text) {
        *text = cleaned;
    }
}

fn return_error(error: &mut Error) {
    if let Kind::Invalid(problems) = error.kind() {
        let clean = |text: &String| clean(text).into_owned();
        let problem = |p: &Problem| Problem {
            path: clean(&p.path),
            expected: clean(&p.expected),
            got: clean(&p.got),
        };
        let cleaned: Vec<Problem> = problems.iter().map(problem).collect();
        if cleaned != *problems {
            *error = Error::new(Kind::Invalid(cleaned), error.public().to_owned());
        }
    }
    if let std::borrow::Cow::Owned(cleaned) = clean(error.public()) {
        error.set_public(cleaned);
    }
}

/// The value with all its strings and keys cleaned; `None` where there was nothing to do.
fn cleaned(dirty: &Json) -> Option<(Json, bool)> {
    let mut keys = false;
    let clean = dirty.map_strings(&mut |at| match clean(at.text) {
        std::borrow::Cow::Borrowed(_) => None,
        std::borrow::Cow::Owned(text) => {
            keys |= at.key;
            Some(text)
        }
    });
    clean.map(|clean| (clean, keys))
}

/// Cleans a value. Two keys that were told apart by what nobody sees are refused: either could be the right one.
fn json(value: &mut Json) -> Result<(), Error> {
    let Some((clean, keys)) = cleaned(value) else {
        return Ok(());
    };
    // It was read before: all that can be wrong now is a key twice.
    let limits = Limits {
        bytes: usize::MAX,
        keys: usize::MAX,
        elements: usize::MAX,
        depth: Limits::DEEPEST,
    };
    if keys && Json::read(clean.as_str().as_bytes().to_vec(), &limits).is_err() {
        let text = "the tool ran, but its result was held back: it has keys that differ only in invisible characters";
        return Err(Error::new(Kind::Refused(Refusal::Result), text));
    }
    *value = clean;
    Ok(())
}

fn output(output: &mut Output) -> Result<(), Error> {
    let meta = match output {
        Output::Tool(result) => {
            result.content.iter_mut().try_for_each(block)?;
            result.structured.iter_mut().try_for_each(json)?;
            &mut result.meta
        }
        Output::Resource(result) => {
            result.contents.iter_mut().try_for_each(json)?;
            &mut result.meta
        }
        Output::Prompt(result) => {
            result.description.iter_mut().for_each(string);
            let mut contents = result.messages.iter_mut().map(|m| &mut m.content);
            contents.try_for_each(block)?;
            &mut result.meta
        }
        Output::Complete(result) => {
            result.values.iter_mut().for_each(string);
            &mut result.meta
        }
    };
    meta.iter_mut().try_for_each(json)
}

fn block(block: &mut Content) -> Result<(), Error> {
    json(&mut block.json)?;
    if let Some(read) = Content::read(block.json.clone()) {
        *block = read;
    }
    Ok(())
}

fn questions(questions: &mut Questions) -> Result<(), Error> {
    for ask in &mut questions.asks {
        match &mut ask.kind {
            AskKind::Elicit(params) | AskKind::Sample(params) => json(params)?,
            // Made by this program; the arguments in it are shown to the letter.
            AskKind::Approve(_) | AskKind::Roots => {}
        }
        if clean(&ask.key) != ask.key.as_str() {
            return Err(Error::new(
                Kind::Upstream,
                "the server asked a question under a name with invisible characters",
            ));
        }
    }
    Ok(())
}

/// Cleans the texts of a definition. Names, and what decides which arguments fit, must be clean as they are: to change
/// them would make another tool of it.
fn definition(item: &mut Arc<Item>) -> Result<(), Error> {
    let withhold = |what: &str| {
        Error::new(
            Kind::Upstream,
            format!("{what} in its definition has invisible or control characters"),
        )
    };
    let dirty = item.def.json();
    let Some((clean, keys)) = cleaned(dirty) else {
        return Ok(());
    };
    if keys {
        return Err(withhold("a key"));
    }
    let def = Definition::read(item.kind(), clean).map_err(|_| withhold("a type"))?;
    if def.name() != item.def.name() {
        return Err(withhold("the name"));
    }
    if decides_otherwise(&dirty.to_value(), &def.json().to_value()) {
        return Err(withhold("a pattern or a fixed value"));
    }
    *item = Arc::new(item.with_def(def));
    Ok(())
}

/// Whether two trees of one shape differ elsewhere than in titles and descriptions.
fn decides_otherwise(dirty: &Value, clean: &Value) -> bool {
    match (dirty, clean) {
        (Value::Object(a), Value::Object(b)) => a.iter().zip(b).any(|((key, a), (_, b))| {
            let prose = matches!(
                key.as_str(),
                "title" | "description" | "$comment" | "default" | "example" | "examples"
            );
            (!prose || a.is_object()) && decides_otherwise(a, b)
        }),
        (Value::Array(a), Value::Array(b)) => a.iter().zip(b).any(|(a, b)| decides_otherwise(a, b)),
        (a, b) => a != b,
    }
}
