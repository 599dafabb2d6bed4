//! Table of the tests that exceed each limit, so that no limit lacks one.

use super::super::limits;
use std::path::Path;

const FLOODS: &str = "crates/toolgate-cli/tests/it/floods.rs";
const MEMORY: &str = "crates/toolgate-cli/tests/it/memory.rs";
const EXCHANGE: &str = "crates/toolgate-cli/tests/it/exchange.rs";
const WHEN: &str = "crates/toolgate-policy/src/access/cel/tests.rs";
const FAILING_SERVER: &str = "crates/toolgate-cli/tests/it/failing_server.rs";
const CONFIG_LIMITS: &str = "crates/toolgate-cli/tests/it/config_limits.rs";
const CONCURRENCY_QUEUE: &str = "crates/toolgate-cli/tests/it/concurrency_queue.rs";
const SLOW_SERVERS: &str = "crates/toolgate-cli/tests/it/slow_servers.rs";
const AT_ONCE: &str = "crates/toolgate-policy/src/limits/concurrency/tests.rs";
const APPROVALS: &str = "crates/toolgate-policy/tests/it/approvals.rs";
const MISDEEDS: &str = "crates/toolgate-cli/tests/it/misdeeds.rs";
const OUTLET: &str = "crates/toolgate/src/edge/responder.rs";
const SCHEMA: &str = "crates/toolgate-policy/src/validation/schema/tests.rs";
const LINKS: &str = "crates/toolgate/src/aggregate/links/tests.rs";
const SERVER_LOGS: &str = "crates/toolgate-cli/tests/it/server_logs.rs";
const MEDIA: &str = "crates/toolgate-policy/src/sanitize/media/tests.rs";
const HTTP: &str = "crates/toolgate/tests/it/serve/http.rs";
const PARKED: &str = "crates/toolgate/tests/it/remote_http/parked.rs";
const RESUME: &str = "crates/toolgate/tests/it/serve/resume.rs";
const TASKS: &str = "crates/toolgate/tests/it/tasks/holding.rs";
const ASKING: &str = "crates/toolgate-auth/src/resource/tests/asking.rs";
const AWAY: &str = "crates/toolgate-auth/src/resource/tests/away.rs";
const FETCH: &str = "crates/toolgate-auth/src/fetch/tests.rs";
const TLS: &str = "crates/toolgate-cli/tests/it/tls.rs";
const CALL_RESULTS: &str = "crates/toolgate-cli/src/runtime/call_feed/results.rs";
const CONSOLE_STRIP: &str = "crates/toolgate-cli/tests/it/console/strip.rs";
const DURABILITY: &str = "crates/toolgate-journal/tests/it/durability.rs";

const LIMIT_TESTS: &[(&str, &str, &str)] = &[
    (
        "memory_bytes",
        MEMORY,
        "one_long_message_too_many_is_told_to_come_again",
    ),
    (
        "body_bytes",
        FLOODS,
        "t22_oversize_bodies_are_refused_and_memory_stays_bounded",
    ),
    (
        "header_bytes",
        FLOODS,
        "one_over_each_limit_of_a_head_is_refused",
    ),
    (
        "headers",
        FLOODS,
        "one_over_each_limit_of_a_head_is_refused",
    ),
    (
        "mcp_header_bytes",
        FLOODS,
        "one_over_each_limit_of_a_head_is_refused",
    ),
    ("line_bytes", FLOODS, "t22_lines_without_end_are_dropped"),
    ("stderr_bytes", SERVER_LOGS, "the_stored_stderr_is_bounded"),
    (
        "console_result_bytes",
        CALL_RESULTS,
        "the_oldest_results_make_room",
    ),
    (
        "low_disk_bytes",
        CONSOLE_STRIP,
        "a_disk_that_is_almost_full_is_shown_on_every_page",
    ),
    ("depth", CONFIG_LIMITS, "the_json_of_a_message"),
    ("keys", CONFIG_LIMITS, "the_json_of_a_message"),
    ("elements", CONFIG_LIMITS, "the_json_of_a_message"),
    ("name_bytes", CONFIG_LIMITS, "the_json_of_a_message"),
    (
        "call_seconds",
        MISDEEDS,
        "t79_a_bad_server_over_stdio_hurts_nobody_else",
    ),
    ("call_max_seconds", CONFIG_LIMITS, "how_often_and_how_long"),
    (
        "breaker_failures",
        FAILING_SERVER,
        "a_server_that_keeps_failing_is_paused_and_tried_again",
    ),
    (
        "breaker_seconds",
        FAILING_SERVER,
        "a_paused_server_asks_no_person",
    ),
    (
        "calls_per_caller",
        CONFIG_LIMITS,
        "calls_of_each_kind_at_the_same_time",
    ),
    (
        "calls",
        AT_ONCE,
        "one_over_each_bound_waits_and_one_over_the_queue_is_refused",
    ),
    (
        "calls_per_tool",
        CONFIG_LIMITS,
        "calls_of_each_kind_at_the_same_time",
    ),
    (
        "callers_per_server",
        EXCHANGE,
        "callers_over_the_limit_wait_for_a_place_or_take_an_idle_one",
    ),
    (
        "calls_per_server",
        CONFIG_LIMITS,
        "calls_of_each_kind_at_the_same_time",
    ),
    (
        "waiting_per_caller",
        CONCURRENCY_QUEUE,
        "what_finds_no_room_is_told_what_is_full",
    ),
    ("waiting", AT_ONCE, "one_over_the_queue_of_all_is_refused"),
    (
        "rejection_milliseconds",
        AT_ONCE,
        "a_call_above_the_queue_is_rejected_after_the_delay",
    ),
    (
        "waiting_seconds",
        CONCURRENCY_QUEUE,
        "what_finds_no_room_is_told_what_is_full",
    ),
    (
        "sessions",
        HTTP,
        "one_session_over_the_limit_ends_an_idle_one_and_never_a_busy_one",
    ),
    (
        "listen_streams",
        "crates/toolgate/src/edge/http/sessions.rs",
        "limits_streams_per_caller_and_in_total",
    ),
    (
        "listen_streams_per_caller",
        CONFIG_LIMITS,
        "streams_of_one_caller_and_of_all",
    ),
    (
        "parked_calls",
        PARKED,
        "one_call_over_those_that_may_wait_is_refused",
    ),
    (
        "parked_calls_per_caller",
        PARKED,
        "one_call_over_those_that_may_wait_is_refused",
    ),
    (
        "resume_seconds",
        RESUME,
        "nothing_is_kept_for_longer_than_said",
    ),
    (
        "resume_bytes_per_session",
        RESUME,
        "a_session_keeps_so_many_bytes_and_all_of_them_so_many",
    ),
    (
        "resume_bytes",
        RESUME,
        "a_session_keeps_so_many_bytes_and_all_of_them_so_many",
    ),
    (
        "stream_seconds",
        RESUME,
        "a_connection_may_end_before_its_stream_where_the_revision_has_that",
    ),
    ("stream_messages", OUTLET, "waits_above_the_message_limit"),
    (
        "stream_bytes",
        OUTLET,
        "waits_or_drops_above_the_byte_limit",
    ),
    (
        "stream_resources",
        CONFIG_LIMITS,
        "resources_of_which_one_stream_hears",
    ),
    ("tasks", TASKS, "one_task_too_many_is_refused"),
    ("tasks_per_caller", TASKS, "one_task_too_many_is_refused"),
    (
        "task_bytes",
        TASKS,
        "results_give_way_where_they_are_too_long_together",
    ),
    ("task_seconds", TASKS, "a_task_ends_with_its_time"),
    (
        "task_polls",
        TASKS,
        "who_looks_too_often_is_told_when_to_look",
    ),
    (
        "result_bytes",
        CONFIG_LIMITS,
        "what_a_server_lists_and_answers",
    ),
    ("media_bytes", MEDIA, "withholds_media_over_the_size_limit"),
    (
        "tools_per_server",
        CONFIG_LIMITS,
        "what_a_server_lists_and_answers",
    ),
    (
        "list_bytes",
        CONFIG_LIMITS,
        "what_a_server_lists_and_answers",
    ),
    ("page_items", CONFIG_LIMITS, "a_page_of_a_list"),
    (
        "definition_bytes",
        CONFIG_LIMITS,
        "what_a_server_lists_and_answers",
    ),
    (
        "description_bytes",
        CONFIG_LIMITS,
        "what_a_server_lists_and_answers",
    ),
    (
        "links_per_caller",
        LINKS,
        "one_link_too_many_forgets_the_oldest",
    ),
    (
        "link_callers",
        LINKS,
        "one_caller_too_many_forgets_the_oldest",
    ),
    (
        "rounds",
        CONFIG_LIMITS,
        "rounds_and_the_life_of_what_is_sealed",
    ),
    (
        "seal_seconds",
        CONFIG_LIMITS,
        "rounds_and_the_life_of_what_is_sealed",
    ),
    (
        "task_approval_seconds",
        APPROVALS,
        "a_call_that_can_run_as_a_task_waits_longer_for_a_person",
    ),
    (
        "approval_seconds",
        CONFIG_LIMITS,
        "questions_that_wait_for_a_person",
    ),
    (
        "approvals_per_caller",
        CONFIG_LIMITS,
        "questions_that_wait_for_a_person",
    ),
    ("approvals", APPROVALS, "a_desk_has_room_for_so_many"),
    (
        "start_seconds",
        CONFIG_LIMITS,
        "a_server_that_takes_too_long_to_start",
    ),
    (
        "list_wait_seconds",
        SLOW_SERVERS,
        "a_first_start_waits_for_servers_without_pins_once_and_says_which_start",
    ),
    (
        "header_seconds",
        CONFIG_LIMITS,
        "the_head_of_a_request_that_crawls",
    ),
    (
        "body_seconds",
        FLOODS,
        "a_body_that_pauses_or_crawls_is_given_up",
    ),
    (
        "body_idle_seconds",
        FLOODS,
        "a_body_that_pauses_or_crawls_is_given_up",
    ),
    (
        "auth_failures",
        "crates/toolgate-cli/tests/it/keys.rs",
        "wrong_keys_are_counted_and_one_address_is_told_to_wait",
    ),
    (
        "caller_keys",
        "crates/toolgate-policy/src/access/keys/tests.rs",
        "one_key_too_many_is_not_made",
    ),
    (
        "issuer_bytes",
        FETCH,
        "rejects_a_body_one_byte_over_the_limit",
    ),
    ("issuer_seconds", FETCH, "times_out_on_a_silent_server"),
    ("issuer_redirects", FETCH, "rejects_one_redirect_too_many"),
    (
        "issuer_keys_seconds",
        ASKING,
        "keys_are_looked_for_as_often_as_it_is_said",
    ),
    (
        "issuer_pause_seconds",
        ASKING,
        "keys_are_looked_for_as_often_as_it_is_said",
    ),
    (
        "introspection_seconds",
        ASKING,
        "caches_introspection_for_the_configured_time",
    ),
    (
        "introspection_recheck_seconds",
        ASKING,
        "a_revoked_token_ends_its_streams",
    ),
    (
        "introspections",
        AWAY,
        "exceeding_introspections_wait_and_are_not_invalid",
    ),
    ("proofs", ASKING, "rejects_one_proof_too_many"),
    (
        "tls_handshake_seconds",
        TLS,
        "handshakes_are_bounded_in_number_and_time",
    ),
    (
        "tls_handshakes",
        TLS,
        "handshakes_are_bounded_in_number_and_time",
    ),
    (
        "connections_per_address",
        FLOODS,
        "one_connection_of_an_address_too_many_is_closed",
    ),
    (
        "connections",
        CONFIG_LIMITS,
        "one_connection_too_many_waits",
    ),
    (
        "audit_queue",
        DURABILITY,
        "a_full_queue_refuses_at_once_and_drops_nothing",
    ),
    ("audit_queue_bytes", DURABILITY, "queued_bytes_have_a_limit"),
    (
        "drain_seconds",
        CONFIG_LIMITS,
        "what_still_runs_when_the_gateway_stops",
    ),
    (
        "session_idle_seconds",
        "crates/toolgate/tests/it/rows/handles.rs",
        "t26_a_captured_session_is_no_good_after_its_end",
    ),
    (
        "session_max_seconds",
        "crates/toolgate/tests/it/rows/handles.rs",
        "t26_a_captured_session_is_no_good_after_its_end",
    ),
    (
        "list_seconds",
        "crates/toolgate/tests/it/remote/lists.rs",
        "the_time_to_live_of_a_modern_list_is_honoured",
    ),
    (
        "question_seconds",
        "crates/toolgate/tests/it/serve/desk.rs",
        "a_question_that_nobody_answers_ends",
    ),
    (
        "ping_seconds",
        "crates/toolgate/tests/it/remote/pings.rs",
        "a_server_that_stops_answering_pings_is_gone",
    ),
    (
        "client_ping_seconds",
        "crates/toolgate/tests/it/serve/pings.rs",
        "a_client_that_stops_answering_pings_is_gone",
    ),
    (
        "instructions_bytes",
        "crates/toolgate-cli/src/runtime/instructions/tests.rs",
        "truncates_a_long_text",
    ),
    ("schema_depth", SCHEMA, "bounds"),
    ("subschemas", SCHEMA, "bounds"),
    ("patterns", SCHEMA, "bounds"),
    ("grants", APPROVALS, "so_many_grants"),
    (
        "grant_seconds",
        APPROVALS,
        "a_yes_is_remembered_for_so_long",
    ),
    (
        "grant_max_seconds",
        APPROVALS,
        "a_yes_is_remembered_for_so_long",
    ),
    // Batch size and wait of a sync reject nothing: the tests show that no record is lost.
    ("audit_batch", DURABILITY, "waiters_share_a_sync"),
    (
        "audit_wait_milliseconds",
        DURABILITY,
        "waiters_share_a_sync",
    ),
    (
        "store_stale_seconds",
        "crates/toolgate-cli/tests/it/shared_store.rs",
        "keys_are_answered_with_503_once_the_copy_is_stale",
    ),
    (
        "store_timeout_milliseconds",
        "crates/toolgate-store/tests/it/postgres_outage.rs",
        "a_frozen_server_refuses_writes_after_the_time_limit",
    ),
    ("when_bytes", WHEN, "a_condition_has_a_length_and_a_depth"),
    ("when_depth", WHEN, "a_condition_has_a_length_and_a_depth"),
    ("when_steps", WHEN, "every_evaluation_ends"),
    (
        "schema_milliseconds",
        "crates/toolgate-policy/tests/it/schemas/bombs.rs",
        "the_time_is_a_setting",
    ),
    (
        "pins_per_server",
        "crates/toolgate-policy/tests/it/pins.rs",
        "so_many_definitions_of_a_server_are_pinned",
    ),
    ("rate", CONFIG_LIMITS, "how_often_and_how_long"),
];

#[test]
fn every_limit_has_a_test_that_exceeds_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (key, file, name) in LIMIT_TESTS {
        assert!(limits::limit_keys().contains(key), "{key} is no limit");
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        assert!(
            text.contains(&format!("fn {name}(")),
            "{key}: no test {name} in {file}"
        );
    }
    let shown = |key: &&str| LIMIT_TESTS.iter().any(|(shown, ..)| shown == key);
    let lacking: Vec<_> = limits::limit_keys()
        .iter()
        .filter(|key| !shown(key))
        .collect();
    assert!(lacking.is_empty(), "without a test: {lacking:?}");
}
