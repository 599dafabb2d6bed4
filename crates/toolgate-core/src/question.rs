//! A question to a person is a result: the same call comes again with the answers.

use crate::{BoxFuture, Item, Slots};
use std::{fmt, sync::Arc, time::SystemTime};
use toolgate_wire::json::Json;

/// What has to be answered before a call can go on.
#[derive(Clone, Debug, Default)]
pub struct Questions {
    /// The questions, each with its own key.
    pub asks: Vec<Ask>,
    /// What the layers want to find again; the edge keeps it, or seals it when it leaves.
    pub slots: Slots,
}

/// One question.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Names its answer.
    pub key: String,
    /// What is asked.
    pub kind: AskKind,
}

/// The kinds of questions.
#[derive(Clone, Debug)]
pub enum AskKind {
    /// A person has to let the call pass.
    Approve(Approval),
    /// A form or a page for the user: the parameters of `elicitation/create`.
    Elicit(Json),
    /// A question to the model: the parameters of `sampling/createMessage`.
    Sample(Json),
    /// The roots of the client.
    Roots,
}

/// A call that waits for a person.
#[derive(Clone)]
pub struct Approval {
    /// Names it in the inbox.
    pub id: Arc<str>,
    /// What would be used.
    pub item: Arc<Item>,
    /// The exact arguments.
    pub arguments: Json,
    /// Why somebody has to look.
    pub reasons: Vec<String>,
    /// When it is denied by itself.
    pub expires: SystemTime,
    /// Whether the caller's own client may put the question to its user.
    pub via_client: bool,
    /// Tells when it was decided.
    pub waiting: Arc<dyn Waiting>,
}

impl fmt::Debug for Approval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Approval({} for {})", self.id, self.item.full_name())
    }
}

/// Somebody waits until a person decides, on whatever channel.
pub trait Waiting: Send + Sync + 'static {
    /// Ends when it is decided or expired; then the call comes again.
    fn decided(&self) -> BoxFuture<'static, ()>;

    /// Says that the caller waits; dropping the value says that it went away. The approval stays good.
    fn attend(&self) -> Box<dyn Send + Sync>;
}
