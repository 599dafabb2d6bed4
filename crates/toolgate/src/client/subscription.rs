//! Notification streams of a stateless server (`subscriptions/listen`).

use super::{
    connection::{RequestFailure, RequestPurpose, ServerConnection, StreamAcknowledgement},
    negotiate::write_client_meta,
    options::RemoteOptions,
};
use std::{collections::HashSet, pin::pin, sync::Arc, time::Duration};
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, timeout},
};
use toolgate_core::ClientCapabilities;
use toolgate_protocol::{
    dialect::Dialect,
    json::{Json, ObjectWriter},
    method::{LISTEN, definition::ItemKind, initialize::Implementation},
    plural::count_of,
};

/// Minimum and maximum backoff before a closed stream is reopened.
const REOPEN_BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Running subscription; dropping it closes the stream.
pub(super) struct ChangeSubscription {
    task: JoinHandle<()>,
    answered: watch::Receiver<bool>,
}

impl Drop for ChangeSubscription {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ChangeSubscription {
    /// Subscribes for as long as the connection lives. The caller checks that the server declares these notifications.
    pub(super) fn start(
        link: Arc<ServerConnection>,
        dialect: &'static Dialect,
        options: &RemoteOptions,
        kinds: Vec<ItemKind>,
        uris: Vec<String>,
    ) -> ChangeSubscription {
        let (answer, answered) = watch::channel(false);
        let wanted = SubscriptionParams {
            client: options.client.clone(),
            abilities: options.standing_capabilities(),
            kinds,
            uris,
        };
        #[allow(
            clippy::disallowed_methods,
            reason = "one stream per subscription; aborted on drop"
        )]
        let task = tokio::spawn(run_subscription(link, dialect, wanted, answer));
        ChangeSubscription { task, answered }
    }

    /// Waits until the server acknowledged or refused, at most `limit`. Later changes are reported.
    pub(super) async fn wait_for_answer(&self, limit: Duration) {
        let mut answered = self.answered.clone();
        let _ = timeout(limit, answered.wait_for(|answered| *answered)).await;
    }
}

/// Requested notifications, and the `_meta` of the request.
struct SubscriptionParams {
    client: Implementation,
    abilities: ClientCapabilities,
    kinds: Vec<ItemKind>,
    uris: Vec<String>,
}

impl SubscriptionParams {
    fn params(&self, dialect: &'static Dialect) -> Json {
        let mut o = ObjectWriter::new();
        o.object("_meta", |m| {
            write_client_meta(m, dialect, &self.client, &self.abilities)
        });
        o.object("notifications", |n| {
            let kinds = self.kinds.iter();
            kinds.for_each(|kind| n.bool(filter_key(*kind), true));
            if !self.uris.is_empty() {
                n.array("resourceSubscriptions", |a| {
                    self.uris.iter().for_each(|uri| a.str(uri))
                });
            }
        });
        o.finish()
    }

    /// The note on a server that refuses the subscription.
    fn refused(&self) -> String {
        let kinds: Vec<String> = self
            .kinds
            .iter()
            .map(|k| format!("{}s", k.as_str()))
            .collect();
        let subject = match (kinds.split_last(), self.uris.len()) {
            (Some((last, [])), _) => format!("its {last}"),
            (Some((last, rest)), _) => format!("its {} and {last}", rest.join(", ")),
            (None, 1) => "a resource".to_owned(),
            (None, count) => format!("{count} resources"),
        };
        format!("it refused to report changes to {subject}")
    }

    /// Describes the requested changes that the server did not acknowledge.
    fn missing(&self, acknowledged: Option<&Json>) -> Option<String> {
        let told = |key: &str| {
            let value = acknowledged.and_then(|filter| filter.get(key));
            value.and_then(|value| value.bool()) == Some(true)
        };
        let kinds = self.kinds.iter().filter(|kind| !told(filter_key(**kind)));
        let mut missing: Vec<String> = kinds
            .map(|kind| format!("its {}s", kind.as_str()))
            .collect();
        let uris = acknowledged.and_then(|filter| filter.get("resourceSubscriptions"));
        let uris: HashSet<String> = uris
            .iter()
            .flat_map(Json::items)
            .filter_map(|uri| uri.string())
            .collect();
        match self.uris.iter().filter(|uri| !uris.contains(*uri)).count() {
            0 => {}
            n => missing.push(format!(
                "{n} of {}",
                count_of(self.uris.len() as u64, "resource")
            )),
        }
        (!missing.is_empty()).then(|| missing.join(" and "))
    }
}

/// Returns the filter member for the list of that kind.
fn filter_key(kind: ItemKind) -> &'static str {
    match kind {
        ItemKind::Tool => "toolsListChanged",
        ItemKind::Resource | ItemKind::Template | ItemKind::Skill => "resourcesListChanged",
        ItemKind::Prompt => "promptsListChanged",
    }
}

async fn run_subscription(
    link: Arc<ServerConnection>,
    dialect: &'static Dialect,
    wanted: SubscriptionParams,
    answer: watch::Sender<bool>,
) {
    let (mut wait, mut first) = (REOPEN_BACKOFF.0, true);
    loop {
        let began = Instant::now();
        let ended = run_stream(&link, dialect, &wanted, &answer, first).await;
        // Callers wait for the first answer only.
        answer.send_replace(true);
        first = false;
        match ended {
            Ok(_) => {}
            // The lists are then refreshed periodically, as with all servers that report no changes.
            Err(
                RequestFailure::Rpc(_)
                | RequestFailure::Malformed(_)
                | RequestFailure::Rejected(_)
                | RequestFailure::Unusable(_),
            ) => {
                return link.notes.record(wanted.refused());
            }
            Err(RequestFailure::Http {
                status: Some(400..=499),
                ..
            }) => return link.notes.record(wanted.refused()),
            Err(RequestFailure::ConnectionLost { .. } | RequestFailure::Http { .. })
                if link.is_lost() =>
            {
                return;
            }
            // Over HTTP a stream may close at any time.
            Err(
                RequestFailure::ConnectionLost { .. }
                | RequestFailure::Http { .. }
                | RequestFailure::BudgetExceeded,
            ) => {}
        }
        wait = if began.elapsed() > REOPEN_BACKOFF.1 {
            REOPEN_BACKOFF.0
        } else {
            (wait * 2).min(REOPEN_BACKOFF.1)
        };
        tokio::time::sleep(wait).await;
    }
}

/// Runs one stream until it ends.
async fn run_stream(
    link: &ServerConnection,
    dialect: &'static Dialect,
    wanted: &SubscriptionParams,
    answer: &watch::Sender<bool>,
    first: bool,
) -> Result<Json, RequestFailure> {
    let listening = Arc::new(StreamAcknowledgement::default());
    let purpose = RequestPurpose::Listen(listening.clone());
    let mut ended = pin!(link.request(LISTEN, purpose, |_| wanted.params(dialect)));
    let acknowledged = tokio::select! {
        biased;
        acknowledged = listening.wait_for_acknowledgement() => acknowledged,
        ended = &mut ended => return ended,
    };
    if let Some(missing) = wanted.missing(acknowledged.as_ref()) {
        link.notes.record(format!(
            "it acknowledged only part of the subscription, so it will not report changes to {missing}"
        ));
    }
    answer.send_replace(true);
    if !first {
        // Changes while no stream was open were not reported.
        wanted
            .uris
            .iter()
            .for_each(|uri| link.mark_resource_updated(uri));
    }
    ended.await
}
