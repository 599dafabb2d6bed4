//! What the console and the command line see of a desk, and what it answers them.

use super::{Binding, Standing, Who, harmless, slip::Slip};
use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};
use toolgate_core::{Error, Item, Json, Seen};

/// How much fits on a desk.
#[derive(Clone, Copy, Debug)]
pub struct DeskLimits {
    /// How long an approval may be decided and used.
    pub life: Duration,
    /// Open approvals of one caller.
    pub per_caller: usize,
    /// Open approvals in all.
    pub open: usize,
    /// Grants.
    pub grants: usize,
    /// How long a yes is remembered where nobody says how long.
    pub grant_life: Duration,
    /// The longest time for which one can be remembered.
    pub grant_longest: Duration,
}

impl Default for DeskLimits {
    /// 600 s, 16, 256, 1,000, 8 hours, 366 days.
    fn default() -> DeskLimits {
        DeskLimits {
            life: Duration::from_secs(600),
            per_caller: 16,
            open: 256,
            grants: 1000,
            grant_life: Duration::from_secs(8 * 3600),
            grant_longest: Duration::from_secs(366 * 24 * 3600),
        }
    }
}

/// An approval as the console and the command line show it.
#[derive(Clone, Debug)]
pub struct ApprovalView {
    /// Names it, `a-…`.
    pub id: Arc<str>,
    /// What it is good for.
    pub binding: Binding,
    /// What would be used.
    pub item: Arc<Item>,
    /// The exact arguments.
    pub arguments: Json,
    /// Why somebody has to look.
    pub reasons: Vec<String>,
    /// The calls that asked for it.
    pub calls: Vec<Arc<str>>,
    /// How the edge saw the first of them.
    pub seen: Arc<Seen>,
    /// When it was asked.
    pub asked: SystemTime,
    /// When it expires.
    pub expires: SystemTime,
    /// Where it stands.
    pub standing: Standing,
    /// Whether a caller waits for it right now.
    pub connected: bool,
    /// Whether it was asked in this process, so that it is known whether a caller waits.
    pub own: bool,
    /// Whether a yes may be remembered without a condition.
    pub may_remember: bool,
    /// How many persons have to say yes.
    pub needs: u32,
    /// Who did.
    pub yeses: Vec<Who>,
    /// What a person wrote instead of the arguments.
    pub edit: Option<Json>,
}

/// Why a decision did not count.
#[derive(Debug)]
pub enum DeskError {
    /// There is no such approval or grant.
    Unknown,
    /// It was decided already, or its time is over.
    Decided(Standing),
    /// A yes to this tool cannot be remembered.
    NotRemembered,
    /// Why its arguments cannot be edited so.
    NotEdited(String),
    /// What is wrong with the condition.
    Condition(String),
    /// It needs several persons, and this channel does not know who speaks.
    Nameless,
    /// This person said yes already.
    Same,
    /// This person made the call.
    Own,
    /// The decision could not be kept.
    Unkept(Error),
    /// The approval counts, but its grant could not be kept.
    GrantUnkept(Error),
    /// The decision could not be recorded.
    Unrecorded(Error),
}

impl fmt::Display for DeskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeskError::Unknown => f.write_str("there is none of that id; it may be over for long"),
            DeskError::Decided(Standing::Spent { .. }) => f.write_str("it was approved and used already"),
            DeskError::Decided(Standing::Revoked) => f.write_str("the key of its caller was revoked, so the call was refused"),
            DeskError::Decided(standing) => write!(f, "it is {} already", standing.as_str()),
            DeskError::NotRemembered => f.write_str(
                "a yes can be remembered only for tools that a trusted server calls harmless, or with a condition, only as it stands, only so many, and never where several persons have to say yes; approve it once",
            ),
            DeskError::NotEdited(why) => write!(f, "it cannot be edited: {why}"),
            DeskError::Condition(why) => write!(f, "the condition cannot be used: {why}"),
            DeskError::Nameless => f.write_str(
                "this call needs several persons, and nobody knows who you are; use a terminal, or a login made with `toolgate console --as NAME`",
            ),
            DeskError::Same => f.write_str("you said yes already; another person has to"),
            DeskError::Own => f.write_str("it is your own call; another person has to decide"),
            DeskError::GrantUnkept(error) => {
                write!(f, "it is approved for this call, but the yes is not remembered: {error}")
            }
            DeskError::Unkept(error) | DeskError::Unrecorded(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for DeskError {}

impl ApprovalView {
    pub(super) fn of(slip: &Slip) -> ApprovalView {
        let kept = &slip.kept;
        ApprovalView {
            id: slip.id.clone(),
            binding: kept.binding.clone(),
            item: kept.item.clone(),
            arguments: kept.arguments.clone(),
            reasons: kept.reasons.clone(),
            calls: slip.calls.iter().cloned().collect(),
            seen: kept.seen.clone(),
            asked: kept.asked,
            expires: slip.expiry.wall,
            standing: slip.standing(),
            connected: slip.waiters > 0,
            own: slip.own,
            may_remember: kept.needs <= 1 && harmless(&kept.item),
            needs: kept.needs,
            yeses: kept.yeses.clone(),
            edit: kept.edit.clone(),
        }
    }
}
