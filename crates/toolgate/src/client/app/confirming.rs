//! Confirmation of tool calls by the application.

use super::Listed;
use toolgate_core::{Approval, Call, Decision, Item, Json, Op, Rule, Verdict};
use toolgate_wire::json::ObjectWriter;

/// Tool call that the application must confirm: exactly what would be sent.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Confirming {
    /// Server id, as set on this client.
    pub server: String,
    /// Tool definition. Its annotations are only claims; see [`Listed::hints`].
    pub tool: Listed,
    /// Exact arguments.
    pub arguments: Json,
}

impl Confirming {
    pub(super) fn of(approval: &Approval) -> Confirming {
        Confirming {
            server: approval.item.origin.server.to_string(),
            tool: Listed(approval.item.clone()),
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

    fn hides_some(&self) -> bool {
        false
    }

    fn decide<'a>(&'a self, call: &'a Call, _: &'a Item) -> Decision<'a> {
        Decision::Now(match call.op {
            Op::Tool => Verdict::Ask("the application confirms every call".to_owned()),
            _ => Verdict::Allow,
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
