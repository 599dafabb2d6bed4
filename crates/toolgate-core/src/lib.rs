//! Core vocabulary of Toolgate: everything that offers tools is a [`Service`], and every policy is a [`Layer`] over
//! one.
//!
//! The core has a single call model, that of the stateless revision: a call carries everything it needs. Input required
//! from a person is a result, [`Outcome::InputRequired`]; the caller then repeats the call with the answers. JSON-RPC ids,
//! headers, page cursors, protocol revisions and tokens are handled at the edges and do not appear here.
//!
//! ```
//! use std::sync::Arc;
//! use serde_json::json;
//! use tokio::sync::watch;
//! use toolgate_core::{
//!     BoxFuture, Call, CallParts, Caller, Catalog, ChangeCounters, ChangeFilter, ChangeSet, ChangeStream, Definition,
//!     Error, ErrorKind, Invocation, Item, ItemKind, Json, ListRequest, Origin, Outcome, Output, Service, StartWait,
//! };
//!
//! /// Offers one tool, and reports changes of its list.
//! #[derive(Default)]
//! struct Clock {
//!     changes: watch::Sender<ChangeCounters>,
//! }
//!
//! impl Service for Clock {
//!     fn list(&self, request: ListRequest) -> BoxFuture<'_, Result<Catalog, Error>> {
//!         Box::pin(async move {
//!             if request.kind != ItemKind::Tool {
//!                 return Ok(Catalog::new(Vec::new()));
//!             }
//!             let definition = json!({"name": "time", "inputSchema": {"type": "object"}});
//!             let definition = Definition::tool(Json::from_value(&definition))
//!                 .map_err(|why| Error::new(ErrorKind::Bug, why))?;
//!             let origin = Origin { server: "clock".into(), trusted: true };
//!             Ok(Catalog::new(vec![Arc::new(Item::new(origin, definition))]))
//!         })
//!     }
//!
//!     fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
//!         Box::pin(async move {
//!             let CallParts { invocation: Invocation { name, arguments }, .. } = &*call;
//!             if name != "time" {
//!                 return Err(call.unknown_item_error());
//!             }
//!             let zone = arguments.value()["zone"].as_str().unwrap_or("UTC");
//!             Ok(Outcome::Done(Output::text(&format!("noon in {zone}"))))
//!         })
//!     }
//!
//!     fn changes(&self, _filter: ChangeFilter) -> BoxFuture<'_, Result<ChangeStream, Error>> {
//!         Box::pin(async move { Ok(ChangeStream::new(self.changes.subscribe())) })
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! let clock = Clock::default();
//! let caller = Caller::new("ann");
//! let mut request = ListRequest::all(caller.clone(), ItemKind::Tool);
//! request.start_wait = StartWait::None;
//! assert_eq!(clock.list(request).await?.items()[0].full_name(), "clock.time");
//!
//! let arguments = Json::from_value(&json!({"zone": "CET"}));
//! let call = Call::tool("c-1", caller.clone(), "time", arguments);
//! let Outcome::Done(output) = clock.call(call).await? else {
//!     panic!("the tool asks nothing");
//! };
//! assert!(!output.is_error());
//!
//! let mut changes = clock.changes(ChangeFilter::all_lists(caller)).await?;
//! clock.changes.send_modify(|counters| counters.count_list_change(ItemKind::Tool));
//! assert_eq!(changes.next().await, Some(ChangeSet::of_lists(vec![ItemKind::Tool])));
//! # Ok(())
//! # }
//! ```

mod call;
mod catalog;
mod changes;
mod decision_log;
mod dry_run;
mod error;
mod held_permits;
mod input_request;
pub mod layer;
mod note;
mod operation_observer;
mod operator_detail;
mod pin;
mod pipeline;
mod principal;
mod reporter;
mod round;
pub mod rule;
mod rule_layer;
pub mod sanitizer;
mod service;
mod starting;
mod task_control;
mod transport_parts;
mod visibility_cache;
mod visible;

pub use call::{
    Call, CallArguments, CallParts, Caller, ChangeFilter, ClientCapabilities, Invocation,
    LimitSubject, ListRequest, RequestInfo, StartWait,
};
pub use catalog::{Catalog, Item, Origin, OriginalDefinition, ServerInstructions};
pub use changes::{ChangeCounters, ChangeSet, ChangeStream};
pub use decision_log::{CancelReason, DecisionLog, DecisionStep};
pub use dry_run::{DryRun, PredictedOutcome};
pub use error::{
    BoxError, Error, ErrorKind, NotSent, RefusalReason, RequiredCapability, SchemaViolation,
};
/// Boxed future that can be sent to another thread.
pub use futures_util::future::BoxFuture;
pub use held_permits::HeldPermits;
pub use input_request::{
    ApprovalRequest, DecisionWaiter, InputRequest, InputRequestKind, InputRequests,
    PendingInputGuard, SignInPage,
};
pub use layer::{Layer, Next};
pub use note::{DefinitionNote, HIDDEN_BY_CONFIG, ItemNote, MAX_NOTES_PER_LIST, NoteAction};
pub use operation_observer::{
    CallSpan, EndedSession, OperationEnd, OperationError, OperationObserver, ReceivedRequest,
    SentRequest, SpanEventValue,
};
pub use operator_detail::OperatorDetail;
pub use pin::{DefinitionPin, PinState};
pub use pipeline::{Pipeline, ResolvedPipeline, UnresolvedPipeline};
pub use principal::{CallerAttributes, Principal};
pub use reporter::{CallReporter, EventSink, LogMessage, ReporterEvent};
pub use round::{Round, RoundSlots};
pub use rule_layer::{ApprovalOutcome, ApprovalStep, MaybeReady, Rule, RuleDecision};
pub use sanitizer::{SanitizeContext, Sanitizer, UntrustedContent};
pub use service::{Outcome, Service};
pub use task_control::{TaskControl, TaskMode};
pub use toolgate_protocol::{
    json::{Json, JsonView},
    method::{
        complete::CompleteResult,
        content::{Content, ContentAnnotations, ContentKind},
        definition::{Definition, ItemKind, PromptArgument, ToolAnnotations},
        list::CacheHint,
        notifications::Progress,
        operation::Op,
        output::Output,
        prompts_get::{PromptMessage, PromptResult},
        resource_contents::ResourceContents,
        resources_read::ReadResult,
        sampling::{
            ModelPreferences, SampledToolResult, SampledToolUse, SamplingContent, SamplingMessage,
            SamplingParams, SamplingResult, ToolChoice,
        },
        tasks::TaskStatus,
        tools_call::ToolResult,
        trace::TraceContext,
    },
};
pub use transport_parts::TransportParts;
pub use visible::{escape_bidi, visible, visible_line};
