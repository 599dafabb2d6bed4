//! The policy of Toolgate: layers, rules, sanitizers and approvals, and the pipeline that orders them.
//!
//! Start at [`gateway_pipeline`]: its table is the policy. Each file holds one layer, rule, sanitizer or approval step of
//! [`toolgate_core`]. They know nothing of each other, except what the decision log
//! ([`Call::trail`](toolgate_core::Call)) says.

mod access;
mod arguments;
mod asking;
mod at_once;
mod circuit_breaker;
mod cleaning;
mod confirm;
mod contain;
mod contents;
mod deadline;
mod digest;
mod edit;
mod entry;
mod errors;
mod foreign;
mod freeze;
mod intent;
pub mod keys;
mod links;
mod media;
mod names;
mod observer;
mod output_schema;
mod pattern;
mod per_server;
pub mod pins;
mod placeholders;
mod rate;
mod record;
mod schema;
mod scopes;
mod secrets;
mod size;
mod skills;
mod standard;
mod stop;
mod store;
mod text;
mod whatwg;
mod when;
mod words;

pub use access::{AccessRule, AccessRules, ArgumentReads, RuleAction};
pub use arguments::{ArgumentValidation, UriSpelling, is_closed};
pub use asking::{ElicitationPolicy, InputRequestPolicy, SamplingPolicy, check_form_response};
pub use at_once::{ConcurrencyLimit, ConcurrencyLimits};
pub use circuit_breaker::CircuitBreaker;
pub use cleaning::SanitizeConfig;
pub use confirm::{
    APPROVAL_KEY, ApprovalBinding, ApprovalChannel, ApprovalConfirm, ApprovalError, ApprovalLimits,
    ApprovalService, ApprovalStatus, ApprovalTerms, ApprovalView, Approver, ClientApprovals,
    GrantTerms, GrantView, InProcessConfirm, QuorumRule, QuorumRules,
};
pub use contain::{CatchPanic, withhold_panic_messages};
pub use contents::{AuditContentForm, AuditContents};
pub use deadline::CallTimeout;
pub use entry::AuditEnd;
pub use errors::{ErrorSanitizer, ErrorTextMode};
pub use foreign::UntrustedMarker;
pub use freeze::{FreezeLayer, FreezeRegistry, FreezeScope, FreezeView};
pub use intent::{AuditBegin, AuditDurability};
pub use links::LinkSanitizer;
pub use media::MediaSanitizer;
pub use observer::{CallEnd, CallObserver, CallStage, CallView, NoObserver};
pub use output_schema::{OnInvalidOutput, OutputValidation};
pub use pattern::GlobPattern;
pub use per_server::PerServer;
pub use pins::{
    ChangedDefinitionAction, ConfusableNameAction, NewDefinitionAction, PinError, PinEvent,
    PinEventKind, PinRule, PinView, PinnedText, Pins,
};
pub use placeholders::{OnPlaceholder, Placeholders};
pub use rate::{RateLimiter, RateQuota, RateRule};
pub use record::{AuditRecorder, sanitize_entry};
pub use schema::{
    RequiredDefaults, SchemaBounds, SchemaSanitizer, check_schemas, fits_schema,
    unchecked_keywords, validate_value,
};
pub use scopes::{RequiredScopes, ScopeRule};
pub use secrets::{
    OnOutboundSecret, OnSecret, OutboundSecrets, SecretRedactor, SecretRules, SecretRulesError,
};
pub use size::{SizeLimits, TextTruncation};
pub use skills::{SkillIntegrity, check_skill_file};
pub use standard::{
    GatewayPolicy, ProgramPolicy, gateway_pipeline, inspection_pipeline, pinning_pipeline,
};
pub use stop::CallCanceller;
pub use store::{
    MemoryStateStore, StateClock, StateRow, StateStore, WriteOutcome, WritePrecondition,
};
pub use text::{TextSanitizer, sanitize_text};
pub use when::{ArgumentNames, CelCondition, CelLimits, ConditionFacts};
