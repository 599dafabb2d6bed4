//! Kill switch: freezes a caller, a server or everything until the operator thaws it.

use crate::{Approver, AuditRecorder, StateStore, WritePrecondition, access::keys::ApiKeys};
use serde_json::{Value, json};
use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use toolgate_core::{
    BoxFuture, Call, Caller, Error, ErrorKind, Item, Layer, MaybeReady, Next, Outcome,
    RefusalReason, Rule, RuleDecision,
};
use toolgate_journal::{AuditEntry, AuditEvent};

/// Table of the store.
const FREEZES_TABLE: &str = "freezes";

/// Scope of a freeze, which rejects calls until the operator lifts it: all calls, those of one caller, or those to one
/// server.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum FreezeScope {
    /// All calls are frozen.
    All,
    /// All calls of the caller with this name are frozen.
    Caller(String),
    /// All calls to the server with this configured id are frozen.
    Server(String),
}

impl FreezeScope {
    /// Parses the scope of a freeze: `all`, `caller NAME` or `server ID`.
    pub fn read(text: &str) -> Option<FreezeScope> {
        match text.split_once(' ') {
            None if text == "all" => Some(FreezeScope::All),
            Some(("caller", name)) if !name.is_empty() => {
                Some(FreezeScope::Caller(name.to_owned()))
            }
            Some(("server", id)) if !id.is_empty() => Some(FreezeScope::Server(id.to_owned())),
            _ => None,
        }
    }

    fn covers(&self, caller: &Caller, server: &str) -> bool {
        match self {
            FreezeScope::All => true,
            FreezeScope::Caller(name) => name == caller.name(),
            FreezeScope::Server(id) => id == server,
        }
    }
}

impl fmt::Display for FreezeScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FreezeScope::All => f.write_str("all"),
            FreezeScope::Caller(name) => write!(f, "caller {name}"),
            FreezeScope::Server(id) => write!(f, "server {id}"),
        }
    }
}

/// View of a freeze (a temporary rejection of calls by the operator) for the console and the command line.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FreezeView {
    /// Scope of the freeze: all calls, one caller or one server.
    pub scope: FreezeScope,
    /// Reason for the freeze, shown to callers.
    pub reason: Option<String>,
    /// Name of the person who set the freeze, for display.
    pub by: String,
    /// Time at which the freeze was set.
    pub frozen_at: SystemTime,
}

impl FreezeView {
    fn json(&self) -> Value {
        let since = self
            .frozen_at
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        json!({"reason": self.reason, "by": self.by, "since": since.as_millis() as u64})
    }

    /// Reads a row. A malformed row still freezes its scope, and an unreadable scope freezes everything.
    fn read(key: &str, value: &Value) -> FreezeView {
        let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let since = value.get("since").and_then(Value::as_u64).unwrap_or(0);
        let since = UNIX_EPOCH.checked_add(Duration::from_millis(since));
        FreezeView {
            scope: FreezeScope::read(key).unwrap_or(FreezeScope::All),
            reason: text("reason"),
            by: text("by").unwrap_or_default(),
            frozen_at: since.unwrap_or(UNIX_EPOCH),
        }
    }

    fn sentence(&self) -> String {
        let what = match &self.scope {
            FreezeScope::All => "the operator froze everything".to_owned(),
            FreezeScope::Caller(_) => "the operator froze this caller".to_owned(),
            FreezeScope::Server(id) => format!("the operator froze the server {id}"),
        };
        match &self.reason {
            Some(reason) => format!("{what}: {reason}"),
            None => what,
        }
    }
}

/// Registry of freezes (temporary rejections of calls) and API keys, shared by all processes of a data directory.
///
/// ```
/// use std::sync::Arc;
/// use toolgate_core::{Caller, Pipeline};
/// use toolgate_policy::{
///     ApprovalChannel, Approver, AuditRecorder, FreezeLayer, FreezeRegistry, FreezeScope, FreezeView,
///     MemoryStateStore,
/// };
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), toolgate_core::Error> {
/// let recorder = Arc::new(AuditRecorder::log());
/// let freezes = FreezeRegistry::new(recorder, Arc::new(MemoryStateStore::new()));
/// let pipeline = Pipeline::new().resolve().rule(FreezeLayer(freezes.clone()));
///
/// let operator = Approver::named(ApprovalChannel::Console, "ann");
/// let scope = FreezeScope::Server("mail".to_owned());
/// freezes.freeze(scope.clone(), Some("it sends spam".to_owned()), operator.clone()).await?;
/// let reason = freezes.frozen_reason(&Caller::new("bob"), "mail");
/// assert_eq!(reason.as_deref(), Some("the operator froze the server mail: it sends spam"));
///
/// let first: FreezeView = freezes.list()[0].clone();
/// assert_eq!(first.by, "ann (console)");
/// assert!(freezes.thaw(scope, operator).await?);
/// # drop(pipeline);
/// # Ok(())
/// # }
/// ```
pub struct FreezeRegistry {
    recorder: Arc<AuditRecorder>,
    store: Arc<dyn StateStore>,
    keys: Arc<ApiKeys>,
    read: Mutex<(Option<u64>, Arc<[FreezeView]>)>,
}

impl FreezeRegistry {
    /// Creates a registry of the freezes in this store, which records changes with this recorder.
    pub fn new(recorder: Arc<AuditRecorder>, store: Arc<dyn StateStore>) -> Arc<FreezeRegistry> {
        Arc::new(FreezeRegistry {
            keys: Arc::new(ApiKeys::new(recorder.clone(), store.clone())),
            recorder,
            store,
            read: Mutex::new((None, Arc::from([]))),
        })
    }

    /// Returns all freezes in force.
    pub fn list(&self) -> Arc<[FreezeView]> {
        let now = *self.store.changed().borrow();
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if read.0 != Some(now) {
            let rows = self.store.entries(FREEZES_TABLE);
            let views = rows
                .iter()
                .map(|row| FreezeView::read(&row.key, &row.value));
            *read = (Some(now), views.collect());
        }
        read.1.clone()
    }

    /// Returns the registry of the callers' API keys, whose revocation stops calls like a freeze.
    pub fn keys(&self) -> &Arc<ApiKeys> {
        &self.keys
    }

    /// Returns the reason, as a sentence, why calls of this caller to this server are frozen, or `None`.
    pub fn frozen_reason(&self, caller: &Caller, server: &str) -> Option<String> {
        let list = self.list();
        let view = list.iter().find(|f| f.scope.covers(caller, server));
        let frozen = view.map(FreezeView::sentence);
        frozen.or_else(|| self.keys.rejection_reason(caller))
    }

    /// Freezes a scope (all calls, a caller or a server): cancels its running calls and rejects new ones. Freezing it
    /// again replaces the reason.
    ///
    /// # Errors
    /// The freeze could not be stored or recorded.
    pub async fn freeze(
        &self,
        scope: FreezeScope,
        reason: Option<String>,
        approver: Approver,
    ) -> Result<(), Error> {
        let reason = reason.map(|r| crate::sanitize::text::sanitize_text(r.trim()).into_owned());
        let view = FreezeView {
            reason: reason
                .map(|r| r.chars().take(1000).collect::<String>())
                .filter(|r| !r.is_empty()),
            by: approver.to_string(),
            frozen_at: self.store.clock().now(),
            scope,
        };
        let key = view.scope.to_string();
        // The freeze takes effect before it is audited, and does not wait for a shared store.
        let written = self.store.write_urgent(FREEZES_TABLE, &key, view.json());
        written.await?;
        let record = self.record("frozen", &view.scope, &approver);
        let record = record.with("reason", view.reason.unwrap_or_default());
        self.recorder.append(record)?.await
    }

    /// Lifts the freeze of a scope (all calls, a caller or a server). Returns `false` if it is not frozen.
    ///
    /// # Errors
    /// The thaw could not be stored or recorded. The scope stays frozen then.
    pub async fn thaw(&self, scope: FreezeScope, approver: Approver) -> Result<bool, Error> {
        if !self.list().iter().any(|view| view.scope == scope) {
            return Ok(false);
        }
        self.recorder
            .append(self.record("thawed", &scope, &approver))?
            .await?;
        for row in self.store.entries(FREEZES_TABLE) {
            if FreezeView::read(&row.key, &row.value).scope == scope {
                self.store
                    .write(FREEZES_TABLE, &row.key, None, WritePrecondition::Any)
                    .await?;
            }
        }
        Ok(true)
    }

    fn record(&self, state: &str, what: &FreezeScope, who: &Approver) -> AuditEntry {
        let record = AuditEntry::new(AuditEvent::FREEZE)
            .with("state", state)
            .with("what", what.to_string());
        who.add_to(record)
    }

    /// Completes with the reason once a freeze covers this caller or server.
    async fn wait_until_frozen(&self, caller: &Caller, server: &str) -> String {
        let mut changed = self.store.changed();
        loop {
            if let Some(why) = self.frozen_reason(caller, server) {
                return why;
            }
            if changed.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }
}

/// Layer that rejects frozen calls before an approval is requested and again before they are sent. Cancels running
/// calls.
#[derive(Clone)]
pub struct FreezeLayer(pub Arc<FreezeRegistry>);

fn refused(why: &str) -> Error {
    let text = format!("refused: {why}");
    Error::new(ErrorKind::Refused(RefusalReason::Rule), text)
}

impl Rule for FreezeLayer {
    fn name(&self) -> &'static str {
        "freeze"
    }

    // Frozen tools stay listed, so that callers get the reason instead of an unknown tool.
    fn may_hide_items(&self) -> bool {
        false
    }

    fn decide<'a>(&'a self, call: &'a Call, item: &'a Item) -> MaybeReady<'a> {
        let frozen = self.0.frozen_reason(&call.caller, &item.origin.server);
        MaybeReady::Ready(
            frozen.map_or(RuleDecision::Allow, |why| RuleDecision::Deny(refused(&why))),
        )
    }
}

impl Layer for FreezeLayer {
    fn name(&self) -> &'static str {
        "freeze"
    }

    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(async move {
            let Some(item) = call.item().cloned() else {
                return Err(call.unknown_item_error());
            };
            let (caller, server) = (call.caller.clone(), item.origin.server.clone());
            if let Some(why) = self.0.frozen_reason(&caller, &server) {
                call.decision_log.add("freeze", "refuse", why.clone());
                return Err(refused(&why));
            }
            tokio::select! {
                outcome = next.call(call) => outcome,
                why = self.0.wait_until_frozen(&caller, &server) => {
                    let text = format!("stopped: {why}");
                    Err(Error::new(ErrorKind::Cancelled, text))
                }
            }
        })
    }
}
