//! Core vocabulary of Toolgate: everything that offers tools is a [`Service`], and every policy is a [`Layer`] over
//! one.
//!
//! The core has a single call model, that of the stateless revision: a call carries everything it needs. Input required
//! from a person is a result, [`Outcome::Ask`]; the caller then repeats the call with the answers. JSON-RPC ids,
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

pub use background::{Background, Pace};
pub use call::{
    Abilities, Arguments, Call, CallParts, Caller, Interest, LimitSubject, List, Round, Seen,
    Slots, StartWait, Use,
};
pub use catalog::{About, Catalog, Item, Origin, Own};
pub use changes::{Changed, Changes, Stale};
pub use error::{BoxError, Error, Kind, Need, NotSent, Problem, Refusal};
/// Boxed future that can be sent to another thread.
pub use futures_util::future::BoxFuture;
pub use gate::{Confirm, Confirmed, Decision, Rule, Verdict};
pub use held::Held;
pub use layer::{Layer, Next};
pub use note::{DefinitionNote, HIDDEN_BY_CONFIG, ItemNote, MAX_NOTES_PER_LIST, NoteAction};
pub use operator_detail::OperatorDetail;
pub use pin::{PinState, Pinning};
pub use pipeline::{Pipeline, Resolved, Unresolved};
pub use principal::Principal;
pub use question::{Approval, Ask, AskKind, Open, Questions, SignInPage, Waiting};
pub use reporter::{Event, LogMessage, Report, Reporter};
pub use scrub::{Asked, Returned, Scrub};
pub use service::{Outcome, Service};
pub use toolgate_wire::{
    json::{Json, View},
    method::{
        complete::CompleteResult,
        content::{Content, ContentKind},
        definition::{Definition, Hints, ItemKind, PromptArgument},
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
pub use trail::{GivenUp, Step, Trail};
pub use visible::{unsteered, visible, visible_line};
pub use way::{Foreseen, Way};
