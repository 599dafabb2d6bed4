//! Bugs that other libraries had on the wire, as facts that must hold here.
//!
//! Facts that tests elsewhere show already:
//!
//! | what must hold | where |
//! | --- | --- |
//! | a result without `content` is no result of a call | `remote::calls::results_that_are_none_are_errors_of_the_server` |
//! | a reply with `result` and `error` is neither | `remote::trouble::a_reply_with_result_and_error_ends_its_call` |
//! | an origin with the default port is the one without; `null` and strangers are refused | `edge::http::guard`, `origins_are_exact` |
//! | `q=0` is a no | `edge::http::accept`, `quality_and_ranges_count` |
//! | redirects stay on the origin, with method and body | `remote_http::posts::redirects_stay_on_the_origin` |
//! | 401 and 403 are told with the words of the server | `remote_http::opening::who_may_not_come_in_hears_why` |
//! | a refused handshake carries the words of the server | `remote_http::opening::a_refused_handshake_carries_the_words_of_the_server` |
//! | a permanent no to the stream ends the asking | `remote_http::streams::a_permanent_no_to_the_stream_ends_the_asking` |
//! | waits grow to a cap and never overflow | `client::http::follow`, `waits_grow_to_a_cap_and_never_overflow` |
//! | 200 with something else than a reply is an error | `remote_http::posts::a_response_that_is_no_reply_is_an_error_of_its_request` |
//! | a ping during the handshake is answered | `remote::opening::a_ping_is_answered_during_the_handshake`, `remote_http::opening` |
//! | a server of 2026-07-28 that asks is not answered | `remote_http::opening::a_modern_server_that_asks_is_not_answered` |
//! | marked arguments deep inside are found, with names that are good headers | `client::http::mirror`, `handlers::building` |
//!
//! Facts of authorization, to be shown where that is: no token without the resource it is for; a refresh asks for no
//! more scopes than were granted; an issuer with and without a slash at its end; a resource with a query; a metadata
//! document that is other JSON.

mod headers;
mod reading;
mod waiting;
