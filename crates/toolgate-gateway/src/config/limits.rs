//! Every limit of the gateway, its default and the range that a config may set.

use super::{
    error::ConfigError,
    rate::Rate,
    section::{Field, Section},
};
use toolgate_wire::room::{COPIES, OBJECT, VALUE};

/// A number of the config as the type that uses it, and back to compare two limits.
trait Amount: Copy {
    fn of(number: u64) -> Self;
    fn plain(self) -> u64;
}

impl Amount for usize {
    fn of(number: u64) -> usize {
        usize::try_from(number).unwrap_or(usize::MAX)
    }

    fn plain(self) -> u64 {
        self as u64
    }
}

impl Amount for u32 {
    fn of(number: u64) -> u32 {
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    fn plain(self) -> u64 {
        self.into()
    }
}

impl Amount for u64 {
    fn of(seconds: u64) -> u64 {
        seconds
    }

    fn plain(self) -> u64 {
        self
    }
}

macro_rules! limits {
    ($($(#[$doc:meta])* $key:ident: $kind:ty = $default:literal, $low:literal to $high:literal;)*) => {
        /// The limits of the gateway. A name says its unit; without one it is a count.
        #[derive(Clone, Debug, Eq, PartialEq)]
        pub(crate) struct Limits {
            $($(#[$doc])* pub(crate) $key: $kind,)*
            /// How often a caller may call one tool.
            pub(crate) rate: Rate,
        }

        /// Every key of `[limits]`.
        const KEYS: &[&str] = &[$(stringify!($key),)* "rate"];

        /// Every key with a number, its default and its range.
        #[cfg(test)]
        pub(super) const TABLE: &[(&str, u64, u64, u64)] = &[$((stringify!($key), $default, $low, $high),)*];

        impl Default for Limits {
            fn default() -> Limits {
                Limits { $($key: <$kind>::of($default),)* rate: Rate::per_minute(600) }
            }
        }

        impl Limits {
            fn set(&mut self, section: &Section<'_>) -> Result<(), ConfigError> {
                $(if let Some(field) = section.get(stringify!($key)) {
                    self.$key = <$kind>::of(field.number($low..=$high)?);
                })*
                Ok(())
            }

            /// The keys of the numbers that are not the same in both.
            pub(crate) fn differing(one: &Limits, two: &Limits) -> Vec<&'static str> {
                let mut keys = Vec::new();
                $(if one.$key != two.$key { keys.push(stringify!($key)); })*
                keys
            }

            /// A limit as a plain number.
            fn number(&self, key: &str) -> u64 {
                $(if key == stringify!($key) { return self.$key.plain(); })*
                0
            }
        }
    };
}

limits! {
    /// What all messages that are held at the same time may take up, with their copies; half of it for one caller or server.
    memory_bytes: u64 = 268_435_456, 8_388_608 to 1_099_511_627_776;
    /// The longest body of an HTTP request.
    body_bytes: usize = 4_194_304, 1_024 to 268_435_456;
    /// The head of an HTTP request: its first line and its headers.
    header_bytes: usize = 32_768, 8_192 to 1_048_576;
    /// Headers of an HTTP request.
    headers: usize = 100, 16 to 1_000;
    /// The value of a header of the protocol.
    mcp_header_bytes: usize = 8_192, 256 to 8_192;
    /// The longest line of a server or client over standard input and output.
    line_bytes: usize = 16_777_216, 65_536 to 1_073_741_824;
    /// How deep JSON may nest.
    depth: usize = 64, 8 to 128;
    /// How many keys one JSON object may have.
    keys: usize = 4_096, 16 to 1_000_000;
    /// How many values one JSON text may have.
    elements: usize = 100_000, 256 to 10_000_000;
    /// The longest name or URI of what a client uses or listens to.
    name_bytes: usize = 8_192, 128 to 8_192;
    /// How long a call may take; progress starts it anew.
    call_seconds: u64 = 60, 1 to 86_400;
    /// How long a call may take with all its progress.
    call_max_seconds: u64 = 900, 1 to 604_800;
    /// Failed calls in a row after which a server gets no calls for `breaker_seconds`; 0 turns the circuit breaker off.
    breaker_failures: u32 = 10, 0 to 1_000_000;
    /// How long a server that keeps failing gets no calls.
    breaker_seconds: u64 = 30, 1 to 86_400;
    /// Running calls of one caller.
    calls_per_caller: usize = 64, 1 to 100_000;
    /// Running calls of all.
    calls: usize = 2_048, 1 to 1_000_000;
    /// Running calls of one tool, resource or prompt.
    calls_per_tool: usize = 256, 1 to 1_000_000;
    /// Callers who are connected to one server in their own name at the same time, and whose tokens are held for that.
    callers_per_server: usize = 256, 1 to 100_000;
    /// Running calls of one server.
    calls_per_server: usize = 512, 1 to 1_000_000;
    /// Calls of one caller that wait for their turn.
    waiting_per_caller: usize = 64, 0 to 100_000;
    /// Calls of all that wait for their turn.
    waiting: usize = 1_024, 0 to 1_000_000;
    /// How long a call waits for its turn.
    waiting_seconds: u64 = 10, 0 to 3_600;
    /// Open sessions.
    sessions: usize = 256, 1 to 100_000;
    /// After which silence a session ends.
    session_idle_seconds: u64 = 1_800, 10 to 604_800;
    /// After which time a session ends in any case.
    session_max_seconds: u64 = 86_400, 60 to 2_592_000;
    /// Open streams of notifications.
    listen_streams: usize = 1_024, 1 to 100_000;
    /// Open streams of notifications of one caller.
    listen_streams_per_caller: usize = 128, 1 to 10_000;
    /// How long a stream of a session is kept for a client that lost it; 0 keeps none.
    resume_seconds: u64 = 300, 0 to 86_400;
    /// Messages of one session that were sent and are kept, in bytes; a longer message is not kept.
    resume_bytes_per_session: usize = 1_048_576, 0 to 268_435_456;
    /// The same, of all sessions.
    resume_bytes: usize = 33_554_432, 0 to 4_294_967_296;
    /// How long one connection of a stream lasts before the client of a 2025-11-25 session is told to come back; 0 is
    /// as long as the stream.
    stream_seconds: u64 = 0, 0 to 86_400;
    /// Messages of one stream or connection that wait for a slow reader.
    stream_messages: usize = 256, 1 to 100_000;
    /// Their bytes together; a longer message waits alone.
    stream_bytes: usize = 1_048_576, 1_024 to 268_435_456;
    /// Resources of which one session or stream may hear.
    stream_resources: usize = 1_024, 0 to 100_000;
    /// Calls that go on as tasks, or did and are kept.
    tasks: usize = 1_024, 1 to 1_000_000;
    /// Those of one caller.
    tasks_per_caller: usize = 64, 1 to 100_000;
    /// Results of tasks that are kept, together; the oldest give way.
    task_bytes: usize = 67_108_864, 65_536 to 134_217_728;
    /// How long a task is kept, from its begin.
    task_seconds: u64 = 3_600, 1 to 604_800;
    /// How often one task may be looked at in a minute.
    task_looks: u32 = 600, 60 to 1_000_000;
    /// The longest result of a call.
    result_bytes: usize = 16_777_216, 1_024 to 1_073_741_824;
    /// The Base64 of one picture, one sound or the data of one resource.
    media_bytes: usize = 8_388_608, 1_024 to 1_073_741_824;
    /// Tools of one server.
    tools_per_server: usize = 10_000, 1 to 100_000;
    /// All things of one kind of one server together.
    list_bytes: usize = 16_777_216, 65_536 to 1_073_741_824;
    /// How long a list of a server is kept, whatever the server says.
    list_seconds: u64 = 86_400, 1 to 604_800;
    /// Items on one page of a list.
    page_items: usize = 1_000, 1 to 100_000;
    /// Definitions of one server that are pinned: tools, resources, templates and prompts.
    pins_per_server: usize = 10_000, 1 to 50_000;
    /// The longest definition of a tool.
    definition_bytes: usize = 65_536, 1_024 to 16_777_216;
    /// The longest description of a tool.
    description_bytes: usize = 8_192, 64 to 1_048_576;
    /// The longest text that tells a client how to use the servers.
    instructions_bytes: usize = 32_768, 0 to 1_048_576;
    /// Links to resources that a caller was given and may read.
    links_per_caller: usize = 256, 0 to 100_000;
    /// Callers of whom links are remembered.
    link_callers: usize = 1_024, 1 to 100_000;
    /// How deep a schema may nest.
    schema_depth: usize = 32, 4 to 128;
    /// Schemas within one schema.
    subschemas: usize = 2_000, 1 to 100_000;
    /// Patterns within one schema.
    patterns: usize = 200, 0 to 10_000;
    /// The longest condition of a rule.
    when_bytes: usize = 4_096, 64 to 65_536;
    /// How deep a condition may nest.
    when_depth: usize = 64, 4 to 64;
    /// Steps of one evaluation of a condition.
    when_steps: usize = 100_000, 100 to 10_000_000;
    /// How often one call may come back with answers.
    rounds: u32 = 10, 1 to 1_000;
    /// How long a client may take over a question of a tool.
    question_seconds: u64 = 600, 1 to 86_400;
    /// After which time without a request a server with a handshake is asked whether it is there; with 0 never.
    ping_seconds: u64 = 60, 0 to 86_400;
    /// After how long, each time, a client with a handshake that has a stream open is asked whether it is there; with 0 never.
    client_ping_seconds: u64 = 0, 0 to 86_400;
    /// Calls of one server with a handshake that wait for an answer to its question; with 0 it cannot ask.
    parked_calls: usize = 64, 0 to 10_000;
    /// The same, of one caller.
    parked_calls_per_caller: usize = 16, 0 to 10_000;
    /// How long a call may take to come back with answers.
    seal_seconds: u64 = 300, 1 to 300;
    /// How long a processor may work on one value to check it against its schema, as it is counted before.
    schema_milliseconds: u64 = 50, 1 to 60_000;
    /// How long a call waits for a person.
    approval_seconds: u64 = 600, 1 to 86_400;
    /// Calls of one caller that wait for a person.
    approvals_per_caller: usize = 16, 1 to 10_000;
    /// Calls of all that wait for a person.
    approvals: usize = 256, 1 to 100_000;
    /// Remembered approvals.
    grants: usize = 256, 1 to 100_000;
    /// How long an approval is remembered where nobody says how long.
    grant_seconds: u64 = 28_800, 60 to 31_622_400;
    /// The longest time for which one can be remembered.
    grant_max_seconds: u64 = 31_622_400, 60 to 31_622_400;
    /// How long a server may take to start.
    start_seconds: u64 = 30, 1 to 3_600;
    /// How long the first lists wait for servers that are starting and of which nothing is known.
    list_wait_seconds: u64 = 10, 0 to 3_600;
    /// How long the head of an HTTP request may take.
    header_seconds: u64 = 10, 1 to 300;
    /// How long the body of an HTTP request may take.
    body_seconds: u64 = 60, 1 to 3_600;
    /// How long the body of an HTTP request may pause.
    body_idle_seconds: u64 = 10, 1 to 3_600;
    /// Open connections of one address.
    connections_per_address: usize = 256, 1 to 65_536;
    /// Refused credentials of one address in a minute; more are told to come later, and not recorded one by one.
    auth_failures: u32 = 60, 1 to 1_000_000;
    /// Keys of callers that there may be.
    caller_keys: usize = 1_000, 1 to 100_000;
    /// The longest answer of an issuer of tokens.
    issuer_bytes: usize = 1_048_576, 1_024 to 16_777_216;
    /// How long an issuer may take for an answer, with all redirects.
    issuer_seconds: u64 = 10, 1 to 300;
    /// How often one answer may lead on.
    issuer_redirects: usize = 3, 0 to 10;
    /// How long the keys of an issuer are used without another look.
    issuer_keys_seconds: u64 = 600, 1 to 86_400;
    /// The least time between two looks for its keys or metadata.
    issuer_pause_seconds: u64 = 30, 0 to 3_600;
    /// How long the word of an issuer about a token holds.
    introspection_seconds: u64 = 5, 0 to 300;
    /// How often an issuer is asked again about a token while a stream is open that it opened.
    introspect_again_seconds: u64 = 60, 1 to 3_600;
    /// Tokens that one issuer is asked about at the same time.
    introspections: usize = 32, 1 to 4_096;
    /// Proofs of DPoP that are remembered.
    proofs: usize = 262_144, 1 to 16_777_216;
    /// Open connections.
    connections: usize = 1_024, 1 to 65_536;
    /// Records that wait for the disk.
    audit_queue: usize = 8_192, 16 to 1_000_000;
    /// Their bytes together.
    audit_queue_bytes: usize = 67_108_864, 1_048_576 to 4_294_967_296;
    /// Records that share one sync.
    audit_batch: usize = 256, 1 to 65_536;
    /// How long records are gathered while more keep coming.
    audit_wait_milliseconds: u64 = 2, 0 to 1_000;
    /// How long running calls may still take when the gateway stops.
    drain_seconds: u64 = 30, 0 to 3_600;
}

/// Every key of `[limits]`.
#[cfg(test)]
pub(crate) fn limit_keys() -> &'static [&'static str] {
    KEYS
}

/// Limits of which the first is never above the second.
const PAIRS: &[(&str, &str)] = &[
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

impl Limits {
    /// Reads `[limits]`, which may be absent.
    pub(super) fn read(field: Option<Field<'_>>) -> Result<Limits, ConfigError> {
        let mut limits = Limits::default();
        let Some(field) = field else {
            return Ok(limits);
        };
        let section = field.section("[limits]", "a section that begins with [limits]", KEYS)?;
        limits.set(&section)?;
        if let Some(field) = section.get("rate") {
            limits.rate = Rate::parse(field.text()?).map_err(|text| field.wrong(text))?;
        }
        PAIRS
            .iter()
            .try_for_each(|(small, large)| limits.ordered(&section, small, large))?;
        limits.fits(&section)?;
        Ok(limits)
    }

    /// What one message of the longest takes up, with its copies and a tree of its values.
    fn longest(&self) -> u64 {
        let bytes = self.body_bytes.max(self.line_bytes) as u64;
        let values = (self.elements as u64).saturating_mul(VALUE + OBJECT / 2);
        bytes.saturating_mul(COPIES).saturating_add(values)
    }

    /// The longest message has to fit into the half of the memory that one caller or server may have.
    fn fits(&self, section: &Section<'_>) -> Result<(), ConfigError> {
        let keys = ["memory_bytes", "line_bytes", "body_bytes", "elements"];
        let least = self.longest().saturating_mul(2);
        match keys.iter().find_map(|key| section.get(key)) {
            Some(field) if self.memory_bytes < least => Err(field.wrong(format!(
                "memory_bytes is {}, and two messages of the longest take {least}; raise memory_bytes, or lower line_bytes, body_bytes or elements",
                self.memory_bytes
            ))),
            _ => Ok(()),
        }
    }

    fn ordered(&self, section: &Section<'_>, small: &str, large: &str) -> Result<(), ConfigError> {
        let (low, high) = (self.number(small), self.number(large));
        match section.get(small).or_else(|| section.get(large)) {
            Some(field) if low > high => Err(field.wrong(format!(
                "{small} is {low} and {large} is {high}; set {small} to at most {large}"
            ))),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_within_their_ranges() {
        for (key, default, low, high) in TABLE {
            assert!((low..=high).contains(&default), "{key}");
            assert_eq!(Limits::default().number(key), *default, "{key}");
        }
        let limits = Limits::default();
        assert!(limits.memory_bytes >= 2 * limits.longest());
        for (small, large) in PAIRS {
            assert!(
                Limits::default().number(small) <= Limits::default().number(large),
                "{small}"
            );
        }
    }
}
