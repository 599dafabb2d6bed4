//! The spine of Toolgate: everything that offers tools is a [`Service`], and every duty is a [`Layer`] over one.
//!
//! Inside there is only the modern shape: a call carries everything it needs, and a question to a person is a
//! result, [`Outcome::Ask`], after which the same call comes again with the answers. Nothing here knows a JSON-RPC
//! id, a header, a page cursor, a revision or a token: those end at the edges.

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
/// A boxed future that can be sent to another thread.
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
