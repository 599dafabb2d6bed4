//! Views of approvals and errors of decisions, for the console and the command line.

use super::{
    ApprovalBinding, ApprovalRequirement, ApprovalStatus, Approver, is_harmless,
    pending::PendingApproval,
};
use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};
use toolgate_core::{Call, Error, Item, Json, RequestInfo};

/// Limits of the approval service: lifetimes and numbers of pending approvals and grants.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ApprovalLimits {
    /// Time in which an approval can be decided and used by its call. Default: 600 s.
    pub approval_lifetime: Duration,
    /// Time in which an approval can be decided and used by a call that can run as a task, so that its caller comes back
    /// later. Default: 600 s.
    pub task_approval_lifetime: Duration,
    /// Maximum number of pending approvals per caller. Default: 16.
    pub max_pending_per_caller: usize,
    /// Maximum number of pending approvals in total. Default: 256.
    pub max_pending: usize,
    /// Maximum number of grants (remembered approvals). Default: 1,000.
    pub max_grants: usize,
    /// Lifetime of a grant (remembered approval) without an explicit expiry. Default: 8 hours.
    pub default_grant_lifetime: Duration,
    /// Maximum lifetime of a grant (remembered approval). Default: 366 days.
    pub max_grant_lifetime: Duration,
}

impl ApprovalLimits {
    /// Returns the lifetime of the approval of a call.
    pub(super) fn lifetime_of(&self, call: &Call) -> Duration {
        match call.task_control.is_supported() {
            true => self.task_approval_lifetime,
            false => self.approval_lifetime,
        }
    }

    /// Returns the longest lifetime of an approval.
    pub(super) fn max_lifetime(&self) -> Duration {
        self.approval_lifetime.max(self.task_approval_lifetime)
    }
}

impl Default for ApprovalLimits {
    /// Returns the default limits: 600 s, 600 s, 16 per caller, 256 in total, 1,000 grants, 8 hours, 366 days.
    fn default() -> ApprovalLimits {
        ApprovalLimits {
            approval_lifetime: Duration::from_secs(600),
            task_approval_lifetime: Duration::from_secs(600),
            max_pending_per_caller: 16,
            max_pending: 256,
            max_grants: 1000,
            default_grant_lifetime: Duration::from_secs(8 * 3600),
            max_grant_lifetime: Duration::from_secs(366 * 24 * 3600),
        }
    }
}

/// View of an approval of a call, pending or decided, for the console and the command line.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ApprovalView {
    /// Id of the approval, `a-…`.
    pub id: Arc<str>,
    /// Exact call that the approval authorizes: caller, item, and digests of definition and arguments.
    pub binding: ApprovalBinding,
    /// Tool, resource or prompt of the call to be approved.
    pub item: Arc<Item>,
    /// Exact arguments of the call to be approved.
    pub arguments: Json,
    /// Reasons why the access rules require an approval of the call.
    pub reasons: Vec<String>,
    /// Ids of the calls that requested the approval, as in the audit log.
    pub calls: Vec<Arc<str>>,
    /// Request information of the first call that requested the approval.
    pub request_info: Arc<RequestInfo>,
    /// Time at which the approval was requested.
    pub requested_at: SystemTime,
    /// Time at which the approval expires.
    pub expires_at: SystemTime,
    /// Status of the approval: pending, approved, denied, expired, revoked or spent.
    pub status: ApprovalStatus,
    /// True if a caller waits for the decision on the approval now.
    pub is_awaited: bool,
    /// True if this process requested the approval, so that it knows whether a caller waits for the decision.
    pub is_local: bool,
    /// True if the approver may create a grant (remembered approval) without a condition.
    pub allows_grant: bool,
    /// Approvers that the call needs.
    pub requirement: ApprovalRequirement,
    /// Approvers who approved the call so far.
    pub approvers: Vec<Approver>,
    /// Arguments of the call as edited by an approver; `None` if they were not edited.
    pub edited_arguments: Option<Json>,
}

/// Error of deciding an approval, or of revoking a grant.
#[derive(Debug)]
#[non_exhaustive]
pub enum ApprovalError {
    /// No approval or grant (remembered approval) has this id.
    Unknown,
    /// The approval is already decided or has expired; its status.
    Decided(ApprovalStatus),
    /// The approval cannot be remembered as a grant, for this reason.
    GrantNotAllowed(&'static str),
    /// The arguments of the call cannot be edited, for this reason.
    NotEditable(String),
    /// The CEL condition of the grant is invalid, for this reason.
    InvalidCondition(String),
    /// The call needs several approvers, and the decision came by a channel that does not identify the approver.
    UnidentifiedApprover,
    /// The approver already approved this call, which needs several approvers.
    SameApprover,
    /// The approver may not approve the call, because they made it.
    OwnCall,
    /// The call needs an approver of these groups.
    WrongGroup(String),
    /// The call needs the passkey of an approver. The text is the address of the console; empty if there is none.
    PasskeyRequired(String),
    /// The signature of the passkey does not count, for this reason.
    InvalidPasskey(String),
    /// The decision on the approval could not be stored.
    NotStored(Error),
    /// The approval counts, but its grant (remembered approval) could not be stored.
    GrantUnkept(Error),
    /// The decision on the approval could not be recorded in the audit log.
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
            ApprovalError::WrongGroup(groups) => write!(
                f,
                "this call needs an approver of {groups}, and your sign-in is in none of these groups; sign in to the console with an account that is"
            ),
            ApprovalError::PasskeyRequired(console) if console.is_empty() => f.write_str(
                "this call needs the passkey of an approver, and this gateway has no console at which passkeys work; set console_url in the config to its https address, or deny the call",
            ),
            ApprovalError::PasskeyRequired(console) => write!(
                f,
                "this call needs the passkey of an approver; open the console at {console}, and approve the call there with a passkey"
            ),
            ApprovalError::InvalidPasskey(why) => write!(f, "this approval is not signed as it has to be: {why}"),
            ApprovalError::OwnCall => f.write_str("you made this call; another person must decide"),
            ApprovalError::GrantUnkept(error) => {
                write!(f, "the call is approved, but the grant was not stored, so the next call needs an approval again: {error}")
            }
            ApprovalError::NotStored(error) | ApprovalError::NotAudited(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ApprovalError {}

impl ApprovalView {
    pub(super) fn of(approval: &PendingApproval) -> ApprovalView {
        let kept = &approval.stored;
        ApprovalView {
            id: approval.id.clone(),
            binding: kept.binding.clone(),
            item: kept.item.clone(),
            arguments: kept.arguments.clone(),
            reasons: kept.reasons.clone(),
            calls: approval.calls.iter().cloned().collect(),
            request_info: kept.request_info.clone(),
            requested_at: kept.requested_at,
            expires_at: approval.expiry.wall,
            status: approval.status(),
            is_awaited: approval.waiters > 0,
            is_local: approval.is_local,
            allows_grant: kept.requirement.is_single() && is_harmless(&kept.item),
            requirement: kept.requirement.clone(),
            approvers: kept.approvers.clone(),
            edited_arguments: kept.edited_arguments.clone(),
        }
    }
}
