//! Revision 2025-06-18.

use super::{Dialect, ImplementationMembers, StructuredSupport};
use crate::message::code;
use crate::method::content::ContentKind::{Audio, Image, Resource, ResourceLink, Text};
use crate::method::tasks::TaskForm;

pub(super) static DIALECT: Dialect = Dialect {
    revision: "2025-06-18",
    stateless: false,
    content_kinds: &[Text, Image, Resource, Audio, ResourceLink],
    unknown_members: &["icons", "execution"],
    tool_annotations: true,
    structured_content: StructuredSupport::Object,
    bad_arguments_are_tool_errors: false,
    progress_message: true,
    elicitation: true,
    elicitation_url: false,
    elicitation_id: false,
    form_choices: false,
    sampling_tools: false,
    completions: true,
    polled_streams: false,
    tasks: TaskForm::None,
    batches: false,
    implementation_members: ImplementationMembers::Title,
    resource_not_found: code::RESOURCE_NOT_FOUND,
};
