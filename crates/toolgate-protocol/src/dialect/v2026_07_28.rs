//! Revision 2026-07-28.

use super::Dialect;
use super::features::{ImplementationMembers, StructuredSupport};
use crate::message::code;
use crate::method::content::ContentKind::{Audio, Image, Resource, ResourceLink, Text};
use crate::method::tasks::TaskForm;

pub(super) static DIALECT: Dialect = Dialect {
    revision: "2026-07-28",
    stateless: true,
    request_meta: true,
    result_meta: true,
    result_type: true,
    server_requests: false,
    input_required_results: true,
    ping: false,
    request_log_level: true,
    subscription_streams: true,
    roots_list_changed: false,
    extensions: true,
    cache_hints: true,
    empty_cursors: true,
    boolean_schemas: true,
    mirrored_headers: true,
    cancels_by_closing: true,
    resumable_streams: false,
    error_statuses: &[
        (code::METHOD_NOT_FOUND, 404),
        (code::HEADER_MISMATCH, 400),
        (code::MISSING_CAPABILITY, 400),
        (code::UNSUPPORTED_VERSION, 400),
    ],
    missing_capability_error: true,
    reserved_error_codes: Some(-32099..=-32020),
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
