//! `[server.NAME]` as written.

use super::{
    audit_content::{ArgumentForm, ResultForm},
    https_url::HttpsUrl,
    input_requests::{InputRequestSettings, SamplingSetting},
    overrides::ToolSection,
    rate::RateSetting,
    reader::{CheckSwitch, ConfigPath, ConfigWord, ExpandedText, IntRange, NamedSettings, Word},
    revision::RevisionChoice,
    sanitizer::{LinkSetting, SanitizerSettings},
    scopes::Scopes,
    token_exchange::ExchangeSection,
    value_source::{MarkableText, SecretSource, ValueSource},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_policy::{
    AuditContentForm, AuditDurability, ChangedDefinitionAction, ElicitationPolicy, ErrorTextMode,
    NewDefinitionAction, OnOutboundSecret, OnPlaceholder, OnSecret, RequiredDefaults, UriSpelling,
};

/// Upstream server, `[server.NAME]`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ServerSection {
    /// Program and arguments. No shell is involved. Default: none; required without `url`.
    #[schemars(example = ["program", "argument"])]
    pub(super) command: Option<Vec<MarkableText>>,
    /// Environment variables of the program, such as `{ NAME = "value", API_KEY = { file = "key" } }`.
    #[schemars(example = serde_json::json!({"NAME": "value"}))]
    pub(super) env: NamedSettings<ValueSource>,
    /// Names of variables to pass on from the environment of `toolgate`. Otherwise the server gets only
    /// common variables: `PATH`, `HOME`, the locale, `XDG_*_HOME`, those that name certificates, such as
    /// `SSL_CERT_FILE` and `NODE_EXTRA_CA_CERTS`, proxies whose URL has no credentials, and `TOOLGATE_PARENTS`.
    #[schemars(example = ["NAME"])]
    pub(super) env_pass: Vec<String>,
    /// Working directory. Default: that of `toolgate`.
    pub(super) cwd: Option<ConfigPath>,
    /// Address of the server: `https://`, or `http://` on this machine. Default: none; required without `command`.
    #[schemars(title = "URL")]
    pub(super) url: Option<MarkableText>,
    /// False for a server that the gateway neither starts nor offers. The rules may still name it.
    #[schemars(extend("default" = true))]
    pub(super) enabled: Option<bool>,
    /// HTTP headers of every request to the `url`, and of no other, such as
    /// `{ Name = "value", X-Api-Key = { env = "NAME" } }`.
    #[schemars(example = serde_json::json!({"Name": "value"}))]
    pub(super) headers: NamedSettings<ValueSource>,
    /// OAuth token exchange: callers use the server in their own name.
    pub(super) exchange: Option<ExchangeSection>,
    /// Owner of the credentials from a sign-in: with `shared`, all callers of the server use them; with `per_caller`,
    /// each caller has its own.
    pub(super) credentials: CredentialOwner,
    /// True if the authorization server that the server names may be in a private network. The server can then make
    /// this machine send requests into that network. Toolgate still refuses link-local addresses, at which clouds serve
    /// their metadata.
    pub(super) danger_private_addresses: bool,
    /// Id of an OAuth client that you registered at the server's authorization server, if that authorization server has
    /// no dynamic registration.
    pub(super) client_id: Option<ExpandedText>,
    /// Authorization server at which the client of `client_id` is registered, exactly as its metadata names it.
    /// Toolgate sends the client's id and credentials to no other authorization server. Default: none; required with
    /// `client_id`.
    pub(super) issuer: Option<HttpsUrl>,
    /// Secret of the client of `client_id`, if it has one.
    pub(super) client_secret: Option<SecretSource>,
    /// Private key of the client of `client_id`, if it signs instead (`private_key_jwt`): PEM with `BEGIN PRIVATE KEY`,
    /// for ES256, EdDSA or RS256.
    pub(super) client_key: Option<SecretSource>,
    /// Address of a document that describes the client, instead of `client_id`, for authorization servers that support
    /// Client ID Metadata Documents.
    pub(super) client_document: Option<HttpsUrl>,
    /// Party that signs in: a `person`, or `client` for the gateway itself.
    pub(super) sign_in: SignInWord,
    /// Scopes to request with `sign_in = "client"`, and no more. Default: those that the server names.
    #[schemars(example = ["files:read"])]
    pub(super) scopes: Option<Scopes>,
    /// True if the gateway trusts the annotations of the server's tools, such as "read-only".
    pub(super) trust_annotations: bool,
    /// Protocol revision to use with the server.
    pub(super) revision: RevisionChoice,
    /// Prefix of the names that clients see: `prefix_tool`, `ui://prefix/…`, `skill://prefix/…`. At most 32 letters,
    /// digits and `-`. `""` is valid only if the config has one server. Default: the name of the server.
    pub(super) prefix: Option<String>,
    /// Time limit of the server's start. Default: that of `[limits]`.
    #[serde(with = "IntRange::<1, 3600>")]
    pub(super) start_seconds: Option<u64>,
    /// Time limit of a call, at most `call_max_seconds` of `[limits]`. Default: that of `[limits]`.
    #[serde(with = "IntRange::<1, 604_800>")]
    pub(super) call_seconds: Option<u64>,
    /// Concurrency limit: calls of the server that run at the same time. Default: `calls_per_server` of `[limits]`.
    #[serde(with = "IntRange::<1, 1_000_000>")]
    pub(super) calls: Option<usize>,
    /// Rate limit for all callers together, such as `"600/min"`.
    pub(super) rate: Option<RateSetting>,
    /// Action for arguments that the tool's schema does not name: `refuse` the call, or `allow` them. A schema without
    /// `properties`, or with a keyword such as `additionalProperties` or `anyOf`, decides itself.
    pub(super) unknown_arguments: UnknownArguments,
    /// Handling of resource URIs that URL parsers read differently: `canonical` refuses them, `verbatim` passes them on
    /// unchanged.
    #[serde(with = "Word::<UriSpelling>")]
    pub(super) uris: UriSpelling,
    /// Handling of required arguments whose schema has a `default`, even if it has it through a reference (`$ref`) or
    /// in `allOf`. `optional` lets a call omit them, since servers fill them in; `required` refuses such a call. The
    /// call is forwarded unchanged either way, and an approval shows what was sent.
    #[serde(with = "Word::<RequiredDefaults>")]
    pub(super) required_with_default: RequiredDefaults,
    /// Action for results that do not match the tool's output schema: `block` them, `warn` in the audit log, or `off`.
    pub(super) output: OutputCheck,
    /// Overrides of single tools.
    pub(super) tools: NamedSettings<ToolSection>,
    /// Action for secrets in what the server sends: `redact` them to `[redacted:RULE]`, `warn` to let them pass and
    /// count them in the audit log, or `off`.
    #[serde(with = "Word::<OnSecret>")]
    pub(super) secrets: OnSecret,
    /// Action for a call with a secret in its arguments: `ask` a person, `deny` it, `warn` in the audit log, or `off`.
    #[serde(with = "Word::<OnOutboundSecret>")]
    pub(super) outbound_secrets: OnOutboundSecret,
    /// Action for a call with a placeholder of this gateway in its arguments, such as `[redacted:password]`: `ask` a
    /// person, `deny` it, or `allow` it.
    #[serde(with = "Word::<OnPlaceholder>")]
    pub(super) placeholders: OnPlaceholder,
    /// Handling of invalid images and audio: `check` withholds them, `off` passes them on.
    #[serde(with = "Word::<CheckSwitch>")]
    pub(super) media: CheckSwitch,
    /// Handling of links that run something, such as `javascript:`: `check` removes them, `off` passes
    /// them on. A list such as `["https"]` is an allowlist of schemes, for links and for URIs of resources.
    pub(super) links: LinkSetting,
    /// Text of the server's errors that callers see: the sanitized text (`message`), or only the class of the error
    /// (`class`).
    #[serde(with = "Word::<ErrorTextMode>")]
    pub(super) error_text: ErrorTextMode,
    /// True if texts in the server's results are marked as untrusted.
    pub(super) mark_untrusted: bool,
    /// Handling of forms that the server shows to users: `check` refuses those that ask for a secret, `warn` lets them
    /// pass and logs them, `off` refuses all forms.
    #[serde(with = "Word::<ElicitationPolicy>")]
    pub(super) elicitation_forms: ElicitationPolicy,
    /// Handling of pages to which the server sends users: `check` refuses an unsafe address, such as one that is not
    /// `https`; `off` refuses all.
    #[serde(with = "Word::<CheckSwitch>")]
    pub(super) elicitation_urls: CheckSwitch,
    /// Handling of sampling requests to the models of callers: `off` refuses them, with `ask` a person reviews each one
    /// first, and a rate such as `"20/h"` allows that many for each caller.
    #[schemars(extend("default" = "off"))]
    pub(super) sampling: Option<SamplingSetting>,
    /// Maximum number of tokens of one sampled answer.
    #[serde(with = "IntRange::<1, 1_000_000>")]
    #[schemars(extend("default" = InputRequestSettings::default().sampling_tokens))]
    pub(super) sampling_tokens: Option<u64>,
    /// True if the server may ask for the roots of clients.
    #[schemars(extend("default" = InputRequestSettings::default().roots))]
    pub(super) roots: Option<bool>,
    /// Handling of definitions at first sight. Default: `first` of `[pins]`.
    #[serde(with = "Word::<NewDefinitionAction>")]
    pub(super) pins_first: Option<NewDefinitionAction>,
    /// Handling of definitions after a change. Default: `change` of `[pins]`.
    #[serde(with = "Word::<ChangedDefinitionAction>")]
    pub(super) pins_change: Option<ChangedDefinitionAction>,
    /// Audit writes that the server's calls wait for. Default: `mode` of `[audit]`.
    #[serde(with = "Word::<AuditDurability>")]
    pub(super) audit_mode: Option<AuditDurability>,
    /// Contents of its arguments in the audit log. Default: `arguments` of `[audit]`.
    #[serde(with = "Word::<ArgumentForm>")]
    pub(super) audit_arguments: Option<AuditContentForm>,
    /// Contents of its results in the audit log. Default: `results` of `[audit]`.
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
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum CredentialOwner {
    /// Shared by all callers of the server.
    #[default]
    Shared,
    /// Separate for each caller.
    PerCaller,
}

/// Party that signs in, as written.
#[derive(Clone, Copy, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
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
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum UnknownArguments {
    /// Reject the call.
    #[default]
    Refuse,
    /// Pass the arguments on.
    Allow,
}

/// Action for a result that does not match the tool's output schema.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum OutputCheck {
    /// Return an error instead of the result.
    #[default]
    Block,
    /// Return the result and log the mismatch in the audit log.
    Warn,
    /// Do not check.
    Off,
}

impl ServerSection {
    /// Returns the sanitizer settings.
    pub(super) fn sanitizer(&self) -> SanitizerSettings {
        let (links, schemes) = match &self.links {
            LinkSetting::Switch(switch) => (switch.is_on(), None),
            LinkSetting::Schemes(schemes) => (true, Some(schemes.clone())),
        };
        SanitizerSettings {
            secrets: self.secrets,
            outbound_secrets: self.outbound_secrets,
            placeholders: self.placeholders,
            media: self.media.is_on(),
            links,
            schemes,
            error_text: self.error_text,
            mark_untrusted: self.mark_untrusted,
        }
    }

    /// Returns the policy for input requests.
    pub(super) fn input_requests(&self) -> InputRequestSettings {
        let default = InputRequestSettings::default();
        InputRequestSettings {
            elicitation_forms: self.elicitation_forms,
            elicitation_urls: self.elicitation_urls.is_on(),
            sampling: self
                .sampling
                .as_ref()
                .map_or(default.sampling, |setting| setting.0),
            sampling_tokens: self.sampling_tokens.unwrap_or(default.sampling_tokens),
            roots: self.roots.unwrap_or(default.roots),
        }
    }
}
