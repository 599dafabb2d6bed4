//! Lets a duty change every string of what comes back, and leaves all other bytes as they are.

use serde_json::Value;
use std::sync::Arc;
use toolgate_core::{
    AskKind, Content, ContentKind, Definition, Error, Event, Item, Json, Kind, Output, Problem,
    Questions, Refusal, Returned,
};
use toolgate_wire::json::{Limits, ObjectWriter};

/// Where a value stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Place {
    /// A block of content.
    Block(ContentKind),
    /// A part of a resource.
    Contents,
    /// The definition of an item.
    Definition,
    /// `structuredContent`.
    Structured,
    /// Anything else: `_meta`, the data of a log message, the parameters of a question.
    Other,
}

/// What a duty does with strings.
pub(crate) trait Edit {
    /// A text by itself; `None` leaves it.
    fn text(&mut self, text: &str) -> Option<String>;

    /// A value with its strings and keys changed, and whether a key changed; `None` leaves it.
    fn json(&mut self, place: Place, json: &Json) -> Option<(Json, bool)>;

    /// What is wrong with a string that was changed; fits after "its name has".
    fn flaw(&self) -> &'static str;
}

/// Lets `duty` see all strings of what comes back.
pub(crate) fn edit(value: Returned<'_>, duty: &mut dyn Edit) -> Result<(), Error> {
    match value {
        Returned::About(text) => string(text, duty),
        Returned::Error(error) => return_error(error, duty),
        Returned::Event(Event::Progress(progress)) => {
            progress.message.iter_mut().for_each(|m| string(m, duty))
        }
        Returned::Event(Event::Log(log)) => {
            string(&mut log.level, duty);
            log.logger.iter_mut().for_each(|l| string(l, duty));
            json(&mut log.data, Place::Other, duty)?;
        }
        Returned::Item(item) => return definition(item, duty),
        Returned::Output(result) => return output(result, duty),
        Returned::Questions(asked) => return questions(asked, duty),
    }
    Ok(())
}

fn string(text: &mut String, duty: &mut dyn Edit) {
    if let Some(new) = duty.text(text) {
        *text = new;
    }
}

fn return_error(error: &mut Error, duty: &mut dyn Edit) {
    if let Kind::Invalid(problems) = error.kind() {
        let mut problems: Vec<Problem> = problems.clone();
        for problem in &mut problems {
            for text in [&mut problem.path, &mut problem.expected, &mut problem.got] {
                string(text, duty);
            }
        }
        if Kind::Invalid(problems.clone()) != *error.kind() {
            *error = Error::new(Kind::Invalid(problems), error.public().to_owned());
        }
    }
    if let Some(new) = duty.text(error.public()) {
        error.set_public(new);
    }
}

/// Changes a value, and says whether it did. Two keys that became one are refused: either could be the right one.
fn json(value: &mut Json, place: Place, duty: &mut dyn Edit) -> Result<bool, Error> {
    let Some((new, keys)) = duty.json(place, value) else {
        return Ok(false);
    };
    // It was read before: all that can be wrong now is a key twice.
    let limits = Limits {
        bytes: usize::MAX,
        keys: usize::MAX,
        elements: usize::MAX,
        depth: Limits::DEEPEST,
    };
    if keys && Json::read(new.as_str().as_bytes().to_vec(), &limits).is_err() {
        let text = format!(
            "the tool ran, but its result was held back: it has keys that differ only in {}",
            duty.flaw()
        );
        return Err(Error::new(Kind::Refused(Refusal::Result), text));
    }
    *value = new;
    Ok(true)
}

fn output(output: &mut Output, duty: &mut dyn Edit) -> Result<(), Error> {
    let meta = match output {
        Output::Tool(result) => {
            for content in &mut result.content {
                block(content, duty)?;
            }
            if let Some(structured) = &mut result.structured {
                json(structured, Place::Structured, duty)?;
            }
            &mut result.meta
        }
        Output::Resource(result) => {
            for part in &mut result.contents {
                json(part, Place::Contents, duty)?;
            }
            &mut result.meta
        }
        Output::Prompt(result) => {
            result.description.iter_mut().for_each(|d| string(d, duty));
            for message in &mut result.messages {
                block(&mut message.content, duty)?;
            }
            &mut result.meta
        }
        Output::Complete(result) => {
            result.values.iter_mut().for_each(|v| string(v, duty));
            &mut result.meta
        }
    };
    match meta {
        Some(meta) => json(meta, Place::Other, duty).map(drop),
        None => Ok(()),
    }
}

fn block(block: &mut Content, duty: &mut dyn Edit) -> Result<(), Error> {
    let changed = json(&mut block.json, Place::Block(block.kind), duty)?;
    if changed && let Some(read) = Content::read(block.json.clone()) {
        *block = read;
    }
    Ok(())
}

fn questions(questions: &mut Questions, duty: &mut dyn Edit) -> Result<(), Error> {
    for ask in &mut questions.asks {
        match &mut ask.kind {
            AskKind::Elicit(params) | AskKind::Sample(params) => {
                json(params, Place::Other, duty)?;
            }
            // Made by this program; the arguments in it are shown to the letter.
            AskKind::Approve(_) | AskKind::Roots | AskKind::SignIn(_) => {}
        }
        if duty.text(&ask.key).is_some() {
            let text = format!(
                "the server asked a question under a name with {}",
                duty.flaw()
            );
            return Err(Error::new(Kind::Upstream, text));
        }
    }
    Ok(())
}

/// Changes the texts of a definition. Names, and what decides which arguments fit, must be right as they are: to change
/// them would make another tool of it. One that is withheld is changed all the same, for the operator sees it.
fn definition(item: &mut Arc<Item>, duty: &mut dyn Edit) -> Result<(), Error> {
    // A tool may be listed under a name that was made of its own, in which nothing of this is left.
    let local = duty.text(&item.local);
    let edited = duty.json(Place::Definition, item.def.json());
    if local.is_none() && edited.is_none() {
        return Ok(());
    }
    let (clean, keys) = edited.unwrap_or_else(|| (item.def.json().clone(), false));
    let flawed = match Definition::read(item.kind(), clean.clone()) {
        _ if keys => "a key",
        Err(_) => "a type",
        Ok(def) if local.is_some() || def.name() != item.def.name() => "the name",
        Ok(def) if decides(&item.def, &def) => "a pattern or a fixed value",
        Ok(def) => {
            *item = Arc::new(item.with_def(def));
            return Ok(());
        }
    };
    *item = Arc::new(shown(item, clean, local));
    let text = format!("{flawed} in its definition has {}", duty.flaw());
    Err(Error::new(Kind::Upstream, text))
}

/// What the operator sees of a definition that is withheld. It keeps the name by which the list tells it from others.
fn shown(item: &Item, clean: Json, local: Option<String>) -> Item {
    let (kind, name) = (item.kind(), Json::from_value(&item.def.name().into()));
    let bare = || {
        let mut o = ObjectWriter::new();
        o.raw(kind.key(), &name);
        if kind.key() != "name" {
            o.raw("name", &name);
        }
        o.object("inputSchema", |_| {});
        o.finish()
    };
    let read = |json: Json| Definition::read(kind, json).ok();
    let def = read(clean.with(kind.key(), &name)).or_else(|| read(bare()));
    let mut shown = item.with_def(def.unwrap_or_else(|| item.def.clone()));
    if let Some(local) = local {
        shown.local = local;
    }
    shown
}

/// Whether two definitions of one shape differ in what decides.
fn decides(dirty: &Definition, clean: &Definition) -> bool {
    let (mut dirty_tree, mut clean_tree) = (dirty.json().to_value(), clean.json().to_value());
    for tree in [&mut dirty_tree, &mut clean_tree].map(Value::as_object_mut) {
        let Some(members) = tree else { continue };
        // Of these nothing is made but what a person or a model reads. A resource is used by its URI.
        for prose in ["_meta", "mimeType", "name"] {
            if prose != dirty.kind().key() {
                members.remove(prose);
            }
        }
    }
    decides_otherwise(&dirty_tree, &clean_tree)
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
