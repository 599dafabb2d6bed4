//! Notification streams of a stateless server (`subscriptions/listen`).

use super::{
    link::{Failure, Link, Listening, Purpose},
    open::stamp,
    options::RemoteOptions,
};
use std::{collections::HashSet, pin::pin, sync::Arc, time::Duration};
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, timeout},
};
use toolgate_core::Abilities;
use toolgate_wire::{
    dialect::Dialect,
    json::{Json, ObjectWriter},
    method::{LISTEN, definition::ItemKind, initialize::Implementation},
};

/// Minimum and maximum backoff before a closed stream is reopened.
const AGAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Running subscription; dropping it closes the stream.
pub(super) struct Subscription {
    task: JoinHandle<()>,
    answered: watch::Receiver<bool>,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Subscription {
    /// Subscribes for as long as the connection lives. The caller checks that the server declares these notifications.
    pub(super) fn start(
        link: Arc<Link>,
        dialect: &'static Dialect,
        options: &RemoteOptions,
        kinds: Vec<ItemKind>,
        uris: Vec<String>,
    ) -> Subscription {
        let (answer, answered) = watch::channel(false);
        let wanted = Wanted {
            client: options.client.clone(),
            abilities: options.standing(),
            kinds,
            uris,
        };
        #[allow(
            clippy::disallowed_methods,
            reason = "one stream per subscription; aborted on drop"
        )]
        let task = tokio::spawn(listen(link, dialect, wanted, answer));
        Subscription { task, answered }
    }

    /// Waits until the server acknowledged or refused, at most `limit`. Later changes are reported.
    pub(super) async fn answered(&self, limit: Duration) {
        let mut answered = self.answered.clone();
        let _ = timeout(limit, answered.wait_for(|answered| *answered)).await;
    }
}

/// Requested notifications, and the `_meta` of the request.
struct Wanted {
    client: Implementation,
    abilities: Abilities,
    kinds: Vec<ItemKind>,
    uris: Vec<String>,
}

impl Wanted {
    fn params(&self, dialect: &'static Dialect) -> Json {
        let mut o = ObjectWriter::new();
        o.object("_meta", |m| {
            stamp(m, dialect, &self.client, &self.abilities)
        });
        o.object("notifications", |n| {
            let kinds = self.kinds.iter();
            kinds.for_each(|kind| n.bool(filter(*kind), true));
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
            .map(|k| format!("{}s", k.word()))
            .collect();
        let subject = match (kinds.split_last(), self.uris.len()) {
            (Some((last, [])), _) => format!("its {last}"),
            (Some((last, rest)), _) => format!("its {} and {last}", rest.join(", ")),
            (None, 1) => "a resource".to_owned(),
            (None, count) => format!("{count} resources"),
        };
        format!("it refused to tell changes of {subject}")
    }

    /// What was asked for and stands in no acknowledgement, in words.
    fn missing(&self, acknowledged: Option<&Json>) -> Option<String> {
        let told = |key: &str| {
            let value = acknowledged.and_then(|filter| filter.get(key));
            value.and_then(|value| value.bool()) == Some(true)
        };
        let kinds = self.kinds.iter().map(|kind| filter(*kind));
        let mut missing: Vec<String> = kinds.filter(|key| !told(key)).map(str::to_owned).collect();
        let uris = acknowledged.and_then(|filter| filter.get("resourceSubscriptions"));
        let uris: HashSet<String> = uris
            .iter()
            .flat_map(Json::items)
            .filter_map(|uri| uri.string())
            .collect();
        match self.uris.iter().filter(|uri| !uris.contains(*uri)).count() {
            0 => {}
            n => missing.push(format!("{n} of {} resources", self.uris.len())),
        }
        (!missing.is_empty()).then(|| missing.join(", "))
    }
}

/// Returns the filter member for the list of that kind.
fn filter(kind: ItemKind) -> &'static str {
    match kind {
        ItemKind::Tool => "toolsListChanged",
        ItemKind::Resource | ItemKind::Template | ItemKind::Skill => "resourcesListChanged",
        ItemKind::Prompt => "promptsListChanged",
    }
}

async fn listen(
    link: Arc<Link>,
    dialect: &'static Dialect,
    wanted: Wanted,
    answer: watch::Sender<bool>,
) {
    let (mut wait, mut first) = (AGAIN.0, true);
    loop {
        let began = Instant::now();
        let ended = hear(&link, dialect, &wanted, &answer, first).await;
        // Callers wait for the first answer only.
        answer.send_replace(true);
        first = false;
        match ended {
            Ok(_) => {}
            // The lists are then refreshed periodically, as with all servers that report no changes.
            Err(
                Failure::Rpc(_) | Failure::Malformed(_) | Failure::Unsent(_) | Failure::Unusable(_),
            ) => {
                return link.notes.say(wanted.refused());
            }
            Err(Failure::Http {
                status: Some(400..=499),
                ..
            }) => return link.notes.say(wanted.refused()),
            Err(Failure::Lost { .. } | Failure::Http { .. }) if link.is_lost() => {
                return;
            }
            // Over HTTP a stream may close at any time.
            Err(Failure::Lost { .. } | Failure::Http { .. } | Failure::NoRoom) => {}
        }
        wait = if began.elapsed() > AGAIN.1 {
            AGAIN.0
        } else {
            (wait * 2).min(AGAIN.1)
        };
        tokio::time::sleep(wait).await;
    }
}

/// Runs one stream until it ends.
async fn hear(
    link: &Link,
    dialect: &'static Dialect,
    wanted: &Wanted,
    answer: &watch::Sender<bool>,
    first: bool,
) -> Result<Json, Failure> {
    let listening = Arc::new(Listening::default());
    let purpose = Purpose::Listen(listening.clone());
    let mut ended = pin!(link.request(LISTEN, purpose, |_| wanted.params(dialect)));
    let acknowledged = tokio::select! {
        biased;
        acknowledged = listening.acknowledged() => acknowledged,
        ended = &mut ended => return ended,
    };
    if let Some(missing) = wanted.missing(acknowledged.as_ref()) {
        link.notes.say(format!(
            "it acknowledged only part of the subscription; it will not report changes of {missing}"
        ));
    }
    answer.send_replace(true);
    if !first {
        // Changes while no stream was open were not reported.
        wanted.uris.iter().for_each(|uri| link.updated(uri));
    }
    ended.await
}
