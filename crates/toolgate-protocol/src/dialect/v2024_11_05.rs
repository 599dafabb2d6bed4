//! Revision 2024-11-05.

use super::{Dialect, ImplementationMembers, StructuredSupport};
use crate::message::code;
use crate::method::content::ContentKind::{Image, Resource, Text};
use crate::method::tasks::TaskForm;

pub(super) static DIALECT: Dialect = Dialect {
    revision: "2024-11-05",
    stateless: false,
    content_kinds: &[Text, Image, Resource],
    unknown_members: &["title", "outputSchema", "_meta", "icons", "execution"],
    tool_annotations: false,
    structured_content: StructuredSupport::Unknown,
    bad_arguments_are_tool_errors: false,
    progress_message: false,
    elicitation: false,
    elicitation_url: false,
    elicitation_id: false,
    form_choices: false,
    sampling_tools: false,
    completions: false,
    polled_streams: false,
    tasks: TaskForm::None,
    batches: false,
    implementation_members: ImplementationMembers::Nothing,
    resource_not_found: code::RESOURCE_NOT_FOUND,
};
