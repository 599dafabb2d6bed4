//! Core vocabulary of Toolgate: everything that offers tools is a [`Service`], and every policy is a [`Layer`] over
//! one.
//!
//! The core has a single call model, that of the stateless revision: a call carries everything it needs. Input required
//! from a person is a result, [`Outcome::InputRequired`]; the caller then repeats the call with the answers. JSON-RPC ids,
//! headers, page cursors, protocol revisions and tokens are handled at the edges and do not appear here.

mod background;
mod call;
mod catalog;
mod changes;
mod cuts;
mod error;
mod gate;
mod held;
mod layer;
mod note;
mod operator_detail;
mod pin;
mod pipeline;
mod principal;
mod question;
mod reporter;
mod scrub;
mod service;
mod starting;
mod trail;
mod visible;
mod way;

pub use background::{TaskControl, TaskMode};
pub use call::{
    Call, CallArguments, CallParts, Caller, ChangeFilter, ClientCapabilities, Invocation,
    LimitSubject, ListRequest, RequestInfo, Round, RoundSlots, StartWait,
};
pub use catalog::{Catalog, Item, Origin, OriginalDefinition, ServerInstructions};
pub use changes::{ChangeCounters, ChangeSet, ChangeStream};
pub use error::{
    BoxError, Error, ErrorKind, NotSent, RefusalReason, RequiredCapability, SchemaViolation,
};
/// Boxed future that can be sent to another thread.
pub use futures_util::future::BoxFuture;
pub use gate::{ApprovalOutcome, ApprovalStep, MaybeReady, Rule, RuleDecision};
pub use held::HeldPermits;
pub use layer::{Layer, Next};
pub use note::{DefinitionNote, HIDDEN_BY_CONFIG, ItemNote, MAX_NOTES_PER_LIST, NoteAction};
pub use operator_detail::OperatorDetail;
pub use pin::{DefinitionPin, PinState};
pub use pipeline::{Pipeline, ResolvedPipeline, UnresolvedPipeline};
pub use principal::Principal;
pub use question::{
    ApprovalRequest, DecisionWaiter, InputRequest, InputRequestKind, InputRequests,
    PendingInputGuard, SignInPage,
};
pub use reporter::{CallReporter, EventSink, LogMessage, ReporterEvent};
pub use scrub::{SanitizeContext, Sanitizer, UntrustedContent};
pub use service::{Outcome, Service};
pub use toolgate_wire::{
    json::{Json, JsonView},
    method::{
        complete::CompleteResult,
        content::{Content, ContentKind},
        definition::{Definition, ItemKind, PromptArgument, ToolAnnotations},
        list::CacheHint,
        notifications::Progress,
        output::Output,
        prompts_get::{PromptMessage, PromptResult},
        resources_read::ReadResult,
        tools_call::ToolResult,
        trace::TraceContext,
        usage::Op,
    },
};
pub use trail::{CancelReason, DecisionLog, DecisionStep};
pub use visible::{escape_bidi, visible, visible_line};
pub use way::{DryRun, PredictedOutcome};
