//! Table of the features of a revision.

use crate::{
    json::Json,
    message::code,
    method::{content::ContentKind, tasks::TaskForm},
};
use std::ops::RangeInclusive;

/// Feature table of one MCP protocol revision. Each field is one fact of the specification; the codes in parentheses
/// are rows of `docs/requirements.md`.
#[derive(Debug)]
pub struct Dialect {
    /// Revision string of the MCP specification, for example `2025-11-25`.
    pub revision: &'static str,
    /// True if every request is self-contained (2026-07-28); false if the session starts with a handshake. It selects
    /// the protocol of a connection; for a single difference, read the field of that difference.
    pub stateless: bool,
    /// True if `_meta` of each request has protocol revision, client info and capabilities (BASE-35, BASE-36).
    pub request_meta: bool,
    /// True if `_meta` of each result has the server (BASE-40).
    pub(super) result_meta: bool,
    /// True if each result has a `resultType` (BASE-15).
    pub(super) result_type: bool,
    /// True if a server may send requests to its client (BASE-28).
    pub server_requests: bool,
    /// True if a server requests input by a result, and the client sends the call again with the answers (MRTR-01).
    pub input_required_results: bool,
    /// True if the revision has the `ping` request (LIFE-16, LIFE-18).
    pub ping: bool,
    /// True if each request has its own log level; false if `logging/setLevel` sets that of the session (LOG-02,
    /// LOG-03).
    pub request_log_level: bool,
    /// True if changes are reported only on the stream of a `subscriptions/listen` request (SUB-01); false if they are
    /// reported in the session, and resources have `resources/subscribe` (LIFE-18).
    pub subscription_streams: bool,
    /// True if a client notifies its server of changed roots (ROOT-02, LIFE-18).
    pub roots_list_changed: bool,
    /// True if client and server capabilities may declare extensions (VER-06).
    pub extensions: bool,
    /// True if results have cache hints: a time to live and a cache scope (CACHE-01).
    pub cache_hints: bool,
    /// True if an empty `nextCursor` is a cursor, and not the end of the list (PAG-07).
    pub empty_cursors: bool,
    /// True if schemas may have booleans in place of subschemas (TOOL-07).
    pub(super) boolean_schemas: bool,
    /// True if HTTP headers repeat the method, the name and marked arguments of a request (HTTPM-24).
    pub mirrored_headers: bool,
    /// True if an HTTP client cancels a request by closing its response stream (CANC-07, HTTPL-14).
    pub cancels_by_closing: bool,
    /// True if a broken SSE stream can be resumed with `Last-Event-ID` (HTTPL-20, HTTPM-17).
    pub resumable_streams: bool,
    /// HTTP statuses of error codes that have one (HTTPM-20, HTTPM-21, BASE-39). All others have 200: clients of
    /// revisions with a handshake treat any other status as a dead connection.
    pub(super) error_statuses: &'static [(i64, u16)],
    /// True if the revision has an error code for a capability that the client did not declare (BASE-39).
    pub missing_capability_error: bool,
    /// Error codes that the specification reserves for its own meanings (BASE-20).
    pub(super) reserved_error_codes: Option<RangeInclusive<i64>>,
    /// Supported kinds of content.
    pub(super) content_kinds: &'static [ContentKind],
    /// Members of definitions that the revision does not define; they are removed.
    pub(super) unknown_members: &'static [&'static str],
    /// True if the revision has tool annotations.
    pub(super) tool_annotations: bool,
    /// Supported values of `structuredContent`.
    pub(super) structured_content: StructuredSupport,
    /// True if arguments that violate the schema are a tool error, which a model can read, and not a protocol error.
    pub bad_arguments_are_tool_errors: bool,
    /// True if progress notifications may have a message.
    pub progress_message: bool,
    /// True if the revision has form elicitation.
    pub elicitation: bool,
    /// True if the revision has URL elicitation.
    pub elicitation_url: bool,
    /// True if URL elicitation requests have an `elicitationId`.
    pub elicitation_id: bool,
    /// True if forms may have titled choices (`oneOf`) and multiple choices (arrays).
    pub(super) form_choices: bool,
    /// True if sampling requests may have tools, and messages with several content blocks.
    pub sampling_tools: bool,
    /// True if servers declare completion by a capability of its own, `completions`.
    pub completions: bool,
    /// True if an SSE stream begins with an event without data, and the server may close its connection to make the
    /// client poll.
    pub polled_streams: bool,
    /// Form of tasks in the revision: none, core or extension.
    pub tasks: TaskForm,
    /// True if a session may send JSON-RPC batches.
    pub batches: bool,
    /// Supported members of `Implementation` besides name and version.
    pub(super) implementation_members: ImplementationMembers,
    /// JSON-RPC error code of the revision for a resource that does not exist.
    pub resource_not_found: i64,
}

#[derive(Debug, PartialEq)]
pub(super) enum ImplementationMembers {
    Nothing,
    Title,
    All,
}

#[derive(Debug, PartialEq)]
pub(super) enum StructuredSupport {
    Unknown,
    Object,
    Any,
}

impl Dialect {
    /// Returns the member `resultType` of an MCP result; `None` if the revision does not define it (BASE-16, BASE-17).
    pub fn result_type(&self, result: &Json) -> Option<Json> {
        result.get("resultType").filter(|_| self.result_type)
    }

    /// Returns the HTTP status of a JSON-RPC response by its error code; `None` stands for a result, which gets 200.
    pub fn http_status(&self, error: Option<i64>) -> u16 {
        let Some(error) = error else {
            return 200;
        };
        let own = self.error_statuses.iter().find(|(code, _)| *code == error);
        own.map_or(200, |(_, status)| *status)
    }

    /// Returns the JSON-RPC error code to send here for an error that was received on another connection. A reserved
    /// code would describe this connection, for example its headers, and becomes an internal error; the code for a
    /// missing resource becomes that of this revision.
    pub fn relayed_error_code(&self, code: i64) -> i64 {
        let reserved = self.reserved_error_codes.as_ref();
        match code {
            code::RESOURCE_NOT_FOUND => self.resource_not_found,
            code if reserved.is_some_and(|all| all.contains(&code)) => code::INTERNAL_ERROR,
            code => code,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LEGACY, MODERN, for_handshake};
    use crate::message::code;

    #[test]
    fn only_revisions_without_a_handshake_have_http_statuses_for_errors() {
        let codes = [
            code::METHOD_NOT_FOUND,
            code::HEADER_MISMATCH,
            code::INVALID_PARAMS,
        ];
        let statuses = |of: &super::Dialect| codes.map(|code| of.http_status(Some(code)));
        assert_eq!(statuses(MODERN), [404, 400, 200]);
        assert_eq!(statuses(LEGACY), [200; 3]);
        assert_eq!(MODERN.http_status(None), 200);
    }

    #[test]
    fn a_relayed_code_is_never_one_that_the_revision_reserves() {
        for code in [-32020, code::UNSUPPORTED_VERSION, -32099] {
            assert_eq!(MODERN.relayed_error_code(code), code::INTERNAL_ERROR);
            assert_eq!(LEGACY.relayed_error_code(code), code);
        }
        let missing = code::RESOURCE_NOT_FOUND;
        assert_eq!(MODERN.relayed_error_code(missing), code::INVALID_PARAMS);
        assert_eq!(LEGACY.relayed_error_code(missing), missing);
        assert_eq!(MODERN.relayed_error_code(-32019), -32019);
    }

    #[test]
    fn a_handshake_never_ends_in_a_revision_without_one() {
        assert_eq!(for_handshake("2025-03-26").revision, "2025-03-26");
        for requested in [MODERN.revision, "2099-01-01", ""] {
            assert_eq!(for_handshake(requested).revision, LEGACY.revision);
        }
    }
}
