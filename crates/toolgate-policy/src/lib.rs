//! The policy of Toolgate: layers, rules, sanitizers and approvals, and the pipeline that orders them.
//!
//! Start at [`pipeline`]: its table is the policy. Each file holds one layer, rule, scrub or confirm of
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

pub use access::{Access, AccessRule, ArgumentReads, Then};
pub use arguments::{Arguments, UriSpelling, is_closed};
pub use asking::{Asking, OnForm, OnSample, check_form_answer};
pub use at_once::{AtOnce, Caps};
pub use circuit_breaker::CircuitBreaker;
pub use cleaning::Cleaning;
pub use confirm::{
    ApprovalView, AskOnce, Binding, By, Confirm, Desk, DeskError, DeskLimits, GrantView,
    KEY as APPROVAL_KEY, Persons, PersonsRule, Remember, Standing, ViaClient, Who, Yes,
};
pub use contain::{Contain, withhold_panic_words};
pub use contents::{Contents, Held};
pub use deadline::Deadline;
pub use entry::Entry;
pub use errors::{ErrorText, Errors};
pub use foreign::Foreign;
pub use freeze::{Freeze, FreezeView, Freezes, Frozen};
pub use intent::{Intent, Waits};
pub use links::Links;
pub use media::Media;
pub use observer::{CallView, End, Observer, Stage, Unobserved};
pub use output_schema::{Broken, OutputSchema};
pub use pattern::Pattern;
pub use per_server::PerServer;
pub use pins::{
    First, LookAlikes, OnChange, PinError, PinEvent, PinNews, PinView, Pinned, PinnedText, Pins,
};
pub use placeholders::{OnPlaceholder, Placeholders};
pub use rate::{Quota, Rate, RateRule};
pub use record::{Recorder, for_record};
pub use schema::{
    Bounds, RequiredDefaults, Schemas, check_schemas, fits, judge, unchecked_keywords,
};
pub use scopes::{ScopeRule, Scopes};
pub use secrets::{Leaks, OnLeak, OnSecret, SecretRules, SecretRulesError, Secrets};
pub use size::{Cut, Size};
pub use skills::{Skills, is_stated};
pub use standard::{Route, Standard, inspect, keeping, pipeline};
pub use stop::Stop;
pub use store::{Clock, Expect, Memory, Row, Store, Written};
pub use text::{Text, clean};
pub use when::{ArgumentNames, Facts, When, WhenLimits};
