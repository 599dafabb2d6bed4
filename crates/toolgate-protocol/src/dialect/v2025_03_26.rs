//! Revision 2025-03-26.

use super::{Dialect, ImplementationMembers, StructuredSupport};
use crate::message::code;
use crate::method::content::ContentKind::{Audio, Image, Resource, Text};
use crate::method::tasks::TaskForm;

pub(super) static DIALECT: Dialect = Dialect {
    revision: "2025-03-26",
    stateless: false,
    content_kinds: &[Text, Image, Resource, Audio],
    unknown_members: &["title", "outputSchema", "_meta", "icons", "execution"],
    tool_annotations: true,
    structured_content: StructuredSupport::Unknown,
    bad_arguments_are_tool_errors: false,
    progress_message: true,
    elicitation: false,
    elicitation_url: false,
    elicitation_id: false,
    form_choices: false,
    sampling_tools: false,
    completions: true,
    polled_streams: false,
    tasks: TaskForm::None,
    batches: true,
    implementation_members: ImplementationMembers::Nothing,
    resource_not_found: code::RESOURCE_NOT_FOUND,
};
