//! A call that waits for the application to let it pass.

use super::Listed;
use toolgate_core::{Approval, Call, Decision, Item, Json, Op, Rule, Verdict};
use toolgate_wire::json::ObjectWriter;

/// A call of a tool that waits for the application to let it pass: exactly what would be sent.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Confirming {
    /// The server, as this client calls it.
    pub server: String,
    /// The tool. What it says of itself is a claim; see [`Listed::hints`].
    pub tool: Listed,
    /// The exact arguments.
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

/// Asks about every call of a tool.
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

/// The answer to the question of the pipeline.
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
