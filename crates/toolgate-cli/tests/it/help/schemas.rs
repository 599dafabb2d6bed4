//! Validation of the gateway's messages in a test against the official schemas. Without them nothing is
//! checked, and a line says so.

use super::Response;
use std::{
    collections::HashMap,
    sync::{LazyLock, Mutex},
};
pub(crate) use talk::{Side, Talk};

#[path = "../../../../toolgate/tests/it/official/schema.rs"]
mod schema;
#[path = "../../../../toolgate/tests/it/official/table.rs"]
mod table;
#[allow(dead_code, reason = "the tests of the crate use more of it")]
#[path = "../../../../toolgate/tests/it/official/talk.rs"]
mod talk;

/// The handshakes of the sessions, by their random ids.
static SESSIONS: LazyLock<Mutex<HashMap<String, String>>> = LazyLock::new(Mutex::default);

/// Panics where a message in the answer to this request is not what its schema wants.
#[track_caller]
pub(super) fn check(request: &[u8], response: &Response) {
    if let Err(why) = validate(request, response) {
        panic!("{why}\nin {}", response.body);
    }
}

/// Validates each message in the answer to this request.
///
/// # Errors
/// What is not what its schema wants.
pub(super) fn validate(request: &[u8], response: &Response) -> Result<(), String> {
    let request = String::from_utf8_lossy(request);
    let Some((head, body)) = request.split_once("\r\n\r\n") else {
        return Ok(());
    };
    if !head.contains(" /mcp ") {
        return Ok(());
    }
    let mut talk = Talk::of(Side::Server);
    let mut sessions = SESSIONS.lock().unwrap();
    if let Some(id) = response.header("mcp-session-id") {
        sessions.insert(id.to_owned(), body.to_owned());
    }
    let named = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("mcp-session-id")
            .then_some(value.trim())
    });
    // The handshake says which revision the session speaks.
    if let Some(opening) = named.and_then(|id| sessions.get(id)) {
        talk.heard(opening);
    }
    drop(sessions);
    talk.heard(body);
    match response.header("content-type") {
        Some("application/json") => talk.check(&response.body),
        Some("text/event-stream") => {
            // The last event may have been cut off by the test.
            let whole = response
                .body
                .rsplit_once("\n\n")
                .map_or("", |(whole, _)| whole);
            whole.split("\n\n").try_for_each(|event| {
                let data = event.lines().filter_map(|line| line.strip_prefix("data:"));
                talk.check(&data.map(str::trim).collect::<Vec<_>>().join("\n"))
            })
        }
        _ => Ok(()),
    }
}
