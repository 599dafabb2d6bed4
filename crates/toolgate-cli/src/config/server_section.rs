//! `[server.NAME]` as written.

use super::{
    audit_content::{ArgumentForm, ResultForm},
    https_url::HttpsUrl,
    input_requests::{InputRequestSettings, SamplingSetting},
    overrides::ToolSection,
    rate::RateSetting,
    reader::{ConfigPath, ConfigWord, ExpandedText, IntRange, NamedSettings, Word},
    revision::RevisionChoice,
    sanitizer::{LinkSetting, SanitizerSettings},
    scopes::Scopes,
    token_exchange::ExchangeSection,
    value_source::{MarkableText, SecretSource, ValueSource},
};
use schemars::JsonSchema;
use serde::Deserialize;
use toolgate_policy::{
    AuditContentForm, AuditDurability, ChangedDefinitionAction, ElicitationPolicy, ErrorTextMode,
    NewDefinitionAction, OnOutboundSecret, OnPlaceholder, OnSecret, RequiredDefaults, UriSpelling,
};

/// Upstream server, `[server.NAME]`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ServerSection {
    /// Program and arguments, run without a shell.
    #[schemars(example = ["program", "argument"])]
    pub(super) command: Option<Vec<MarkableText>>,
    /// Environment variables of the program.
    #[schemars(example = serde_json::json!({"NAME": "value"}))]
    pub(super) env: NamedSettings<ValueSource>,
    /// Names of variables that the program gets from the gateway's environment.
    #[schemars(example = ["NAME"])]
    pub(super) env_pass: Vec<String>,
    /// Working directory; default that of the gateway.
    pub(super) cwd: Option<ConfigPath>,
    /// Address of a remote server.
    pub(super) url: Option<MarkableText>,
    /// HTTP headers of requests to the server.
    #[schemars(example = serde_json::json!({"Name": "value"}))]
    pub(super) headers: NamedSettings<ValueSource>,
    /// OAuth token exchange: the caller's token is exchanged for one of the server.
    pub(super) exchange: Option<ExchangeSection>,
    /// Owner of the credentials from a sign-in; default `shared`.
    pub(super) credentials: Option<CredentialOwner>,
    /// True if URLs that the server names may point to private networks.
    pub(super) danger_private_addresses: bool,
    /// Id of a preregistered OAuth client.
    pub(super) client_id: Option<ExpandedText>,
    /// Issuer identifier of the authorization server that knows the client.
    pub(super) issuer: Option<HttpsUrl>,
    /// Secret of the client.
    pub(super) client_secret: Option<SecretSource>,
    /// Private key of the client, for signed assertions (`private_key_jwt`).
    pub(super) client_key: Option<SecretSource>,
    /// URL of the gateway's Client ID Metadata Document.
    pub(super) client_document: Option<HttpsUrl>,
    /// Party that signs in at the server; default `person`.
    pub(super) sign_in: Option<SignInWord>,
    /// Scopes that the gateway requests when it signs in by itself.
    #[schemars(example = ["files:read"])]
    pub(super) scopes: Option<Scopes>,
    /// True if the annotations of its tools are trusted.
    pub(super) trust_annotations: bool,
    /// Protocol revision to use with the server; default `auto`.
    pub(super) revision: RevisionChoice,
    /// Prefix of its tool names for clients; default the name of the server.
    pub(super) prefix: Option<String>,
    /// Start timeout in seconds; default that of `[limits]`.
    #[serde(with = "IntRange::<1, 3600>")]
    pub(super) start_seconds: Option<u64>,
    /// Call timeout in seconds, at most `call_max_seconds` of `[limits]`; default that of `[limits]`.
    #[serde(with = "IntRange::<1, 604_800>")]
    pub(super) call_seconds: Option<u64>,
    /// Maximum number of concurrent calls; default `calls_per_server` of `[limits]`.
    #[serde(with = "IntRange::<1, 1_000_000>")]
    pub(super) calls: Option<usize>,
    /// Rate limit for all callers together.
    pub(super) rate: Option<RateSetting>,
    /// Action for arguments that the input schema does not name; default `refuse`.
    pub(super) unknown_arguments: Option<UnknownArguments>,
    /// Spelling of resource URIs that the gateway sends to the server; default `canonical`.
    #[serde(with = "Word::<UriSpelling>")]
    pub(super) uris: Option<UriSpelling>,
    /// Handling of required arguments with a default; default `optional`.
    #[serde(with = "Word::<RequiredDefaults>")]
    pub(super) required_with_default: Option<RequiredDefaults>,
    /// Action for results that do not match their output schema; default `block`.
    pub(super) output: Option<OutputCheck>,
    /// Overrides of its tool definitions.
    pub(super) tools: NamedSettings<ToolSection>,
    /// Action for secrets that the server sends; default `redact`.
    #[serde(with = "Word::<OnSecret>")]
    pub(super) secrets: Option<OnSecret>,
    /// Action for calls whose arguments contain secrets; default `ask`.
    #[serde(with = "Word::<OnOutboundSecret>")]
    pub(super) outbound_secrets: Option<OnOutboundSecret>,
    /// Action for calls whose arguments contain the gateway's redaction placeholders; default `ask`.
    #[serde(with = "Word::<OnPlaceholder>")]
    pub(super) placeholders: Option<OnPlaceholder>,
    /// Check that images and audio match their media type; default `check`.
    #[serde(with = "Word::<bool>")]
    pub(super) media: Option<bool>,
    /// Check of links: links to executable content are blocked, or only these URI schemes pass; default `check`.
    pub(super) links: Option<LinkSetting>,
    /// Error text that callers receive; default `message`.
    #[serde(with = "Word::<ErrorTextMode>")]
    pub(super) error_text: Option<ErrorTextMode>,
    /// True if results are marked as untrusted content.
    pub(super) mark_untrusted: bool,
    /// Policy for form elicitation; default `check`.
    #[serde(with = "Word::<ElicitationPolicy>")]
    pub(super) elicitation_forms: Option<ElicitationPolicy>,
    /// Policy for URL elicitation; default `check`.
    #[serde(with = "Word::<bool>")]
    pub(super) elicitation_urls: Option<bool>,
    /// Policy for sampling: `off`, `ask` or a rate; default `off`.
    pub(super) sampling: Option<SamplingSetting>,
    /// Maximum tokens of one sampling response; default 4,096.
    #[serde(with = "IntRange::<1, 1_000_000>")]
    pub(super) sampling_tokens: Option<u64>,
    /// False if the server may not request the roots of clients; default true.
    pub(super) roots: Option<bool>,
    /// Action for a new definition; default that of `[pins]`.
    #[serde(with = "Word::<NewDefinitionAction>")]
    pub(super) pins_first: Option<NewDefinitionAction>,
    /// Action for a changed definition; default that of `[pins]`.
    #[serde(with = "Word::<ChangedDefinitionAction>")]
    pub(super) pins_change: Option<ChangedDefinitionAction>,
    /// Audit writes that a call waits for; default that of `[audit]`.
    #[serde(with = "Word::<AuditDurability>")]
    pub(super) audit_mode: Option<AuditDurability>,
    /// Form of arguments in audit records; default that of `[audit]`.
    #[serde(with = "Word::<ArgumentForm>")]
    pub(super) audit_arguments: Option<AuditContentForm>,
    /// Form of results in audit records; default that of `[audit]`.
    #[serde(with = "Word::<ResultForm>")]
    pub(super) audit_results: Option<AuditContentForm>,
}

impl ConfigWord for UriSpelling {
    const WORDS: &'static [(&'static str, UriSpelling)] = &[
        ("canonical", UriSpelling::Canonical),
        ("verbatim", UriSpelling::Verbatim),
    ];
}

impl ConfigWord for RequiredDefaults {
    const WORDS: &'static [(&'static str, RequiredDefaults)] = &[
        ("optional", RequiredDefaults::Optional),
        ("required", RequiredDefaults::Required),
    ];
}

/// Owner of the OAuth credentials from a sign-in.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum CredentialOwner {
    /// Shared by all callers of the server.
    Shared,
    /// Separate for each caller.
    PerCaller,
}

/// Party that signs in, as written.
#[derive(Clone, Copy, Default, Deserialize, Eq, JsonSchema, PartialEq)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(super) enum SignInWord {
    /// A person, with a command or in the console.
    #[default]
    Person,
    /// The gateway itself, with its client credentials.
    Client,
}

/// Action for arguments that a tool's input schema does not name.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum UnknownArguments {
    /// Reject the call.
    Refuse,
    /// Pass the arguments on.
    Allow,
}

/// Action for a result that does not match the tool's output schema.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum OutputCheck {
    /// Return an error instead of the result.
    Block,
    /// Return the result and log the mismatch in the audit log.
    Warn,
    /// Do not check.
    Off,
}

impl ServerSection {
    /// Returns the sanitizer settings.
    pub(super) fn sanitizer(&self) -> SanitizerSettings {
        let default = SanitizerSettings::default();
        let (links, schemes) = match &self.links {
            None => (default.links, default.schemes),
            Some(LinkSetting::Switch(on)) => (*on, None),
            Some(LinkSetting::Schemes(schemes)) => (default.links, Some(schemes.clone())),
        };
        SanitizerSettings {
            secrets: self.secrets.unwrap_or(default.secrets),
            outbound_secrets: self.outbound_secrets.unwrap_or(default.outbound_secrets),
            placeholders: self.placeholders.unwrap_or(default.placeholders),
            media: self.media.unwrap_or(default.media),
            links,
            schemes,
            error_text: self.error_text.unwrap_or(default.error_text),
            mark_untrusted: self.mark_untrusted,
        }
    }

    /// Returns the policy for input requests.
    pub(super) fn input_requests(&self) -> InputRequestSettings {
        let default = InputRequestSettings::default();
        InputRequestSettings {
            elicitation_forms: self.elicitation_forms.unwrap_or(default.elicitation_forms),
            elicitation_urls: self.elicitation_urls.unwrap_or(default.elicitation_urls),
            sampling: self
                .sampling
                .as_ref()
                .map_or(default.sampling, |setting| setting.0),
            sampling_tokens: self.sampling_tokens.unwrap_or(default.sampling_tokens),
            roots: self.roots.unwrap_or(default.roots),
        }
    }
}
