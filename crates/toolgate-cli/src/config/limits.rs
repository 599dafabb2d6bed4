//! `[limits]`: every limit with its default and allowed range.

use super::{
    rate::RateSetting,
    reader::{IntRange, SettingError, SettingPath, inline_schema},
};
use schemars::{JsonSchema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use std::fmt;
use toolgate_protocol::memory_budget::{BYTES_PER_OBJECT, BYTES_PER_VALUE, COPIES_PER_MESSAGE};

/// Integer type of a limit, converted from and to the number of the config.
trait LimitValue: Copy {
    fn of(number: u64) -> Self;
    fn plain(self) -> u64;
}

impl LimitValue for usize {
    fn of(number: u64) -> usize {
        usize::try_from(number).unwrap_or(usize::MAX)
    }

    fn plain(self) -> u64 {
        self as u64
    }
}

impl LimitValue for u32 {
    fn of(number: u64) -> u32 {
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    fn plain(self) -> u64 {
        self.into()
    }
}

impl LimitValue for u64 {
    fn of(seconds: u64) -> u64 {
        seconds
    }

    fn plain(self) -> u64 {
        self
    }
}

macro_rules! limits {
    (
        rate = $rate_doc:literal;
        $($(#[doc = $doc:literal])+ $key:ident: $kind:ty = $default:literal, $low:literal to $high:literal;)*
    ) => {
        /// Limits of the gateway. The key names the unit; without a unit it is a count.
        #[derive(Clone, Debug, Eq, PartialEq)]
        pub(crate) struct GatewayLimits {
            $($(#[doc = $doc])+ pub(crate) $key: $kind,)*
            #[doc = $rate_doc]
            pub(crate) rate: RateSetting,
        }

        /// Every key of `[limits]`.
        #[cfg(test)]
        const KEYS: &[&str] = &[$(stringify!($key),)* "rate"];

        /// Key of `[limits]`.
        #[derive(Deserialize)]
        #[serde(field_identifier)]
        #[expect(non_camel_case_types, reason = "the variants are the keys")]
        enum LimitKey { $($key,)* rate }

        /// Every numeric key with its default and range.
        #[cfg(test)]
        pub(super) const TABLE: &[(&str, u64, u64, u64)] = &[$((stringify!($key), $default, $low, $high),)*];

        impl Default for GatewayLimits {
            fn default() -> GatewayLimits {
                GatewayLimits { $($key: <$kind>::of($default),)* rate: RateSetting::per_minute(600) }
            }
        }

        impl GatewayLimits {
            fn set<'de, A: MapAccess<'de>>(&mut self, key: &LimitKey, map: &mut A) -> Result<(), A::Error> {
                match key {
                    $(LimitKey::$key => self.$key = <$kind>::of(map.next_value::<IntRange<$low, $high>>()?.0),)*
                    LimitKey::rate => self.rate = map.next_value()?,
                }
                Ok(())
            }

            fn schemas(generator: &mut SchemaGenerator) -> serde_json::Map<String, serde_json::Value> {
                let mut all = serde_json::Map::new();
                $(
                    let mut schema = IntRange::<$low, $high>::json_schema(generator);
                    schema.insert("description".to_owned(), concat!($($doc),+).trim().into());
                    schema.insert("default".to_owned(), $default.into());
                    all.insert(stringify!($key).to_owned(), schema.to_value());
                )*
                let mut rate = RateSetting::json_schema(generator);
                rate.insert("description".to_owned(), $rate_doc.into());
                rate.insert("default".to_owned(), GatewayLimits::default().rate.to_string().into());
                all.insert("rate".to_owned(), rate.to_value());
                all
            }

            /// Returns the numeric keys with different values in two sets of limits.
            pub(crate) fn differing(one: &GatewayLimits, two: &GatewayLimits) -> Vec<&'static str> {
                let mut keys = Vec::new();
                $(if one.$key != two.$key { keys.push(stringify!($key)); })*
                keys
            }

            /// Returns a limit as an integer.
            fn number(&self, key: &str) -> u64 {
                $(if key == stringify!($key) { return self.$key.plain(); })*
                0
            }
        }
    };
}

limits! {
    rate = "Rate limit of the calls of one tool by one caller.";
    /// Memory of all long messages that are held at the same time, with their copies. One caller or one server gets at
    /// most half. Two messages of the maximum length have to fit.
    memory_bytes: u64 = 268_435_456, 8_388_608 to 1_099_511_627_776;
    /// Maximum size of the body of an HTTP request.
    body_bytes: usize = 4_194_304, 1_024 to 268_435_456;
    /// Maximum size of the head of an HTTP request: its first line and its headers.
    header_bytes: usize = 32_768, 8_192 to 1_048_576;
    /// Maximum number of headers of an HTTP request.
    headers: usize = 100, 16 to 1_000;
    /// Maximum size of the value of one header `Mcp-…`.
    mcp_header_bytes: usize = 8_192, 256 to 8_192;
    /// Maximum size of a line of a server or client over stdio, and of a response or an event of a server over HTTP.
    line_bytes: usize = 16_777_216, 65_536 to 1_073_741_824;
    /// Size at which the file with the stderr of a server is renamed to `SERVER.log.1`, in `logs` of the data directory.
    stderr_bytes: u64 = 1_048_576, 4_096 to 1_073_741_824;
    /// Memory of the results of recent calls that the console shows. They are kept only while a page of the console is
    /// open; with 0, none is kept.
    console_result_bytes: usize = 8_388_608, 0 to 1_073_741_824;
    /// Free space of the disk with the data directory below which the console warns.
    low_disk_bytes: u64 = 268_435_456, 0 to 1_099_511_627_776;
    /// Maximum nesting depth of JSON.
    depth: usize = 64, 8 to 128;
    /// Maximum number of keys of one JSON object.
    keys: usize = 4_096, 16 to 1_000_000;
    /// Maximum number of values of one JSON text.
    elements: usize = 100_000, 256 to 10_000_000;
    /// Maximum size of the name or URI in a client's request or subscription.
    name_bytes: usize = 8_192, 128 to 8_192;
    /// Call timeout; progress restarts it. At most `call_max_seconds`.
    call_seconds: u64 = 60, 1 to 86_400;
    /// Maximum duration of a call with all its progress.
    call_max_seconds: u64 = 900, 1 to 604_800;
    /// Consecutive failed calls after which a server gets no calls for `breaker_seconds` (circuit breaker). 0 turns the
    /// circuit breaker off.
    breaker_failures: u32 = 10, 0 to 1_000_000;
    /// Pause of a server that keeps failing. After the pause, one call is let through; if it succeeds, the pause ends.
    breaker_seconds: u64 = 30, 1 to 86_400;
    /// Running calls of one caller; at most `calls`.
    calls_per_caller: usize = 64, 1 to 100_000;
    /// Running calls of all callers.
    calls: usize = 2_048, 1 to 1_000_000;
    /// Running calls of one tool, resource or prompt.
    calls_per_tool: usize = 256, 1 to 1_000_000;
    /// Callers with a connection of their own to one server (token exchange, sign-in for each caller), whose tokens the
    /// gateway holds. Above this number, an idle connection is evicted. The same number of callers can have stored
    /// credentials for one server; another sign-in is refused.
    callers_per_server: usize = 256, 1 to 100_000;
    /// Running calls of one server.
    calls_per_server: usize = 512, 1 to 1_000_000;
    /// Queued calls of one caller; at most `waiting`.
    waiting_per_caller: usize = 512, 0 to 100_000;
    /// Queued calls of all callers.
    waiting: usize = 1_024, 0 to 1_000_000;
    /// Maximum time that a call stays in the queue.
    waiting_seconds: u64 = 10, 0 to 3_600;
    /// Time after which a call is rejected because `calls_per_caller` and `waiting_per_caller`, or `calls` and `waiting`,
    /// are reached. It slows down a client that repeats rejected calls at once, so that the other calls keep the
    /// processor.
    rejection_milliseconds: u64 = 250, 0 to 10_000;
    /// Open sessions at `/mcp`, and as many streams at `/sse`.
    sessions: usize = 256, 1 to 100_000;
    /// Idle time after which a session at `/mcp` ends; at most `session_max_seconds`.
    session_idle_seconds: u64 = 1_800, 10 to 604_800;
    /// Maximum lifetime of a session, or of a stream at `/sse`.
    session_max_seconds: u64 = 86_400, 60 to 2_592_000;
    /// Open notification streams, and streams at `/sse`.
    listen_streams: usize = 1_024, 1 to 100_000;
    /// Open notification streams, and streams at `/sse`, of one caller; at most `listen_streams`.
    listen_streams_per_caller: usize = 128, 1 to 10_000;
    /// Time for which a stream of a session is kept for a client that resumes it with `Last-Event-ID`. 0 keeps none.
    resume_seconds: u64 = 300, 0 to 86_400;
    /// Bytes of sent messages of one session that are kept for resumption; at most `resume_bytes`. A longer message is
    /// not kept.
    resume_bytes_per_session: usize = 1_048_576, 0 to 268_435_456;
    /// Bytes of sent messages of all sessions that are kept for resumption.
    resume_bytes: usize = 33_554_432, 0 to 4_294_967_296;
    /// Maximum time of one connection of a stream. After it, a client of a 2025-11-25 session has to reconnect for the
    /// rest (for proxies that cut long connections). 0: as long as the stream.
    stream_seconds: u64 = 0, 0 to 86_400;
    /// Messages of one stream or connection that wait for a slow reader.
    stream_messages: usize = 256, 1 to 100_000;
    /// Bytes of the messages of one stream or connection that wait for a slow reader. A longer message waits alone.
    stream_bytes: usize = 1_048_576, 1_024 to 268_435_456;
    /// Resources to which one session or stream is subscribed.
    stream_resources: usize = 1_024, 0 to 100_000;
    /// Calls that run as tasks, and finished ones that are kept.
    tasks: usize = 1_024, 1 to 1_000_000;
    /// Tasks of one caller, finished ones included; at most `tasks`.
    tasks_per_caller: usize = 64, 1 to 100_000;
    /// Bytes of the results of all finished tasks. The oldest are evicted.
    task_bytes: usize = 67_108_864, 65_536 to 134_217_728;
    /// Lifetime of a task, counted from its start. Then its call is cancelled if it still runs, and its result is
    /// deleted.
    task_seconds: u64 = 3_600, 1 to 2_592_000;
    /// Polls of one task in a minute. Above this number, a poll is refused with the time of the next allowed poll.
    task_polls: u32 = 600, 60 to 1_000_000;
    /// Maximum size of the result of a call.
    result_bytes: usize = 16_777_216, 1_024 to 1_073_741_824;
    /// Maximum size of the Base64 of one image, one audio content or the data of one resource.
    media_bytes: usize = 8_388_608, 1_024 to 1_073_741_824;
    /// Tools of one server, and as many resources, templates, prompts and skills each. The others are dropped, with a
    /// note.
    tools_per_server: usize = 10_000, 1 to 100_000;
    /// Bytes of all items of one kind of one server together.
    list_bytes: usize = 16_777_216, 65_536 to 1_073_741_824;
    /// Maximum time for which a list of a server is cached, whatever the server says.
    list_seconds: u64 = 86_400, 1 to 604_800;
    /// Items on one page of a list.
    page_items: usize = 1_000, 1 to 100_000;
    /// Pinned definitions of one server, removed ones included. Further definitions are hidden.
    pins_per_server: usize = 10_000, 1 to 50_000;
    /// Maximum size of the definition of a tool.
    definition_bytes: usize = 65_536, 1_024 to 16_777_216;
    /// Maximum size of the description of a tool; at most `definition_bytes`.
    description_bytes: usize = 8_192, 64 to 1_048_576;
    /// Maximum size of the instructions that a client gets about the servers; 0 for none. The gateway reads at most
    /// twice as many bytes of each server's instructions.
    instructions_bytes: usize = 32_768, 0 to 1_048_576;
    /// Links to resources in results of one caller, which the caller can read although no list shows them. The oldest
    /// are evicted.
    links_per_caller: usize = 256, 0 to 100_000;
    /// Callers whose links are remembered.
    link_callers: usize = 1_024, 1 to 100_000;
    /// Maximum nesting depth of a schema.
    schema_depth: usize = 32, 4 to 128;
    /// Maximum number of subschemas of one schema.
    subschemas: usize = 2_000, 1 to 100_000;
    /// Maximum number of patterns of one schema.
    patterns: usize = 200, 0 to 10_000;
    /// Maximum size of the condition of a rule.
    when_bytes: usize = 4_096, 64 to 65_536;
    /// Maximum nesting depth of a condition.
    when_depth: usize = 64, 4 to 64;
    /// Maximum number of steps of one evaluation of a condition: each part is one, and so are each 32 bytes of text.
    when_steps: usize = 100_000, 100 to 10_000_000;
    /// Maximum number of times that a client may repeat one call with answers to input requests.
    rounds: u32 = 10, 1 to 1_000;
    /// Time that a client has to answer an input request. A client of 2026-07-28 also has to repeat its call within
    /// `seal_seconds`.
    question_seconds: u64 = 600, 1 to 86_400;
    /// Interval at which the gateway pings a server with a handshake, except while a request to the server is pending.
    /// A server that answered pings and misses two in a row, 30 s each, counts as gone; the gateway starts it or
    /// connects to it again. If a server never answers a ping, the pings stop. 0: never.
    ping_seconds: u64 = 60, 0 to 86_400;
    /// Interval at which the gateway pings a client with a handshake and an open stream (stdio, a GET stream, HTTP with
    /// SSE). A client that answered pings and misses two in a row, 30 s each, counts as gone: its connection or session
    /// ends, with everything that runs for it. 0: never; then the end of a pipe or of a stream shows that a client is
    /// gone. A client that is busy with its user may answer no ping.
    client_ping_seconds: u64 = 0, 0 to 86_400;
    /// Calls of one server of 2025-06-18 or 2025-11-25 that wait for an answer to its input request. With 0, the server
    /// cannot send input requests.
    parked_calls: usize = 64, 0 to 10_000;
    /// Calls of one caller, at one server of 2025-06-18 or 2025-11-25, that wait for an answer to its input request; at
    /// most `parked_calls`.
    parked_calls_per_caller: usize = 16, 0 to 10_000;
    /// Maximum time until a client of 2026-07-28 repeats a call with answers to input requests.
    seal_seconds: u64 = 300, 1 to 300;
    /// Estimated processor time to check one value against its schema, for a release build. The cost is computed in
    /// advance, and a value that could exceed it is refused without a check. Patterns with look-around or
    /// back-references are stopped while they run, at ten times that. Large values, and long texts against regular
    /// expressions, need more.
    schema_milliseconds: u64 = 50, 1 to 60_000;
    /// Maximum time that a call waits for a person.
    approval_seconds: u64 = 600, 1 to 86_400;
    /// Maximum time that a call that can run as a task waits for a person; at most `task_seconds`.
    task_approval_seconds: u64 = 3_600, 1 to 2_592_000;
    /// Pending approvals of one caller; at most `approvals`.
    approvals_per_caller: usize = 16, 1 to 10_000;
    /// Pending approvals of all callers.
    approvals: usize = 256, 1 to 100_000;
    /// Maximum number of remembered approvals.
    grants: usize = 256, 1 to 100_000;
    /// Lifetime of a remembered approval, if the approver names none; at most `grant_max_seconds`.
    grant_seconds: u64 = 28_800, 60 to 31_622_400;
    /// Maximum lifetime of a remembered approval that an approver can choose.
    grant_max_seconds: u64 = 31_622_400, 60 to 31_622_400;
    /// Time limit of the start of a server.
    start_seconds: u64 = 30, 1 to 3_600;
    /// Time that the first lists wait for servers that are still starting and unknown from an earlier run. Any list
    /// waits as long for a slow server. A slower server is left out of the list, is counted in `toolgate/missing` of
    /// its `_meta`, and does not delay a later list; `list_changed` follows when it has listed.
    list_wait_seconds: u64 = 10, 0 to 3_600;
    /// Time limit of the arrival of the head of an HTTP request.
    header_seconds: u64 = 10, 1 to 300;
    /// Time limit of the arrival of the body of an HTTP request.
    body_seconds: u64 = 60, 1 to 3_600;
    /// Maximum pause within the body of an HTTP request.
    body_idle_seconds: u64 = 10, 1 to 3_600;
    /// Time limit of the TLS handshake of a connection.
    tls_handshake_seconds: u64 = 10, 1 to 300;
    /// TLS handshakes at the same time. A further connection is closed.
    tls_handshakes: usize = 512, 1 to 65_536;
    /// Open connections of one address. Connections of trusted proxies do not count, or count for the client that the
    /// PROXY protocol names.
    connections_per_address: usize = 256, 1 to 65_536;
    /// Requests with invalid or malformed credentials from one address (for IPv6: from one /64 network) in a minute.
    /// Further ones get 429 and no audit record each. Valid credentials are never counted. Behind a reverse proxy, all
    /// callers share one address, unless `trusted` in `[proxy]` names the proxy.
    auth_failures: u32 = 60, 1 to 1_000_000;
    /// Maximum number of API keys, including those revoked within 30 days.
    caller_keys: usize = 1_000, 1 to 100_000;
    /// Maximum size of an answer of an issuer of tokens.
    issuer_bytes: usize = 1_048_576, 1_024 to 16_777_216;
    /// Time limit of an answer of an issuer, with all redirects.
    issuer_seconds: u64 = 10, 1 to 300;
    /// Redirects of one answer, on the issuer's origin.
    issuer_redirects: usize = 3, 0 to 10;
    /// Time for which the public keys of an issuer are cached; six times as long while the issuer cannot be reached.
    /// Its metadata is cached six times as long.
    issuer_keys_seconds: u64 = 600, 1 to 86_400;
    /// Minimum time between two requests for an issuer's keys or metadata, whatever tokens name. 0: no minimum.
    issuer_pause_seconds: u64 = 30, 0 to 3_600;
    /// Time for which an introspection result is cached. A withdrawn token can still be accepted for that long.
    introspection_seconds: u64 = 5, 0 to 300;
    /// Interval at which the issuer is asked again about a token with an open stream. A withdrawn token ends the
    /// stream.
    introspection_recheck_seconds: u64 = 60, 1 to 3_600;
    /// Tokens that one issuer is asked about at the same time. Another request waits, for as long as one answer may
    /// take.
    introspections: usize = 32, 1 to 4_096;
    /// DPoP proofs that are remembered. Above this number, no proof is accepted until the oldest ones expire.
    proofs: usize = 262_144, 1 to 16_777_216;
    /// Open connections.
    connections: usize = 1_024, 1 to 65_536;
    /// Audit records that wait for the disk. If the queue is full, further calls are refused.
    audit_queue: usize = 8_192, 16 to 1_000_000;
    /// Bytes of the audit records that wait for the disk.
    audit_queue_bytes: usize = 67_108_864, 1_048_576 to 4_294_967_296;
    /// Audit records that share one sync (group commit).
    audit_batch: usize = 256, 1 to 65_536;
    /// Time for which audit records are gathered while more arrive.
    audit_wait_milliseconds: u64 = 2, 0 to 1_000;
    /// Age of the last copy of the shared store above which API keys are answered with HTTP 503.
    store_stale_seconds: u64 = 10, 1 to 3_600;
    /// Maximum time of a change of the shared store. Without an answer, the store counts as away.
    store_timeout_milliseconds: u64 = 2_000, 100 to 60_000;
    /// Time for which running calls may continue when the gateway stops.
    drain_seconds: u64 = 30, 0 to 3_600;
}

/// Every key of `[limits]`.
#[cfg(test)]
pub(crate) fn limit_keys() -> &'static [&'static str] {
    KEYS
}

/// Pairs of limits whose first must not exceed the second.
const ORDERED_LIMITS: &[(&str, &str)] = &[
    ("call_seconds", "call_max_seconds"),
    ("calls_per_caller", "calls"),
    ("waiting_per_caller", "waiting"),
    ("session_idle_seconds", "session_max_seconds"),
    ("listen_streams_per_caller", "listen_streams"),
    ("resume_bytes_per_session", "resume_bytes"),
    ("parked_calls_per_caller", "parked_calls"),
    ("approvals_per_caller", "approvals"),
    ("grant_seconds", "grant_max_seconds"),
    ("tasks_per_caller", "tasks"),
    ("task_approval_seconds", "task_seconds"),
    ("description_bytes", "definition_bytes"),
];

impl GatewayLimits {
    /// Checks a call timeout of the section at `path`.
    pub(super) fn check_call_seconds(
        &self,
        seconds: Option<u64>,
        path: &SettingPath,
    ) -> Result<(), SettingError> {
        match seconds {
            Some(seconds) if seconds > self.call_max_seconds => Err(SettingError::about(
                path.key("call_seconds"),
                format!(
                    "is {seconds}; write an integer from 1 to {}, the value of call_max_seconds in [limits]",
                    self.call_max_seconds
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Checks the limits that depend on each other; `is_set` returns true for the keys that the file has.
    pub(super) fn check(&self, is_set: impl Fn(&SettingPath) -> bool) -> Result<(), SettingError> {
        let path = |key: &&str| SettingPath::new(&["limits", key]);
        for (small, large) in ORDERED_LIMITS {
            let (low, high) = (self.number(small), self.number(large));
            if low > high {
                let at = [small, large].iter().map(|key| path(key)).find(&is_set);
                return Err(SettingError::message(
                    at.unwrap_or_default(),
                    format!(
                        "{small} is {low}, which is more than {large} ({high}); lower {small}, or raise {large}"
                    ),
                ));
            }
        }
        // A maximum-size message must fit into the half of the budget that one caller or server may use.
        let least = self.max_message_memory().saturating_mul(2);
        if self.memory_bytes < least {
            let keys = ["memory_bytes", "line_bytes", "body_bytes", "elements"];
            let at = keys.iter().map(path).find(&is_set);
            return Err(SettingError::message(
                at.unwrap_or_default(),
                format!(
                    "memory_bytes is {}, but two messages of the maximum size need {least} bytes; raise memory_bytes, or lower line_bytes, body_bytes or elements",
                    self.memory_bytes
                ),
            ));
        }
        Ok(())
    }

    /// Returns the memory of one maximum-size message, with its copies and parsed values.
    fn max_message_memory(&self) -> u64 {
        let bytes = self.body_bytes.max(self.line_bytes) as u64;
        let values = (self.elements as u64).saturating_mul(BYTES_PER_VALUE + BYTES_PER_OBJECT / 2);
        bytes
            .saturating_mul(COPIES_PER_MESSAGE)
            .saturating_add(values)
    }
}

impl<'de> Deserialize<'de> for GatewayLimits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<GatewayLimits, D::Error> {
        deserializer.deserialize_map(LimitsVisitor)
    }
}

struct LimitsVisitor;

impl<'de> Visitor<'de> for LimitsVisitor {
    type Value = GatewayLimits;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table of limits")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<GatewayLimits, A::Error> {
        let mut limits = GatewayLimits::default();
        while let Some(key) = map.next_key()? {
            limits.set(&key, &mut map)?;
        }
        Ok(limits)
    }
}

inline_schema!(GatewayLimits, |generator| json_schema!({
    "type": "object",
    "properties": GatewayLimits::schemas(generator),
    "additionalProperties": false,
}));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_within_their_ranges() {
        for (key, default, low, high) in TABLE {
            assert!((low..=high).contains(&default), "{key}");
            assert_eq!(GatewayLimits::default().number(key), *default, "{key}");
        }
        let limits = GatewayLimits::default();
        assert!(limits.memory_bytes >= 2 * limits.max_message_memory());
        for (small, large) in ORDERED_LIMITS {
            assert!(
                GatewayLimits::default().number(small) <= GatewayLimits::default().number(large),
                "{small}"
            );
        }
    }
}
