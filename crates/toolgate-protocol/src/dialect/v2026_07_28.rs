//! Revision 2026-07-28.

use super::{Dialect, ImplementationMembers, StructuredSupport};
use crate::message::code;
use crate::method::content::ContentKind::{Audio, Image, Resource, ResourceLink, Text};
use crate::method::tasks::TaskForm;

pub(super) static DIALECT: Dialect = Dialect {
    revision: "2026-07-28",
    stateless: true,
    content_kinds: &[Text, Image, Resource, Audio, ResourceLink],
    unknown_members: &["execution"],
    tool_annotations: true,
    structured_content: StructuredSupport::Any,
    bad_arguments_are_tool_errors: true,
    progress_message: true,
    elicitation: true,
    elicitation_url: true,
    elicitation_id: false,
    form_choices: true,
    sampling_tools: true,
    completions: true,
    polled_streams: false,
    tasks: TaskForm::Extension,
    batches: false,
    implementation_members: ImplementationMembers::All,
    resource_not_found: code::INVALID_PARAMS,
};
