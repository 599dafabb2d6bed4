//! A question to a person is a result: the same call comes again with the answers.

use crate::{BoxFuture, Item, Slots};
use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};
use toolgate_wire::json::{Json, ObjectWriter};

/// What has to be answered before a call can go on.
#[derive(Clone, Debug, Default)]
pub struct Questions {
    /// The questions, each with its own key.
    pub asks: Vec<Ask>,
    /// What the layers want to find again; the edge keeps it, or seals it when it leaves.
    pub slots: Slots,
    /// What stays open at a server until the answers come.
    pub open: Open,
}

/// What stays open until the answers to questions come. It ends when nobody holds it any more: a layer that refuses to
/// ask need not know of it.
#[derive(Clone, Default)]
pub struct Open(Vec<Arc<End>>);

/// What to do when nobody answers; nothing any more once that is for somebody else to tell.
struct End(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl Open {
    /// Open until that is called.
    pub fn until(end: impl FnOnce() + Send + 'static) -> Open {
        Open(vec![Arc::new(End(Mutex::new(Some(Box::new(end)))))])
    }

    /// Holds what is open for the questions of another round, too.
    pub fn join(&mut self, other: Open) {
        self.0.extend(other.0);
    }

    /// The questions left, and whoever answers comes again in a call of its own: it stays open without being held.
    pub fn leave(self) {
        for end in self.0 {
            end.take();
        }
    }
}

impl End {
    fn take(&self) -> Option<Box<dyn FnOnce() + Send>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for End {
    fn drop(&mut self) {
        if let Some(end) = self.take() {
            end();
        }
    }
}

impl fmt::Debug for Open {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Open({})", self.0.len())
    }
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
    /// A page of this program where the caller's user signs in. No server can ask it.
    SignIn(SignInPage),
}

/// A page of this program where the user of a caller signs in, so that a server can be used in that caller's name.
#[derive(Clone)]
pub struct SignInPage {
    /// Where it is. It gives nobody anything by itself.
    pub url: String,
    /// What the user is told.
    pub message: String,
    /// Tells when somebody signed in: for a caller whose client says that it opened the page, and that waits now.
    pub opened: Option<Arc<dyn Waiting>>,
}

impl SignInPage {
    /// The parameters of `elicitation/create`.
    pub fn params(&self) -> Json {
        let mut params = ObjectWriter::new();
        params.str("mode", "url");
        params.str("message", &self.message);
        params.str("url", &self.url);
        params.finish()
    }
}

impl fmt::Debug for SignInPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SignInPage({})", self.url)
    }
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
