//! Revision 2024-11-05.

use super::{About, Dialect, Structured};
use crate::message::code;
use crate::method::content::ContentKind::{Image, Resource, Text};
use crate::method::tasks::Words;

pub(super) static DIALECT: Dialect = Dialect {
    revision: "2024-11-05",
    stateless: false,
    content: &[Text, Image, Resource],
    unknown_members: &["title", "outputSchema", "_meta", "icons", "execution"],
    tool_annotations: false,
    structured: Structured::Unknown,
    bad_arguments_are_tool_errors: false,
    progress_message: false,
    elicitation: false,
    elicitation_url: false,
    elicitation_id: false,
    form_choices: false,
    sampling_tools: false,
    completions: false,
    polled_streams: false,
    tasks: Words::None,
    batches: false,
    about: About::Nothing,
    resource_not_found: code::RESOURCE_NOT_FOUND,
};
