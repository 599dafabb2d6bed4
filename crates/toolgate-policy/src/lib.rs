//! The policy of Toolgate: layers, rules, sanitizers and approvals, and the pipeline that orders them.
//!
//! Start at [`Policy`]: its table is the order of all parts. Each file holds one layer, rule, sanitizer or approval step of
//! [`toolgate_core`]. They know nothing of each other, except what the decision log
//! ([`Call::trail`](toolgate_core::Call)) says.
//!
//! A program that needs another order builds a pipeline of the same parts:
//!
//! ```
//! use std::sync::Arc;
//! use toolgate_core::Pipeline;
//! use toolgate_policy::{
//!     AccessRule, AccessRules, ApprovalConfirm, ApprovalLimits, ApprovalService, ArgumentValidation,
//!     AuditBegin, AuditEnd, AuditRecorder, CatchPanic, ClientApprovals, ErrorSanitizer, GlobPattern,
//!     LinkSanitizer, MediaSanitizer, MemoryStateStore, NoObserver, OutboundSecrets, OutputValidation,
//!     Placeholders, RuleAction, SecretRedactor, SizeLimits, SkillIntegrity, TextSanitizer, TextTruncation,
//!     UntrustedMarker,
//! };
//! use toolgate_policy::pins::PinRule;
//!
//! let recorder = Arc::new(AuditRecorder::log());
//! let store = Arc::new(MemoryStateStore::new());
//! let approvals = ApprovalService::new(recorder.clone(), store, ApprovalLimits::default());
//! let observer = Arc::new(NoObserver);
//! let deletions = AccessRule::new("deletions", RuleAction::Ask, vec![GlobPattern::new("*.delete_*")]);
//! let truncation: TextTruncation = SizeLimits::default().truncation();
//!
//! let pipeline = Pipeline::new()
//!     .layer(AuditEnd::new(recorder.clone(), observer.clone()))
//!     .layer(CatchPanic)
//!     .resolve()
//!     .rule(PinRule)
//!     .rule(AccessRules::new(vec![deletions]).default_action(RuleAction::Allow))
//!     .rule(ArgumentValidation::default())
//!     .rule(OutboundSecrets::default())
//!     .rule(Placeholders::default())
//!     .approval(ApprovalConfirm::new(approvals, "policy-1".into(), ClientApprovals::Never))
//!     .layer(AuditBegin::new(recorder, observer, "policy-1".into()))
//!     .layer(OutputValidation::default())
//!     .layer(SkillIntegrity)
//!     .sanitizer(UntrustedMarker::default())
//!     .sanitizer(ErrorSanitizer::default())
//!     .sanitizer(truncation)
//!     .sanitizer(MediaSanitizer::default())
//!     .sanitizer(LinkSanitizer::default())
//!     .sanitizer(SecretRedactor::default())
//!     .sanitizer(TextSanitizer)
//!     .sanitizer(SizeLimits::default());
//! // `pipeline.service(…)` puts it around a service.
//! # drop(pipeline);
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(all(
        unix,
        feature = "audit",
        feature = "full-json-schema",
        feature = "full-uri",
        feature = "secret-rule-files"
    )),
    allow(dead_code, reason = "parts that only some features use")
)]

mod access;
mod approval;
mod approver;
mod audit;
mod canceller;
mod catch_panic;
mod digest;
mod humanize;
pub mod layers;
mod limits;
#[cfg(not(all(feature = "audit", unix)))]
mod no_journal;
mod per_server;
pub mod pins;
mod policy;
mod recorder;
mod rejection_counts;
mod sanitize;
mod store;
mod unix_time;
mod validation;

pub use access::callers::{CallerMatcher, CallerPattern};
pub use access::cel::{ArgumentNames, CelCondition, CelLimits, ConditionFacts};
pub use access::freeze::{FreezeLayer, FreezeRegistry, FreezeScope, FreezeView};
pub use access::keys;
pub use access::pattern::GlobPattern;
pub use access::rules::{AccessRule, AccessRules, ArgumentReads, RuleAction};
pub use access::scopes::{RequiredScopes, ScopeRule};
pub use access::views::{AccessView, AccessViews};
pub use approval::approvals::{
    APPROVAL_KEY, ApprovalBinding, ApprovalConfirm, ApprovalError, ApprovalLimits,
    ApprovalRequirement, ApprovalService, ApprovalStatus, ApprovalTerms, ApprovalView,
    ClientApprovals, GrantTerms, GrantView, ProgramApproval, QuorumRule, QuorumRules,
};
pub use approval::input_requests::{
    ElicitationPolicy, InputRequestPolicy, SamplingPolicy, check_form_response,
};
pub use approval::passkeys;
pub use approver::{ApprovalChannel, Approver, ApproverIdentity};
pub use audit::begin::{AuditBegin, AuditDurability};
#[doc(hidden)]
pub use audit::content_keys::{ContentKeyEntry, ContentKeys, ContentReader, ErasureScope};
pub use audit::contents::{AuditContentForm, AuditContents, masked_arguments};
pub use audit::end::AuditEnd;
pub use audit::observer::{CallEnd, CallObserver, CallStage, CallView, NoObserver};
pub use canceller::CallCanceller;
pub use catch_panic::{CatchPanic, withhold_panic_messages};
pub use limits::circuit_breaker::CircuitBreaker;
pub use limits::concurrency::{ConcurrencyLimit, ConcurrencyLimits};
pub use limits::deadline::CallTimeout;
pub use limits::rate::{
    RateLimiter, RateMessageSender, RateQuota, RateRule, RateSharing, TokenBucket,
};
pub use limits::size::{SizeLimits, TextTruncation};
pub use per_server::PerServer;
pub use pins::{
    ChangedDefinitionAction, ConfusableNameAction, NewDefinitionAction, PinError, PinEvent,
    PinEventKind, PinRule, PinView, PinnedText, Pins,
};
pub use policy::{OperatorPolicy, Policy, SanitizeConfig};
pub use recorder::{AuditRecorder, sanitize_entry};
pub use sanitize::error_text::{ErrorSanitizer, ErrorTextMode};
pub use sanitize::links::LinkSanitizer;
pub use sanitize::media::MediaSanitizer;
#[cfg(feature = "secret-rule-files")]
pub use sanitize::secrets::SecretRulesError;
pub use sanitize::secrets::{OnSecret, SecretRedactor, SecretRules};
pub use sanitize::skills::{SkillIntegrity, check_skill_file};
pub use sanitize::text::{TextSanitizer, sanitize_text};
pub use sanitize::text_fn::text_from_fn;
pub use sanitize::untrusted::UntrustedMarker;
pub use store::{
    ChangedKeys, MemoryStateStore, StateClock, StateRow, StateStore, WriteOutcome,
    WritePrecondition,
};
pub use validation::arguments::{ArgumentValidation, UriSpelling, is_closed};
pub use validation::outbound_secrets::{OnOutboundSecret, OutboundSecrets};
pub use validation::output_schema::{OnInvalidOutput, OutputValidation};
pub use validation::placeholders::{OnPlaceholder, Placeholders};
pub use validation::schema::{
    RequiredDefaults, SchemaBounds, SchemaSanitizer, check_item_schemas, check_schemas,
    fits_schema, unchecked_keywords, validate_value,
};
