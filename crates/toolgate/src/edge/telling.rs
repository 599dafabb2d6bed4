//! What one peer of the revisions with a handshake hears of changes.

use super::{
    Front, TaskOffer,
    changes::{self, TOGETHER},
    given::{GivenLists, ToldLists, add},
    outlet::{Frame, Outlet},
    tasks::OfSession,
};
use futures_util::FutureExt;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::{sync::mpsc, task::AbortHandle};
use toolgate_core::{Caller, Changed, Changes, Error, Interest};
use toolgate_wire::{
    dialect::Dialect,
    json::Json,
    message::{self, RpcError, code},
    method::tasks::Words,
    room::{COPIES, Claim},
};

/// What a resource takes up besides its URI, in bytes, wherever it is heard of.
const URI: u64 = 512;

/// What one peer hears of changes.
pub(super) struct Telling {
    server: Arc<Front>,
    caller: Caller,
    dialect: &'static Dialect,
    /// The tasks of the peer, where its revision has words for them.
    pub(super) tasks: Option<Arc<OfSession>>,
    /// The lists that the peer was given.
    pub(super) given: GivenLists,
    state: Mutex<State>,
    /// One listens anew at a time, so that what was wanted last is what is heard last.
    anew: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    /// With what each takes up.
    uris: BTreeMap<String, Claim>,
    stream: Option<Stream>,
}

/// A running stream; dropping it ends it.
struct Stream {
    swaps: mpsc::Sender<Changes>,
    task: AbortHandle,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Telling {
    pub(super) fn new(
        server: Arc<Front>,
        caller: Caller,
        dialect: &'static Dialect,
    ) -> Arc<Telling> {
        let has_tasks = server.offers.tasks != TaskOffer::None && dialect.tasks == Words::Core;
        Arc::new(Telling {
            server,
            caller,
            dialect,
            tasks: has_tasks.then(Arc::default),
            given: GivenLists::default(),
            state: Mutex::default(),
            anew: tokio::sync::Mutex::default(),
        })
    }

    /// Tells changes on `outlet` until nobody reads it; a second stream takes the place of the first.
    pub(super) fn start(self: &Arc<Self>, outlet: Outlet) {
        let (swaps, next) = mpsc::channel(1);
        let mut run = Box::pin(self.clone().run(outlet, next));
        // Listening begins here and now: the peer's next request may be what changes something.
        if (&mut run).now_or_never().is_some() {
            return self.close();
        }
        #[allow(
            clippy::disallowed_methods,
            reason = "an edge owns the stream of its peer and aborts it"
        )]
        let task = tokio::spawn(run).abort_handle();
        self.state().stream = Some(Stream { swaps, task });
    }

    /// Ends the stream.
    pub(super) fn close(&self) {
        self.state().stream = None;
    }

    /// The peer wants to hear of a resource, and does so once this ends.
    pub(super) async fn hear(&self, uri: String) -> Result<(), RpcError> {
        let mut claim = self.server.account(&self.caller).claim();
        let room = claim.count(uri.len() as u64 * COPIES + URI);
        room.map_err(|full| RpcError::new(code::INTERNAL, full.to_string()))?;
        if !self.state().enter(uri, claim, self.server.limits.uris) {
            let most = self.server.limits.uris;
            let text = format!("one session may hear of {most} resources; unsubscribe from some");
            return Err(RpcError::new(code::INTERNAL, text));
        }
        self.listen_anew().await
    }

    /// The peer wants to hear of a resource no longer.
    pub(super) async fn forget(&self, uri: &str) -> Result<(), RpcError> {
        self.state().uris.remove(uri);
        self.listen_anew().await
    }

    /// The new listening begins before the old one ends, so that no change falls between the two.
    async fn listen_anew(&self) -> Result<(), RpcError> {
        let _one = self.anew.lock().await;
        let Some(swaps) = self.state().stream.as_ref().map(|s| s.swaps.clone()) else {
            return Ok(());
        };
        let changes = self
            .changes()
            .await
            .map_err(|e| super::answer::list_failed(&e))?;
        // Where the stream ended meanwhile there is nobody to tell.
        let _ = swaps.send(changes).await;
        Ok(())
    }

    async fn changes(&self) -> Result<Changes, Error> {
        let want = Interest {
            uris: self.state().uris.keys().cloned().collect(),
            ..Interest::lists(self.caller.clone())
        };
        Ok(self.server.service.changes(want.clone()).await?.only(&want))
    }

    async fn run(self: Arc<Self>, outlet: Outlet, swaps: mpsc::Receiver<Changes>) {
        tokio::select! {
            () = self.tell(&outlet, swaps) => {}
            () = self.tell_tasks(&outlet) => {}
            () = self.server.closed() => {}
            () = outlet.closed() => {}
        }
    }

    async fn tell_tasks(&self, outlet: &Outlet) {
        let Some(tasks) = &self.tasks else {
            return std::future::pending().await;
        };
        let tell = |method, params: Json| async move {
            let text = message::notification(method, Some(&params));
            outlet.send(Frame::Before(text.into())).await;
        };
        tasks.tell(self.dialect, tell).await
    }

    async fn tell(&self, outlet: &Outlet, mut swaps: mpsc::Receiver<Changes>) {
        let first = {
            let _one = self.anew.lock().await;
            self.changes().await
        };
        let Ok(mut changes) = first else { return };
        let (mut over, mut pending, mut lists) = (false, Vec::new(), ToldLists::default());
        loop {
            let swapped = tokio::select! {
                new = swaps.recv() => new,
                changed = changes.next(), if !over => {
                    over = changed.is_none();
                    if let Some(changed) = changed {
                        tokio::time::sleep(TOGETHER).await;
                        let more = changes.next().now_or_never().flatten();
                        let mut changed = changes::together(changed, more);
                        add(&mut pending, std::mem::take(&mut changed.lists));
                        told(outlet, changed).await;
                    }
                    continue;
                }
                lists = self.given.outdated(&self.server, &self.caller, &pending, &mut lists), if !pending.is_empty() => {
                    pending.clear();
                    told(outlet, Changed { lists, updated: Vec::new() }).await;
                    continue;
                }
            };
            let Some(new) = swapped else { return };
            // What the old one heard and did not yet tell.
            let last = changes.next().now_or_never().flatten();
            let mut last = last.unwrap_or_default();
            add(&mut pending, std::mem::take(&mut last.lists));
            told(outlet, last).await;
            (changes, over) = (new, false);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// False where there are too many.
    fn enter(&mut self, uri: String, claim: Claim, most: usize) -> bool {
        let fits = self.uris.len() < most || self.uris.contains_key(&uri);
        if fits {
            self.uris.insert(uri, claim);
        }
        fits
    }
}

async fn told(outlet: &Outlet, changed: Changed) {
    for (method, params) in changes::told(&changed) {
        let text = message::notification(method, Some(&params.finish()));
        outlet.send(Frame::Before(text.into())).await;
    }
}
