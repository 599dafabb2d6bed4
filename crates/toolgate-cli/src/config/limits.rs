//! `[limits]`: every limit with its default and allowed range.

use super::{
    rate::RateSetting,
    reader::{IntRange, SettingError, SettingPath},
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use std::{borrow::Cow, fmt};
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
    ($(#[doc = $doc:literal] $key:ident: $kind:ty = $default:literal, $low:literal to $high:literal;)*) => {
        /// Limits of the gateway. The key names the unit; without a unit it is a count.
        #[derive(Clone, Debug, Eq, PartialEq)]
        pub(crate) struct GatewayLimits {
            $(#[doc = $doc] pub(crate) $key: $kind,)*
            /// Rate limit per caller and tool.
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
                    schema.insert("description".to_owned(), $doc.trim().into());
                    schema.insert("default".to_owned(), $default.into());
                    all.insert(stringify!($key).to_owned(), schema.to_value());
                )*
                let mut rate = RateSetting::json_schema(generator);
                rate.insert("description".to_owned(), "Rate limit per caller and tool.".into());
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
    /// Memory budget for all messages in flight, with their copies; one caller or server may use half of it.
    memory_bytes: u64 = 268_435_456, 8_388_608 to 1_099_511_627_776;
    /// Maximum size of an HTTP request body.
    body_bytes: usize = 4_194_304, 1_024 to 268_435_456;
    /// Maximum size of an HTTP request head: request line and headers.
    header_bytes: usize = 32_768, 8_192 to 1_048_576;
    /// Maximum number of headers of an HTTP request.
    headers: usize = 100, 16 to 1_000;
    /// Maximum size of an MCP header value.
    mcp_header_bytes: usize = 8_192, 256 to 8_192;
    /// Maximum size of a line over standard input and output, from servers and clients.
    line_bytes: usize = 16_777_216, 65_536 to 1_073_741_824;
    /// Maximum nesting depth of JSON.
    depth: usize = 64, 8 to 128;
    /// Maximum number of keys of one JSON object.
    keys: usize = 4_096, 16 to 1_000_000;
    /// Maximum number of values in one JSON text.
    elements: usize = 100_000, 256 to 10_000_000;
    /// Maximum size of an item name or URI in a request or subscription.
    name_bytes: usize = 8_192, 128 to 8_192;
    /// Call timeout; progress restarts it.
    call_seconds: u64 = 60, 1 to 86_400;
    /// Maximum duration of a call, regardless of progress.
    call_max_seconds: u64 = 900, 1 to 604_800;
    /// Consecutive failed calls that open the circuit breaker of a server; 0 disables it.
    breaker_failures: u32 = 10, 0 to 1_000_000;
    /// Time that an open circuit breaker blocks the calls of a server.
    breaker_seconds: u64 = 30, 1 to 86_400;
    /// Concurrent calls of one caller.
    calls_per_caller: usize = 64, 1 to 100_000;
    /// Concurrent calls in total.
    calls: usize = 2_048, 1 to 1_000_000;
    /// Concurrent calls of one tool, resource or prompt.
    calls_per_tool: usize = 256, 1 to 1_000_000;
    /// Callers with their own connection to one server at the same time, and with stored tokens for it.
    callers_per_server: usize = 256, 1 to 100_000;
    /// Concurrent calls of one server.
    calls_per_server: usize = 512, 1 to 1_000_000;
    /// Queued calls of one caller.
    waiting_per_caller: usize = 64, 0 to 100_000;
    /// Queued calls in total.
    waiting: usize = 1_024, 0 to 1_000_000;
    /// Maximum time that a call is queued.
    waiting_seconds: u64 = 10, 0 to 3_600;
    /// Maximum number of open sessions.
    sessions: usize = 256, 1 to 100_000;
    /// Idle timeout of a session.
    session_idle_seconds: u64 = 1_800, 10 to 604_800;
    /// Maximum lifetime of a session.
    session_max_seconds: u64 = 86_400, 60 to 2_592_000;
    /// Open notification streams in total.
    listen_streams: usize = 1_024, 1 to 100_000;
    /// Open notification streams of one caller.
    listen_streams_per_caller: usize = 128, 1 to 10_000;
    /// Time that a lost stream of a session can be resumed; 0 disables resumption.
    resume_seconds: u64 = 300, 0 to 86_400;
    /// Buffer for resumption of one session's streams, in bytes. A larger message is not buffered.
    resume_bytes_per_session: usize = 1_048_576, 0 to 268_435_456;
    /// Buffer for resumption of all sessions together, in bytes.
    resume_bytes: usize = 33_554_432, 0 to 4_294_967_296;
    /// Time after which the gateway closes a stream's connection and lets a 2025-11-25 client reconnect; 0 disables it.
    stream_seconds: u64 = 0, 0 to 86_400;
    /// Messages of one stream or connection queued for a slow reader.
    stream_messages: usize = 256, 1 to 100_000;
    /// Bytes of these messages together; a larger message is queued alone.
    stream_bytes: usize = 1_048_576, 1_024 to 268_435_456;
    /// Resource subscriptions of one session or stream.
    stream_resources: usize = 1_024, 0 to 100_000;
    /// Running and finished tasks in total.
    tasks: usize = 1_024, 1 to 1_000_000;
    /// Tasks of one caller.
    tasks_per_caller: usize = 64, 1 to 100_000;
    /// Memory for stored task results; the oldest are evicted.
    task_bytes: usize = 67_108_864, 65_536 to 134_217_728;
    /// Lifetime of a task from its creation.
    task_seconds: u64 = 3_600, 1 to 604_800;
    /// Polls of one task per minute.
    task_polls: u32 = 600, 60 to 1_000_000;
    /// Maximum size of a call's result.
    result_bytes: usize = 16_777_216, 1_024 to 1_073_741_824;
    /// Maximum size of the Base64 data of one image, audio content or resource.
    media_bytes: usize = 8_388_608, 1_024 to 1_073_741_824;
    /// Maximum number of tools of one server.
    tools_per_server: usize = 10_000, 1 to 100_000;
    /// Maximum size of one server's list of one item kind.
    list_bytes: usize = 16_777_216, 65_536 to 1_073_741_824;
    /// Maximum time that a server's list is cached, whatever TTL the server sets.
    list_seconds: u64 = 86_400, 1 to 604_800;
    /// Items on one page of a list.
    page_items: usize = 1_000, 1 to 100_000;
    /// Pinned definitions of one server: tools, resources, templates and prompts.
    pins_per_server: usize = 10_000, 1 to 50_000;
    /// Maximum size of a tool definition.
    definition_bytes: usize = 65_536, 1_024 to 16_777_216;
    /// Maximum size of a tool description.
    description_bytes: usize = 8_192, 64 to 1_048_576;
    /// Maximum size of the instructions for clients.
    instructions_bytes: usize = 32_768, 0 to 1_048_576;
    /// Resource links of one caller that the gateway remembers and that the caller may read.
    links_per_caller: usize = 256, 0 to 100_000;
    /// Callers with remembered resource links.
    link_callers: usize = 1_024, 1 to 100_000;
    /// Maximum nesting depth of a schema.
    schema_depth: usize = 32, 4 to 128;
    /// Maximum number of subschemas of one schema.
    subschemas: usize = 2_000, 1 to 100_000;
    /// Maximum number of patterns in one schema.
    patterns: usize = 200, 0 to 10_000;
    /// Maximum size of a rule's CEL condition.
    when_bytes: usize = 4_096, 64 to 65_536;
    /// Maximum nesting depth of a condition.
    when_depth: usize = 64, 4 to 64;
    /// Maximum steps of one condition's evaluation.
    when_steps: usize = 100_000, 100 to 10_000_000;
    /// Maximum number of input-required rounds of one call.
    rounds: u32 = 10, 1 to 1_000;
    /// Time that a client has to respond to an input request.
    question_seconds: u64 = 600, 1 to 86_400;
    /// Idle time after which a server with a handshake is pinged; 0 disables it.
    ping_seconds: u64 = 60, 0 to 86_400;
    /// Ping interval for a client with a handshake and an open stream; 0 disables it.
    client_ping_seconds: u64 = 0, 0 to 86_400;
    /// Parked calls of one server with a handshake that wait for input; with 0 it cannot request input.
    parked_calls: usize = 64, 0 to 10_000;
    /// Parked calls of one caller.
    parked_calls_per_caller: usize = 16, 0 to 10_000;
    /// Lifetime of the sealed state of an input-required result.
    seal_seconds: u64 = 300, 1 to 300;
    /// Estimated processor time for checking one value against its schema.
    schema_milliseconds: u64 = 50, 1 to 60_000;
    /// Time that an approver has to decide a call.
    approval_seconds: u64 = 600, 1 to 86_400;
    /// Pending approvals of one caller.
    approvals_per_caller: usize = 16, 1 to 10_000;
    /// Pending approvals in total.
    approvals: usize = 256, 1 to 100_000;
    /// Maximum number of remembered approvals.
    grants: usize = 256, 1 to 100_000;
    /// Default lifetime of a remembered approval.
    grant_seconds: u64 = 28_800, 60 to 31_622_400;
    /// Maximum lifetime of a remembered approval.
    grant_max_seconds: u64 = 31_622_400, 60 to 31_622_400;
    /// Start timeout of a server.
    start_seconds: u64 = 30, 1 to 3_600;
    /// Time that the first lists wait for starting servers whose items are not yet known.
    list_wait_seconds: u64 = 10, 0 to 3_600;
    /// Time to receive the head of an HTTP request.
    header_seconds: u64 = 10, 1 to 300;
    /// Time to receive the body of an HTTP request.
    body_seconds: u64 = 60, 1 to 3_600;
    /// Idle timeout between two parts of an HTTP request body.
    body_idle_seconds: u64 = 10, 1 to 3_600;
    /// Open connections from one address.
    connections_per_address: usize = 256, 1 to 65_536;
    /// Rejected credentials from one address per minute. More get 429 and are not audited one by one.
    auth_failures: u32 = 60, 1 to 1_000_000;
    /// Maximum number of API keys.
    caller_keys: usize = 1_000, 1 to 100_000;
    /// Maximum size of a response from a token issuer.
    issuer_bytes: usize = 1_048_576, 1_024 to 16_777_216;
    /// Timeout of a request to an issuer, including redirects.
    issuer_seconds: u64 = 10, 1 to 300;
    /// Maximum number of redirects of one request to an issuer.
    issuer_redirects: usize = 3, 0 to 10;
    /// Time that an issuer's JWK set is cached.
    issuer_keys_seconds: u64 = 600, 1 to 86_400;
    /// Minimum time between two fetches of an issuer's keys or metadata.
    issuer_pause_seconds: u64 = 30, 0 to 3_600;
    /// Time that an introspection result is cached.
    introspection_seconds: u64 = 5, 0 to 300;
    /// Interval at which the token of an open stream is introspected again.
    introspection_recheck_seconds: u64 = 60, 1 to 3_600;
    /// Concurrent introspection requests to one issuer.
    introspections: usize = 32, 1 to 4_096;
    /// Remembered DPoP proofs, for replay detection.
    proofs: usize = 262_144, 1 to 16_777_216;
    /// Open connections in total.
    connections: usize = 1_024, 1 to 65_536;
    /// Audit records queued for the disk.
    audit_queue: usize = 8_192, 16 to 1_000_000;
    /// Bytes of these records together.
    audit_queue_bytes: usize = 67_108_864, 1_048_576 to 4_294_967_296;
    /// Maximum number of audit records in one sync.
    audit_batch: usize = 256, 1 to 65_536;
    /// Time to collect more records for one sync.
    audit_wait_milliseconds: u64 = 2, 0 to 1_000;
    /// Drain time for calls in flight when the gateway stops.
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
                    "is {seconds}; write an integer from 1 to {}",
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
                        "{small} is {low} and {large} is {high}; set {small} to at most {large}"
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
                    "memory_bytes is {}, but two messages of the maximum size need {least}; raise memory_bytes, or lower line_bytes, body_bytes or elements",
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

impl JsonSchema for GatewayLimits {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Limits".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let properties = GatewayLimits::schemas(generator);
        json_schema!({"type": "object", "properties": properties, "additionalProperties": false})
    }
}

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
