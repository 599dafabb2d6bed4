//! The methods of the protocol: their words, parameters and results, one file each.

pub mod complete;
pub mod content;
pub mod definition;
pub mod discover;
pub mod elicitation;
pub mod initialize;
pub mod list;
pub mod notifications;
pub mod output;
pub mod prompts_get;
pub mod resources_read;
pub mod tools_call;
pub mod trace;
pub mod uri_template;
pub mod usage;

/// Asks whether the peer is there (revisions up to 2025-11-25).
pub const PING: &str = "ping";
/// Sets the least level of log messages (revisions up to 2025-11-25).
pub const SET_LEVEL: &str = "logging/setLevel";
/// Opens a stream of change notifications (2026-07-28).
pub const LISTEN: &str = "subscriptions/listen";

/// The keys of `_meta` that the protocol keeps for itself.
pub mod meta {
    use crate::json::Json;

    /// What all reserved keys begin with.
    pub const PREFIX: &str = "io.modelcontextprotocol/";
    /// The revision of this request.
    pub const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// What the client can do, declared with this request.
    pub const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// Who the client says it is.
    pub const CLIENT: &str = "io.modelcontextprotocol/clientInfo";
    /// Who the server says it is.
    pub const SERVER: &str = "io.modelcontextprotocol/serverInfo";
    /// From which level on the client wants log messages.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// Which subscription a notification belongs to.
    pub const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
    /// Names the progress notifications of a request.
    pub const PROGRESS: &str = "progressToken";

    /// A member of `params._meta`.
    pub fn get(params: Option<&Json>, key: &str) -> Option<Json> {
        params?.get("_meta")?.get(key)
    }

    /// The `_meta` of a foreign result without the keys that belong to one hop only.
    pub fn foreign(meta: &Json) -> Option<Json> {
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
