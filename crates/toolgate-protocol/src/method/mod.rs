//! Methods of the protocol: names, parameters and results, one file each.

pub mod complete;
pub mod content;
pub mod definition;
pub mod discover;
pub mod elicitation;
pub mod initialize;
pub mod list;
mod media;
pub mod notifications;
pub mod operation;
pub mod output;
pub mod prompts_get;
pub mod resource_contents;
pub mod resources_read;
pub mod sampling;
pub mod skills;
pub mod tasks;
pub mod tools_call;
pub mod trace;
pub mod uri_template;

/// Method name `ping`, which checks that the peer responds (revisions up to 2025-11-25).
pub const PING: &str = "ping";
/// Method name `logging/setLevel`, which sets the minimum level of log messages (revisions up to 2025-11-25).
pub const SET_LEVEL: &str = "logging/setLevel";
/// Method name `subscriptions/listen`, which opens a stream of change notifications (2026-07-28).
pub const LISTEN: &str = "subscriptions/listen";

/// Keys of `_meta` that MCP reserves or Toolgate defines, and their values in a request.
pub mod meta {
    use super::trace::TraceContext;
    use crate::json::Json;

    /// Prefix of the `_meta` keys that MCP reserves.
    pub const PREFIX: &str = "io.modelcontextprotocol/";
    /// Key of `_meta` for the protocol revision of a request (2026-07-28).
    pub const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// Key of `_meta` for the client capabilities that a request declares (2026-07-28).
    pub const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// Key of `_meta` for the self-reported name and version of the client (2026-07-28).
    pub const CLIENT: &str = "io.modelcontextprotocol/clientInfo";
    /// Key of `_meta` for the self-reported name and version of the server (2026-07-28).
    pub const SERVER: &str = "io.modelcontextprotocol/serverInfo";
    /// Key of `_meta` for the minimum level of the log messages that a request wants (2026-07-28).
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// Key of `_meta` for the id of the subscription that a notification belongs to (2026-07-28).
    pub const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
    /// Key of `_meta` for the number of upstream servers whose part of a list is missing; defined by Toolgate.
    pub const MISSING: &str = "toolgate/missing";
    /// Key of `_meta` for the token of a request's progress notifications.
    pub const PROGRESS: &str = "progressToken";

    /// Returns true if the text is a valid key of `_meta`. A key is an optional prefix of dot-separated labels with a
    /// trailing slash, then a name. The name may be empty after a prefix.
    pub fn is_key(key: &str) -> bool {
        let (prefix, name) = match key.split_once('/') {
            Some((prefix, name)) => (Some(prefix), name),
            None => (None, key),
        };
        let label = |label: &str| {
            label.starts_with(|c: char| c.is_ascii_alphabetic())
                && label.ends_with(|c: char| c.is_ascii_alphanumeric())
                && label
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'-')
        };
        let edge = |c: char| c.is_ascii_alphanumeric();
        let named = name.starts_with(edge)
            && name.ends_with(edge)
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
        prefix.is_none_or(|prefix| prefix.split('.').all(label))
            && (named || (name.is_empty() && prefix.is_some()))
    }

    /// Returns true if MCP reserves the `_meta` key: the second label of its prefix is `modelcontextprotocol` or `mcp`.
    pub fn is_reserved(key: &str) -> bool {
        let prefix = key.split_once('/').map(|(prefix, _)| prefix);
        let second = prefix.and_then(|prefix| prefix.split('.').nth(1));
        matches!(second, Some("modelcontextprotocol" | "mcp"))
    }

    /// Values of the MCP keys in a request's `_meta`.
    #[derive(Clone, Debug, Default)]
    pub struct RequestMeta {
        /// Protocol revision of the request, from the key [`VERSION`].
        pub version: Option<Json>,
        /// Client capabilities of the request, from the key [`CAPABILITIES`].
        pub capabilities: Option<Json>,
        /// Name and version of the client, from the key [`CLIENT`].
        pub client: Option<Json>,
        /// Requested minimum log level, from the key [`LOG_LEVEL`].
        pub log_level: Option<Json>,
        /// Progress token of the request, from the key [`PROGRESS`].
        pub progress: Option<Json>,
        /// `traceparent`, `tracestate`, `baggage`
        trace: [Option<Json>; 3],
    }

    impl RequestMeta {
        /// Reads the `params._meta` of a request in one pass.
        pub fn of(params: Option<&Json>) -> RequestMeta {
            let mut read = RequestMeta::default();
            let Some(params) = params else {
                return read;
            };
            let Some(meta) = params.view().get("_meta") else {
                return read;
            };
            let [parent, state, baggage] = &mut read.trace;
            for (key, value) in meta.members() {
                let place = match key.as_ref() {
                    VERSION => &mut read.version,
                    CAPABILITIES => &mut read.capabilities,
                    CLIENT => &mut read.client,
                    LOG_LEVEL => &mut read.log_level,
                    PROGRESS => &mut read.progress,
                    "traceparent" => parent,
                    "tracestate" => state,
                    "baggage" => baggage,
                    _ => continue,
                };
                *place = Some(params.part(&value));
            }
            read
        }

        /// Returns true if the request declares itself as one of a stateless revision (2026-07-28).
        pub fn is_modern(&self) -> bool {
            self.version.is_some()
        }

        /// Returns the W3C trace context of the request.
        pub fn trace(&self) -> TraceContext {
            let [parent, state, baggage] = &self.trace;
            TraceContext::read([parent, state, baggage].map(Option::as_ref))
        }
    }

    /// Returns the value of one key of a request's `params._meta`.
    pub fn get(params: Option<&Json>, key: &str) -> Option<Json> {
        params?.get("_meta")?.get(key)
    }

    /// Returns the `_meta` of a server's result without the MCP keys, which are valid on one connection only.
    pub fn without_reserved_keys(meta: &Json) -> Option<Json> {
        let mut kept = meta.clone();
        for (key, _) in meta.members() {
            if key.starts_with(PREFIX) {
                kept = kept.without(&key);
            }
        }
        let empty = kept.members().next().is_none();
        (!empty).then_some(kept)
    }
}

#[cfg(test)]
mod tests {
    use super::meta::{is_key, is_reserved};

    /// Holds: BASE-30, BASE-32
    #[test]
    fn validates_meta_keys() {
        for good in [
            "a",
            "ui",
            "progressToken",
            "com.example/a",
            "a-b.c/d_e.f",
            "com.example/",
            "A.b1/9",
        ] {
            assert!(is_key(good), "{good}");
        }
        for bad in [
            "",
            "/a",
            "1a.b/c",
            "a-.b/c",
            "a..b/c",
            "a b",
            "com.example/-a",
            "com.example/a.",
            "a/b/c",
            "é/a",
        ] {
            assert!(!is_key(bad), "{bad}");
        }
    }

    /// Holds: BASE-34
    #[test]
    fn detects_reserved_meta_keys() {
        for ours in ["io.modelcontextprotocol/a", "dev.mcp/", "com.mcp.tools/x"] {
            assert!(is_reserved(ours), "{ours}");
        }
        for free in [
            "a",
            "mcp/a",
            "com.example.mcp/a",
            "modelcontextprotocol.io/a",
        ] {
            assert!(!is_reserved(free), "{free}");
        }
    }
}
