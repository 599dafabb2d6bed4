//! Pending approval request, as the control protocol describes it.

use serde_json::Value;
use toolgate_core::visible_line;

/// Names of arguments that say most about a call. The list shows the first one that the call has.
const MAIN_ARGUMENTS: [&str; 8] = [
    "command",
    "path",
    "file_path",
    "url",
    "uri",
    "query",
    "sql",
    "name",
];

/// Pending approval request. Its texts are untrusted unless their comment says otherwise.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PendingRequest {
    /// ID of the approval.
    pub(super) id: String,
    pub(super) server: String,
    pub(super) tool: String,
    pub(super) title: String,
    pub(super) description: String,
    pub(super) caller: String,
    pub(super) client: Option<String>,
    pub(super) call: String,
    /// Reasons of the rules.
    pub(super) reasons: Vec<String>,
    /// Annotations of the definition: read-only, destructive, open world.
    pub(super) read_only: bool,
    pub(super) destructive: bool,
    pub(super) open_world: bool,
    /// The config trusts the annotations of the server.
    pub(super) trusted: bool,
    pub(super) kind: String,
    pub(super) arguments_pretty: String,
    pub(super) arguments_raw: String,
    /// Expiry in milliseconds since the Unix epoch.
    pub(super) expires: u64,
    /// A caller waits for the decision.
    pub(super) is_awaited: bool,
    /// One of the gateways that responded received the call.
    pub(super) is_local: bool,
    pub(super) may_edit: bool,
    /// May be remembered without a condition.
    pub(super) may_remember: bool,
    pub(super) required_approvers: u64,
    /// True if only a passkey at the console can approve it.
    pub(super) needs_passkey: bool,
    pub(super) approvers: Vec<String>,
    /// How the request ended. Only the selected one stays in the list after its end.
    pub(super) end: Option<String>,
}

impl PendingRequest {
    /// Reads a request from the response of a gateway.
    pub(super) fn from_json(value: &Value) -> PendingRequest {
        let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        let is_set = |value: &Value| value.as_bool() == Some(true);
        let texts = |key: &str| -> Vec<String> {
            let list = value[key].as_array().into_iter().flatten();
            list.filter_map(|one| one.as_str().map(str::to_owned))
                .collect()
        };
        PendingRequest {
            id: text("id"),
            server: text("server"),
            tool: text("tool"),
            title: text("title"),
            description: text("description"),
            caller: text("caller"),
            client: value["client"].as_str().map(str::to_owned),
            call: text("call"),
            reasons: texts("reasons"),
            read_only: is_set(&value["hints"]["readOnly"]),
            destructive: is_set(&value["hints"]["destructive"]),
            open_world: is_set(&value["hints"]["openWorld"]),
            trusted: is_set(&value["trusted"]),
            kind: text("kind"),
            arguments_pretty: text("arguments_pretty"),
            arguments_raw: text("arguments_raw"),
            expires: value["expires"].as_u64().unwrap_or_default(),
            is_awaited: is_set(&value["connected"]),
            is_local: is_set(&value["own"]),
            may_edit: is_set(&value["may_edit"]),
            may_remember: is_set(&value["may_remember"]),
            required_approvers: value["needs"].as_u64().unwrap_or(1),
            needs_passkey: is_set(&value["passkey"]),
            approvers: texts("yeses"),
            end: None,
        }
    }

    /// Returns the name that rules match, escaped.
    pub(super) fn full_name(&self) -> String {
        visible_line(&format!("{}.{}", self.server, self.tool))
    }

    /// Returns whether the definition claims that the call can destroy something.
    pub(super) fn is_destructive(&self) -> bool {
        self.destructive && !self.read_only
    }

    /// Returns the argument that says most, escaped; else all arguments.
    pub(super) fn main_argument(&self) -> String {
        let arguments: Value = serde_json::from_str(&self.arguments_raw).unwrap_or_default();
        let main = MAIN_ARGUMENTS
            .iter()
            .find_map(|key| Some((key, arguments[key].as_str()?)));
        match main {
            Some((key, value)) => visible_line(&format!("{key}={value}")),
            None => visible_line(&self.arguments_raw.replace('\n', " ")),
        }
    }

    /// Merges what another gateway says about the same request. Only the gateway that received the call knows whether
    /// its caller still waits.
    pub(super) fn merge(&mut self, other: PendingRequest) {
        self.is_awaited |= other.is_awaited;
        self.is_local |= other.is_local;
    }
}
