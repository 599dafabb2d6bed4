//! Revision 2025-11-25.

use super::Dialect;
use super::features::{ImplementationMembers, StructuredSupport};
use crate::message::code;
use crate::method::content::ContentKind::{Audio, Image, Resource, ResourceLink, Text};
use crate::method::tasks::TaskForm;

pub(super) static DIALECT: Dialect = Dialect {
    revision: "2025-11-25",
    stateless: false,
    request_meta: false,
    result_meta: false,
    result_type: false,
    server_requests: true,
    input_required_results: false,
    ping: true,
    request_log_level: false,
    subscription_streams: false,
    roots_list_changed: true,
    extensions: false,
    cache_hints: false,
    empty_cursors: false,
    boolean_schemas: false,
    mirrored_headers: false,
    cancels_by_closing: false,
    resumable_streams: true,
    error_statuses: &[],
    missing_capability_error: false,
    reserved_error_codes: None,
    content_kinds: &[Text, Image, Resource, Audio, ResourceLink],
    unknown_members: &[],
    tool_annotations: true,
    structured_content: StructuredSupport::Object,
    bad_arguments_are_tool_errors: true,
    progress_message: true,
    elicitation: true,
    elicitation_url: true,
    elicitation_id: true,
    form_choices: true,
    sampling_tools: true,
    completions: true,
    polled_streams: true,
    tasks: TaskForm::Core,
    batches: false,
    implementation_members: ImplementationMembers::All,
    resource_not_found: code::RESOURCE_NOT_FOUND,
};
