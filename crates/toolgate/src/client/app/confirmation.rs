//! Confirmation of tool calls by the application.

use super::ListedItem;
use toolgate_core::{ApprovalRequest, Call, Item, Json, MaybeReady, Op, Rule, RuleDecision};
use toolgate_protocol::json::ObjectWriter;

/// Tool call that the application must confirm before it is sent, for the function of `ClientBuilder::confirm`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CallConfirmation {
    /// Id of the server that would receive the call, as set on this client.
    pub server: String,
    /// Definition of the called tool. Its annotations are only claims; see [`ListedItem::annotations`].
    pub tool: ListedItem,
    /// Exact arguments that would be sent with the call.
    pub arguments: Json,
}

impl CallConfirmation {
    pub(super) fn of(approval: &ApprovalRequest) -> CallConfirmation {
        CallConfirmation {
            server: approval.item.origin.server.to_string(),
            tool: ListedItem(approval.item.clone()),
            arguments: approval.arguments.clone(),
        }
    }
}

/// Rule that requires a confirmation for every tool call.
pub(super) struct EveryTool;

impl Rule for EveryTool {
    fn name(&self) -> &'static str {
        "application"
    }

    fn may_hide_items(&self) -> bool {
        false
    }

    fn decide<'a>(&'a self, call: &'a Call, _: &'a Item) -> MaybeReady<'a> {
        MaybeReady::Ready(match call.op {
            Op::Tool => {
                RuleDecision::Ask("the application confirms every tool call itself".to_owned())
            }
            _ => RuleDecision::Allow,
        })
    }
}

/// Returns the answer to the pipeline's approval request.
pub(super) fn answer(said: &Result<(), String>) -> Json {
    let mut o = ObjectWriter::new();
    o.str("action", "accept");
    o.object("content", |c| {
        c.bool("approve", said.is_ok());
        if let Err(reason) = said {
            c.str("reason", reason);
        }
    });
    o.finish()
}
