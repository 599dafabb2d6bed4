//! Views of approvals and errors of decisions, for the console and the command line.

use super::{ApprovalBinding, ApprovalStatus, Approver, is_harmless, pending::PendingApproval};
use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};
use toolgate_core::{Error, Item, Json, RequestInfo};

/// Limits of the approval service.
#[derive(Clone, Copy, Debug)]
pub struct ApprovalLimits {
    /// Time in which an approval can be decided and spent. Default: 600 s.
    pub approval_lifetime: Duration,
    /// Maximum number of pending approvals per caller. Default: 16.
    pub max_pending_per_caller: usize,
    /// Maximum number of pending approvals in total. Default: 256.
    pub max_pending: usize,
    /// Maximum number of grants. Default: 1,000.
    pub max_grants: usize,
    /// Lifetime of a grant without an explicit expiry. Default: 8 hours.
    pub default_grant_lifetime: Duration,
    /// Maximum lifetime of a grant. Default: 366 days.
    pub max_grant_lifetime: Duration,
}

impl Default for ApprovalLimits {
    /// Returns the default limits: 600 s, 16 per caller, 256 in total, 1,000 grants, 8 hours, 366 days.
    fn default() -> ApprovalLimits {
        ApprovalLimits {
            approval_lifetime: Duration::from_secs(600),
            max_pending_per_caller: 16,
            max_pending: 256,
            max_grants: 1000,
            default_grant_lifetime: Duration::from_secs(8 * 3600),
            max_grant_lifetime: Duration::from_secs(366 * 24 * 3600),
        }
    }
}

/// View of an approval for the console and the command line.
#[derive(Clone, Debug)]
pub struct ApprovalView {
    /// Id, `a-…`.
    pub id: Arc<str>,
    /// The exact call that it authorizes.
    pub binding: ApprovalBinding,
    /// The item to be called.
    pub item: Arc<Item>,
    /// The exact arguments.
    pub arguments: Json,
    /// Reasons why the rules ask for an approval.
    pub reasons: Vec<String>,
    /// Ids of the calls that requested the approval.
    pub calls: Vec<Arc<str>>,
    /// Request information of the first call.
    pub request_info: Arc<RequestInfo>,
    /// Time of the request.
    pub requested_at: SystemTime,
    /// Expiry.
    pub expires_at: SystemTime,
    /// Status.
    pub status: ApprovalStatus,
    /// True if a caller waits for the decision now.
    pub is_awaited: bool,
    /// True if this process requested the approval, so that `is_awaited` is known.
    pub is_local: bool,
    /// True if a grant may be created without a condition.
    pub allows_grant: bool,
    /// Required number of approvers.
    pub required_approvers: u32,
    /// Approvers so far.
    pub approvers: Vec<Approver>,
    /// Arguments as edited by an approver.
    pub edited_arguments: Option<Json>,
}

/// Reason why a decision was rejected.
#[derive(Debug)]
pub enum ApprovalError {
    /// No approval or grant has this id.
    Unknown,
    /// The approval is already decided or has expired.
    Decided(ApprovalStatus),
    /// The approval cannot be remembered, for this reason.
    GrantNotAllowed(&'static str),
    /// The arguments cannot be edited, for this reason.
    NotEditable(String),
    /// The condition is invalid, for this reason.
    InvalidCondition(String),
    /// The call needs several approvers, and this channel does not identify the approver.
    UnidentifiedApprover,
    /// This approver already approved the call.
    SameApprover,
    /// The approver made the call.
    OwnCall,
    /// The decision could not be stored.
    NotStored(Error),
    /// The approval counts, but its grant could not be kept.
    GrantUnkept(Error),
    /// The decision could not be recorded.
    NotAudited(Error),
}

impl fmt::Display for ApprovalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ApprovalError::Unknown => f.write_str("no approval or grant has this id; it may have ended long ago and been deleted"),
            ApprovalError::Decided(ApprovalStatus::Spent { .. }) => f.write_str("the approval was already used"),
            ApprovalError::Decided(ApprovalStatus::Revoked) => f.write_str("the API key of the caller was revoked, so the call was rejected"),
            ApprovalError::Decided(standing) => write!(f, "the approval is already {}", standing.as_str()),
            ApprovalError::GrantNotAllowed(why) => {
                write!(f, "this approval cannot be remembered: {why}")
            }
            ApprovalError::NotEditable(why) => write!(f, "the arguments cannot be edited: {why}"),
            ApprovalError::InvalidCondition(why) => write!(f, "the condition is invalid: {why}"),
            ApprovalError::UnidentifiedApprover => f.write_str(
                "this call needs several approvers, and this sign-in does not identify you; use a terminal, or sign in with `toolgate console --as NAME`",
            ),
            ApprovalError::SameApprover => f.write_str("you already approved this call; another person must approve it too"),
            ApprovalError::OwnCall => f.write_str("you made this call; another person must decide"),
            ApprovalError::GrantUnkept(error) => {
                write!(f, "the call is approved, but the grant was not stored: {error}")
            }
            ApprovalError::NotStored(error) | ApprovalError::NotAudited(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ApprovalError {}

impl ApprovalView {
    pub(super) fn of(slip: &PendingApproval) -> ApprovalView {
        let kept = &slip.stored;
        ApprovalView {
            id: slip.id.clone(),
            binding: kept.binding.clone(),
            item: kept.item.clone(),
            arguments: kept.arguments.clone(),
            reasons: kept.reasons.clone(),
            calls: slip.calls.iter().cloned().collect(),
            request_info: kept.request_info.clone(),
            requested_at: kept.requested_at,
            expires_at: slip.expiry.wall,
            status: slip.status(),
            is_awaited: slip.waiters > 0,
            is_local: slip.is_local,
            allows_grant: kept.required_approvers <= 1 && is_harmless(&kept.item),
            required_approvers: kept.required_approvers,
            approvers: kept.approvers.clone(),
            edited_arguments: kept.edited_arguments.clone(),
        }
    }
}
