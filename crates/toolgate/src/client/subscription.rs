//! The streams by which a modern server tells what changed.

use super::{
    link::{Failure, Link, Purpose},
    open::stamp,
    options::RemoteOptions,
};
use std::{sync::Arc, time::Duration};
use tokio::task::JoinHandle;
use toolgate_core::Abilities;
use toolgate_wire::{
    dialect::Dialect,
    json::ObjectWriter,
    method::{LISTEN, definition::ItemKind, initialize::Implementation},
};

/// Shortest and longest wait before a stream that ended is opened again.
const AGAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// A running subscription; dropping it ends the stream.
pub(super) struct Subscription(JoinHandle<()>);

impl Drop for Subscription {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Subscription {
    /// Listens as long as the server lives. The caller makes sure that it says it tells changes.
    pub(super) fn start(
        link: Arc<Link>,
        dialect: &'static Dialect,
        options: &RemoteOptions,
        kinds: Vec<ItemKind>,
        uris: Vec<String>,
    ) -> Subscription {
        #[allow(
            clippy::disallowed_methods,
            reason = "an edge: one stream a server, ended with `Subscription`"
        )]
        Subscription(tokio::spawn(listen(
            link,
            dialect,
            (options.client.clone(), options.standing()),
            kinds,
            uris,
        )))
    }
}

/// The member of the filter that stands for a list.
fn filter(kind: ItemKind) -> &'static str {
    match kind {
        ItemKind::Tool => "toolsListChanged",
        ItemKind::Resource | ItemKind::Template => "resourcesListChanged",
        ItemKind::Prompt => "promptsListChanged",
    }
}

async fn listen(
    link: Arc<Link>,
    dialect: &'static Dialect,
    (client, abilities): (Implementation, Abilities),
    kinds: Vec<ItemKind>,
    uris: Vec<String>,
) {
    let mut wait = AGAIN.0;
    loop {
        let began = tokio::time::Instant::now();
        let ended = link.request(LISTEN, Purpose::Listen, |_| {
            let mut o = ObjectWriter::new();
            o.object("_meta", |m| stamp(m, dialect, &client, &abilities));
            o.object("notifications", |n| {
                kinds.iter().for_each(|kind| n.bool(filter(*kind), true));
                if !uris.is_empty() {
                    n.array("resourceSubscriptions", |a| {
                        uris.iter().for_each(|uri| a.str(uri))
                    });
                }
            });
            o.finish()
        });
        match ended.await {
            Ok(_) => {}
            // Then its lists are asked for again from time to time, as with all servers that tell nothing.
            Err(Failure::Rpc(_) | Failure::Malformed(_)) => {
                return link.notes.say("it refused to tell changes of its tools");
            }
            Err(Failure::Http {
                status: Some(400..=499),
                ..
            }) => return link.notes.say("it refused to tell changes of its tools"),
            Err(Failure::Lost { .. } | Failure::Http { .. }) if link.lost().borrow().is_some() => {
                return;
            }
            // Over HTTP a stream may end by itself.
            Err(Failure::Lost { .. } | Failure::Http { .. }) => {}
        }
        wait = if began.elapsed() > AGAIN.1 {
            AGAIN.0
        } else {
            (wait * 2).min(AGAIN.1)
        };
        tokio::time::sleep(wait).await;
    }
}
