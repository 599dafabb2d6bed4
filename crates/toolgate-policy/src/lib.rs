//! The policy of Toolgate: layers, rules, sanitizers and approvals, and the pipeline that orders them.
//!
//! Start at [`gateway_pipeline`]: its table is the policy. Each file holds one layer, rule, sanitizer or approval step of
//! [`toolgate_core`]. They know nothing of each other, except what the decision log
//! ([`Call::trail`](toolgate_core::Call)) says.

mod access;
mod approvals;
mod arguments;
mod audit_begin;
mod audit_contents;
mod audit_end;
mod canceller;
mod catch_panic;
mod cel;
mod circuit_breaker;
mod concurrency;
mod deadline;
mod digest;
mod edit;
mod error_text;
mod freeze;
mod humanize;
mod input_requests;
pub mod keys;
mod links;
mod media;
mod names;
mod observer;
mod output_schema;
mod pattern;
mod per_server;
pub mod pins;
mod pipeline;
mod placeholders;
mod rate;
mod recorder;
mod sanitize_config;
mod schema;
mod scopes;
mod secrets;
mod size;
mod skills;
mod store;
mod text;
mod untrusted;
mod whatwg;

pub use access::{AccessRule, AccessRules, ArgumentReads, RuleAction};
pub use approvals::{
    APPROVAL_KEY, ApprovalBinding, ApprovalChannel, ApprovalConfirm, ApprovalError, ApprovalLimits,
    ApprovalService, ApprovalStatus, ApprovalTerms, ApprovalView, Approver, ClientApprovals,
    GrantTerms, GrantView, InProcessConfirm, QuorumRule, QuorumRules,
};
pub use arguments::{ArgumentValidation, UriSpelling, is_closed};
pub use audit_begin::{AuditBegin, AuditDurability};
pub use audit_contents::{AuditContentForm, AuditContents};
pub use audit_end::AuditEnd;
pub use canceller::CallCanceller;
pub use catch_panic::{CatchPanic, withhold_panic_messages};
pub use cel::{ArgumentNames, CelCondition, CelLimits, ConditionFacts};
pub use circuit_breaker::CircuitBreaker;
pub use concurrency::{ConcurrencyLimit, ConcurrencyLimits};
pub use deadline::CallTimeout;
pub use error_text::{ErrorSanitizer, ErrorTextMode};
pub use freeze::{FreezeLayer, FreezeRegistry, FreezeScope, FreezeView};
pub use input_requests::{
    ElicitationPolicy, InputRequestPolicy, SamplingPolicy, check_form_response,
};
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
pub use pipeline::{
    GatewayPolicy, ProgramPolicy, gateway_pipeline, inspection_pipeline, pinning_pipeline,
};
pub use placeholders::{OnPlaceholder, Placeholders};
pub use rate::{RateLimiter, RateQuota, RateRule};
pub use recorder::{AuditRecorder, sanitize_entry};
pub use sanitize_config::SanitizeConfig;
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
pub use store::{
    MemoryStateStore, StateClock, StateRow, StateStore, WriteOutcome, WritePrecondition,
};
pub use text::{TextSanitizer, sanitize_text};
pub use untrusted::UntrustedMarker;
