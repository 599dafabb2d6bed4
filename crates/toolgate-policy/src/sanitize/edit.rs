//! Editing of strings in server content, leaving all other bytes unchanged.

use serde_json::Value;
use std::sync::Arc;
use toolgate_core::{
    Content, ContentKind, Definition, Error, ErrorKind, InputRequestKind, InputRequests, Item,
    ItemKind, Json, Output, RefusalReason, ReporterEvent, SchemaViolation, UntrustedContent,
};
use toolgate_protocol::json::{JsonLimits, ObjectWriter};

/// Location of a value in server content.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ContentLocation {
    /// A block of content.
    Block(ContentKind),
    /// An entry of `contents` of a resource.
    Contents,
    /// Definition of an item.
    Definition,
    /// `structuredContent`.
    Structured,
    /// Anything else: `_meta`, the data of a log message, the parameters of an input request.
    Other,
}

/// Editor of strings in server content.
pub(crate) trait StringEditor {
    /// Edits a plain text; `None` leaves it unchanged.
    fn text(&mut self, text: &str) -> Option<String>;

    /// Edits the strings and keys of a value, and reports whether a key changed; `None` leaves it unchanged.
    fn json(&mut self, place: ContentLocation, json: &Json) -> Option<(Json, bool)>;

    /// Returns the flaw of edited strings; fits after "its name contains".
    fn flaw(&self) -> &'static str;
}

/// Applies an editor to all strings of server content.
///
/// # Errors
/// The content must not be passed on: an edit made keys collide, or changed a significant part of a definition or
/// request.
pub(crate) fn edit_strings(
    value: UntrustedContent<'_>,
    duty: &mut dyn StringEditor,
) -> Result<(), Error> {
    match value {
        UntrustedContent::Instructions(text) => string(text, duty),
        UntrustedContent::Error(error) => return_error(error, duty),
        UntrustedContent::Event(ReporterEvent::Progress(progress)) => {
            progress.message.iter_mut().for_each(|m| string(m, duty))
        }
        UntrustedContent::Event(ReporterEvent::Log(log)) => {
            string(&mut log.level, duty);
            log.logger.iter_mut().for_each(|l| string(l, duty));
            json(&mut log.data, ContentLocation::Other, duty)
                .map_err(|why| held_back("a log message of the server", &why))?;
        }
        UntrustedContent::Item(item) => return definition(item, duty),
        UntrustedContent::Output(result) => {
            let what = match &*result {
                Output::Tool(_) => "the tool ran, but its result",
                _ => "the result",
            };
            return output(result, duty).map_err(|why| held_back(what, &why));
        }
        UntrustedContent::InputRequests(asked) => return questions(asked, duty),
    }
    Ok(())
}

fn string(text: &mut String, duty: &mut dyn StringEditor) {
    if let Some(new) = duty.text(text) {
        *text = new;
    }
}

fn return_error(error: &mut Error, duty: &mut dyn StringEditor) {
    if let ErrorKind::InvalidArguments(problems) = error.kind() {
        let mut problems: Vec<SchemaViolation> = problems.clone();
        for problem in &mut problems {
            for text in [
                &mut problem.path,
                &mut problem.expected,
                &mut problem.received,
            ] {
                string(text, duty);
            }
        }
        if ErrorKind::InvalidArguments(problems.clone()) != *error.kind() {
            *error = Error::new(
                ErrorKind::InvalidArguments(problems),
                error.public_message().to_owned(),
            );
        }
    }
    if let Some(new) = duty.text(error.public_message()) {
        error.set_public_message(new);
    }
}

/// Returns the error for content that must not be passed on.
fn held_back(what: &str, why: &str) -> Error {
    Error::new(
        ErrorKind::Refused(RefusalReason::BlockedResult),
        format!("{what} was held back: {why}; report this to the author of the server"),
    )
}

/// Edits a value and reports whether it changed. Keys that become equal are an error: either value could be the right
/// one.
fn json(
    value: &mut Json,
    place: ContentLocation,
    duty: &mut dyn StringEditor,
) -> Result<bool, String> {
    let Some((new, keys)) = duty.json(place, value) else {
        return Ok(false);
    };
    // The value was valid before, so only a duplicate key can be wrong.
    let limits = JsonLimits {
        bytes: usize::MAX,
        keys: usize::MAX,
        elements: usize::MAX,
        depth: JsonLimits::MAX_DEPTH,
    };
    if keys && Json::read(new.as_str().as_bytes().to_vec(), &limits).is_err() {
        return Err(format!(
            "it contains an object whose keys differ only in {}",
            duty.flaw()
        ));
    }
    *value = new;
    Ok(true)
}

fn output(output: &mut Output, duty: &mut dyn StringEditor) -> Result<(), String> {
    let meta = match output {
        Output::Tool(result) => {
            for content in &mut result.content {
                block(content, duty)?;
            }
            if let Some(structured) = &mut result.structured {
                json(structured, ContentLocation::Structured, duty)?;
            }
            &mut result.meta
        }
        Output::Resource(result) => {
            for part in &mut result.contents {
                json(part, ContentLocation::Contents, duty)?;
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
        Some(meta) => json(meta, ContentLocation::Other, duty).map(drop),
        None => Ok(()),
    }
}

fn block(block: &mut Content, duty: &mut dyn StringEditor) -> Result<(), String> {
    let changed = json(&mut block.json, ContentLocation::Block(block.kind), duty)?;
    if changed && let Some(read) = Content::read(block.json.clone()) {
        *block = read;
    }
    Ok(())
}

fn questions(questions: &mut InputRequests, duty: &mut dyn StringEditor) -> Result<(), Error> {
    for ask in &mut questions.requests {
        match &mut ask.kind {
            InputRequestKind::Elicit(params) | InputRequestKind::Sample(params) => {
                json(params, ContentLocation::Other, duty)
                    .map_err(|why| held_back("an input request of the server", &why))?;
            }
            // Created by the gateway; its arguments are shown exactly.
            InputRequestKind::Approve(_)
            | InputRequestKind::Roots
            | InputRequestKind::SignIn(_) => {}
        }
        if duty.text(&ask.key).is_some() {
            let text = format!(
                "the server sent an input request whose key contains {}; report this to the author of the server",
                duty.flaw()
            );
            return Err(Error::new(ErrorKind::Upstream, text));
        }
    }
    Ok(())
}

/// Edits the texts of a definition.
///
/// Names and everything that decides validation must be correct already: editing them would define another tool. A
/// withheld definition is edited too, because the operator sees it.
fn definition(item: &mut Arc<Item>, duty: &mut dyn StringEditor) -> Result<(), Error> {
    // A tool may be listed under a name derived from its own, in which the flaw is no longer visible.
    let local = duty.text(&item.local_name);
    let edited = duty.json(ContentLocation::Definition, item.def.json());
    if local.is_none() && edited.is_none() {
        return Ok(());
    }
    let (clean, keys) = edited.unwrap_or_else(|| (item.def.json().clone(), false));
    let flawed = match Definition::read(item.kind(), clean.clone()) {
        _ if keys => "a key in its definition",
        Err(_) => "a required value in its definition",
        Ok(def) if local.is_some() || def.name() != item.def.name() => match item.kind() {
            ItemKind::Tool | ItemKind::Prompt => "its name",
            _ => "its URI",
        },
        Ok(def) if differ_beyond_prose(&item.def, &def) => {
            "a value in its definition that affects validation"
        }
        Ok(def) => {
            *item = Arc::new(item.with_def(def));
            return Ok(());
        }
    };
    *item = Arc::new(withheld_view(item, clean, local));
    let text = format!(
        "{flawed} contains {}; report this to the author of the server",
        duty.flaw()
    );
    Err(Error::new(ErrorKind::Upstream, text))
}

/// Returns a withheld definition as the operator sees it. It keeps the name that distinguishes it in the list.
fn withheld_view(item: &Item, clean: Json, local: Option<String>) -> Item {
    let (kind, name) = (item.kind(), Json::from_value(&item.def.name().into()));
    let bare = || {
        let mut o = ObjectWriter::new();
        o.raw(kind.key_member(), &name);
        if kind.key_member() != "name" {
            o.raw("name", &name);
        }
        o.object("inputSchema", |_| {});
        o.finish()
    };
    let read = |json: Json| Definition::read(kind, json).ok();
    let def = read(clean.with(kind.key_member(), &name)).or_else(|| read(bare()));
    let mut shown = item.with_def(def.unwrap_or_else(|| item.def.clone()));
    if let Some(local) = local {
        shown.local_name = local;
    }
    shown
}

/// Reports whether two definitions of one shape differ in more than prose.
fn differ_beyond_prose(dirty: &Definition, clean: &Definition) -> bool {
    let (mut dirty_tree, mut clean_tree) = (dirty.json().to_value(), clean.json().to_value());
    for tree in [&mut dirty_tree, &mut clean_tree].map(Value::as_object_mut) {
        let Some(members) = tree else { continue };
        // Only people and models read these. A resource is identified by its URI.
        for prose in ["_meta", "mimeType", "name"] {
            if prose != dirty.kind().key_member() {
                members.remove(prose);
            }
        }
    }
    trees_differ_beyond_prose(&dirty_tree, &clean_tree)
}

/// Reports whether two trees of one shape differ outside of titles, descriptions and examples.
fn trees_differ_beyond_prose(dirty: &Value, clean: &Value) -> bool {
    match (dirty, clean) {
        (Value::Object(a), Value::Object(b)) => a.iter().zip(b).any(|((key, a), (_, b))| {
            let prose = matches!(
                key.as_str(),
                "title" | "description" | "$comment" | "default" | "example" | "examples"
            );
            (!prose || a.is_object()) && trees_differ_beyond_prose(a, b)
        }),
        (Value::Array(a), Value::Array(b)) => a
            .iter()
            .zip(b)
            .any(|(a, b)| trees_differ_beyond_prose(a, b)),
        (a, b) => a != b,
    }
}
